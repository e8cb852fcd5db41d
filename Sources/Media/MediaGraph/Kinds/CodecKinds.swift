/// Nodes that encode and decode.
extension NodeKind {
    static let codecs: [NodeKind] = [vp8Encoder, h264Encoder, opusEncoder, videoDecoder, audioDecoder]

    private static let videoEncoderSettings = [
        SettingContract(
            "bitrate", .integer(30_000...100_000_000), isChangeable: true, unit: "bit/s",
            "Constant bitrate; from VideoBitrate's table when not given"),
        SettingContract(
            "keyframe-interval", .integer(1...100_000), default: 3000, unit: "frames",
            "Longest distance between keyframes when nobody asks for one"),
    ]

    public static let vp8Encoder = NodeKind(
        "vp8-encoder", .codec, "VP8 at a constant bitrate, behind a capture queue of 2 frames that drops the oldest",
        inputs: [Port("in", [.rawVideo], encodings: ["I420"])],
        outputs: [Port("out", [.encodedVideo], encodings: ["vp8"])], settings: videoEncoderSettings)

    public static let h264Encoder = NodeKind(
        "h264-encoder", .codec,
        "H.264 constrained baseline at a constant bitrate, behind a capture queue of 2 frames that drops the oldest",
        inputs: [Port("in", [.rawVideo], encodings: ["I420"])],
        outputs: [Port("out", [.encodedVideo], encodings: ["h264"])], settings: videoEncoderSettings)

    public static let opusEncoder = NodeKind(
        "opus-encoder", .codec, "Opus, 20 ms a packet, with in-band forward error correction",
        inputs: [Port("in", [.rawAudio])], outputs: [Port("out", [.encodedAudio], encodings: ["opus"])],
        settings: [
            SettingContract(
                "bitrate", .integer(6_000...510_000), default: 64_000, isChangeable: true, unit: "bit/s", "Bitrate"),
            SettingContract(
                "expected-loss", .integer(0...100), default: 10, unit: "%", "Loss that the error correction is for"),
        ])

    public static let videoDecoder = NodeKind(
        "video-decoder", .codec, "Decodes VP8 or H.264, as the RTP input before it says",
        inputs: [Port("in", [.encodedVideo], encodings: ["vp8", "h264"])],
        outputs: [Port("out", [.rawVideo], encodings: ["I420"])])

    public static let audioDecoder = NodeKind(
        "audio-decoder", .codec, "Decodes Opus, using its error correction and concealing what is lost",
        inputs: [Port("in", [.encodedAudio], encodings: ["opus"])], outputs: [Port("out", [.rawAudio])])
}

extension Node {
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

    public static func videoDecoder(_ name: String = "video-decoder") -> Node {
        Node("video-decoder", name: name)
    }

    public static func audioDecoder(_ name: String = "audio-decoder") -> Node {
        Node("audio-decoder", name: name)
    }
}
