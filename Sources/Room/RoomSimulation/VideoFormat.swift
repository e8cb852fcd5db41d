public import RTP

/// A video as a publisher sends it. A frame is its number: nothing is encoded.
public struct VideoFormat: Sendable {
    /// The frame rate.
    public var framesPerSecond: Int
    /// Packets of each frame except keyframes.
    public var packetsPerFrame: Int
    /// Packets of each keyframe.
    public var packetsPerKeyframe: Int
    /// Bytes of a packet's payload, at least 32.
    public var payload: Int
    /// From the capture of a frame until it is sent.
    public var encodingTime: TimeInterval
    /// Whether frames other than keyframes get fewer packets, or are skipped, when the client's link has no room for them,
    /// as an encoder does it.
    public var followsRate: Bool
    /// 1 to 3. Each layer above the first doubles the frame rate (RFC 7741, section 4.2).
    public var temporalLayers: Int

    /// A video of 25 frames per second and small packets, unless stated otherwise.
    public init(
        framesPerSecond: Int = 25, packetsPerFrame: Int = 1, packetsPerKeyframe: Int = 4, payload: Int = 64,
        encodingTime: TimeInterval = .zero, followsRate: Bool = false, temporalLayers: Int = 1
    ) {
        self.temporalLayers = temporalLayers
        self.followsRate = followsRate
        self.encodingTime = encodingTime
        self.framesPerSecond = framesPerSecond
        self.packetsPerFrame = packetsPerFrame
        self.packetsPerKeyframe = packetsPerKeyframe
        self.payload = payload
    }
}

extension VideoFormat {
    /// Bits of frames per second.
    var bitsPerSecond: Int { framesPerSecond * packetsPerFrame * payload * 8 }
}

/// A frame's place among the temporal layers of its video.
struct TemporalPlace {
    var layer: UInt8
    /// How many frames before it the frame lies that it depends on.
    var distance: UInt32
    /// Of the newest frame of the base layer.
    var baseIndex: UInt8

    /// - Parameters:
    ///   - index: of the frame, from a keyframe on
    ///   - layers: how many there are
    init(_ index: UInt32, of layers: Int) {
        let period = UInt32(1) << UInt32(layers - 1)
        let place = index % period
        // Half of the frames are of the highest layer, half of the others of the one below it.
        layer = place == 0 ? 0 : UInt8(layers - 1 - place.trailingZeroBitCount)
        distance = place == 0 ? period : 1 << UInt32(place.trailingZeroBitCount)
        baseIndex = UInt8(truncatingIfNeeded: index / period)
    }

    /// Whether it depends on the base layer alone.
    func isSync(_ index: UInt32, of layers: Int) -> Bool {
        layer > 0 && (index - distance) % (1 << UInt32(layers - 1)) == 0
    }
}

/// The contents of a packet behind the descriptor of VP8 (RFC 7741).
struct FramePart {
    /// The source that sent it, unique in the simulation.
    var source: UInt32
    /// Counts the beginnings of the source.
    var generation: UInt16
    var frame: UInt32
    var isKeyframe: Bool
    var index: UInt8
    var count: UInt8
    /// How many frames before it the frame lies that it depends on.
    var distance: UInt8 = 1
    /// Of a received part of a video with temporal layers.
    private(set) var pictureID: UInt16?

    static let length = 4 + 4 + 2 + 4 + 1 + 1 + 1 + 1
    private static let sizeLength = 9

    /// - Parameter size: a keyframe's, for its header
    func write(
        pictureID: UInt16, payload: Int, size: VideoLayer? = nil, temporal: TemporalPlace? = nil, isSync: Bool = false,
        into bytes: inout [UInt8]
    ) {
        let start = bytes.count
        // Extended, start of the first partition; a picture id of 15 bits follows, then TL0PICIDX and the temporal layer.
        bytes += [index == 0 ? 0x90 : 0x80, temporal == nil ? 0x80 : 0xe0]
        bytes += [UInt8(0x80 | pictureID >> 8 & 0x7f), UInt8(pictureID & 0xff)]
        if let temporal { bytes += [temporal.baseIndex, temporal.layer << 6 | (isSync ? 0x20 : 0)] }
        // The first bit of VP8's own header is 0 for a keyframe (RFC 6386, section 9.1).
        bytes.append(isKeyframe ? 0 : 1)
        if let size {
            bytes += [0, 0, 0x9d, 0x01, 0x2a]
            for side in [size.width, size.height] { bytes += [UInt8(side & 0xff), UInt8(side >> 8)] }
        }
        for shift in stride(from: 24, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: source >> UInt32(shift)))
        }
        bytes += [UInt8(generation >> 8), UInt8(generation & 0xff)]
        for shift in stride(from: 24, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: frame >> UInt32(shift)))
        }
        bytes += [index, count, distance]
        while bytes.count < start + payload { bytes.append(0) }
    }

    init(
        source: UInt32, generation: UInt16, frame: UInt32, isKeyframe: Bool, index: UInt8, count: UInt8,
        distance: UInt8 = 1
    ) {
        self.distance = distance
        self.source = source
        self.generation = generation
        self.frame = frame
        self.isKeyframe = isKeyframe
        self.index = index
        self.count = count
    }

    /// Nil for an empty packet, which replaces one that was omitted.
    init?(payload: Span<UInt8>) {
        guard payload.count >= Self.length else { return nil }
        let header = 4 + (payload[1] & 0x60 == 0 ? 0 : 2)
        guard payload.count >= Self.length + header - 4 else { return nil }
        // Behind the size of a keyframe (RFC 6386, section 9.1). Ids of sources are too small to look like it.
        let shift = header - 4 + (payload[header + 3] == 0x9d && payload[header + 4] == 0x01 ? Self.sizeLength : 0)
        guard payload.count >= Self.length + shift else { return nil }
        func number(_ offset: Int, _ count: Int) -> UInt64 {
            var value: UInt64 = 0
            for index in offset..<(offset + count) { value = value << 8 | UInt64(payload[index]) }
            return value
        }
        isKeyframe = payload[header] & 1 == 0
        source = UInt32(number(5 + shift, 4))
        generation = UInt16(number(9 + shift, 2))
        frame = UInt32(number(11 + shift, 4))
        index = payload[15 + shift]
        count = payload[16 + shift]
        distance = payload[17 + shift]
        if header > 4 { pictureID = UInt16(number(2, 2)) & 0x7fff }
    }
}
