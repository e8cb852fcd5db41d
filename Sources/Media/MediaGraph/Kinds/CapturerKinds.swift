/// Nodes that bring media into a graph.
extension NodeKind {
    static let capturers: [NodeKind] = [camera, microphone, file, testPattern]

    public static let camera = NodeKind(
        "camera", .capturer, "A V4L2 camera",
        outputs: [Port("video", [.rawVideo], encodings: ["I420"])],
        settings: [
            SettingContract("device", .text, default: "auto", "Path such as /dev/video0, or auto for the first camera"),
            SettingContract("width", .integer(16...8192), default: 640, unit: "pixels", "Width of the picture"),
            SettingContract("height", .integer(16...8192), default: 480, unit: "pixels", "Height of the picture"),
            SettingContract("fps", .number(1...240), default: 20, unit: "frames/s", "Frame rate"),
            SettingContract("mirror", .flag, default: true, "Whether left and right are swapped"),
        ])

    public static let microphone = NodeKind(
        "microphone", .capturer, "A microphone of PulseAudio or ALSA",
        outputs: [Port("audio", [.rawAudio])],
        settings: [
            SettingContract("device", .text, default: "auto", "Name as listed by the devices, or auto for the default")
        ])

    public static let file = NodeKind(
        "file", .capturer, "A media file, decoded and paced in real time",
        outputs: [Port("video", [.rawVideo], encodings: ["I420"]), Port("audio", [.rawAudio], isRequired: false)],
        settings: [
            SettingContract("path", .text, isRequired: true, "The file"),
            SettingContract("loop", .flag, default: true, "Whether to start again at the end, without a gap"),
        ])

    public static let testPattern = NodeKind(
        "test-pattern", .capturer,
        "Moving colour bars with a bar-coded frame number, and a tone with a beep each second",
        outputs: [Port("video", [.rawVideo], encodings: ["I420"]), Port("audio", [.rawAudio], isRequired: false)],
        settings: [
            SettingContract("width", .integer(64...8192), default: 640, unit: "pixels", "Width of the picture"),
            SettingContract("height", .integer(64...8192), default: 480, unit: "pixels", "Height of the picture"),
            SettingContract("fps", .number(1...240), default: 30, unit: "frames/s", "Frame rate"),
            SettingContract(
                "frames", .integer(0...Int(UInt32.max)), default: 0, unit: "frames", "End after so many; 0 for never"),
        ])
}

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
}
