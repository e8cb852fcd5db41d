/// What a capturer gives, or a renderer takes: pictures, sound, or encoded pictures.
public protocol CaptureFormat: Sendable, Hashable {
    /// What travels along the links.
    var media: MediaFormat { get }
    /// What the kind gives whatever its settings say: `video` or `audio`.
    static var port: Port { get }
}

/// How the samples of a raw picture lie.
public struct PixelFormat: Sendable, Hashable, CustomStringConvertible {
    /// GStreamer's name.
    public let name: String
    /// Bytes of a pixel in each plane, and by how much the plane is smaller than the picture in each direction.
    let planes: [(bytes: Int, columns: Int, rows: Int)]

    /// 8 bits, 4:2:0, three planes: what encoders take without conversion.
    public static let i420 = PixelFormat("I420", [(1, 1, 1), (1, 2, 2), (1, 2, 2)])
    /// 8 bits, 4:2:0, a plane of luma and one of both chromas.
    public static let nv12 = PixelFormat("NV12", [(1, 1, 1), (2, 2, 2)])
    /// Packed 4:2:2, as many cameras give it.
    public static let yuy2 = PixelFormat("YUY2", [(4, 2, 1)])
    /// Four bytes a pixel, blue first; the fourth is not looked at.
    public static let bgrx = PixelFormat("BGRx", [(4, 1, 1)])
    /// Four bytes a pixel, red first; the fourth is not looked at.
    public static let rgbx = PixelFormat("RGBx", [(4, 1, 1)])
    /// Three bytes a pixel, red first.
    public static let rgb = PixelFormat("RGB", [(3, 1, 1)])
    /// One byte a pixel.
    public static let gray8 = PixelFormat("GRAY8", [(1, 1, 1)])

    public static let all: [PixelFormat] = [.i420, .nv12, .yuy2, .bgrx, .rgbx, .rgb, .gray8]

    private init(_ name: String, _ planes: [(bytes: Int, columns: Int, rows: Int)]) {
        self.name = name
        self.planes = planes
    }

    public var planeCount: Int { planes.count }

    /// Bytes that hold one row of a plane, without padding.
    public func rowBytes(ofPlane plane: Int, width: Int) -> Int {
        let shape = planes[plane]
        return (width + shape.columns - 1) / shape.columns * shape.bytes
    }

    public func rows(ofPlane plane: Int, height: Int) -> Int {
        (height + planes[plane].rows - 1) / planes[plane].rows
    }

    public static func == (left: PixelFormat, right: PixelFormat) -> Bool { left.name == right.name }
    public func hash(into hasher: inout Hasher) { hasher.combine(name) }
    public var description: String { name }
}

/// Raw pictures of one size and rate.
public struct PictureFormat: CaptureFormat {
    public var pixels: PixelFormat
    /// In pixels.
    public var width: Int
    /// In pixels.
    public var height: Int
    public var framesPerSecond: Double

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

/// Raw sound: interleaved signed 16-bit stereo at 48 kHz.
public struct SoundFormat: CaptureFormat {
    public init() {}

    public var media: MediaFormat { .rawAudio }

    public static var port: Port { Port("audio", [.rawAudio]) }
}

/// Pictures that come encoded.
public struct EncodedPictureFormat: CaptureFormat {
    public enum Codec: String, Sendable, Hashable, CaseIterable {
        /// Annex B, one picture a time, parameter sets before each keyframe.
        case h264
        case vp8
        /// A JPEG file a picture.
        case mjpeg
    }

    public var codec: Codec
    /// In pixels.
    public var width: Int
    /// In pixels.
    public var height: Int
    public var framesPerSecond: Double

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
