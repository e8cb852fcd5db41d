import GStreamerKit
import MediaGraph
import Synchronization
import Testing

@Suite struct ProbeTests {
    /// `videotestsrc ! sink`, live at 200 frames a second.
    private struct Line {
        let pipeline: Pipeline
        let source: Element
        let sink: Element
        let messages = Record<BusMessage>()

        init(_ properties: [String: SettingValue] = ["is-live": true]) throws {
            pipeline = Pipeline { [messages] in messages.add($0) }
            source = try Element("videotestsrc", properties)
            let filter = try Element.filter("video/x-raw,format=I420,width=16,height=16,framerate=200/1")
            sink = try Line.sink()
            for element in [source, filter, sink] { pipeline.add(element) }
            try source.link(filter)
            try filter.link(sink)
            output = filter.source
        }

        let output: Pad

        static func sink() throws -> Element { try Element("fakesink", ["sync": false, "async": false]) }
    }

    @Test("A removed probe sees nothing more, and the others continue")
    func removed() throws {
        let line = try Line()
        defer { line.pipeline.stop() }
        let seen = Record<UInt64>()
        let others = Record<UInt64>()
        let probe = line.output.onBuffer { buffer in
            seen.add(buffer.timestamp ?? 0)
            return .pass
        }
        line.sink.sink.onBuffer { buffer in
            others.add(buffer.timestamp ?? 0)
            return .pass
        }
        #expect(line.pipeline.play())
        #expect(seen.wait(count: 5))
        probe.remove()
        probe.remove()
        #expect(probe.isRemoved)
        let last = seen.entries.count
        #expect(others.wait(count: last + 10))
        // One call may still have been running.
        #expect(seen.entries.count <= last + 1)
    }

    @Test("A probe removes itself by its return value, and its last buffer passes")
    func removesItself() throws {
        let line = try Line()
        defer { line.pipeline.stop() }
        let seen = Record<UInt64>()
        let arrived = Record<UInt64>()
        let probe = line.output.onBuffer { buffer in
            seen.add(buffer.timestamp ?? 0)
            return .passAndRemove
        }
        line.sink.sink.onBuffer { buffer in
            arrived.add(buffer.timestamp ?? 0)
            return .pass
        }
        #expect(line.pipeline.play())
        #expect(arrived.wait(count: 5))
        #expect(seen.entries.count == 1)
        #expect(seen.entries.first == arrived.entries.first)
        #expect(probe.isRemoved)
        probe.remove()
    }

    @Test("Removing a probe frees the objects that its closure retains")
    func freed() throws {
        let line = try Line()
        final class Held: Sendable {}
        var held: Held? = Held()
        weak let watched = held
        let probe = line.output.onBuffer { [held] _ in
            _ = held
            return .pass
        }
        held = nil
        #expect(watched != nil)
        probe.remove()
        #expect(watched == nil)
    }

    @Test("A blocked output gets another sink, which sees the stream's start; no frame is lost")
    func relinked() throws {
        let line = try Line(["is-live": true, "num-buffers": 200])
        defer { line.pipeline.stop() }
        let first = Record<UInt64>()
        let second = Record<UInt64>()
        let events = Record<String>()
        let ended = Moment()
        let other = try Line.sink()
        line.sink.sink.onBuffer { buffer in
            first.add(buffer.timestamp ?? 0)
            return .pass
        }
        other.sink.onBuffer { buffer in
            second.add(buffer.timestamp ?? 0)
            return .pass
        }
        other.sink.onEvent { event in
            if case .caps = event { events.add("caps") }
            if case .segment = event { events.add("segment") }
            return .pass
        }
        other.sink.onEndOfStream { ended.happened() }
        #expect(line.pipeline.play())
        #expect(first.wait(count: 20))
        line.pipeline.add(other)
        #expect(other.followPipeline())
        let blocked = Moment()
        let block = line.output.block { blocked.happened() }
        #expect(blocked.wait())
        #expect(line.output.relink(to: other.sink) == nil)
        let before = first.entries.count
        block.remove()
        #expect(ended.wait())
        #expect(first.entries.count == before)
        #expect(first.entries.count + second.entries.count == 200)
        #expect(Set(first.entries + second.entries).count == 200)
        #expect(events.entries.prefix(2) == ["caps", "segment"])
    }

    @Test("A block removed inside its own closure passes everything")
    func removedInside() throws {
        let line = try Line(["is-live": true, "num-buffers": 50])
        defer { line.pipeline.stop() }
        let arrived = Record<UInt64>()
        let ended = Moment()
        line.sink.sink.onBuffer { buffer in
            arrived.add(buffer.timestamp ?? 0)
            return .pass
        }
        line.sink.sink.onEndOfStream { ended.happened() }
        let own = Mutex<Probe?>(nil)
        let block = line.output.block { own.withLock { $0 }?.remove() }
        own.withLock { $0 = block }
        #expect(line.pipeline.play())
        #expect(ended.wait())
        #expect(arrived.entries.count == 50)
        own.withLock { $0 = nil }
    }

