import GStreamerKit
import MediaGraph
import TestFixtures
import Testing

@Suite struct SteppedClockTests {
    /// A live source of 100 buffers a second.
    private struct Line {
        let clock = SteppedClock()
        let pipeline: Pipeline
        let times = Record<UInt64>()

        init() throws {
            pipeline = Pipeline(clock: clock.clock) { _ in }
            let source = try Element("audiotestsrc", ["is-live": true, "samplesperbuffer": 480])
            let format = try Element.filter("audio/x-raw,rate=48000")
            let sink = try Element("fakesink", ["sync": false, "async": false])
            for element in [source, format, sink] { pipeline.add(element) }
            try source.link(format)
            try format.link(sink)
            sink.sink.onBuffer { [times] buffer in
                times.add(buffer.runningTime ?? 0)
                return .pass
            }
        }
    }

    @Test("A live source delivers one buffer for each step, at its time")
    func steps() throws {
        let line = try Line()
        defer { line.pipeline.stop() }
        let start = line.clock.now
        #expect(line.pipeline.play())
        for number in 0..<20 {
            #expect(line.clock.waitForPending(1))
            #expect(line.times.entries.count == number)
            line.clock.crank()
            #expect(line.clock.now.seconds(since: start) == Double(number) / 100)
        }
        line.clock.waitForPending(1)
        #expect(line.times.entries == (0..<20).map { $0 * 10_000_000 })
    }

    @Test("Time that passes wakes each thread at its time")
    func passes() throws {
        let line = try Line()
        defer { line.pipeline.stop() }
        #expect(line.pipeline.play())
        #expect(line.clock.advance(by: 0.095, pending: 1))
        #expect(line.times.entries.count == 10)
        #expect(line.pipeline.runningTime == 95_000_000)
        #expect(line.clock.pending == 1)
    }

    @Test("A clock that runs waits for its condition")
    func runs() throws {
        let line = try Line()
        defer { line.pipeline.stop() }
        line.clock.run { steps in steps < 50 }
        #expect(line.pipeline.play())
        #expect(line.times.wait(count: 50))
        #expect(line.clock.waitForPending(1))
        #expect(line.times.entries.count == 50)
    }

    @Test("A pipeline on a clock without steps can be stopped, and a wait for a thread that never comes ends")
    func stops() throws {
        let line = try Line()
        #expect(line.pipeline.play())
        #expect(line.clock.waitForPending(1))
        line.pipeline.stop()
        #expect(!line.clock.waitForPending(1, seconds: 0.05))
        #expect(!line.clock.crank(seconds: 0.05))
    }
}
