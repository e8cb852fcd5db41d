/// RTX, the retransmission payload format (RFC 4588): a packet resent in a separate stream, with the original sequence
/// number at the start of the payload.
public enum Retransmission {
    /// Restores the original packet in place, without padding, and returns its header. Returns nil and does not change
    /// the packet if it is too short for an original sequence number, so that it is not RTX or only padding.
    public static func unwrap(
        _ packet: inout PacketBuffer, header: RTPHeader, payloadType: UInt8, ssrc: SSRC
    ) -> RTPHeader? {
        guard header.payloadEnd <= packet.count, header.payloadLength >= 2 else { return nil }
        var original = header
        original.sequenceNumber = SequenceNumber(packet.uint16(at: header.payloadOffset))
        original.payloadType = payloadType
        original.ssrc = ssrc
        packet.count = header.payloadEnd
        packet.remove(2, before: header.payloadOffset + 2)
        packet.bytes[0] &= ~0x20
        original.hasPadding = false
        original.payloadEnd -= 2
        original.write(into: &packet)
        return original
    }
}

extension PacketBuffer {
    /// Removes `length` bytes before `end`. Later bytes move up.
    fileprivate mutating func remove(_ length: Int, before end: Int) {
        precondition(length >= 0 && length <= end && end <= count && count <= bytes.count)
        let stop = count
        var span = bytes.mutableSpan
        for index in end..<stop { span[unchecked: index - length] = span[unchecked: index] }
        count -= length
    }
}