    @Test("A block from the next keyframe on passes everything before it")
    func fromKeyframe() throws {
        let pipeline = Pipeline { _ in }
        defer { pipeline.stop() }
        let source = try Element("videotestsrc", ["is-live": true])
        let filter = try Element.filter("video/x-raw,format=I420,width=32,height=32,framerate=100/1")
        let encoder = try Element("vp8enc", ["deadline": 1, "keyframe-max-dist": 10])
        let sinks = [try Line.sink(), try Line.sink()]
        for element in [source, filter, encoder] + sinks { pipeline.add(element) }
        try source.link(filter)
        try filter.link(encoder)
        try encoder.link(sinks[0])
        let arrived = [Record<Bool>(), Record<Bool>()]
        for (sink, record) in zip(sinks, arrived) {
            sink.sink.onBuffer { buffer in
                record.add(buffer.isKeyframe)
                return .pass
            }
        }
        #expect(pipeline.play())
        #expect(arrived[0].wait(count: 5))
        let blocked = Moment()
        let block = encoder.source.block(from: { $0.isKeyframe }, { blocked.happened() })
        #expect(blocked.wait())
        #expect(encoder.source.relink(to: sinks[1].sink) == nil)
        block.remove()
        #expect(arrived[1].wait(count: 15))
        #expect(arrived[1].entries.first == true)
        #expect(arrived[0].entries.count.isMultiple(of: 10))
    }

    @Test("The end of one branch differs from the end of all, and a flush cancels it")
    func branchEnds() throws {
        let line = try Line()
        defer { line.pipeline.stop() }
        let tee = try Element("tee")
        let queue = try Element("queue")
        let other = try Line.sink()
        for element in [tee, queue, other] { line.pipeline.add(element) }
        line.output.unlink(line.sink.sink)
        #expect(line.output.tryLink(tee.sink) == nil)
        let outputs = [try #require(tee.requestPad("src_%u")), try #require(tee.requestPad("src_%u"))]
        #expect(outputs[0].tryLink(line.sink.sink) == nil)
        #expect(outputs[1].tryLink(queue.sink) == nil)
        try queue.link(other)
        let ended = Moment()
        let arrived = [Record<UInt64>(), Record<UInt64>()]
        for (sink, record) in zip([line.sink, other], arrived) {
            sink.sink.onBuffer { buffer in
                record.add(buffer.timestamp ?? 0)
                return .pass
            }
        }
        other.sink.onEndOfStream { ended.happened() }
        #expect(line.pipeline.play())
        #expect(arrived[1].wait(count: 3))
        let blocked = Moment()
        let block = outputs[1].block { blocked.happened() }
        #expect(blocked.wait())
        outputs[1].unlink(queue.sink)
        block.remove()
        queue.sink.sendEndOfStream()
        #expect(ended.wait())
        let late = Moment()
        other.sink.onEndOfStream { late.happened() }
        #expect(late.wait(seconds: 0))
        // The other branch continues, and the pipeline has not ended.
        let count = arrived[0].entries.count
        #expect(arrived[0].wait(count: count + 10))
        #expect(line.messages.entries.allSatisfy { if case .endOfStream = $0 { false } else { true } })
    }

    @Test("Probes can be added and removed while frames pass")
    func comingAndGoing() throws {
        let line = try Line(["is-live": false])
        defer { line.pipeline.stop() }
        let arrived = Record<Int>()
        line.sink.sink.onBuffer { _ in
            arrived.add(0)
            return .pass
        }
        #expect(line.pipeline.play())
        for round in 0..<1000 {
            let probe =
                switch round % 4 {
                case 0: line.output.onBuffer { _ in .passAndRemove }
                case 1: line.output.block()
                case 2: line.output.whenIdle {}
                default: line.output.onEvent { _ in .pass }
                }
            probe.remove()
        }
        let count = arrived.entries.count
        #expect(arrived.wait(count: count + 5))
    }

    @Test("A refused link reports the reason and changes nothing")
    func refused() throws {
        let pipeline = Pipeline { _ in }
        let encoder = try Element("vp8enc", name: "encoder")
        let parser = try Element("h264parse", name: "parser")
        let sink = try Element("fakesink", name: "sink")
        for element in [encoder, parser, sink] { pipeline.add(element) }
        let reason = try #require(encoder.source.tryLink(parser.sink))
        let fault = "the formats video/x-vp8 and video/x-h264 have nothing in common"
        #expect(reason == "encoder.src cannot feed parser.sink: \(fault)")
        #expect(encoder.source.tryLink(sink.sink) == nil)
        let taken = try #require(parser.source.tryLink(sink.sink))
        #expect(taken == "parser.src cannot feed sink.sink: sink.sink is already linked to encoder.src")
    }
}

extension Pad {
    /// Links an output that is blocked to another input.
    fileprivate func relink(to sink: Pad) -> String? {
        if let peer { unlink(peer) }
        return tryLink(sink)
    }
}
