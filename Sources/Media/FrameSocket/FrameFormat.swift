/// What the pictures of a feed are like: how they are written, their size, and how many a second there may be.
public struct FrameFormat: Sendable, Hashable, CustomStringConvertible {
    /// How a picture is written. The raw value is what stands for it in messages.
    public enum Encoding: String, Sendable, Hashable, CaseIterable {
        /// Three planes: luma, and at half the width and height blue and red difference.
        case i420 = "I420"
        /// Two planes: luma, and at half the width and height blue and red difference in turn.
        case nv12 = "NV12"
        case bgrx = "BGRx"
        case bgra = "BGRA"
        case rgba = "RGBA"
        /// Luma, blue difference, luma, red difference for each two pixels.
        case yuy2 = "YUY2"
        /// Annex B, one picture in each frame, with parameter sets before each keyframe.
        case h264 = "H264"
        case vp8 = "VP80"
        case mjpeg = "MJPG"

        public var isRaw: Bool {
            switch self {
            case .i420, .nv12, .bgrx, .bgra, .rgba, .yuy2: true
            case .h264, .vp8, .mjpeg: false
            }
        }
    }

    public var encoding: Encoding
    /// In pixels.
    public var width: Int
    /// In pixels.
    public var height: Int
    /// Frames per second as a fraction: 30000 over 1001 for television's 29.97.
    public var rateNumerator: Int
    public var rateDenominator: Int

    public init(_ encoding: Encoding, width: Int, height: Int, rateNumerator: Int = 30, rateDenominator: Int = 1) {
        self.encoding = encoding
        self.width = width
        self.height = height
        self.rateNumerator = rateNumerator
        self.rateDenominator = rateDenominator
    }

    public var framesPerSecond: Double { Double(rateNumerator) / Double(max(rateDenominator, 1)) }

    /// How the planes of a raw picture lie when nothing else is said: one after the other, rows without gaps. Empty for
    /// encoded pictures.
    public var planes: [FramePlane] {
        let half = ((width + 1) / 2, (height + 1) / 2)
        var planes: [FramePlane] = []
        func add(_ rowBytes: Int, _ rows: Int) {
            let offset = planes.last.map { $0.offset + $0.stride * $0.rows } ?? 0
            planes.append(FramePlane(offset: offset, stride: rowBytes, rowBytes: rowBytes, rows: rows))
        }
        switch encoding {
        case .i420:
            add(width, height)
            add(half.0, half.1)
            add(half.0, half.1)
        case .nv12:
            add(width, height)
            add(half.0 * 2, half.1)
        case .bgrx, .bgra, .rgba: add(width * 4, height)
        case .yuy2: add(half.0 * 4, height)
        case .h264, .vp8, .mjpeg: break
        }
        return planes
    }

    /// Bytes of a raw picture without gaps; for an encoded one as much as the largest may have.
    public var bytesPerFrame: Int {
        guard let last = planes.last else { return max(width * height * 2, 65_536) }
        return last.offset + last.stride * last.rows
    }

    /// Such as `I420 640x480`: what two sides must agree on.
    public var description: String { "\(encoding.rawValue) \(width)x\(height)" }

    /// Whether both sides are such as pictures may have, 16 to 8192 pixels. What is not may not even be reckoned with.
    var hasUsableSize: Bool { [width, height].allSatisfy((16...8192).contains) }

    /// Whether pictures of this format can stand in for those of the other. How many come in a second may differ.
    func agrees(with other: FrameFormat) -> Bool {
        encoding == other.encoding && width == other.width && height == other.height
    }
}

/// Where one plane of a raw picture lies within its frame.
public struct FramePlane: Sendable, Hashable {
    /// Of the first byte, from the picture's beginning.
    public var offset: Int
    /// From one row to the next, in bytes.
    public var stride: Int
    /// Bytes of a row that hold pixels.
    public let rowBytes: Int
    public let rows: Int

    /// The end of the last whole row. Not all who read pictures stop where its pixels end.
    var end: Int { offset + stride * rows }
}
