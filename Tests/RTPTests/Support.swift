import RTP
import Testing

func packet(_ bytes: [UInt8]) -> PacketBuffer {
    var packet = PacketBuffer()
    precondition(packet.assign(bytes))
    return packet
}

/// An RTP packet with this payload.
func rtp(_ payload: [UInt8]) -> PacketBuffer {
    var packet = PacketBuffer()
    precondition(
        packet.assignRTP(
            payloadType: 96, sequenceNumber: SequenceNumber(1), timestamp: RTPTimestamp(1), ssrc: SSRC(1),
            payload: payload))
    return packet
}

extension PacketBuffer {
    var contents: [UInt8] { Array(bytes[..<count]) }
}

/// An RTP packet with every optional part: two CSRCs, a header extension of eight bytes, padding of four.
let fullPacket: [UInt8] =
    [0xb2, 0xe0, 0x12, 0x34, 0x01, 0x02, 0x03, 0x04, 0xca, 0xfe, 0xba, 0xbe]
    + [0, 0, 0, 1, 0, 0, 0, 2]
    + [0xbe, 0xde, 0x00, 0x02, 0x32, 0xaa, 0xbb, 0xcc, 0x00, 0x41, 0x30, 0x31]
    + [9, 8, 7, 6, 5] + [0, 0, 0, 4]

/// `#require` for calls that take a packet: the macro itself would copy their arguments.
func value<Value>(_ optional: Value?, sourceLocation: SourceLocation = #_sourceLocation) throws -> Value {
    try #require(optional, sourceLocation: sourceLocation)
}

/// `#expect` for calls that take a packet.
func check(_ holds: Bool, _ comment: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(holds, comment, sourceLocation: sourceLocation)
}
