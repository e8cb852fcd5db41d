/// The VP8 payload descriptor (RFC 7741, section 4.2), as numbers and offsets into the packet.
public struct VP8PayloadDescriptor: Sendable, Equatable {
    public var isStartOfPartition: Bool
    public var partition: UInt8
    public var isNonReference: Bool
    /// 7 or 15 bits.
    public var pictureID: UInt16?
    public var isLongPictureID: Bool
    public var tl0PictureIndex: UInt8?
    public var temporalLayer: UInt8?
    public var isLayerSync: Bool
    /// Offsets of the picture id and TL0PICIDX from the start of the payload.
    public var pictureIDOffset: Int?
    public var tl0Offset: Int?
    /// Length of the descriptor in bytes.
    public var length: Int
    /// Whether this is the first packet of a keyframe: partition 0 starts here, and the frame header's P bit is clear
    /// (RFC 7741, section 4.3).
    public var isKeyframeStart: Bool

    /// Nil if the payload is shorter than its descriptor states.
    public init?(parsing packet: borrowing PacketBuffer, header: RTPHeader) {
        var offset = header.payloadOffset
        let end = header.payloadEnd
        guard offset < end else { return nil }
        let first = packet.bytes[offset]
        offset += 1
        isNonReference = first & 0x20 != 0
        isStartOfPartition = first & 0x10 != 0
        partition = first & 0x07
        pictureID = nil
        isLongPictureID = false
        tl0PictureIndex = nil
        temporalLayer = nil
        isLayerSync = false
        pictureIDOffset = nil
        tl0Offset = nil
        if first & 0x80 != 0 {
            guard offset < end else { return nil }
            let flags = packet.bytes[offset]
            offset += 1
            if flags & 0x80 != 0 {
                guard offset < end else { return nil }
                pictureIDOffset = offset - header.payloadOffset
                isLongPictureID = packet.bytes[offset] & 0x80 != 0
                guard !isLongPictureID || offset + 1 < end else { return nil }
                pictureID =
                    isLongPictureID ? packet.uint16(at: offset) & 0x7fff : UInt16(packet.bytes[offset] & 0x7f)
                offset += isLongPictureID ? 2 : 1
            }
            if flags & 0x40 != 0 {
                guard offset < end else { return nil }
                tl0Offset = offset - header.payloadOffset
                tl0PictureIndex = packet.bytes[offset]
                offset += 1
            }
            if flags & 0x30 != 0 {
                guard offset < end else { return nil }
                if flags & 0x20 != 0 {
                    temporalLayer = packet.bytes[offset] >> 6
                    isLayerSync = packet.bytes[offset] & 0x20 != 0
                }
                offset += 1
            }
        }
        length = offset - header.payloadOffset
        isKeyframeStart = isStartOfPartition && partition == 0 && offset < end && packet.bytes[offset] & 0x01 == 0
    }
}

extension VP8PayloadDescriptor {
    /// The size in the header of the keyframe that begins with the packet (RFC 6386, section 9.1).
    func frameSize(_ packet: borrowing PacketBuffer, header: RTPHeader) -> FrameSize? {
        let start = header.payloadOffset + length
        guard isKeyframeStart, start + 10 <= header.payloadEnd, packet.bytes[start + 3] == 0x9d,
            packet.bytes[start + 4] == 0x01, packet.bytes[start + 5] == 0x2a
        else { return nil }
        // 14 bits each, little endian. The two others scale the frame on display.
        let width = Int(packet.bytes[start + 6]) | Int(packet.bytes[start + 7] & 0x3f) << 8
        let height = Int(packet.bytes[start + 8]) | Int(packet.bytes[start + 9] & 0x3f) << 8
        return width > 0 && height > 0 ? FrameSize(width: width, height: height) : nil
    }
}
