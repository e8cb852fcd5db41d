import GStreamerKit
import MediaGraph

extension NodePlan {
    /// Plans a queue into which media of a format is pushed, and what makes that fit to go on, as the node's output.
    mutating func addPushed(_ format: MediaFormat) {
        let isSound = format.kind == .rawAudio
        let limits: QueuePlan.Limits =
            format.kind == .encodedVideo ? PushQueue.encodedLimits : isSound ? .rawSound : .rawPictures
        PushQueue.plan(&self, caps: format.pushedCaps, limits, holding: format)
        if format.encoding == "h264" {
            // Says the profile, and repeats the parameter sets for whoever joins later.
            add("h264parse", as: "parser", ["config-interval": -1])
            addFilter("video/x-h264,stream-format=byte-stream,alignment=au", as: "format")
            link("source", "parser", "format")
        }
        let port = isSound ? "audio" : "video"
        outputs[port] = ElementPad(format.encoding == "h264" ? "format" : "source")
        formats[port] = format
    }
}

extension MediaFormat {
    /// The format as GStreamer writes it, of media that is pushed: one encoded picture a buffer.
    var pushedCaps: String {
        if kind == .rawAudio { return RawFormat.audio }
        if kind == .rawVideo { return RawFormat.video(self) }
        var caps =
            switch encoding {
            case "h264": "video/x-h264,stream-format=byte-stream,alignment=au"
            case "mjpeg": "image/jpeg"
            default: "video/x-\(encoding)"
            }
        if let width { caps += ",width=\(width)" }
        if let height { caps += ",height=\(height)" }
        if let framesPerSecond { caps += ",framerate=\(fraction(framesPerSecond))" }
        return caps
    }
}
