import GStreamerKit
import MediaGraph

/// A codec: its names, and the elements that parse, decode and depacketize it. A new codec is a row of this table, and a
/// row of `VideoEncoderTable` if a node encodes with it.
struct Encoding: Sendable {
    /// The name in formats, such as `h264`.
    let name: String
    /// GStreamer's media type, such as `video/x-h264`.
    let mediaType: String
    /// The fields of the form in which nodes exchange it, one frame a buffer.
    var framing = ""
    /// The element that brings a camera's or container's stream into that form, or into the form of another container.
    var parser: String?
    /// Whether decoders take the parser's output only.
    var isParsedToDecode = false
    /// The payload formats in RTP, each with the element that takes the stream out of its packets.
    var depayloaders: [String: String] = [:]
    /// In the order of preference: hardware first. The last one is in every Debian.
    let decoders: [String]

    var caps: String { mediaType + framing }
    var isVideo: Bool { MediaKind(ofEncoding: name) == .encodedVideo }
    /// Repeats the parameter sets before each keyframe, for consumers that join later.
    var parserProperties: [String: SettingValue] {
        ["h264parse", "h265parse"].contains(parser) ? ["config-interval": -1] : [:]
    }

    private static let annexB = ",stream-format=byte-stream,alignment=au"

    static let all: [Encoding] = [
        Encoding(
            name: "vp8", mediaType: "video/x-vp8", depayloaders: ["VP8": "rtpvp8depay"],
            decoders: ["nvvp8dec", "vavp8dec", "v4l2slvp8dec", "v4l2vp8dec", "vp8dec"]),
        Encoding(
            name: "vp9", mediaType: "video/x-vp9",
            decoders: ["nvvp9dec", "vavp9dec", "v4l2slvp9dec", "v4l2vp9dec", "vp9dec"]),
        Encoding(
            name: "h264", mediaType: "video/x-h264", framing: annexB, parser: "h264parse",
            depayloaders: ["H264": "rtph264depay"],
            decoders: [
                "nvh264dec", "mppvideodec", "vah264dec", "v4l2slh264dec", "v4l2h264dec", "avdec_h264", "openh264dec",
            ]),
        Encoding(
            name: "h265", mediaType: "video/x-h265", framing: annexB, parser: "h265parse", isParsedToDecode: true,
            depayloaders: ["H265": "rtph265depay"],
            decoders: ["nvh265dec", "vah265dec", "v4l2slh265dec", "v4l2h265dec", "avdec_h265", "libde265dec"]),
        Encoding(
            name: "av1", mediaType: "video/x-av1", parser: "av1parse", isParsedToDecode: true,
            decoders: ["nvav1dec", "vaav1dec", "dav1ddec", "av1dec"]),
        Encoding(
            name: "mjpeg", mediaType: "image/jpeg", parser: "jpegparse", depayloaders: ["JPEG": "rtpjpegdepay"],
            decoders: ["nvjpegdec", "vajpegdec", "v4l2jpegdec", "jpegdec"]),
        Encoding(
            name: "opus", mediaType: "audio/x-opus", depayloaders: ["OPUS": "rtpopusdepay"], decoders: ["opusdec"]),
        // MPEG-2's AAC is the same to decoders.
        Encoding(
            name: "aac", mediaType: "audio/mpeg", framing: ",mpegversion=4", parser: "aacparse", isParsedToDecode: true,
            depayloaders: ["MPEG4-GENERIC": "rtpmp4gdepay", "MP4A-LATM": "rtpmp4adepay"],
            decoders: ["avdec_aac", "faad"]),
        Encoding(
            name: "pcmu", mediaType: "audio/x-mulaw", depayloaders: ["PCMU": "rtppcmudepay"], decoders: ["mulawdec"]),
        Encoding(
            name: "pcma", mediaType: "audio/x-alaw", depayloaders: ["PCMA": "rtppcmadepay"], decoders: ["alawdec"]),
        Encoding(
            name: "flac", mediaType: "audio/x-flac", parser: "flacparse", isParsedToDecode: true, decoders: ["flacdec"]),
        Encoding(
            name: "mp3", mediaType: "audio/mpeg", framing: ",mpegversion=1", parser: "mpegaudioparse",
            isParsedToDecode: true, decoders: ["mpg123audiodec", "avdec_mp3"]),
        Encoding(name: "vorbis", mediaType: "audio/x-vorbis", decoders: ["vorbisdec"]),
    ]

