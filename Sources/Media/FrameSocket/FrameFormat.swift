/// The format of a feed's frames: encoding, size and highest frame rate.
public struct FrameFormat: Sendable, Hashable, CustomStringConvertible {
    /// The encoding of a frame. The raw value is its code in messages.
    public enum Encoding: String, Sendable, Hashable, CaseIterable {
        /// Three planes: Y, and U and V at half the width and height.
        case i420 = "I420"
        /// Two planes: Y, and interleaved U and V at half the width and height.
        case nv12 = "NV12"
        /// One plane of blue, green, red and an ignored byte.
        case bgrx = "BGRx"
        /// One plane of blue, green, red and alpha, which is ignored.
        case bgra = "BGRA"
        /// One plane of red, green, blue and alpha, which is ignored.
        case rgba = "RGBA"
        /// One plane with Y, U, Y, V for each two pixels.
        case yuy2 = "YUY2"
        /// Annex B, one access unit per frame, with parameter sets before each keyframe.
        case h264 = "H264"
        /// VP8 (RFC 6386), one frame per `send`.
        case vp8 = "VP80"
        /// One JPEG file per frame.
        case mjpeg = "MJPG"

        /// Whether frames are uncompressed.
        public var isRaw: Bool {
            switch self {
            case .i420, .nv12, .bgrx, .bgra, .rgba, .yuy2: true
            case .h264, .vp8, .mjpeg: false
            }
        }
    }

    /// The encoding of all frames.
    public var encoding: Encoding
    /// In pixels.
    public var width: Int
    /// In pixels.
    public var height: Int
    /// Frames per second as a fraction, such as 30000/1001 for 29.97.
    public var rateNumerator: Int
    /// The denominator of the frame rate: 1 for whole rates.
    public var rateDenominator: Int

    /// A format of frames. 30 frames per second by default.
    public init(_ encoding: Encoding, width: Int, height: Int, rateNumerator: Int = 30, rateDenominator: Int = 1) {
        self.encoding = encoding
        self.width = width
        self.height = height
        self.rateNumerator = rateNumerator
        self.rateDenominator = rateDenominator
    }

    /// The frame rate as a number.
    public var framesPerSecond: Double { Double(rateNumerator) / Double(max(rateDenominator, 1)) }

    /// The default planes of a raw frame: one after the other, rows without gaps. Empty for encoded frames.
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

    /// Bytes of a raw frame without gaps; for an encoded one, the largest size.
    public var bytesPerFrame: Int {
        guard let last = planes.last else { return max(width * height * 2, 65_536) }
        return last.offset + last.stride * last.rows
    }

    /// Encoding and size, such as `I420 640x480`. Both ends must agree on them.
    public var description: String { "\(encoding.rawValue) \(width)x\(height)" }

    /// Throws `feed.format` for a size that could overflow calculations. `sender` begins the sentence.
    func checkSize(_ sender: String) throws(FrameSocketError) {
        guard [width, height].allSatisfy((16...8192).contains) else {
            throw FrameSocketError(
                code: "feed.format", "\(sender) \(self). Each side must have 16 to 8192 pixels.")
        }
    }
}

/// The place of a plane of a raw frame.
public struct FramePlane: Sendable, Hashable {
    /// Of the first byte, from the start of the frame.
    public var offset: Int
    /// Bytes from one row to the next.
    public var stride: Int
    /// Bytes of a row's pixels.
    public let rowBytes: Int
    /// The number of rows.
    public let rows: Int

    /// The end of the last row including its padding. Some readers read whole rows.
    var end: Int { offset + stride * rows }

    /// Copies the rows of a plane into this place of a frame. Rows that either memory lacks are left out.
    ///
    /// - Parameter sourceStride: bytes from one row of the source to the next.
    package func copyRows(of source: RawSpan, stride sourceStride: Int, to frame: inout MutableRawSpan) {
        frame.withUnsafeMutableBytes { frame in
            source.withUnsafeBytes { source in
                guard let from = source.baseAddress, let to = frame.baseAddress else { return }
                for row in 0..<rows {
                    let (read, written) = (row * sourceStride, offset + row * stride)
                    guard read + rowBytes <= source.count, written + rowBytes <= frame.count else { return }
                    (to + written).copyMemory(from: from + read, byteCount: rowBytes)
                }
            }
        }
    }
}
