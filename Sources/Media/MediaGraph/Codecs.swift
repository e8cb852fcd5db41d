/// A video codec that the built-in nodes encode and decode.
public enum VideoCodec: String, Sendable, Hashable, Codable, CaseIterable {
    /// RFC 6386, carried as RFC 7741.
    case vp8
    /// Constrained baseline, carried as RFC 6184 with packetization-mode 1.
    case h264
}

/// An audio codec that the built-in nodes encode and decode.
public enum AudioCodec: String, Sendable, Hashable, Codable, CaseIterable {
    /// RFC 6716, carried as RFC 7587.
    case opus
}

/// A number of bits per second.
public struct Bitrate: Sendable, Hashable, Comparable, Codable, CustomStringConvertible {
    public var bitsPerSecond: Int

    public init(bitsPerSecond: Int) {
        self.bitsPerSecond = bitsPerSecond
    }

    public static func kilobitsPerSecond(_ value: Int) -> Bitrate {
        Bitrate(bitsPerSecond: value * 1000)
    }

    public var kilobitsPerSecond: Int { bitsPerSecond / 1000 }

    public static func < (left: Bitrate, right: Bitrate) -> Bool {
        left.bitsPerSecond < right.bitsPerSecond
    }

    public var description: String { "\(kilobitsPerSecond) kbit/s" }
}

/// The constant bitrate of a video encoder whose node sets none.
///
/// The table is for 30 frames/s. Other rates scale by the square root of the rate, because frames in quick succession
/// differ less. H.264 (x264, superfast) has the same bitrates as VP8 (realtime).
///
/// | up to     | 30 frames/s | 25        | 20        |
/// |-----------|-------------|-----------|-----------|
/// | 320x240   | 300 kbit/s  | 274       | 245       |
/// | 480x360   | 600         | 548       | 490       |
/// | 640x480   | 1000        | 913       | 816       |
/// | 960x540   | 1500        | 1369      | 1225      |
/// | 1280x720  | 2200        | 2008      | 1796      |
/// | 1920x1080 | 4000        | 3651      | 3266      |
/// | 2560x1440 | 7000        | 6390      | 5715      |
/// | larger    | 12000       | 10954     | 9798      |
public enum VideoBitrate {
    /// Kilobits per second at 30 frames/s, by the largest number of pixels in a row of the table.
    private static let table: [(pixels: Int, kilobits: Double)] = [
        (320 * 240, 300), (480 * 360, 600), (640 * 480, 1000), (960 * 540, 1500), (1280 * 720, 2200),
        (1920 * 1080, 4000), (2560 * 1440, 7000),
    ]
    private static let kilobitsBeyondTable = 12000.0

    public static func `default`(
        width: Int, height: Int, framesPerSecond: Double, codec: VideoCodec = .vp8
    ) -> Bitrate {
        let row = table.first { width * height <= $0.pixels }
        let rate = min(max(framesPerSecond, 1), 120)
        return .kilobitsPerSecond(Int((row?.kilobits ?? kilobitsBeyondTable) * (rate / 30).squareRoot()))
    }
}

extension MediaKind {
    private static let videoEncodings = ["vp8", "vp9", "h264", "h265", "av1", "mjpeg"]
    private static let audioEncodings = ["opus", "aac", "pcmu", "pcma", "flac", "mp3", "vorbis"]

    /// The kind of media that an encoding belongs to. A name that is neither a codec nor a sample format is a pixel format.
    public init(ofEncoding encoding: String) {
        self =
            Self.videoEncodings.contains(encoding)
            ? .encodedVideo
            : Self.audioEncodings.contains(encoding)
                ? .encodedAudio : ["S16LE", "S32LE", "F32LE"].contains(encoding) ? .rawAudio : .rawVideo
    }
}
