import Dispatch
import GStreamerKit
import Glibc
import MediaGraph
import Synchronization
import TestFixtures
import TestSupport
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

    @Test("Frames after a pause are later than those that the source delivered while it was being paused")
    func slowPause() throws {
        let clock = SteppedClock()
        let pipeline = Pipeline(clock: clock.clock) { _ in }
        let pipe = try FullPipe()
        defer {
            pipeline.stop()
            // A pipe without a reader would end the process.
            withExtendedLifetime(pipe) {}
        }
        let source = try Element("audiotestsrc", ["is-live": true, "samplesperbuffer": 1024])
        let format = try Element.filter("audio/x-raw,format=S16LE,rate=32000,channels=1")
        let queue = try Element("queue")
        let sink = try Element("filesink", ["location": .text(pipe.path), "sync": false, "async": false])
        for element in [source, format, queue, sink] { pipeline.add(element) }
        try source.link(format)
        try format.link(queue)
        try queue.link(sink)
        let times = Record<UInt64>()
        format.source.onBuffer { buffer in
            times.add(buffer.runningTime ?? 0)
            return .pass
        }
        #expect(pipeline.play())
        // More than the pipe holds. Pausing waits for the sink, which waits for the pipe, before it reaches the source.
        for _ in 0..<50 { clock.crank() }
        clock.waitForPending(1)
        pipe.makeRoom {
            while !pipeline.isPaused { usleep(100) }
            for _ in 0..<10 { clock.crank() }
            // The source's next buffer has the time at which it continues, which must not be that of the last one.
            clock.advance(by: 0.001, pending: 1)
        }
        pipeline.pause()
        pipeline.resume()
        let count = times.entries.count
        #expect(count == 60)
        for _ in 0..<5 { clock.crank() }
        let entries = times.entries
        #expect(entries.count > count)
        #expect(zip(entries, entries.dropFirst()).allSatisfy { $0 < $1 }, "\(entries.suffix(20))")
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

/// A named pipe without a reader, whose writer blocks after a page.
private final class FullPipe {
    let path: String
    private let folder = TemporaryFolder()
    private let end: Int32
    /// F_SETPIPE_SZ, which Glibc's module lacks.
    private static let setSize: Int32 = 1031

    init() throws {
        path = "\(folder.path)/pipe"
        try #require(mkfifo(path, 0o600) == 0)
        end = open(path, O_RDWR)
        try #require(fcntl(end, Self.setSize, 4096) >= 0)
    }

    deinit { close(end) }

    /// Makes room for a megabyte, after it has called `first` on another thread.
    func makeRoom(after first: @escaping @Sendable () -> Void) {
        DispatchQueue(label: "test.pipe").async { [end] in
            first()
            _ = fcntl(end, Self.setSize, 1 << 20)
        }
    }
}
