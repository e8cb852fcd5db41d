import GStreamerKit
import MediaGraph

extension MediaFormat {
    /// The codecs by the names that GStreamer gives their streams.
    private static let codecs: [String: (MediaKind, String)] = [
        "video/x-vp8": (.encodedVideo, "vp8"), "video/x-vp9": (.encodedVideo, "vp9"),
        "video/x-h264": (.encodedVideo, "h264"), "video/x-h265": (.encodedVideo, "h265"),
        "video/x-av1": (.encodedVideo, "av1"), "image/jpeg": (.encodedVideo, "mjpeg"),
        "audio/x-opus": (.encodedAudio, "opus"), "audio/x-mulaw": (.encodedAudio, "pcmu"),
        "audio/x-alaw": (.encodedAudio, "pcma"),
    ]

    /// What a pad carries, once that has been settled; nil for what no graph knows.
    init?(_ caps: FormatStructure) {
        switch caps.name {
        case "video/x-raw": self.init(.rawVideo, caps.text("format") ?? "")
        case "audio/x-raw": self.init(.rawAudio, caps.text("format") ?? "")
        case "audio/mpeg": self.init(.encodedAudio, caps.integer("mpegversion") == 1 ? "mp3" : "aac")
        case "application/x-rtp": self.init(.rtp, (caps.text("encoding-name") ?? "").lowercased())
        default:
            guard let (kind, encoding) = Self.codecs[caps.name] else { return nil }
            self.init(kind, encoding)
        }
        width = caps.integer("width")
        height = caps.integer("height")
        framesPerSecond = caps.fractions("framerate").first.flatMap { $0 > 0 ? $0 : nil }
        sampleRate = caps.integer("rate")
        channels = caps.integer("channels")
    }
}
