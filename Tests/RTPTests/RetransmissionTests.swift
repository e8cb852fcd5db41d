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
}
