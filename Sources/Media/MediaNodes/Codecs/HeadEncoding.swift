import MediaGraph

extension NodePlan {
    /// Appends an encoder of raw I420 for the head of a source: for its slate, and for a device that does not encode as
    /// promised. In software, because hardware may keep a frame back. H.264 is constrained baseline, which a decoder of any
    /// profile reads.
    ///
    /// - Throws: `element.missing`.
    mutating func appendEncoder(
        of format: MediaFormat, keyframeInterval: Int = 3000, _ environment: any PlanEnvironment
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
        append(factory, as: "encoder", properties)
        guard codec.name == "h264" else { return }
        appendFilter(
            "video/x-h264,profile=constrained-baseline,stream-format=byte-stream,alignment=au", as: "profile")
    }
}
