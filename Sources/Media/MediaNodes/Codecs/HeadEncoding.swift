import MediaGraph

extension NodePlan {
    /// The longest time between keyframes of a device that is encoded here: a stand-in shows the last one.
    private static let keyframeSeconds = 2.0

    /// Appends a queue and an encoder for a device that does not encode as promised. The queue drops what the encoder is too
    /// slow for.
    mutating func appendQueuedEncoder(
        of format: MediaFormat, _ environment: any PlanEnvironment
    ) throws(MediaError) {
        append("queue", as: "encoder-queue", QueuePlan(element: "encoder-queue", limits: .rawPictures).properties)
        let interval = max(1, Int((format.framesPerSecond ?? 30) * Self.keyframeSeconds))
        try appendEncoder(of: format, keyframeInterval: interval, environment)
    }

    /// Appends an encoder of raw I420 for the head of a source: for its slate, and for a device that does not encode as
    /// promised. In software, because hardware may keep a frame back. H.264 is constrained baseline, which a decoder of any
    /// profile reads.
    ///
    /// - Throws: `element.missing`.
    mutating func appendEncoder(
        of format: MediaFormat, keyframeInterval: Int, _ environment: any PlanEnvironment
    ) throws(MediaError) {
        switch format.encoding {
        case "mjpeg":
            try environment.require("jpegenc")
            return append("jpegenc", as: "encoder")
        case "h265":
            try environment.require("x265enc")
            append("x265enc", as: "encoder", ["tune": "zerolatency", "speed-preset": "ultrafast"])
            return appendFilter("video/x-h265,stream-format=byte-stream,alignment=au", as: "profile")
        default: break
        }
        let codec = EncodedVideo.all.first { $0.name == format.encoding } ?? .h264
        let encoders = codec.elements.filter { !$0.isHardware }
        let factory = try environment.firstUsable(of: encoders.map(\.factory)).factory
        guard let encoder = encoders.first(where: { $0.factory == factory }) else { return }
        var properties = encoder.properties(keyframeInterval: keyframeInterval)
        if let bitrate = codec.defaultBitrate(for: format) {
            let (name, value) = encoder.rateProperty(bitrate.bitsPerSecond, keyframeInterval: keyframeInterval)
            properties[name] = value
        }
        if properties["threads"] != nil, let width = format.width, let height = format.height {
            properties["threads"] = .integer(VideoEncoderNode.threads(forPixels: width * height))
        }
        append(factory, as: "encoder", properties)
        guard codec.name == "h264" else { return }
        appendFilter(
            "video/x-h264,profile=constrained-baseline,stream-format=byte-stream,alignment=au", as: "profile")
    }
}
