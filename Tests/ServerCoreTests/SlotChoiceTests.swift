import RTP
import Testing

@testable import ServerCore

@Suite struct SlotChoiceTests {
    /// Up to four streams of 90 kbit/s on a link that carries some of them, in steps of 100 ms.
    private struct Listener {
        var choice = SlotChoice()
        private var tenths = 1000
        /// The times of changes in seconds, and the numbers.
        private(set) var changes: [(at: Double, slots: Int)] = []

        /// - Parameter carried: the number of streams that the link carries
        mutating func run(seconds: Double, carried: Int, target: Double, isProbed: Bool = false, of streams: Int = 4) {
            for _ in 0..<Int(seconds * 10) {
                let before = choice.slots
                let heard = min(before, streams)
                choice.follow(
                    target, Array(repeating: 90_000, count: heard), isProbed: isProbed, isCongested: false,
                    isQueueing: heard > carried, now: MonotonicTime(nanoseconds: UInt64(tenths) * 100_000_000))
                if choice.slots != before { changes.append((Double(tenths) / 10 - 100, choice.slots)) }
                tenths += 1
            }
        }

        mutating func congest(_ target: Double, of streams: Int = 4) {
            choice.follow(
                target, Array(repeating: 90_000, count: min(choice.slots, streams)), isProbed: false, isCongested: true,
                isQueueing: true, now: MonotonicTime(nanoseconds: UInt64(tenths) * 100_000_000))
        }
    }

    @Test func `a congested link gets at once as many as it carries, and one at least`() {
        var listener = Listener()
        listener.congest(200_000)
        #expect(listener.choice.slots == 2)
        listener.congest(30_000)
        #expect(listener.choice.slots == 1)
    }

    @Test func `streams count with their own rates`() {
        var choice = SlotChoice()
        choice.follow(
            400_000, [200_000, 90_000, 90_000, 40_000], isProbed: false, isCongested: true, isQueueing: true,
            now: MonotonicTime(nanoseconds: 1))
        #expect(choice.slots == 3)
    }

    @Test func `a low estimate without congestion changes nothing`() {
        var listener = Listener()
        listener.run(seconds: 60, carried: 4, target: 100_000)
        #expect(listener.changes.isEmpty)
    }

    @Test func `one more that fails falls with its first queue, and waits twice as long`() {
        var listener = Listener()
        listener.congest(100_000)
        listener.run(seconds: 120, carried: 1, target: 130_000)
        let attempts = listener.changes.filter { $0.slots == 2 }.map(\.at)
        let pauses = zip(attempts.dropFirst(), attempts).map { ($0 - $1).rounded() }
        #expect(pauses == [10, 20, 40, 40], "\(listener.changes)")
        #expect(listener.choice.slots == 1)
    }

    @Test func `all come back one after the other`() {
        var listener = Listener()
        listener.congest(100_000)
        listener.run(seconds: 30, carried: 4, target: 1_000_000)
        #expect(listener.changes.map(\.slots) == [2, 3, 4])
        #expect(listener.changes.map { $0.at.rounded() } == [5, 10, 15])
    }

    @Test func `a link that probes measure gets one more only if it carries that`() {
        var listener = Listener()
        listener.congest(100_000)
        listener.run(seconds: 60, carried: 1, target: 150_000, isProbed: true)
        #expect(listener.changes.isEmpty)
        listener.run(seconds: 20, carried: 2, target: 210_000, isProbed: true)
        #expect(listener.changes.map(\.slots) == [2])
    }

    @Test func `the link is measured for one more, and for no more if all are heard`() {
        var choice = SlotChoice()
        let four = Array(repeating: 90_000.0, count: 4)
        #expect(choice.further(four) == 0)
        choice.follow(
            100_000, four, isProbed: true, isCongested: true, isQueueing: true, now: .zero + .seconds(100))
        #expect(abs(choice.further([90_000]) - 108_000) < 1)
    }
}
