import RTP
import Testing
import TestSupport

@Suite struct RetransmissionTests {
    @Test("Unwrapping RTX restores the original packet without its padding")
    func unwrapping() throws {
        var copy = packet(fullPacket)
        let original = try value(RTPHeader(parsing: copy))
        // RFC 4588 section 4: the original number precedes the payload; payload type, number and SSRC are those of the
        // RTX stream.
        var bytes = fullPacket
        bytes.insert(contentsOf: [0x12, 0x34], at: original.payloadOffset)
        bytes.replaceSubrange(1..<4, with: [0x80 | 97, 0, 77])
        bytes.replaceSubrange(8..<12, with: [0, 0, 0, 5])
        copy = packet(bytes)
        let wrapped = try value(RTPHeader(parsing: copy))
        let restored = try value(
            Retransmission.unwrap(&copy, header: wrapped, payloadType: 96, ssrc: original.ssrc))
        var unpadded = Array(fullPacket.dropLast(4))
        unpadded[0] &= ~0x20
        #expect(copy.contents == unpadded)
        #expect(RTPHeader(parsing: copy) == restored)
    }

    @Test("S8: an RTX packet too short for its sequence number is refused and unchanged", arguments: [0, 1])
    func tooShort(length: Int) throws {
        var short = PacketBuffer()
        check(
            short.assignRTP(
                payloadType: 97, sequenceNumber: SequenceNumber(1), timestamp: RTPTimestamp(1), ssrc: SSRC(1),
                payload: [UInt8](repeating: 1, count: length)))
        let header = try value(RTPHeader(parsing: short))
        let before = short.contents
        #expect(Retransmission.unwrap(&short, header: header, payloadType: 96, ssrc: SSRC(2)) == nil)
        #expect(short.contents == before)
    }

    @Test("The cache returns the newest packets intact, and drops the oldest")
    func cacheKeepsTheNewest() {
        var cache = RetransmissionCache(packets: 64, bytes: 32 * 1024)
        var random = Seeded(3)
        var lengths: [Int] = []
        var out = PacketBuffer()
        for step in 0..<200_000 {
            let length = Int.random(in: 1...1400, using: &random)
            lengths.append(length)
            let number = SequenceNumber(65000).advanced(by: step)
            var one = PacketBuffer()
            one.bytes[0] = UInt8(truncatingIfNeeded: step)
            one.bytes[length - 1] = UInt8(truncatingIfNeeded: step)
            one.count = length
            cache.store(one, sequenceNumber: number)
            guard step % 97 == 0, step > 100 else { continue }
            for back in 0..<16 {
                let wanted = step - back
                let found = cache.load(SequenceNumber(65000).advanced(by: wanted), into: &out, now: .zero)
                #expect(found, "16 packets of at most 1400 bytes fit")
                #expect(out.count == lengths[wanted])
                #expect(out.bytes[0] == UInt8(truncatingIfNeeded: wanted))
                #expect(out.bytes[out.count - 1] == UInt8(truncatingIfNeeded: wanted))
            }
            #expect(!cache.contains(SequenceNumber(65000).advanced(by: step - 64)))
        }
    }

    @Test("The cache's bytes are bounded: overwritten packets are missing, not corrupt")
    func cacheBytes() {
        var cache = RetransmissionCache(packets: 1024, bytes: 10_000)
        var one = PacketBuffer()
        var out = PacketBuffer()
        for step in 0..<5000 {
            one.count = 100 + step * 37 % 900
            for index in 0..<one.count { one.bytes[index] = UInt8(truncatingIfNeeded: step) }
            cache.store(one, sequenceNumber: SequenceNumber(UInt16(step)))
            var present = 0
            for back in 0..<200 where step >= back {
                let wanted = step - back
                guard cache.load(SequenceNumber(UInt16(wanted)), into: &out, now: .zero) else { continue }
                present += out.count
                let isIntact = out.contents.allSatisfy { $0 == UInt8(truncatingIfNeeded: wanted) }
                if !isIntact { Issue.record("Packet \(wanted) is garbled at \(step).") }
            }
            if present > 10_000 { Issue.record("\(present) bytes in a cache of 10,000") }
        }
    }

    @Test("A cache of size zero keeps nothing")
    func emptyCache() {
        var cache = RetransmissionCache(packets: 0, bytes: 1000)
        cache.store(packet(fullPacket), sequenceNumber: SequenceNumber(1))
        #expect(!cache.contains(SequenceNumber(1)))
    }

    @Test("The cache knows when a packet was last resent")
    func repeated() {
        var cache = RetransmissionCache(packets: 8, bytes: 10_000)
        var out = PacketBuffer()
        cache.store(packet(fullPacket), sequenceNumber: SequenceNumber(1))
        #expect(cache.lastRepeated(SequenceNumber(1)) == nil)
        let now = MonotonicTime(nanoseconds: 5)
        check(cache.load(SequenceNumber(1), into: &out, now: now))
        #expect(cache.lastRepeated(SequenceNumber(1)) == now)
        #expect(out.contents == fullPacket)
    }
}
