/// The header extension that numbers all packets of a transport, whatever their stream
/// (draft-holmer-rmcat-transport-wide-cc-extensions-01, section 2).
public enum TransportSequence {
    /// The feedback of `rtcp-fb` lines that reports the numbers: `TransportFeedback`.
    public static let feedback = "transport-cc"
    /// The value's length in bytes.
    public static let length = 2

    /// The number of a packet. Nil without the extension.
    public static func read(id: UInt8, _ header: RTPHeader, in packet: borrowing PacketBuffer) -> SequenceNumber? {
        guard let range = header.headerExtension(id: id, in: packet), range.count >= length else { return nil }
        return SequenceNumber(packet.uint16(at: range.lowerBound))
    }

    /// Writes an element in the one-byte form of RFC 8285 at `offset`: its id and length, and the number. Three bytes.
    public static func write(id: UInt8, _ number: SequenceNumber, at offset: Int, to packet: inout PacketBuffer) {
        packet.bytes[offset] = id << 4 | UInt8(length - 1)
        packet.setUInt16(number.rawValue, at: offset + 1)
    }
}
