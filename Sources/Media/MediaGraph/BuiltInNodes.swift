/// Nodes of the built-in kinds. Each is named after its kind unless it is given a name.
extension Node {
    /// A camera; `device` is a path such as `/dev/video0`, or `auto` for the first.
    public static func camera(
        _ name: String = "camera", device: String = "auto", width: Int = 640, height: Int = 480,
        framesPerSecond: Double = 20, mirror: Bool = true
    ) -> Node {
        Node(
            "camera", name: name,
            settings: [
                "device": .text(device), "width": .integer(width), "height": .integer(height),
                "fps": .number(framesPerSecond), "mirror": .flag(mirror),
            ])
    }

    /// A microphone; `device` is a name as listed by the devices, or `auto` for the default.
    public static func microphone(_ name: String = "microphone", device: String = "auto") -> Node {
        Node("microphone", name: name, settings: ["device": .text(device)])
    }

    /// A media file, paced in real time at its own size and rate.
    public static func file(_ name: String = "file", path: String, loop: Bool = true) -> Node {
        Node("file", name: name, settings: ["path": .text(path), "loop": .flag(loop)])
    }

    /// Moving colour bars with a bar-coded frame number, and a tone; ends after `frames` unless that is 0.
    public static func testPattern(
        _ name: String = "test-pattern", width: Int = 640, height: Int = 480, framesPerSecond: Double = 30,
        frames: Int = 0
    ) -> Node {
        Node(
            "test-pattern", name: name,
            settings: [
                "width": .integer(width), "height": .integer(height), "fps": .number(framesPerSecond),
                "frames": .integer(frames),
            ])
    }

    /// Changes size or rate; what is nil stays as it comes.
    public static func scale(
        _ name: String = "scale", width: Int? = nil, height: Int? = nil, framesPerSecond: Double? = nil
    ) -> Node {
        var settings: [String: SettingValue] = [:]
        if let width { settings["width"] = .integer(width) }
        if let height { settings["height"] = .integer(height) }
        if let framesPerSecond { settings["fps"] = .number(framesPerSecond) }
        return Node("scale", name: name, settings: settings)
    }

    /// A video encoder; a nil bitrate means the table's for the size and rate that arrive.
    public static func videoEncoder(
        _ name: String? = nil, codec: VideoCodec = .vp8, bitrate: Bitrate? = nil, keyframeInterval: Int? = nil
    ) -> Node {
        var settings: [String: SettingValue] = [:]
        if let bitrate { settings["bitrate"] = .integer(bitrate.bitsPerSecond) }
        if let keyframeInterval { settings["keyframe-interval"] = .integer(keyframeInterval) }
        return Node(codec == .vp8 ? "vp8-encoder" : "h264-encoder", name: name, settings: settings)
    }

    public static func opusEncoder(
        _ name: String = "opus-encoder", bitrate: Bitrate = .kilobitsPerSecond(64), expectedLossPercent: Int = 10
    ) -> Node {
        Node(
            "opus-encoder", name: name,
            settings: [
                "bitrate": .integer(bitrate.bitsPerSecond), "expected-loss": .integer(expectedLossPercent),
            ])
    }

    /// Hands RTP packets to the function that is bound under the node's name.
    public static func rtpOutput(
        _ name: String, payloadType: UInt8 = 96, ssrc: UInt32? = nil, mtu: Int? = nil
    ) -> Node {
        var settings: [String: SettingValue] = ["payload-type": .integer(Int(payloadType))]
        if let ssrc { settings["ssrc"] = .integer(Int(ssrc)) }
        if let mtu { settings["mtu"] = .integer(mtu) }
        return Node("rtp-output", name: name, settings: settings)
    }

    /// Takes RTP packets of a video stream; `latency` is the longest wait for a repair, in milliseconds.
    public static func rtpInput(
        _ name: String, codec: VideoCodec, payloadType: UInt8 = 96, latency: Int = 200
    ) -> Node {
        rtpInput(name, codecName: codec.rawValue, payloadType: payloadType, latency: latency)
    }

    /// Takes RTP packets of a stream of sound; `latency` is the longest wait for a late packet, in milliseconds.
    public static func rtpInput(
        _ name: String, codec: AudioCodec, payloadType: UInt8 = 111, latency: Int = 60
    ) -> Node {
        rtpInput(name, codecName: codec.rawValue, payloadType: payloadType, latency: latency)
    }

    private static func rtpInput(_ name: String, codecName: String, payloadType: UInt8, latency: Int) -> Node {
        Node(
            "rtp-input", name: name,
            settings: [
                "codec": .text(codecName), "payload-type": .integer(Int(payloadType)), "latency": .integer(latency),
            ])
    }

    public static func videoDecoder(_ name: String = "video-decoder") -> Node {
        Node("video-decoder", name: name)
    }

    public static func audioDecoder(_ name: String = "audio-decoder") -> Node {
        Node("audio-decoder", name: name)
    }

    /// Hands pictures to the function that is bound under the node's name.
    public static func frames(_ name: String) -> Node {
        Node("frames", name: name)
    }

    /// Hands sound to the function that is bound under the node's name.
    public static func sound(_ name: String) -> Node {
        Node("sound", name: name)
    }

    /// Writes picture number `frame`, counted from 1, to a PNG file.
    public static func image(_ name: String = "image", path: String, frame: Int = 1) -> Node {
        Node("image", name: name, settings: ["path": .text(path), "frame": .integer(frame)])
    }

    public static func window(_ name: String = "window", title: String = "Video") -> Node {
        Node("window", name: name, settings: ["title": .text(title)])
    }

    public static func speaker(_ name: String = "speaker") -> Node {
        Node("speaker", name: name)
    }

    public static func null(_ name: String = "null") -> Node {
        Node("null", name: name)
    }
}
