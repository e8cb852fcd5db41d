import GStreamerKit
import MediaGraph
import Synchronization
import TestFixtures
import Testing

@Suite struct PipelineTests {
    @Test("Running time omits a pause, and live timestamps continue")
    func pause() throws {
        let clock = SteppedClock()
        let pipeline = Pipeline(clock: clock.clock) { _ in }
        defer { pipeline.stop() }
        // Until its first buffer, the source reports the latency of 1024 samples, whatever the length of its buffers.
        let source = try Element("audiotestsrc", ["is-live": true, "samplesperbuffer": 1024])
        let format = try Element.filter("audio/x-raw,rate=32000")
        let sink = try Element("fakesink", ["sync": true, "async": false])
        for element in [source, format, sink] { pipeline.add(element) }
        try source.link(format)
        try format.link(sink)
        let times = Record<UInt64>()
        sink.sink.onBuffer { buffer in
            times.add(buffer.runningTime ?? 0)
            return .pass
        }
        #expect(pipeline.play())
        // One thread waits for the buffer's time as a source, and then as a sink.
        func pass(_ buffers: Int) {
            let enough = times.entries.count + buffers
            while times.entries.count < enough, clock.crank() { clock.waitForPending(1) }
        }
        pass(5)
        pipeline.pause()
        pipeline.pause()
        let base = pipeline.baseTime
        let standing = pipeline.runningTime
        let count = times.entries.count
        clock.advance(by: 0.4, pending: 0)
        #expect(pipeline.runningTime == standing)
        #expect(times.entries.count == count)
        pipeline.resume()
        pipeline.resume()
        #expect(pipeline.baseTime == base + 400_000_000)
        pass(20)
        let entries = times.entries
        let gaps = zip(entries, entries.dropFirst()).map { Int($1) - Int($0) }
        // With the resumed pipeline's latency, 32 ms of the source and 20 ms of the sink, the sink holds the buffer from
        // before the pause. Meanwhile time passes, and the source gives its next buffer the current running time.
        #expect(gaps.enumerated().allSatisfy { $1 == ($0 == 4 ? 52_000_000 : 32_000_000) }, "\(gaps)")
        #expect(pipeline.runningTime >= (entries.last ?? 0))
    }

    @Test("An element's error names the element and its parents")
    func failing() throws {
        let messages = Record<BusMessage>()
        let pipeline = Pipeline { messages.add($0) }
        defer { pipeline.stop() }
        let source = try Element("videotestsrc", ["is-live": true])
        let sink = try Element("identity", name: "broken", ["error-after": 3])
        let end = try Element("fakesink", ["async": false])
        for element in [source, sink, end] { pipeline.add(element) }
        try source.link(sink)
        try sink.link(end)
        #expect(pipeline.play())
        #expect(
            messages.wait { messages in
                messages.contains { if case .error(let failure) = $0 { failure.path.first == "broken" } else { false } }
            })
    }

    @Test("Elements join and leave a running pipeline")
    func joining() throws {
        let pipeline = Pipeline { _ in }
        defer { pipeline.stop() }
        let source = try Element("videotestsrc", ["is-live": true])
        let tee = try Element("tee", ["allow-not-linked": true])
        pipeline.add(source)
        pipeline.add(tee)
        try source.link(tee)
        #expect(pipeline.play())
        for _ in 0..<20 {
            let queue = try Element("queue")
            let sink = try Element("fakesink", ["async": false, "sync": false])
            let arrived = Record<UInt64>()
            sink.sink.onBuffer { buffer in
                arrived.add(buffer.runningTime ?? 0)
                return .pass
            }
            for element in [queue, sink] { pipeline.add(element) }
            try queue.link(sink)
            #expect(sink.followPipeline())
            #expect(queue.followPipeline())
            let pad = try #require(tee.requestPad("src_%u"))
            #expect(pad.tryLink(queue.sink) == nil)
            #expect(arrived.wait(count: 2))
            let idle = Moment()
            pad.whenIdle {
                pad.unlink(queue.sink)
                idle.happened()
            }
            #expect(idle.wait())
            tee.release(pad)
            for element in [queue, sink] { pipeline.remove(element) }
            #expect(sink.state == .null)
        }
        #expect(tee.pads.count == 1)
    }

    @Test("GStreamer's own warnings include the names of the element and its parents")
    func debugLog() throws {
        let lines = Record<DebugLine>()
        DebugLog.listen { lines.add($0) }
        defer { DebugLog.listen(nil) }
        let pipeline = Pipeline { _ in }
        defer { pipeline.stop() }
        let source = try Element("filesrc", name: "reader", ["location": "/absent/file"])
        let sink = try Element("fakesink")
        pipeline.add(source)
        pipeline.add(sink)
        try source.link(sink)
        #expect(!pipeline.play())
        #expect(
            lines.wait { lines in
                lines.contains { $0.category == "filesrc" && $0.path.first == "reader" }
            })
        DebugLog.listen(nil)
        let count = lines.entries.count
        #expect(!pipeline.play())
        #expect(lines.entries.count == count)
    }
}
