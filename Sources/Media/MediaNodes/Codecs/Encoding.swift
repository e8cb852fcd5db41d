import GStreamerKit
import MediaGraph

extension Encoding {
    /// The codec of a format; nil for raw media and for codecs that no graph knows.
    static func of(_ structure: FormatStructure) -> Encoding? {
        let found = all.first { $0.mediaType == structure.name }
        guard found?.name == "aac" else { return found }
        let versions = structure.integers("mpegversion")
        return versions.contains(4) || versions.contains(2) ? found : named("mp3")
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
    /// Nil for raw media.
    var codec: Encoding? { Encoding.named(encoding) }

    /// The caps of media that is pushed, one encoded frame a buffer.
    var pushedCaps: String {
        if kind == .rawAudio { return RawFormat.audio }
        if kind == .rawVideo { return RawFormat.video(self) }
        return (Encoding.named(encoding)?.caps ?? "video/x-\(encoding)") + sizeAndRate
    }

    /// The known size of video, as the end of caps.
    var size: String { (width.map { ",width=\($0)" } ?? "") + (height.map { ",height=\($0)" } ?? "") }

    /// The known size and rate of video, as the end of caps.
    var sizeAndRate: String {
        (width.map { ",width=\($0)" } ?? "") + (height.map { ",height=\($0)" } ?? "")
            + (framesPerSecond.map { ",framerate=\(fraction($0))" } ?? "")
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
