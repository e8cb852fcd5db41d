/// The parts of a payload that forwarding reads without decoding. The only place that knows codecs.
public enum PayloadDescriptor: Sendable, Equatable {
    public enum Codec: Sendable {
        case vp8
        case vp9
        case h264
        /// Every packet is decodable by itself, as with Opus.
        case independent
    }

    case vp8(VP8PayloadDescriptor)
    case vp9(VP9PayloadDescriptor)
    case h264(isKeyframeStart: Bool)
    case independent

    /// Nil if the payload does not belong to the codec.
    public init?(parsing packet: borrowing PacketBuffer, header: RTPHeader, as codec: Codec) {
        switch codec {
        case .vp8:
            guard let descriptor = VP8PayloadDescriptor(parsing: packet, header: header) else { return nil }
            self = .vp8(descriptor)
        case .vp9:
            guard let descriptor = VP9PayloadDescriptor(parsing: packet, header: header) else { return nil }
            self = .vp9(descriptor)
        case .h264: self = .h264(isKeyframeStart: H264Payload.isKeyframeStart(packet, header: header))
        case .independent: self = .independent
        }
    }

    /// Whether decoding can begin with this packet.
    public var isStart: Bool {
        switch self {
        case .vp8(let descriptor): descriptor.isKeyframeStart
        case .vp9(let descriptor): descriptor.isKeyframeStart
        case .h264(let isKeyframeStart): isKeyframeStart
        case .independent: true
        }
    }

    /// The payload's picture ids. Zeros if the codec or the packet has none.
    var picture: PictureNumber {
        switch self {
        case .vp8(let descriptor):
            PictureNumber(id: descriptor.pictureID ?? 0, tl0Index: descriptor.tl0PictureIndex ?? 0)
        case .vp9(let descriptor):
            PictureNumber(id: descriptor.pictureID ?? 0, tl0Index: descriptor.tl0PictureIndex ?? 0)
        case .h264, .independent: PictureNumber()
        }
    }

    /// Nil if the codec or the packet has none.
    var pictureID: UInt16? {
        switch self {
        case .vp8(let descriptor): descriptor.pictureID
        case .vp9(let descriptor): descriptor.pictureID
        case .h264, .independent: nil
        }
    }

    /// Whether picture ids have 15 bits.
    var hasLongPictureID: Bool {
        switch self {
        case .vp8(let descriptor): descriptor.isLongPictureID
        case .vp9(let descriptor): descriptor.isLongPictureID
        case .h264, .independent: false
        }
    }

    /// Whether the ids of frames that are left out stay free. A receiver of VP9 finds the frames that a frame depends
    /// on by the difference of their ids, and which layer a missing one had (RFC 9628, section 4.2).
    var keepsPictureGaps: Bool { if case .vp9 = self { true } else { false } }

    /// The temporal layer of the packet's frame. 0 for a codec or packet without them.
    var temporalLayer: UInt8 {
        switch self {
        case .vp8(let descriptor): descriptor.temporalLayer ?? 0
        case .vp9(let descriptor): descriptor.temporalLayer
        case .h264, .independent: 0
        }
    }

    /// The temporal layer of a packet that may be left out with its frame, and whether the frame depends on the base
    /// layer alone (RFC 7741, section 4.2). Nil for the base layer, and without layers.
    public var higherLayer: (temporal: UInt8, isSync: Bool)? {
        switch self {
        case .vp8(let descriptor):
            guard let layer = descriptor.temporalLayer, layer > 0, descriptor.pictureID != nil else { return nil }
            return (layer, descriptor.isLayerSync)
        case .vp9(let descriptor):
            guard descriptor.temporalLayer > 0, descriptor.pictureID != nil else { return nil }
            return (descriptor.temporalLayer, false)
        case .h264, .independent: return nil
        }
    }

    /// The temporal layer of a frame behind which those of higher layers depend on none of them before it (RFC 9628,
    /// section 4.2). Nil for any other frame.
    public var switchingPoint: UInt8? {
        guard case .vp9(let descriptor) = self, descriptor.isSwitchingPoint else { return nil }
        return descriptor.temporalLayer
    }

    /// The spatial layer of the packet's layer frame. 0 for a codec or packet without them.
    public var spatialLayer: Int {
        if case .vp9(let descriptor) = self { Int(descriptor.spatialLayer) } else { 0 }
    }

    /// Whether a layer frame ends with the packet, as far as the packet tells.
    public var endsFrame: Bool { if case .vp9(let descriptor) = self { descriptor.isEndOfFrame } else { false } }

    /// Whether a layer frame begins with the packet, as far as the packet tells.
    public var beginsFrame: Bool { if case .vp9(let descriptor) = self { descriptor.isStartOfFrame } else { false } }

    /// The patch that changes the payload's picture ids. Nil if it has none.
    func patch(_ picture: PictureNumber) -> PayloadPatch? {
        let (id, tl0) = (picture.id & 0x7fff, picture.tl0Index)
        switch self {
        case .vp8(let descriptor):
            return .picture(PictureRewrite(descriptor, pictureID: id, tl0PictureIndex: tl0))
        case .vp9(let descriptor):
            return .picture(PictureRewrite(descriptor, pictureID: id, tl0PictureIndex: tl0))
        case .h264, .independent: return nil
        }
    }
}

/// Picture ids inside a payload: the picture id and TL0PICIDX of VP8 and VP9.
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
    case picture(PictureRewrite)

    /// How many bytes at the payload's start it may change.
    public static let reach = 8

    /// Changes a packet at its payload's range.
    public func apply(to packet: inout PacketBuffer, payload: Range<Int>) {
        switch self {
        case .picture(let rewrite): rewrite.apply(to: &packet, payload: payload)
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
    /// How many spatial layers the frame of this packet has, if the packet tells.
    public func spatialLayers(_ packet: borrowing PacketBuffer, header: RTPHeader) -> Int? {
        if case .vp9(let descriptor) = self { descriptor.spatialLayers(packet, header: header) } else { nil }
    }

    /// The size of a keyframe that begins with this packet, or of one of its spatial layers. Nil if the packet does not
    /// tell.
    public func size(_ packet: borrowing PacketBuffer, header: RTPHeader, spatialLayer: Int = 0) -> FrameSize? {
        switch self {
        case .vp8(let descriptor): descriptor.frameSize(packet, header: header)
        case .vp9(let descriptor): descriptor.frameSize(packet, header: header, spatialLayer: spatialLayer)
        case .h264: H264Payload.frameSize(packet, header: header)
        case .independent: nil
        }
    }
}
