/// Nodes that bring media into a graph.
extension NodeKind {
    static let capturers: [NodeKind] = [
        camera, microphone, file, bypass, screen, testPattern, rtsp, feed, process, exec,
    ]

    public static let camera = NodeKind(
        "camera", .capturer, "A V4L2 camera, raw or encoded by the camera",
        outputs: [Port("video", [.rawVideo, .encodedVideo], encodings: ["I420", "h264", "mjpeg"])],
        settings: [
            SettingContract(
                "device", .text, default: "auto",
                "Path such as /dev/video0, a name of /dev/v4l/by-id, a USB port such as 1-1.2, or auto for the first "
                    + "free one"
            ),
            SettingContract("width", .integer(16...8192), default: 640, unit: "pixels", "Width of the frames"),
            SettingContract("height", .integer(16...8192), default: 480, unit: "pixels", "Height of the frames"),
            SettingContract("fps", .number(1...240), default: 20, unit: "frames/s", "Frame rate"),
            SettingContract("mirror", .flag, default: false, "Whether to mirror raw frames"),
            SettingContract(
                "format", .choice(["auto", "raw", "mjpeg", "h264"]), default: "auto",
                "mjpeg and h264 pass through the camera's encoding; raw avoids JPEG; auto chooses the best quality"
            ),
            SettingContract(
                "brightness", .integer(cameraControl), isChangeable: true,
                "Brightness control of the camera"),
            SettingContract("contrast", .integer(cameraControl), isChangeable: true, "Contrast control of the camera"),
            SettingContract(
                "saturation", .integer(cameraControl), isChangeable: true,
                "Saturation control of the camera"),
            SettingContract("hue", .integer(cameraControl), isChangeable: true, "Hue control of the camera"),
            SettingContract(
                "controls", .text, isChangeable: true,
                "Other controls of the camera, by their V4L2 names"
            ).written(
                "(?:\(controlPattern)(?:,\(controlPattern))*,?)?",
                "names and values, such as exposure_auto=1,focus_absolute=30"),
        ])

    private static let controlPattern = " *[A-Za-z0-9_]+ *= *[+-]?[A-Za-z0-9]+ *"

    /// What a control of V4L2 may be; each camera has limits of its own within.
    private static let cameraControl = Int(Int32.min)...Int(Int32.max)

    public static let microphone = NodeKind(
        "microphone", .capturer, "A microphone of PulseAudio, PipeWire or ALSA",
        outputs: [Port("audio", [.rawAudio])],
        settings: [
            SettingContract(
                "device", .text, default: "auto",
                "Name as listed by 'connectlive devices', or auto for the default"),
            SettingContract(
                "system", .choice(["auto", "pulse", "pipewire", "alsa"]), default: "auto",
                "The sound system; auto is the first one that responds"),
        ])

    public static let file = NodeKind(
        "file", .capturer, "A media file, decoded and paced in real time",
        outputs: [
            Port("video", [.rawVideo], encodings: ["I420"], isRequired: false),
            Port("audio", [.rawAudio], isRequired: false),
        ],
        settings: [
            SettingContract("path", .text, isRequired: true, "The file").writtenAsPath(example: "clip.mp4").naming(
                .reads),
            SettingContract("loop", .flag, default: true, "Whether to repeat without a gap"),
        ])

    public static let bypass = NodeKind(
        "bypass", .capturer, "Frames that the program pushes, raw or encoded, with their capture time",
        outputs: [Port("video", [.rawVideo, .encodedVideo], encodings: ["I420", "vp8", "h264"])],
        settings: [
            SettingContract(
                "format", .choice(["raw", "vp8", "h264"]), default: "raw",
                "raw is I420; h264 is Annex B, one frame per push, with parameter sets before each keyframe"),
            SettingContract("width", .integer(16...8192), default: 640, unit: "pixels", "Width of the frames"),
            SettingContract("height", .integer(16...8192), default: 480, unit: "pixels", "Height of the frames"),
            SettingContract("fps", .number(1...240), default: 30, unit: "frames/s", "Rate of the pushed frames"),
        ])

    public static let screen = NodeKind(
        "screen", .capturer, "The screen of an X display, a region or window of it, or a PipeWire node",
        outputs: [Port("video", [.rawVideo], encodings: ["I420"])],
        settings: [
            SettingContract("display", .text, default: "", "X display such as :0 (default: that of the environment)"),
            SettingContract(
                "window", .text, default: "", "Title of a window or part of it, or its number as printed by xwininfo"),
            SettingContract("x", .integer(0...32_767), default: 0, unit: "pixels", "Left edge of the region"),
            SettingContract("y", .integer(0...32_767), default: 0, unit: "pixels", "Top edge of the region"),
            SettingContract(
                "width", .integer(16...8192), unit: "pixels", "Width of the region (default: to the right edge)"),
            SettingContract(
                "height", .integer(16...8192), unit: "pixels", "Height of the region (default: to the bottom edge)"),
            SettingContract("fps", .number(1...240), default: 30, unit: "frames/s", "Frame rate"),
            SettingContract("cursor", .flag, default: true, "Whether to include the mouse pointer"),
            SettingContract(
                "pipewire-node", .text, default: "",
                "Number or name of a PipeWire node to capture instead of a display"),
        ])

