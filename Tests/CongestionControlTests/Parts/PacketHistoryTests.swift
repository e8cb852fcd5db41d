import RTP
import TestSupport
import Testing

@testable import CongestionControl

@Suite struct PacketHistoryTests {
    private func sent(_ count: Int, from start: Int = 0) -> PacketHistory {
        var history = PacketHistory()
        for index in 0..<(start + count) { history.sent(bytes: 100 + index % 50, probe: 0, now: at(Double(index))) }
        return history
    }

    private func results(_ history: inout PacketHistory, _ feedback: TransportFeedback) -> [PacketResult] {
        var results: [PacketResult] = []
        history.received(feedback, into: &results)
        return results
    }

    @Test("Feedback finds the packets that were sent, with their times, and ends their flight")
    func finds() {
        var history = sent(4)
        #expect(history.inFlight == 100 + 101 + 102 + 103)
        let found = results(&history, feedback(base: 0, [50, nil, 52.25]))
        #expect(found.map(\.number) == [0, 1, 2])
        #expect(found.map(\.bytes) == [100, 101, 102])
        #expect(found.map(\.sent) == [at(0), at(1), at(2)])
        #expect(found[1].arrival == nil)
        #expect(found[2].arrival.map { $0 - (found[0].arrival ?? .zero) } == milliseconds(2.25))
        #expect(history.inFlight == 103)
    }

    @Test("A packet that was reported missing may arrive later, and every packet arrives once")
    func late() {
        var history = sent(4)
        _ = results(&history, feedback(base: 0, [50, nil, 52]))
        let found = results(&history, feedback(base: 0, [50, 60, 52]))
        #expect(found.map(\.number) == [1])
        #expect(found.first?.wasMissing == true)
    }

    @Test func `a packet that is reported missing again is no further result`() {
        var history = sent(4)
        #expect(results(&history, feedback(base: 0, [50, nil, nil])).count == 3)
        #expect(results(&history, feedback(base: 0, [50, nil, nil])).isEmpty)
    }

    @Test("Numbers wrap")
    func wrap() {
        var history = PacketHistory()
        for index in 0..<70_000 {
            history.sent(bytes: 1, probe: 0, now: at(Double(index)))
            if index % 100 == 99 {
                let base = UInt16(truncatingIfNeeded: index - 99)
                let found = results(&history, feedback(base: base, (0..<100).map { Double(index - 99 + $0) }))
                #expect(found.count == 100)
            }
        }
        #expect(history.inFlight == 0)
        #expect(history.nextNumber == SequenceNumber(UInt16(truncatingIfNeeded: 70_000)))
    }

    @Test("Feedback about packets that were not sent, or of another way, finds nothing")
    func strangers() {
        var history = sent(10)
        var found = results(&history, feedback(base: 10, [1, 2, 3]))
        #expect(found.isEmpty)
        found = results(&history, feedback(base: 40_000, [1, 2, 3]))
        #expect(found.isEmpty)
        found = results(&history, feedback(base: 8, [1, 2, 3]))
        #expect(found.map(\.number) == [8, 9])
        history.routeChanged()
        #expect(history.inFlight == 0)
        found = results(&history, feedback(base: 0, [1, 2, 3]))
        #expect(found.isEmpty)
    }

    @Test("A report about packets that are forgotten changes nothing")
    func forgotten() {
        var history = sent(3)
        let later = at(20_000)
        history.sent(bytes: 100, probe: 0, now: later)
        history.forget(later)
        #expect(history.inFlight == 100)
        let found = results(&history, feedback(base: 0, [1]))
        #expect(found.isEmpty && history.inFlight == 100)
    }

    @Test("The history is bounded, and random feedback never traps")
    func bounded() {
        var random = Seeded(4)
        var history = PacketHistory()
        for index in 0..<30_000 {
            history.sent(bytes: 1, probe: 0, now: at(Double(index) / 100))
            guard index % 10 == 0 else { continue }
            var strange = feedback(base: .random(in: 0 ... .max, using: &random), [1, nil, 3, 4])
            strange.referenceTime = .random(in: 0..<(1 << 24), using: &random)
            strange.count = .random(in: 4...400, using: &random)
            _ = results(&history, strange)
        }
        #expect(history.inFlight <= PacketHistory.maximumPackets)
    }
}
