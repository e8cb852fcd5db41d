import RTP
import Testing

@testable import PeerSession

/// A history beside a plain list of what was sent.
private struct Sent {
    let store = PacketStore()
    var history: SentHistory
    var packets: [SentPacket] = []

    init(capacity: Int = 512) { history = SentHistory(capacity: capacity) }

    /// Sends a packet, whose timestamp and marker differ from those in the store by these.
    mutating func send(
        _ number: Int, isEmpty: Bool = false, ticks: UInt32 = 0, otherMarker: Bool = false, payloadType: UInt8 = 96,
        picture: UInt16? = nil
    ) {
        var packet = PacketBuffer()
        _ = packet.assign([UInt8(truncatingIfNeeded: number)])
        let timestamp = RTPTimestamp(UInt32(number / 4) * 3000)
        let marker = number % 4 == 3
        let index = isEmpty ? nil : store.add(packet, 0..<1, timestamp: timestamp, marker: marker, now: .zero)
        let patch = picture.flatMap { id in
            descriptor.map { PayloadPatch.picture(PictureRewrite($0, pictureID: id, tl0PictureIndex: 2)) }
        }
        let sent = SentPacket(
            payload: index,
            Rewrite(
                payloadType: payloadType, sequenceNumber: SequenceNumber(UInt16(truncatingIfNeeded: number)),
                timestamp: RTPTimestamp(timestamp.rawValue &+ ticks), marker: marker != otherMarker, patch: patch))
        packets.append(sent)
        history.insert(sent, of: store)
    }

    /// Of a packet with a picture id of 7 bits.
    private var descriptor: VP8PayloadDescriptor? {
        var packet = PacketBuffer()
        _ = packet.assignRTP(
            payloadType: 96, sequenceNumber: SequenceNumber(0), timestamp: RTPTimestamp(0), ssrc: SSRC(1),
            payload: [0x90, 0x80, 7, 0, 0, 0])
        return RTPHeader(parsing: packet).flatMap { VP8PayloadDescriptor(parsing: packet, header: $0) }
    }

    func found(_ number: Int) -> SentPacket? {
        history.packet(SequenceNumber(UInt16(truncatingIfNeeded: number)), of: store)
    }
}