    public static let rtsp = NodeKind(
        "rtsp", .capturer, "A network camera over RTSP, as encoded by the camera",
        outputs: [
            Port("video", [.encodedVideo], encodings: ["h264", "vp8", "h265", "mjpeg"], isRequired: false),
            Port("audio", [.encodedAudio], encodings: ["opus", "aac", "pcmu", "pcma"], isRequired: false),
        ],
        settings: [
            SettingContract("url", .text, isRequired: true, "Address of the camera's stream").written(
                #"[Rr][Tt][Ss][Pp][Ss]?://[^\s]+"#,
                "rtsp://user:password@host:554/path, or rtsps:// for TLS"
            ).example("rtsp://camera/stream"),
            SettingContract(
                "transport", .choice(["tcp", "udp"]), default: "tcp",
                "tcp loses nothing; udp does not wait for lost packets"),
            SettingContract(
                "latency", .integer(0...5000), default: 100, unit: "ms",
                "Longest delay of media: over udp the wait for a packet, over tcp the delay that a window allows for"),
            SettingContract(
                "verify-certificate", .flag, default: true,
                "Whether the certificate of an rtsps:// camera has to be valid for this machine; most cameras sign their own"
            ),
        ])

    public static let testPattern = NodeKind(
        "test-pattern", .capturer,
        "Moving bars with a bar-coded frame number, and a tone; flash and beep mark the same tenth of each second",
        outputs: [
            Port("video", [.rawVideo], encodings: ["I420"]), Port("audio", [.rawAudio], isRequired: false),
        ],
        settings: [
            SettingContract("width", .integer(64...8192), default: 640, unit: "pixels", "Width of the frames"),
            SettingContract("height", .integer(64...8192), default: 480, unit: "pixels", "Height of the frames"),
            SettingContract("fps", .number(1...240), default: 30, unit: "frames/s", "Frame rate"),
            SettingContract(
                "frames", .integer(0...Int(Int32.max)), default: 0, unit: "frames", "Number of frames; 0 is without end"
            ),
        ])
}

extension Node {
    /// A camera; `device` is a path such as `/dev/video0`, or `auto` for the first.
    public static func camera(
        _ name: String = "camera", device: String = "auto", width: Int = 640, height: Int = 480,
        framesPerSecond: Double = 20, mirror: Bool = false
    ) -> Node {
        Node(
            "camera", name: name,
            given: [
                "device": .text(device), "width": .integer(width), "height": .integer(height),
                "fps": .number(framesPerSecond), "mirror": .flag(mirror),
            ])
    }

    /// A network camera as it encodes itself; `url` is such as `rtsp://user:password@camera/stream`.
    public static func rtsp(_ name: String = "rtsp", url: String) -> Node {
        Node("rtsp", name: name, given: ["url": .text(url)])
    }

    /// A display of X11 or one of its windows, by a part of its title; empty for the environment's and for all of it.
    public static func screen(
        _ name: String = "screen", display: String = "", window: String = "", framesPerSecond: Double = 30
    ) -> Node {
        Node(
            "screen", name: name,
            given: ["display": .text(display), "window": .text(window), "fps": .number(framesPerSecond)])
    }

    /// Pictures that the program pushes into `MediaPipeline.frameInput(_:)` of this name.
    public static func bypass(
        _ name: String = "bypass", width: Int, height: Int, framesPerSecond: Double = 30, codec: VideoCodec? = nil
    ) -> Node {
        Node(
            "bypass", name: name,
            given: [
                "format": .text(codec?.rawValue ?? "raw"), "width": .integer(width), "height": .integer(height),
                "fps": .number(framesPerSecond),
            ])
    }

    /// A microphone; `device` is a name as listed by the devices, or `auto` for the default.
    public static func microphone(_ name: String = "microphone", device: String = "auto") -> Node {
        Node("microphone", name: name, given: ["device": .text(device)])
    }

    /// A media file, paced in real time at its own size and rate.
    public static func file(_ name: String = "file", path: String, loop: Bool = true) -> Node {
        Node("file", name: name, given: ["path": .text(path), "loop": .flag(loop)])
    }

    /// Moving colour bars with a bar-coded frame number, and a tone; ends after `frames` unless that is 0.
    public static func testPattern(
        _ name: String = "test-pattern", width: Int = 640, height: Int = 480, framesPerSecond: Double = 30,
        frames: Int = 0
    ) -> Node {
        Node(
            "test-pattern", name: name,
            given: [
                "width": .integer(width), "height": .integer(height), "fps": .number(framesPerSecond),
                "frames": .integer(frames),
            ])
    }
}
