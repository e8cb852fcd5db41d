/// Nodes where media leaves a graph for eyes, ears and the application.
extension NodeKind {
    static let renderers: [NodeKind] = [
        frames, sound, snapshot, window, terminal, speaker, null,
    ]

    public static let frames = NodeKind(
        "frames", .renderer, "Passes each frame to the program",
        inputs: [Port("in", [.rawVideo], encodings: ["I420"])], binding: .frames)

    public static let sound = NodeKind(
        "sound", .renderer, "Passes each audio buffer to the program", inputs: [Port("in", [.rawAudio])],
        binding: .audio)

    public static let snapshot = NodeKind(
        "snapshot", .renderer, "Writes one frame to a PNG or JPEG file",
        inputs: [Port("in", [.rawVideo], encodings: ["I420"])],
        settings: [
            SettingContract("path", .text, isRequired: true, "The file to write; its extension names the format")
                .written(
                    #"[\s\S]+\.([pP][nN][gG]|[jJ][pP][eE]?[gG])"#, "a path that ends in .png, .jpg or .jpeg"
                ).example("picture.png").naming(.writes),
            SettingContract("frame", .integer(1...1_000_000), default: 1, "Number of the frame, from 1"),
        ])

    public static let window = NodeKind(
        "window", .renderer, "Shows frames in a window",
        inputs: [Port("in", [.rawVideo], encodings: ["I420"])],
        settings: [SettingContract("title", .text, default: "Video", "Title of the window")])

    public static let terminal = NodeKind(
        "terminal", .renderer, "Shows frames in the terminal as coloured half blocks",
        inputs: [Port("in", [.rawVideo], encodings: ["I420"])],
        settings: [
            SettingContract("columns", .integer(1...1000), unit: "characters", "Width (default: that of the terminal)"),
            SettingContract("rows", .integer(1...500), unit: "characters", "Height (default: that of the terminal)"),
            SettingContract("fps", .integer(1...60), default: 10, unit: "frames/s", "Highest frame rate"),
            SettingContract(
                "device", .text, default: "", "Another terminal, such as /dev/pts/3 (default: the program's own)"),
        ])

    public static let speaker = NodeKind(
        "speaker", .renderer, "Plays audio if there is a device, and measures it in any case",
        inputs: [Port("in", [.rawAudio])],
        settings: [
            SettingContract(
                "system", .choice(["auto", "pulse", "pipewire", "alsa"]), default: "auto",
                "Sound system; auto is the first one that responds, and without one, audio is only measured"),
            SettingContract(
                "device", .text, default: "",
                "Name of the output in the sound system (default: its default output)"),
        ])

    public static let null = NodeKind(
        "null", .renderer, "Counts and drops frames or audio of any format",
        inputs: [Port("in", [.rawVideo, .rawAudio, .encodedVideo, .encodedAudio])])
}

extension Node {
    /// Hands pictures to the function that is bound under the node's name.
    public static func frames(_ name: String) -> Node {
        Node("frames", name: name)
    }

    /// Hands sound to the function that is bound under the node's name.
    public static func sound(_ name: String) -> Node {
        Node("sound", name: name)
    }

    /// Writes picture number `frame`, counted from 1, to a PNG or JPEG file.
    public static func snapshot(_ name: String = "snapshot", path: String, frame: Int = 1) -> Node {
        Node("snapshot", name: name, given: ["path": .text(path), "frame": .integer(frame)])
    }

    public static func window(_ name: String = "window", title: String = "Video") -> Node {
        Node("window", name: name, given: ["title": .text(title)])
    }

    public static func terminal(_ name: String = "terminal") -> Node {
        Node("terminal", name: name)
    }

    public static func speaker(_ name: String = "speaker") -> Node {
        Node("speaker", name: name)
    }

    public static func null(_ name: String = "null") -> Node {
        Node("null", name: name)
    }
}
