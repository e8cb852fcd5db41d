/// The parts of an H.264 payload that forwarding reads (RFC 6184).
public enum H264Payload {
    private static let idr: UInt8 = 5
    private static let sequenceParameters: UInt8 = 7
    /// The header of a unit that begins a frame and carries nothing else.
    public static let accessUnitDelimiter: UInt8 = 9
    private static let aggregate: UInt8 = 24
    private static let fragment: UInt8 = 28

    /// Whether a keyframe starts with this packet: with an IDR slice or a sequence parameter set, as a single unit,
    /// inside a STAP-A, or at the start of an FU-A.
    public static func isKeyframeStart(_ packet: borrowing PacketBuffer, header: RTPHeader) -> Bool {
        begins(packet, header: header) { $0 == idr || $0 == sequenceParameters }
    }

    /// Whether a sequence parameter set starts with this packet, likewise. A decoder needs it before the first frame.
    public static func hasSequenceParameters(_ packet: borrowing PacketBuffer, header: RTPHeader) -> Bool {
        begins(packet, header: header) { $0 == sequenceParameters }
    }

    /// Whether a unit of a wanted type begins in the packet.
    @inline(__always)
    private static func begins(
        _ packet: borrowing PacketBuffer, header: RTPHeader, _ isWanted: (_ type: UInt8) -> Bool
    ) -> Bool {
        let start = header.payloadOffset
        let end = header.payloadEnd
        guard start < end else { return false }
        switch packet.bytes[start] & 0x1f {
        case aggregate:
            var offset = start + 1
            while offset + 3 <= end {
                let length = Int(packet.uint16(at: offset))
                guard length > 0, offset + 2 + length <= end else { return false }
                if isWanted(packet.bytes[offset + 2] & 0x1f) { return true }
                offset += 2 + length
            }
            return false
        case fragment:
            guard start + 1 < end, packet.bytes[start + 1] & 0x80 != 0 else { return false }
            return isWanted(packet.bytes[start + 1] & 0x1f)
        case let type:
            return isWanted(type)
        }
    }
}