    /// The names of all video codecs.
    static let video = all.filter(\.isVideo).map(\.name)
    /// The names of all audio codecs.
    static let audio = all.filter { !$0.isVideo }.map(\.name)

    static func named(_ name: String) -> Encoding? { all.first { $0.name == name } }

    /// The codec of a format; nil for raw media and for codecs that no graph knows.
    static func of(_ structure: FormatStructure) -> Encoding? {
        let found = all.first { $0.mediaType == structure.name }
        guard found?.name == "aac" else { return found }
        let versions = structure.integers("mpegversion")
        return versions.contains(4) || versions.contains(2) ? found : named("mp3")
    }

    /// The properties of a decoder that differ from GStreamer's defaults.
    static func decoderProperties(_ factory: String) -> [String: SettingValue] {
        switch factory {
        case "vp8dec", "vp9dec": ["threads": 1]
        // Frame threads would hold frames back; one thread decodes what conferences send fast enough.
        case "avdec_h264", "avdec_h265": ["max-threads": 1, "output-corrupt": false]
        case "opusdec": ["use-inband-fec": true, "plc": true]
        default: [:]
        }
    }
}

extension NodePlan {
    /// Appends the parser of a codec and the caps in which nodes exchange it. The last element is `format`. Throws
    /// `element.missing`.
    mutating func appendParser(
        of encoding: Encoding, prefix: String = "", _ environment: any PlanEnvironment
    ) throws(MediaError) {
        if let parser = encoding.parser {
            try environment.require(parser)
            append(parser, as: "\(prefix)parser", encoding.parserProperties)
        }
        appendFilter(encoding.caps, as: "\(prefix)format")
    }

    /// Plans a queue into which media of a format is pushed, and its parser, as the node's output. Throws
    /// `element.missing`.
    mutating func addPushed(
        _ format: MediaFormat, limits: QueuePlan.Limits? = nil, _ environment: any PlanEnvironment
    ) throws(MediaError) {
        let isAudio = format.kind == .rawAudio
        let encoding = Encoding.named(format.encoding)
        let usual: QueuePlan.Limits =
            encoding != nil ? PushQueue.encodedLimits : isAudio ? .rawSound : .rawPictures
        PushQueue.plan(&self, caps: format.pushedCaps, limits ?? usual, holding: format)
        if let encoding, encoding.parser != nil { try appendParser(of: encoding, environment) }
        setOutput(isAudio ? "audio" : "video", format)
    }
}

extension MediaFormat {
    /// The caps of media that is pushed, one encoded frame a buffer.
    var pushedCaps: String {
        if kind == .rawAudio { return RawFormat.audio }
        if kind == .rawVideo { return RawFormat.video(self) }
        var caps = Encoding.named(encoding)?.caps ?? "video/x-\(encoding)"
        if let width { caps += ",width=\(width)" }
        if let height { caps += ",height=\(height)" }
        if let framesPerSecond { caps += ",framerate=\(fraction(framesPerSecond))" }
        return caps
    }

    /// The format that a pad has settled on; nil for one that no graph knows.
    init?(_ caps: FormatStructure) {
        switch caps.name {
        case "video/x-raw": self.init(.rawVideo, caps.text("format") ?? "")
        case "audio/x-raw": self.init(.rawAudio, caps.text("format") ?? "")
        case "application/x-rtp": self.init(.rtp, (caps.text("encoding-name") ?? "").lowercased())
        default:
            guard let encoding = Encoding.of(caps) else { return nil }
            self.init(encoding.isVideo ? .encodedVideo : .encodedAudio, encoding.name)
        }
        width = caps.integer("width")
        height = caps.integer("height")
        framesPerSecond = caps.fractions("framerate").first.flatMap { $0 > 0 ? $0 : nil }
        sampleRate = caps.integer("rate")
        channels = caps.integer("channels")
    }
}
