/// A video codec that the built-in nodes encode and decode.
public enum VideoCodec: String, Sendable, Hashable, Codable, CaseIterable {
    /// RFC 6386, carried as RFC 7741.
    case vp8
    /// Constrained baseline, carried as RFC 6184 with packetization-mode 1.
    case h264
    /// Profile 0, carried as RFC 9628.
    case vp9
}

/// An audio codec that the built-in nodes encode and decode.
public enum AudioCodec: String, Sendable, Hashable, Codable, CaseIterable {
    /// RFC 6716, carried as RFC 7587.
    case opus
}

/// A number of bits per second.
public struct Bitrate: Sendable, Hashable, Comparable, Codable, CustomStringConvertible {
    /// The rate in bits per second.
    public var bitsPerSecond: Int

    /// A rate in bits per second.
    public init(bitsPerSecond: Int) {
        self.bitsPerSecond = bitsPerSecond
    }

    /// A rate in thousands of bits per second.
    public static func kilobitsPerSecond(_ value: Int) -> Bitrate {
        Bitrate(bitsPerSecond: value * 1000)
    }

    /// A rate in millions of bits per second, rounded to a bit.
    public static func megabitsPerSecond(_ value: Double) -> Bitrate {
        Bitrate(bitsPerSecond: Int((value * 1_000_000).rounded()))
    }

    /// The rate in thousands of bits per second, rounded down.
    public var kilobitsPerSecond: Int { bitsPerSecond / 1000 }

    public static func < (left: Bitrate, right: Bitrate) -> Bool {
        left.bitsPerSecond < right.bitsPerSecond
    }

    public var description: String { "\(kilobitsPerSecond) kbit/s" }
}

/// The pixels of a frame. At most `Int.max`.
package func pixelCount(_ width: Int, _ height: Int) -> Int {
    let (count, isTooLarge) = width.multipliedReportingOverflow(by: height)
    return isTooLarge ? .max : count
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

    /// The bitrate of the table, for a size in pixels. Rates below 1 and above 120 frames per second count as those.
    public static func `default`(
        width: Int, height: Int, framesPerSecond: Double, codec: VideoCodec = .vp8
    ) -> Bitrate {
        let pixels = pixelCount(width, height)
        let row = table.first { pixels <= $0.pixels }
        let rate = min(max(framesPerSecond, 1), 120)
        return .kilobitsPerSecond(Int((row?.kilobits ?? kilobitsBeyondTable) * (rate / 30).squareRoot()))
    }
}

