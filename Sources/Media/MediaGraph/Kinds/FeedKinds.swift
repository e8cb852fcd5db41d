/// Nodes whose pictures come from another process.
extension NodeKind {
    /// How pictures from elsewhere may be written; the raw ones first.
    static let feedFormats = ["I420", "NV12", "BGRx", "BGRA", "RGBA", "YUY2", "h264", "vp8", "mjpeg"]

    private static func pictures(_ formats: [String], _ format: String) -> [SettingContract] {
        [
            SettingContract("format", .choice(formats), default: "I420", format),
            SettingContract("width", .integer(16...8192), default: 640, unit: "pixels", "Width of the frames"),
            SettingContract("height", .integer(16...8192), default: 480, unit: "pixels", "Height of the frames"),
            SettingContract(
                "fps", .number(1...240), default: 30, unit: "frames/s",
                "Highest frame rate; of more than twice as many frames, some wait"),
        ]
    }

    private static func output(_ formats: [String]) -> [Port] {
        [Port("video", [.rawVideo, .encodedVideo], encodings: formats)]
    }

    private static let scaleSetting = SettingContract(
        "scale", .flag, default: false, "Whether to accept raw frames of other sizes, and scale them")
    private static func timeout(_ summary: String) -> SettingContract {
        SettingContract("timeout", .number(0.5...3600), default: 5, unit: "s", summary)
    }
    private static let commandSetting = SettingContract(
        "command", .text, isRequired: true,
        "The program and its arguments, split like a shell command; no shell runs"
    ).writtenAsCommand()
    private static let restartSetting = SettingContract(
        "restart", .flag, default: true,
        "Whether to restart the program when it ends; otherwise its end is the end of the stream")

    public static let feed = NodeKind(
        "feed", .capturer, "Frames of another process, such as a shared screen, over a socket and shared memory",
        outputs: output(feedFormats),
        settings: pictures(feedFormats, "Format of the frames; h264 is Annex B") + [
            scaleSetting,
            SettingContract(
                "socket", .text, default: "",
                "Path to listen on (default: feed-NAME.sock in $XDG_RUNTIME_DIR/connectlive or /tmp/connectlive-UID)"),
            timeout("Timeout for frames, after which a warning is reported"),
        ])

    public static let process = NodeKind(
        "process", .capturer, "A program in any language that sends frames over a socket and shared memory",
        outputs: output(feedFormats),
        settings: [commandSetting] + pictures(feedFormats, "Format that the program has to send; h264 is Annex B") + [
            scaleSetting, restartSetting,
            timeout("Timeout for frames, after which the program is restarted"),
        ])

    private static let writtenFormats = feedFormats.filter { $0 != "vp8" }

    public static let exec = NodeKind(
        "exec", .capturer, "A program that writes frames to its standard output",
        outputs: output(writtenFormats),
        settings: [commandSetting]
            + pictures(
                writtenFormats,
                "The program's output: raw frames without gaps, Annex B for h264, or successive JPEGs")
            + [
                restartSetting,
                timeout("Timeout for frames, after which the program is restarted"),
            ])
}

extension Node {
    /// Pictures of a program that connects to a Unix socket; `socket` is its path, empty for one named after the node.
    public static func feed(
        _ name: String = "feed", socket: String = "", width: Int = 640, height: Int = 480, framesPerSecond: Double = 30,
        format: String = "I420"
    ) -> Node {
        fed("feed", name, ["socket": .text(socket)], width, height, framesPerSecond, format)
    }

    /// Pictures of a program that is started with the graph, and again whenever it ends.
    public static func process(
        _ name: String = "process", command: String, width: Int = 640, height: Int = 480, framesPerSecond: Double = 30,
        format: String = "I420"
    ) -> Node {
        fed("process", name, ["command": .text(command)], width, height, framesPerSecond, format)
    }

    /// Pictures that a program writes to its standard output.
    public static func exec(
        _ name: String = "exec", command: String, width: Int = 640, height: Int = 480, framesPerSecond: Double = 30,
        format: String = "I420"
    ) -> Node {
        fed("exec", name, ["command": .text(command)], width, height, framesPerSecond, format)
    }

    private static func fed(
        _ kind: String, _ name: String, _ own: [String: SettingValue], _ width: Int, _ height: Int,
        _ framesPerSecond: Double, _ format: String
    ) -> Node {
        let pictures: [String: SettingValue] = [
            "width": .integer(width), "height": .integer(height), "fps": .number(framesPerSecond),
            "format": .text(format),
        ]
        return Node(kind, name: name, given: own.merging(pictures) { $1 })
    }
}
