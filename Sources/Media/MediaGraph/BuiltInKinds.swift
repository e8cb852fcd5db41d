/// The kinds that every runner knows.
extension NodeKind {
    public static let builtIn: [NodeKind] = [
        camera, microphone, file, testPattern, scale, vp8Encoder, h264Encoder, opusEncoder, rtpOutput, rtpInput,
        videoDecoder, audioDecoder, frames, sound, image, window, speaker, null,
    ]

    // MARK: Capturers

    public static let camera = NodeKind(
        "camera", "A V4L2 camera",
        outputs: [Port("video", [.rawVideo])],
        settings: [
            SettingContract("device", .text, default: "auto", "Path such as /dev/video0, or auto for the first camera"),
            SettingContract("width", .integer(16...8192), default: 640, unit: "pixels", "Width of the picture"),
            SettingContract("height", .integer(16...8192), default: 480, unit: "pixels", "Height of the picture"),
            SettingContract("fps", .number(1...240), default: 20, unit: "frames/s", "Frame rate"),
            SettingContract("mirror", .flag, default: true, "Whether left and right are swapped"),
        ])

    public static let microphone = NodeKind(
        "microphone", "A microphone of PulseAudio or ALSA",
        outputs: [Port("audio", [.rawAudio])],
        settings: [
            SettingContract("device", .text, default: "auto", "Name as listed by the devices, or auto for the default")
        ])

    public static let file = NodeKind(
        "file", "A media file, decoded and paced in real time",
        outputs: [Port("video", [.rawVideo]), Port("audio", [.rawAudio], isRequired: false)],
        settings: [
            SettingContract("path", .text, isRequired: true, "The file"),
            SettingContract("loop", .flag, default: true, "Whether to start again at the end, without a gap"),
        ])

    public static let testPattern = NodeKind(
        "test-pattern", "Moving colour bars with a bar-coded frame number, and a tone with a beep each second",
        outputs: [Port("video", [.rawVideo]), Port("audio", [.rawAudio], isRequired: false)],
        settings: [
            SettingContract("width", .integer(64...8192), default: 640, unit: "pixels", "Width of the picture"),
            SettingContract("height", .integer(64...8192), default: 480, unit: "pixels", "Height of the picture"),
            SettingContract("fps", .number(1...240), default: 30, unit: "frames/s", "Frame rate"),
            SettingContract(
                "frames", .integer(0...Int(UInt32.max)), default: 0, unit: "frames", "End after so many; 0 for never"),
        ])

    // MARK: Processors

    public static let scale = NodeKind(
        "scale", "Changes the size or the rate of pictures",
        inputs: [Port("in", [.rawVideo])], outputs: [Port("out", [.rawVideo])],
        settings: [
            SettingContract("width", .integer(16...8192), unit: "pixels", "Width; as it comes when not given"),
            SettingContract("height", .integer(16...8192), unit: "pixels", "Height; as it comes when not given"),
            SettingContract("fps", .number(1...240), unit: "frames/s", "Frame rate; as it comes when not given"),
        ])

    // MARK: Codecs

    private static let videoEncoderSettings = [
        SettingContract(
            "bitrate", .integer(30_000...100_000_000), unit: "bit/s",
            "Constant bitrate; from VideoBitrate's table when not given"),
        SettingContract(
            "keyframe-interval", .integer(1...100_000), default: 3000, unit: "frames",
            "Longest distance between keyframes when nobody asks for one"),
    ]

    public static let vp8Encoder = NodeKind(
        "vp8-encoder", "VP8 at a constant bitrate, behind a capture queue of 2 frames that drops the oldest",
        inputs: [Port("in", [.rawVideo])], outputs: [Port("out", [.encodedVideo])], settings: videoEncoderSettings)

    public static let h264Encoder = NodeKind(
        "h264-encoder",
        "H.264 constrained baseline at a constant bitrate, behind a capture queue of 2 frames that drops the oldest",
        inputs: [Port("in", [.rawVideo])], outputs: [Port("out", [.encodedVideo])], settings: videoEncoderSettings)

    public static let opusEncoder = NodeKind(
        "opus-encoder", "Opus, 20 ms a packet, with in-band forward error correction",
        inputs: [Port("in", [.rawAudio])], outputs: [Port("out", [.encodedAudio])],
        settings: [
            SettingContract("bitrate", .integer(6_000...510_000), default: 64_000, unit: "bit/s", "Bitrate"),
            SettingContract(
                "expected-loss", .integer(0...100), default: 10, unit: "%", "Loss that the error correction is for"),
        ])

    public static let videoDecoder = NodeKind(
        "video-decoder", "Decodes VP8 or H.264, as the RTP input before it says",
        inputs: [Port("in", [.encodedVideo])], outputs: [Port("out", [.rawVideo])])

    public static let audioDecoder = NodeKind(
        "audio-decoder", "Decodes Opus, using its error correction and concealing what is lost",
        inputs: [Port("in", [.encodedAudio])], outputs: [Port("out", [.rawAudio])])

    // MARK: RTP

    public static let rtpOutput = NodeKind(
        "rtp-output", "Hands the RTP packets of each encoded frame to the program",
        inputs: [Port("in", [.encodedVideo, .encodedAudio])],
        settings: [
            SettingContract("payload-type", .integer(0...127), default: 96, "RTP payload type"),
            SettingContract("ssrc", .integer(0...Int(UInt32.max)), "RTP SSRC; drawn at random when not given"),
            SettingContract(
                "mtu", .integer(200...9000), default: 1180, unit: "bytes",
                "Largest packet; leaves room for header extensions, RTX and SRTP in a datagram of 1280"),
        ],
        binding: .rtpOutput)

    public static let rtpInput = NodeKind(
        "rtp-input", "Takes RTP packets from the program, in any order, and puts frames together",
        outputs: [Port("out", [.encodedVideo, .encodedAudio])],
        settings: [
            SettingContract("codec", .choice(["vp8", "h264", "opus"]), isRequired: true, "What the packets carry"),
            SettingContract("payload-type", .integer(0...127), default: 96, "RTP payload type"),
            SettingContract(
                "latency", .integer(0...5000), default: 200, unit: "ms", "Longest wait for a packet to be repaired"),
            SettingContract(
                "capacity", .integer(16...65_536), default: 2048, unit: "packets",
                "Packets that may wait to be read; more are dropped and counted"),
        ])

    // MARK: Renderers

    public static let frames = NodeKind(
        "frames", "Hands each picture to the program", inputs: [Port("in", [.rawVideo])], binding: .frames)

    public static let sound = NodeKind(
        "sound", "Hands each stretch of sound to the program", inputs: [Port("in", [.rawAudio])], binding: .audio)

    public static let image = NodeKind(
        "image", "Writes one picture to a PNG file",
        inputs: [Port("in", [.rawVideo])],
        settings: [
            SettingContract("path", .text, isRequired: true, "The file to write"),
            SettingContract("frame", .integer(1...1_000_000), default: 1, "Which picture, counted from 1"),
        ])

    public static let window = NodeKind(
        "window", "Shows pictures in a window",
        inputs: [Port("in", [.rawVideo])],
        settings: [SettingContract("title", .text, default: "Video", "Title of the window")])

    public static let speaker = NodeKind(
        "speaker", "Plays sound where there is a device, measures it in any case",
        inputs: [Port("in", [.rawAudio])])

    public static let null = NodeKind(
        "null", "Counts pictures or sound and drops them", inputs: [Port("in", [.rawVideo, .rawAudio])])
}