@Suite struct SentHistoryTests {
    @Test func `finds the newest packets across the wrap of sequence numbers, and no older ones`() {
        var sent = Sent(capacity: 100)
        for number in 65000..<66000 { sent.send(number) }
        for back in 1...100 { #expect(sent.found(66000 - back) == sent.packets[1000 - back]) }
        #expect(sent.found(66000 - 101) == nil)
        #expect(sent.found(66000) == nil)
    }

    @Test(arguments: UInt64(1)...20) func `finds each packet as it was sent, in any order and with any change`(
        seed: UInt64
    ) {
        var random = RandomSource(seed: seed)
        var sent = Sent()
        var numbers = Array(30000..<30200)
        // A quarter of the packets is late.
        for place in 0..<180 where Int.random(in: 0..<4, using: &random) == 0 {
            numbers.swapAt(place, place + Int.random(in: 1...20, using: &random))
        }
        var ticks: UInt32 = 0
        for number in numbers {
            if Int.random(in: 0..<30, using: &random) == 0 { ticks = .random(in: 0...UInt32.max, using: &random) }
            sent.send(
                number, isEmpty: Int.random(in: 0..<20, using: &random) == 0, ticks: ticks,
                otherMarker: Int.random(in: 0..<20, using: &random) == 0,
                payloadType: Int.random(in: 0..<20, using: &random) == 0 ? 97 : 96,
                picture: number % 3 == 0 ? UInt16(number / 4) : nil)
        }
        for packet in sent.packets { #expect(sent.found(Int(packet.number.rawValue)) == packet) }
    }

    @Test func `keeps a run of packets in constant memory, and a bounded number of runs`() {
        var steady = Sent(capacity: 32768)
        for number in 0..<4000 { steady.send(number) }
        #expect(steady.history.runCount == 1)
        #expect(steady.found(0) == steady.packets[0])
        var scattered = Sent(capacity: 32768)
        for number in 0..<4000 { scattered.send(2 * number) }
        #expect(scattered.history.runCount <= SentHistory.maximumRuns)
        #expect(scattered.found(2 * 3999) == scattered.packets[3999])
        #expect(scattered.found(2 * 3850) == scattered.packets[3850])
        #expect(scattered.found(0) == nil)
    }

    @Test func `forgets packets whose payload is gone from the store`() {
        var sent = Sent(capacity: 32768)
        for number in 0..<10000 { sent.send(number) }
        #expect(sent.found(9999) != nil)
        #expect(sent.found(0) == nil)
    }

    @Test func `without payloads, packets keep their numbers and types`() {
        var sent = Sent()
        for number in 0..<5 { sent.send(number, payloadType: number == 3 ? 98 : 96) }
        sent.history.removePayloads(of: sent.store)
        for number in 0..<5 {
            let found = sent.found(number)
            #expect(found?.number == SequenceNumber(UInt16(number)) && found?.payload == nil, "\(number)")
            #expect(found?.payloadType == (number == 3 ? 98 : 96), "\(number)")
        }
        sent.send(5)
        #expect(sent.found(5) == sent.packets[5] && sent.found(5)?.payload != nil)
    }

    @Test func `keeps nothing with a size of zero, and after it is cleared`() {
        var none = Sent(capacity: 0)
        none.send(1)
        #expect(none.found(1) == nil)
        var cleared = Sent()
        cleared.send(1)
        cleared.history.removeAll()
        #expect(cleared.found(1) == nil)
    }

    @Test func `knows when packets were last resent, and forgets the oldest`() {
        var times = RepeatTimes()
        func last(_ number: UInt16, at nanoseconds: UInt64 = 500) -> MonotonicTime? {
            times.last(SequenceNumber(number), now: MonotonicTime(nanoseconds: nanoseconds))?.at
        }
        #expect(last(1) == nil)
        for number in 0..<300 as Range<UInt16> {
            times.repeated(SequenceNumber(number), at: MonotonicTime(nanoseconds: UInt64(number)))
        }
        times.repeated(SequenceNumber(290), at: MonotonicTime(nanoseconds: 500))
        #expect(last(299) == MonotonicTime(nanoseconds: 299))
        #expect(last(290) == MonotonicTime(nanoseconds: 500))
        #expect(last(0) == nil)
        // Another packet has the number by now.
        #expect(last(290, at: 1_000_000_501) == nil)
    }

    @Test func `repeats of a packet do not count for a later one with the same number`() {
        var times = RepeatTimes()
        let later = MonotonicTime(nanoseconds: 60_000_000_000)
        for time in [MonotonicTime(nanoseconds: 1), MonotonicTime(nanoseconds: 2), later] {
            times.repeated(SequenceNumber(1), at: time)
        }
        #expect(times.last(SequenceNumber(1), now: later)?.count == 1)
    }

    @Test func `a packet is resent again a part of a round trip later, and sooner once a repeat was lost`() {
        var times = RepeatTimes()
        let start = MonotonicTime(nanoseconds: 1_000_000_000)
        func isOnItsWay(after milliseconds: Int64) -> Bool? {
            let now = start + .milliseconds(milliseconds)
            return times.last(SequenceNumber(1), now: now)?.isOnItsWay(now: now, roundTrip: .milliseconds(80))
        }
        times.repeated(SequenceNumber(1), at: start)
        #expect(isOnItsWay(after: 29) == true)
        #expect(isOnItsWay(after: 30) == false)
        times.repeated(SequenceNumber(1), at: start)
        #expect(isOnItsWay(after: 9) == true)
        #expect(isOnItsWay(after: 10) == false)
    }

    @Test func `packets count as old a second after those that follow them`() {
        var times = SendTimes()
        let start = MonotonicTime(nanoseconds: 1_000_000_000)
        // 100 packets a second, across the wrap.
        for index in 0..<500 {
            times.sent(SequenceNumber(65_400).advanced(by: index), at: start + .milliseconds(Int64(index) * 10))
        }
        let now = start + .milliseconds(5000)
        let old = (0..<500).map { times.isOld(SequenceNumber(65_400).advanced(by: $0), now: now) }
        // The note before is up to 70 ms older.
        #expect(old.prefix(390).allSatisfy { $0 } && old.suffix(93).allSatisfy { !$0 })
        // The last one before a pause is missed only after it.
        #expect(!times.isOld(SequenceNumber(65_400).advanced(by: 499), now: now + .milliseconds(1100)))
        #expect(!SendTimes().isOld(SequenceNumber(1), now: now))
    }

    @Test func `a packet from a sender's former store is repeated until it is too old`() {
        var random = RandomSource(seed: 1)
        let stream = OutgoingStream(
            id: SenderID(slot: 0, generation: 0),
            configuration: SenderConfiguration(
                ssrc: SSRC(1), retransmissionSSRC: SSRC(2), clockRate: 90000, retransmissionPayloadTypes: [96: 97],
                history: 512), maximumLength: 1400, random: &random)
        let stores = [PacketStore(), PacketStore()]
        var number: UInt16 = 0
        func send(_ count: Int, from store: PacketStore) {
            for _ in 0..<count {
                var packet = PacketBuffer()
                _ = packet.assign([UInt8](repeating: 1, count: 1000))
                let index = store.add(packet, 0..<1000, timestamp: RTPTimestamp(0), marker: false, now: .zero)
                _ = stream.note(
                    index, of: store,
                    Rewrite(
                        payloadType: 96, sequenceNumber: SequenceNumber(number), timestamp: RTPTimestamp(0),
                        marker: false), now: .zero)
                number += 1
            }
        }
        func isRepeated(_ number: UInt16) -> Bool {
            stream.planRepeat(of: SequenceNumber(number), roundTrip: nil, now: MonotonicTime(nanoseconds: 1)) != nil
        }
        send(10, from: stores[0])
        send(512, from: stores[1])
        #expect(isRepeated(5))
        send(1, from: stores[1])
        #expect(!isRepeated(6) && isRepeated(500))
    }
}
