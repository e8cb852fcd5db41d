/// RTX, the retransmission payload format (RFC 4588): a packet sent again in a stream of its own, with the original
/// sequence number in front of the payload.
public enum Retransmission {
    /// Turns a packet into its retransmission in place: payload type, sequence number and SSRC of the RTX stream, the
    /// original sequence number ahead of the payload; CSRCs, extension and padding stay. False when it would outgrow
    /// `limit` bytes.
    public static func wrap(
        _ packet: inout PacketBuffer, payloadType: UInt8, ssrc: SSRC, sequenceNumber: SequenceNumber,
        limit: Int = PacketBuffer.capacity
    ) -> Bool {
        guard let header = RTPHeader(parsingProtected: packet), packet.count + 2 <= min(limit, PacketBuffer.capacity)
        else { return false }
        packet.moveTail(from: header.payloadOffset, by: 2)
        packet.setUInt16(header.sequenceNumber.rawValue, at: header.payloadOffset)
        var wrapped = header
        wrapped.payloadType = payloadType
        wrapped.ssrc = ssrc
        wrapped.sequenceNumber = sequenceNumber
        wrapped.write(into: &packet)
        return true
    }

    /// Restores the original packet in place, without padding, and returns its header; nil, and the packet untouched,
    /// when there is no room for an original sequence number (then it is no RTX packet or only padding).
    public static func unwrap(
        _ packet: inout PacketBuffer, header: RTPHeader, payloadType: UInt8, ssrc: SSRC
    ) -> RTPHeader? {
        guard header.payloadEnd <= packet.count, header.payloadLength >= 2 else { return nil }
        var original = header
        original.sequenceNumber = SequenceNumber(packet.uint16(at: header.payloadOffset))
        original.payloadType = payloadType
        original.ssrc = ssrc
        packet.count = header.payloadEnd
        packet.moveTail(from: header.payloadOffset + 2, by: -2)
        packet.bytes[0] &= ~0x20
        original.hasPadding = false
        original.payloadEnd -= 2
        original.write(into: &packet)
        return original
    }
}

extension PacketBuffer {
    /// Moves everything from `start` on by `distance` bytes; `count` changes with it.
    mutating func moveTail(from start: Int, by distance: Int) {
        precondition(start + distance >= 0 && start <= count && count + distance <= bytes.count)
        let end = count
        var span = bytes.mutableSpan
        if distance > 0 {
            for index in stride(from: end - 1, through: start, by: -1) {
                span[unchecked: index + distance] = span[unchecked: index]
            }
        } else {
            for index in start..<max(start, end) { span[unchecked: index + distance] = span[unchecked: index] }
        }
        count += distance
    }
}
