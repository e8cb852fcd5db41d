/// The VP9 payload descriptor (RFC 9628, section 4.2), as numbers and offsets into the packet.
public struct VP9PayloadDescriptor: Sendable, Equatable {
    /// The first byte: I, P, L, F, B, E, V and Z.
    private var flags: UInt8
    /// The byte of the layer indices: TID, U, SID and D. Nil without it.
    private var indices: UInt8?
    /// 7 or 15 bits.
    public private(set) var pictureID: UInt16?
    public private(set) var isLongPictureID = false
    public private(set) var tl0PictureIndex: UInt8?
    /// Offset of TL0PICIDX from the start of the payload.
    public private(set) var tl0Offset: UInt8?
    /// Offset of the scalability structure from the start of the payload. Nil without one.
    private var structureOffset: UInt8?
    /// Length of the descriptor in bytes.
    public private(set) var length: Int
    /// Whether this is the first packet of a keyframe: the frame of the lowest spatial layer starts here, and its header
    /// says that it is one.
    public private(set) var isKeyframeStart = false

    /// Whether the frame depends on earlier frames (P).
    public var isInterPicture: Bool { flags & 0x40 != 0 }
    /// Whether frames name those that they depend on (F).
    public var isFlexible: Bool { flags & 0x10 != 0 }
    /// Whether a layer frame starts here (B), and ends here (E): the part of a frame that is of one spatial layer.
    public var isStartOfFrame: Bool { flags & 0x08 != 0 }
    public var isEndOfFrame: Bool { flags & 0x04 != 0 }
    /// Whether no higher layer frame depends on this one (Z).
    public var isNotForHigherLayers: Bool { flags & 0x01 != 0 }
    public var hasStructure: Bool { structureOffset != nil }
    /// 0 without layer indices.
    public var temporalLayer: UInt8 { (indices ?? 0) >> 5 }
    public var spatialLayer: UInt8 { (indices ?? 0) >> 1 & 0x07 }
    public var hasLayers: Bool { indices != nil }
    /// Whether frames of higher temporal layers behind this one depend on none of those layers before it (U).
    public var isSwitchingPoint: Bool { (indices ?? 0) & 0x10 != 0 }
    /// Whether the layer frame depends on the one below it (D).
    public var isInterLayer: Bool { (indices ?? 0) & 0x01 != 0 }

    /// The most frames that one names as those it depends on.
    private static let maximumReferences = 3

    /// Nil if the payload is shorter than its descriptor states, or contradicts itself.
    public init?(parsing packet: borrowing PacketBuffer, header: RTPHeader) {
        let start = header.payloadOffset
        let end = header.payloadEnd
        guard start < end else { return nil }
        flags = packet.bytes[start]
        var offset = start + 1
        let hasPictureID = flags & 0x80 != 0
        // References are differences of picture ids.
        guard hasPictureID || flags & 0x10 == 0 else { return nil }
        if hasPictureID {
            guard offset < end else { return nil }
            isLongPictureID = packet.bytes[offset] & 0x80 != 0
            guard !isLongPictureID || offset + 1 < end else { return nil }
            pictureID = isLongPictureID ? packet.uint16(at: offset) & 0x7fff : UInt16(packet.bytes[offset] & 0x7f)
            offset += isLongPictureID ? 2 : 1
        }
        if flags & 0x20 != 0 {
            guard offset < end else { return nil }
            indices = packet.bytes[offset]
            offset += 1
            if flags & 0x10 == 0 {
                guard offset < end else { return nil }
                tl0Offset = UInt8(offset - start)
                tl0PictureIndex = packet.bytes[offset]
                offset += 1
            }
        }
        if flags & 0x50 == 0x50 {
            var references = 0
            repeat {
                guard offset < end, references < Self.maximumReferences else { return nil }
                references += 1
                offset += 1
            } while packet.bytes[offset - 1] & 0x01 != 0
        }
        if flags & 0x02 != 0 {
            structureOffset = UInt8(offset - start)
            guard let next = Self.endOfStructure(packet, at: offset, end: end) else { return nil }
            offset = next
        }
        length = offset - start
        isKeyframeStart =
            isStartOfFrame && spatialLayer == 0 && !isInterPicture && offset < end
            && Self.isKeyframe(packet.bytes[offset])
    }

    /// The scalability structure (section 4.2.1): the number of spatial layers, their sizes, and a group of frames.
    private static func endOfStructure(_ packet: borrowing PacketBuffer, at start: Int, end: Int) -> Int? {
        guard start < end else { return nil }
        let first = packet.bytes[start]
        var offset = start + 1
        if first & 0x10 != 0 { offset += (Int(first >> 5) + 1) * 4 }
        if first & 0x08 != 0 {
            guard offset < end else { return nil }
            let pictures = packet.bytes[offset]
            offset += 1
            for _ in 0..<pictures {
                guard offset < end else { return nil }
                offset += 1 + Int(packet.bytes[offset] >> 2 & 0x03)
            }
        }
        return offset <= end ? offset : nil
    }

    /// Whether the first byte of a frame is that of a keyframe: its marker, a profile below 3, no `show_existing_frame`,
    /// and `frame_type` 0 (VP9 bitstream specification, section 6.2).
    private static func isKeyframe(_ byte: UInt8) -> Bool { byte & 0xcc == 0x80 && byte & 0x30 != 0x30 }

    /// How many spatial layers a frame has, as its scalability structure tells. Nil without one.
    public func spatialLayers(_ packet: borrowing PacketBuffer, header: RTPHeader) -> Int? {
        structureOffset.map { Int(packet.bytes[header.payloadOffset + Int($0)] >> 5) + 1 }
    }

    /// The size of a spatial layer: from the scalability structure, or of the lowest one from its keyframe. Nil if the packet
    /// does not tell.
    public func frameSize(
        _ packet: borrowing PacketBuffer, header: RTPHeader, spatialLayer layer: Int = 0
    ) -> FrameSize? {
        if let structureOffset {
            let start = header.payloadOffset + Int(structureOffset)
            let first = packet.bytes[start]
            if first & 0x10 != 0, layer <= Int(first >> 5) {
                let at = start + 1 + 4 * layer
                let (width, height) = (Int(packet.uint16(at: at)), Int(packet.uint16(at: at + 2)))
                return width > 0 && height > 0 ? FrameSize(width: width, height: height) : nil
            }
        }
        return layer == 0 ? keyframeSize(packet, header: header) : nil
    }

    /// The size in the header of a keyframe of profile 0 (VP9 bitstream specification, section 6.2).
    private func keyframeSize(_ packet: borrowing PacketBuffer, header: RTPHeader) -> FrameSize? {
        let start = header.payloadOffset + length
        guard isKeyframeStart, start + 9 <= header.payloadEnd, packet.bytes[start] & 0x30 == 0,
            packet.bytes[start + 1] == 0x49, packet.bytes[start + 2] == 0x83, packet.bytes[start + 3] == 0x42
        else { return nil }
        // Three bits of the color space, not RGB, and one of its range. The sizes follow, each less one.
        guard packet.bytes[start + 4] >> 5 != 7 else { return nil }
        func sixteenBits(at place: Int) -> Int {
            Int(packet.bytes[place] & 0x0f) << 12 | Int(packet.bytes[place + 1]) << 4
                | Int(packet.bytes[place + 2] >> 4)
        }
        return FrameSize(width: sixteenBits(at: start + 4) + 1, height: sixteenBits(at: start + 6) + 1)
    }
}
