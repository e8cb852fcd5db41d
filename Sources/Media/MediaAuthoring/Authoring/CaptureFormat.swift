/// The format of a capturer's output: ``PictureFormat``, ``SoundFormat`` or ``EncodedPictureFormat``.
public protocol CaptureFormat: Sendable, Hashable {
    /// The same format as links carry it.
    var media: MediaFormat { get }
    /// The output port of every capturer with this format: `video` or `audio`.
    static var port: Port { get }
}

/// The memory layout of a raw frame's samples.
public struct PixelFormat: Sendable, Hashable, CustomStringConvertible {
    /// GStreamer's name, such as `BGRx`.
    public let name: String
    /// Each plane's bytes per pixel, and by how much it is smaller than the frame in each direction.
    let planes: [(bytes: Int, columns: Int, rows: Int)]

    /// 8 bits, 4:2:0, three planes. Encoders read it without conversion.
    public static let i420 = PixelFormat("I420", [(1, 1, 1), (1, 2, 2), (1, 2, 2)])
    /// 8 bits, 4:2:0, one plane of luma and one of interleaved chroma.
    public static let nv12 = PixelFormat("NV12", [(1, 1, 1), (2, 2, 2)])
    /// Packed 4:2:2, common in USB cameras.
    public static let yuy2 = PixelFormat("YUY2", [(4, 2, 1)])
    /// Four bytes per pixel: blue, green, red, and one unused.
    public static let bgrx = PixelFormat("BGRx", [(4, 1, 1)])
    /// Four bytes per pixel: red, green, blue, and one unused.
    public static let rgbx = PixelFormat("RGBx", [(4, 1, 1)])
    /// Three bytes per pixel: red, green, blue.
    public static let rgb = PixelFormat("RGB", [(3, 1, 1)])
    /// One byte of luma per pixel.
    public static let gray8 = PixelFormat("GRAY8", [(1, 1, 1)])

    /// Every supported format.
    public static let all: [PixelFormat] = [.i420, .nv12, .yuy2, .bgrx, .rgbx, .rgb, .gray8]

    private init(_ name: String, _ planes: [(bytes: Int, columns: Int, rows: Int)]) {
        self.name = name
        self.planes = planes
    }

    /// The number of planes, 1 to 3.
    public var planeCount: Int { planes.count }

    /// The bytes in one row of a plane, without padding.
    public func rowBytes(ofPlane plane: Int, width: Int) -> Int {
        let shape = planes[plane]
        return (width + shape.columns - 1) / shape.columns * shape.bytes
    }

    /// The number of rows in a plane.
    public func rows(ofPlane plane: Int, height: Int) -> Int {
        (height + planes[plane].rows - 1) / planes[plane].rows
    }

    public static func == (left: PixelFormat, right: PixelFormat) -> Bool { left.name == right.name }
    public func hash(into hasher: inout Hasher) { hasher.combine(name) }
    public var description: String { name }
}

/// Raw frames of one size and rate.
///
///     PictureFormat(.bgrx, width: 1280, height: 720, framesPerSecond: 30)
public struct PictureFormat: CaptureFormat {
    /// The layout of the pixels.
    public var pixels: PixelFormat
    /// In pixels.
    public var width: Int
    /// In pixels.
    public var height: Int
    /// Frames per second; 29.97 and the like are allowed.
    public var framesPerSecond: Double

    /// Raw frames, I420 unless another layout is given.
    public init(_ pixels: PixelFormat = .i420, width: Int, height: Int, framesPerSecond: Double) {
        self.pixels = pixels
        self.width = width
        self.height = height
        self.framesPerSecond = framesPerSecond
    }

    public var media: MediaFormat {
        .rawVideo(pixels.name, width: width, height: height, framesPerSecond: framesPerSecond)
    }

    public static var port: Port { Port("video", [.rawVideo], encodings: PixelFormat.all.map(\.name)) }
}

/// Raw audio: interleaved signed 16-bit stereo at 48 kHz, the only audio format between nodes.
public struct SoundFormat: CaptureFormat {
    /// The one format of raw audio.
    public init() {}

    public var media: MediaFormat { .rawAudio }

    public static var port: Port { Port("audio", [.rawAudio]) }
}

/// Encoded frames of one size and rate, such as a camera that compresses them itself delivers. Nodes pass them on without
/// encoding them again.
///
///     EncodedPictureFormat(.mjpeg, width: 1280, height: 720, framesPerSecond: 30)
public struct EncodedPictureFormat: CaptureFormat {
    /// The codec of the frames.
    public enum Codec: String, Sendable, Hashable, CaseIterable {
        /// H.264 in Annex B form: one frame per `send`, with parameter sets before each keyframe.
        case h264
        /// VP8 (RFC 6386), one frame per `send`.
        case vp8
        /// One JPEG file per frame.
        case mjpeg
    }

    /// The codec of the frames.
    public var codec: Codec
    /// In pixels.
    public var width: Int
    /// In pixels.
    public var height: Int
    /// Frames per second; 29.97 and the like are allowed.
    public var framesPerSecond: Double

    /// Encoded frames of this size and rate.
    public init(_ codec: Codec, width: Int, height: Int, framesPerSecond: Double) {
        self.codec = codec
        self.width = width
        self.height = height
        self.framesPerSecond = framesPerSecond
    }

    public var media: MediaFormat {
        MediaFormat(
            .encodedVideo, codec.rawValue, width: width, height: height, framesPerSecond: framesPerSecond)
    }

    public static var port: Port {
        Port("video", [.encodedVideo], encodings: Codec.allCases.map(\.rawValue))
    }
}
