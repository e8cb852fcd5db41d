extension MediaKind {
    static let videoEncodings = ["vp8", "vp9", "h264", "h265", "av1", "mjpeg"]
    static let audioEncodings = ["opus", "aac", "pcmu", "pcma", "flac", "mp3", "vorbis"]

    /// The kind of media that an encoding belongs to. A name that is neither a codec nor a sample format is a pixel format.
    public init(ofEncoding encoding: String) {
        self =
            Self.videoEncodings.contains(encoding)
            ? .encodedVideo
            : Self.audioEncodings.contains(encoding)
                ? .encodedAudio : ["S16LE", "S32LE", "F32LE"].contains(encoding) ? .rawAudio : .rawVideo
    }
}

/// Nodes that encode and decode.
extension NodeKind {
    static let codecs: [NodeKind] = [
        vp8Encoder, vp9Encoder, h264Encoder, av1Encoder, opusEncoder, aacEncoder, videoDecoder, audioDecoder,
    ]

    private static let videoEncoderSettings = [
        SettingContract(
            "bitrate", .integer(30_000...100_000_000), isChangeable: true, unit: "bit/s",
            "Constant bitrate (default: that of docs/bitrates.md)"
        ).example(800_000),
        SettingContract(
            "keyframe-interval", .integer(1...100_000), default: 3000, unit: "frames",
            "Longest interval between keyframes without a request"),
        SettingContract(
            "element", .text, default: "auto",
            "The GStreamer element to use; auto is the first usable one, hardware first"),
    ]

    private static func videoEncoder(_ encoding: String, _ title: String) -> NodeKind {
        NodeKind(
            "\(encoding)-encoder", .codec,
            "\(title) at a constant bitrate, after a queue of 2 frames that drops the oldest",
            inputs: [Port("in", [.rawVideo], encodings: ["I420"])],
            outputs: [Port("out", [.encodedVideo], encodings: [encoding])], settings: videoEncoderSettings)
    }

    public static let vp8Encoder = videoEncoder("vp8", "VP8")
    public static let vp9Encoder = videoEncoder("vp9", "VP9")
    public static let h264Encoder = videoEncoder("h264", "H.264 constrained baseline")
    public static let av1Encoder = videoEncoder("av1", "AV1")

    public static let opusEncoder = NodeKind(
        "opus-encoder", .codec, "Opus in packets of 20 ms, with in-band forward error correction",
        inputs: [Port("in", [.rawAudio])], outputs: [Port("out", [.encodedAudio], encodings: ["opus"])],
        settings: [
            SettingContract(
                "bitrate", .integer(6_000...510_000), default: 64_000, isChangeable: true, unit: "bit/s", "Bitrate"),
            SettingContract(
                "expected-loss", .integer(0...100), default: 10, unit: "%", "Expected loss, for the error correction"),
        ])

    public static let aacEncoder = NodeKind(
        "aac-encoder", .codec, "AAC, for containers without Opus, such as HLS",
        inputs: [Port("in", [.rawAudio])], outputs: [Port("out", [.encodedAudio], encodings: ["aac"])],
        settings: [
            SettingContract("bitrate", .integer(16_000...320_000), default: 128_000, unit: "bit/s", "Bitrate")
        ])

    public static let videoDecoder = NodeKind(
        "video-decoder", .codec, "Decodes video of any codec",
        inputs: [Port("in", [.encodedVideo], encodings: MediaKind.videoEncodings)],
        outputs: [Port("out", [.rawVideo], encodings: ["I420"])])

    public static let audioDecoder = NodeKind(
        "audio-decoder", .codec, "Decodes audio of any codec, and conceals lost Opus packets",
        inputs: [Port("in", [.encodedAudio], encodings: MediaKind.audioEncodings)],
        outputs: [Port("out", [.rawAudio])])
}

extension Node {
    /// A video encoder; a nil bitrate means the table's for the size and rate that arrive.
    public static func videoEncoder(
        _ name: String? = nil, codec: VideoCodec = .vp8, bitrate: Bitrate? = nil, keyframeInterval: Int? = nil
    ) -> Node {
        var settings: [String: SettingValue] = [:]
        if let bitrate { settings["bitrate"] = .integer(bitrate.bitsPerSecond) }
        if let keyframeInterval { settings["keyframe-interval"] = .integer(keyframeInterval) }
        return Node(codec == .vp8 ? "vp8-encoder" : "h264-encoder", name: name, given: settings)
    }

    public static func opusEncoder(
        _ name: String = "opus-encoder", bitrate: Bitrate = .kilobitsPerSecond(64), expectedLossPercent: Int = 10
    ) -> Node {
        Node(
            "opus-encoder", name: name,
            given: [
                "bitrate": .integer(bitrate.bitsPerSecond), "expected-loss": .integer(expectedLossPercent),
            ])
    }

    /// AV1, to recordings; a nil bitrate means the table's for the size and rate that arrive.
    public static func av1Encoder(_ name: String = "av1-encoder", bitrate: Bitrate? = nil) -> Node {
        Node("av1-encoder", name: name, given: bitrate.map { ["bitrate": .integer($0.bitsPerSecond)] } ?? [:])
    }

    public static func vp9Encoder(_ name: String = "vp9-encoder", bitrate: Bitrate? = nil) -> Node {
        Node("vp9-encoder", name: name, given: bitrate.map { ["bitrate": .integer($0.bitsPerSecond)] } ?? [:])
    }

    public static func aacEncoder(_ name: String = "aac-encoder") -> Node {
        Node("aac-encoder", name: name)
    }

    public static func videoDecoder(_ name: String = "video-decoder") -> Node {
        Node("video-decoder", name: name)
    }

    public static func audioDecoder(_ name: String = "audio-decoder") -> Node {
        Node("audio-decoder", name: name)
    }
}