/// A codec: its names, and the elements that parse, decode and depacketize it. A new codec is a row of this table, and a
/// row of `VideoEncoderTable` if a node encodes with it.
package struct Encoding: Sendable {
    /// The name in formats, such as `h264`.
    package let name: String
    /// The name for people.
    package let title: String
    /// GStreamer's media type, such as `video/x-h264`.
    package let mediaType: String
    /// The fields of the form in which nodes exchange it, one frame a buffer.
    package private(set) var framing = ""
    /// The element that brings a camera's or container's stream into that form, or into the form of another container.
    package private(set) var parser: String?
    /// Whether decoders take the parser's output only.
    package private(set) var isParsedToDecode = false
    /// Whether its encoders need an even width and an even height.
    package private(set) var needsEvenSize = false
    /// The payload formats in RTP, each with the element that takes the stream out of its packets.
    package private(set) var depayloaders: [String: String] = [:]
    /// In the order of preference: hardware first. The last one is in every Debian.
    package let decoders: [String]
    /// The decoders that take all spatial layers of a frame in one buffer, and show the highest one: libvpx does. Hardware decodes one
    /// frame of a buffer without a superframe index, or shows each of them. Empty if the codec has none.
    package private(set) var layerDecoders: [String] = []

    /// The decoders of a format, in the order of preference.
    package func decoders(of format: MediaFormat) -> [String] {
        format.hasLayers == true && !layerDecoders.isEmpty ? layerDecoders : decoders
    }

    package var caps: String { mediaType + framing }

    /// Whether frames of this size can be encoded. An unknown one may.
    func takesSize(of format: MediaFormat) -> Bool {
        let sides = [format.width, format.height].compactMap(\.self)
        return !needsEvenSize || sides.allSatisfy { $0.isMultiple(of: 2) }
    }

    package var isVideo: Bool { !mediaType.hasPrefix("audio/") }
    /// Repeats the parameter sets before each keyframe, for consumers that join later.
    package var parserProperties: [String: SettingValue] {
        ["h264parse", "h265parse"].contains(parser) ? ["config-interval": -1] : [:]
    }

    private static let annexB = ",stream-format=byte-stream,alignment=au"

    package static let all: [Encoding] = [
        Encoding(
            name: "vp8", title: "VP8", mediaType: "video/x-vp8", depayloaders: ["VP8": "rtpvp8depay"],
            decoders: ["nvvp8dec", "vavp8dec", "v4l2slvp8dec", "v4l2vp8dec", "vp8dec"]),
        Encoding(
            name: "vp9", title: "VP9", mediaType: "video/x-vp9", depayloaders: ["VP9": "rtpvp9depay"],
            decoders: ["nvvp9dec", "vavp9dec", "v4l2slvp9dec", "v4l2vp9dec", "vp9dec"], layerDecoders: ["vp9dec"]),
        Encoding(
            name: "h264", title: "H.264", mediaType: "video/x-h264", framing: annexB, parser: "h264parse",
            needsEvenSize: true, depayloaders: ["H264": "rtph264depay"],
            decoders: [
                "nvh264dec", "mppvideodec", "vah264dec", "v4l2slh264dec", "v4l2h264dec", "avdec_h264", "openh264dec",
            ]),
        Encoding(
            name: "h265", title: "H.265", mediaType: "video/x-h265", framing: annexB, parser: "h265parse",
            isParsedToDecode: true,
            depayloaders: ["H265": "rtph265depay"],
            decoders: ["nvh265dec", "vah265dec", "v4l2slh265dec", "v4l2h265dec", "avdec_h265", "libde265dec"]),
        Encoding(
            name: "av1", title: "AV1", mediaType: "video/x-av1", parser: "av1parse", isParsedToDecode: true,
            decoders: ["nvav1dec", "vaav1dec", "dav1ddec", "av1dec"]),
        Encoding(
            name: "mjpeg", title: "Motion JPEG", mediaType: "image/jpeg", parser: "jpegparse",
            depayloaders: ["JPEG": "rtpjpegdepay"],
            decoders: ["nvjpegdec", "vajpegdec", "v4l2jpegdec", "jpegdec"]),
        Encoding(
            name: "opus", title: "Opus", mediaType: "audio/x-opus", depayloaders: ["OPUS": "rtpopusdepay"],
            decoders: ["opusdec"]),
        // MPEG-2's AAC is the same to decoders.
        Encoding(
            name: "aac", title: "AAC", mediaType: "audio/mpeg", framing: ",mpegversion=4", parser: "aacparse",
            isParsedToDecode: true,
            depayloaders: ["MPEG4-GENERIC": "rtpmp4gdepay", "MP4A-LATM": "rtpmp4adepay"],
            decoders: ["avdec_aac", "faad"]),
        Encoding(
            name: "pcmu", title: "pcmu", mediaType: "audio/x-mulaw", depayloaders: ["PCMU": "rtppcmudepay"],
            decoders: ["mulawdec"]),
        Encoding(
            name: "pcma", title: "pcma", mediaType: "audio/x-alaw", depayloaders: ["PCMA": "rtppcmadepay"],
            decoders: ["alawdec"]),
        Encoding(
            name: "flac", title: "flac", mediaType: "audio/x-flac", parser: "flacparse", isParsedToDecode: true,
            decoders: ["flacdec"]),
        Encoding(
            name: "mp3", title: "mp3", mediaType: "audio/mpeg", framing: ",mpegversion=1", parser: "mpegaudioparse",
            isParsedToDecode: true, decoders: ["mpg123audiodec", "avdec_mp3"]),
        Encoding(name: "vorbis", title: "vorbis", mediaType: "audio/x-vorbis", decoders: ["vorbisdec"]),
    ]

    /// The names of all video codecs.
    package static let video = all.filter(\.isVideo).map(\.name)
    /// The names of all audio codecs.
    package static let audio = all.filter { !$0.isVideo }.map(\.name)

    package static func named(_ name: String) -> Encoding? { all.first { $0.name == name } }

    /// The properties of a decoder that differ from GStreamer's defaults.
    package static func decoderProperties(_ factory: String) -> [String: SettingValue] {
        switch factory {
        case "vp8dec", "vp9dec": ["threads": 1]
        // Frame threads would hold frames back; one thread decodes what conferences send fast enough.
        case "avdec_h264", "avdec_h265": ["max-threads": 1, "output-corrupt": false]
        case "opusdec": ["use-inband-fec": true, "plc": true]
        default: [:]
        }
    }
}

extension MediaKind {
    /// The kind of media that an encoding belongs to. A name that is neither a codec nor a sample format is a pixel format.
    public init(ofEncoding name: String) {
        if let encoding = Encoding.named(name) {
            self = encoding.isVideo ? .encodedVideo : .encodedAudio
        } else {
            self = ["S16LE", "S32LE", "F32LE"].contains(name) ? .rawAudio : .rawVideo
        }
    }
}
