public import RTP

/// A video as a publisher sends it. A frame is its number: nothing is encoded.
public struct VideoFormat: Sendable {
    public var framesPerSecond: Int
    /// Packets of each frame except keyframes.
    public var packetsPerFrame: Int
    public var packetsPerKeyframe: Int
    /// Bytes of a packet's payload, at least 32.
    public var payload: Int
    /// From the capture of a frame until it is sent.
    public var encodingTime: TimeInterval
    /// Whether frames other than keyframes get fewer packets, or are skipped, when the client's link has no room for them,
    /// as an encoder does it.
    public var followsRate: Bool

    public init(
        framesPerSecond: Int = 25, packetsPerFrame: Int = 1, packetsPerKeyframe: Int = 4, payload: Int = 64,
        encodingTime: TimeInterval = .zero, followsRate: Bool = false
    ) {
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

    static let length = 4 + 4 + 2 + 4 + 1 + 1 + 1
    private static let sizeLength = 9

    /// - Parameter size: a keyframe's, for its header
    func write(pictureID: UInt16, payload: Int, size: VideoLayer? = nil, into bytes: inout [UInt8]) {
        let start = bytes.count
        // Extended, start of the first partition; a picture id of 15 bits follows.
        bytes += [index == 0 ? 0x90 : 0x80, 0x80, UInt8(0x80 | pictureID >> 8 & 0x7f), UInt8(pictureID & 0xff)]
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
        bytes += [index, count]
        while bytes.count < start + payload { bytes.append(0) }
    }

    init(source: UInt32, generation: UInt16, frame: UInt32, isKeyframe: Bool, index: UInt8, count: UInt8) {
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
        // Behind the size of a keyframe (RFC 6386, section 9.1). Ids of sources are too small to look like it.
        let shift = payload[7] == 0x9d && payload[8] == 0x01 ? Self.sizeLength : 0
        guard payload.count >= Self.length + shift else { return nil }
        func number(_ offset: Int, _ count: Int) -> UInt64 {
            var value: UInt64 = 0
            for index in offset..<(offset + count) { value = value << 8 | UInt64(payload[index]) }
            return value
        }
        isKeyframe = payload[4] & 1 == 0
        source = UInt32(number(5 + shift, 4))
        generation = UInt16(number(9 + shift, 2))
        frame = UInt32(number(11 + shift, 4))
        index = payload[15 + shift]
        count = payload[16 + shift]
    }
}
