import RTP
import Testing

@testable import PeerSession

@Suite struct SentHistoryTests {
    private func packet(_ number: UInt16) -> SentPacket {
        SentPacket(
            payload: Int(number),
            Rewrite(
                payloadType: 96, sequenceNumber: SequenceNumber(number), timestamp: RTPTimestamp(7), marker: true))
    }

    @Test("The newest packets are found across the wrap of sequence numbers, and older ones are not")
    func newest() {
        var history = SentHistory(capacity: 100)
        var number = SequenceNumber(65000)
        for _ in 0..<1000 {
            number = number.advanced(by: 1)
            history.insert(packet(number.rawValue))
        }
        for back in 0..<128 {
            let wanted = number.advanced(by: -back)
            #expect(history[wanted]?.payload == Int(wanted.rawValue))
        }
        #expect(history[number.advanced(by: -128)] == nil)
        #expect(history[number.advanced(by: 1)] == nil)
    }

    @Test("A history knows when a packet was last resent")
    func repeated() {
        var history = SentHistory(capacity: 8)
        history.insert(packet(1))
        #expect(history[SequenceNumber(1)]?.repeatedAt == nil)
        history.repeated(SequenceNumber(1), at: MonotonicTime(nanoseconds: 5))
        #expect(history[SequenceNumber(1)]?.repeatedAt == MonotonicTime(nanoseconds: 5))
        history.removeAll()
        #expect(history[SequenceNumber(1)] == nil)
    }

    @Test("A history of size zero keeps nothing")
    func none() {
        var history = SentHistory(capacity: 0)
        history.insert(packet(1))
        #expect(history[SequenceNumber(1)] == nil)
    }

    @Test("A remembered packet is small, because each subscriber remembers hundreds")
    func size() { #expect(MemoryLayout<SentPacket?>.stride <= 48) }
}
