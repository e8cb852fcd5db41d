import RTP
import Testing
import TestSupport

@testable import PeerIO
import PeerLoop

@Suite struct TurnMeterTests {
    private static func meter(_ turns: [TimeInterval], waiting: TimeInterval = .zero) -> TurnStatistics {
        var meter = TurnMeter()
        var now = MonotonicTime.zero + .seconds(1)
        for turn in turns {
            meter.begin(at: now)
            now = now + turn
            meter.end(at: now)
            now = now + waiting
        }
        return meter.statistics
    }

    @Test func `the time of turns is counted, and the time between them is not`() {
        let turns = Self.meter([.microseconds(10), .milliseconds(3), .microseconds(10)], waiting: .seconds(1))
        #expect(turns.turns == 3)
        #expect(turns.busy == .microseconds(3020))
        #expect(turns.longest == .milliseconds(3))
        #expect(turns.times.map(\.turns) == [2, 1])
    }

    @Test func `a wait that ends before the first turn is none`() {
        var meter = TurnMeter()
        meter.end(at: .zero + .seconds(5))
        #expect(meter.statistics == TurnStatistics())
    }

    @Test func `a turn is counted below a time that is at most a quarter longer`() {
        for microseconds in Array(0...300) + [999, 1000, 1001, 65_535, 65_536, 3_000_000] as [Int64] {
            let turns = Self.meter([.microseconds(microseconds)])
            let below = turns.times.first?.below ?? .zero
            #expect(below > .microseconds(microseconds))
            #expect(below.nanoseconds <= max(1000 * (microseconds + 1), 1250 * microseconds), "\(microseconds)")
        }
    }

    @Test func `the longest turns share a bucket`() {
        let turns = Self.meter([.seconds(10), .seconds(100), .zero - .seconds(1)])
        #expect(turns.times.last?.turns == 2)
        #expect(turns.longest == .seconds(100))
    }

    @Test func `a loop counts its turns and their time`() async {
        let loop = EventLoop(name: "counted")
        let before = await onLoop(loop) { loop.turns }
        for _ in 0..<20 { await onLoop(loop) {} }
        let after = await onLoop(loop) { loop.turns }
        #expect(after.turns > before.turns)
        #expect(after.busy > before.busy)
        #expect(after.times.map(\.turns).reduce(0, +) == after.turns)
        loop.shutdown()
    }
}
