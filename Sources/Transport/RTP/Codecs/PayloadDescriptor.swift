/// The parts of a payload that forwarding reads without decoding. The only place that knows codecs.
public enum PayloadDescriptor: Sendable, Equatable {
    public enum Codec: Sendable {
        case vp8
        case h264
        /// Every packet is decodable by itself, as with Opus.
        case independent
    }

    case vp8(VP8PayloadDescriptor)
    case h264(isKeyframeStart: Bool)
    case independent

    /// Nil if the payload does not belong to the codec.
    public init?(parsing packet: borrowing PacketBuffer, header: RTPHeader, as codec: Codec) {
        switch codec {
        case .vp8:
            guard let descriptor = VP8PayloadDescriptor(parsing: packet, header: header) else { return nil }
            self = .vp8(descriptor)
        case .h264: self = .h264(isKeyframeStart: H264Payload.isKeyframeStart(packet, header: header))
        case .independent: self = .independent
        }
    }

    /// Whether decoding can begin with this packet.
    public var isStart: Bool {
        switch self {
        case .vp8(let descriptor): descriptor.isKeyframeStart
        case .h264(let isKeyframeStart): isKeyframeStart
        case .independent: true
        }
    }

    /// The payload's picture ids. Zeros if the codec or the packet has none.
    var picture: PictureNumber {
        guard case .vp8(let descriptor) = self else { return PictureNumber() }
        return PictureNumber(id: descriptor.pictureID ?? 0, tl0Index: descriptor.tl0PictureIndex ?? 0)
    }

    /// Nil if the codec or the packet has none.
    var pictureID: UInt16? {
        if case .vp8(let descriptor) = self { descriptor.pictureID } else { nil }
    }

    /// Whether picture ids have 15 bits.
    var hasLongPictureID: Bool {
        if case .vp8(let descriptor) = self { descriptor.isLongPictureID } else { false }
    }

    /// The temporal layer of a packet that may be left out with its frame, and whether the frame depends on the base layer
    /// alone (RFC 7741, section 4.2). Nil for the base layer, and without layers.
    public var higherLayer: (temporal: UInt8, isSync: Bool)? {
        guard case .vp8(let descriptor) = self, let layer = descriptor.temporalLayer, layer > 0,
            descriptor.pictureID != nil
        else { return nil }
        return (layer, descriptor.isLayerSync)
    }

    /// The patch that changes the payload's picture ids. Nil if it has none.
    func patch(_ picture: PictureNumber) -> PayloadPatch? {
        guard case .vp8(let descriptor) = self else { return nil }
        return .vp8(VP8Rewrite(descriptor, pictureID: picture.id & 0x7fff, tl0PictureIndex: picture.tl0Index))
    }
}

/// Picture ids inside a payload: VP8's picture id and TL0PICIDX.
struct PictureNumber: Sendable, Equatable {
    var id: UInt16 = 0
    var tl0Index: UInt8 = 0

    static func &+ (a: Self, b: Self) -> Self { Self(id: a.id &+ b.id, tl0Index: a.tl0Index &+ b.tl0Index) }
    static func &- (a: Self, b: Self) -> Self { Self(id: a.id &- b.id, tl0Index: a.tl0Index &- b.tl0Index) }

    /// The ids of the next frame.
    var next: Self { Self(id: id &+ 1, tl0Index: tl0Index &+ 1) }
}

/// A change of a payload. The packet's sender applies it without knowing the codec.
public enum PayloadPatch: Sendable, Equatable {
    case vp8(VP8Rewrite)

    /// How many bytes at the payload's start it may change.
    public static let reach = 8

    /// Changes a packet at its payload's range.
    public func apply(to packet: inout PacketBuffer, payload: Range<Int>) {
        switch self {
        case .vp8(let rewrite): rewrite.apply(to: &packet, payload: payload)
        }
    }
}

/// The size of a video's frames in pixels.
public struct FrameSize: Sendable, Hashable {
    public var width: Int
    public var height: Int

    public init(width: Int, height: Int) {
        self.width = width
        self.height = height
    }

    public var area: Int { width * height }
}

extension PayloadDescriptor {
    /// The size of a keyframe that begins with this packet. Nil if the packet does not tell.
    public func size(_ packet: borrowing PacketBuffer, header: RTPHeader) -> FrameSize? {
        switch self {
        case .vp8(let descriptor): descriptor.frameSize(packet, header: header)
        case .h264: H264Payload.frameSize(packet, header: header)
        case .independent: nil
        }
    }
}
