/// Nodes where media leaves a graph for eyes, ears and the application.
extension NodeKind {
    static let renderers: [NodeKind] = [
        frames, sound, snapshot, window, terminal, speaker, null,
    ]

    public static let frames = NodeKind(
        "frames", .renderer, "Hands each picture to the program",
        inputs: [Port("in", [.rawVideo], encodings: ["I420"])], binding: .frames)

    public static let sound = NodeKind(
        "sound", .renderer, "Hands each stretch of sound to the program", inputs: [Port("in", [.rawAudio])],
        binding: .audio)

    public static let snapshot = NodeKind(
        "snapshot", .renderer, "Writes one picture to a PNG file",
        inputs: [Port("in", [.rawVideo], encodings: ["I420"])],
        settings: [
            SettingContract("path", .text, isRequired: true, "The file to write").writtenAsPath(example: "picture.png")
                .naming(.writes),
            SettingContract("frame", .integer(1...1_000_000), default: 1, "Which picture, counted from 1"),
        ])

    public static let window = NodeKind(
        "window", .renderer, "Shows pictures in a window",
        inputs: [Port("in", [.rawVideo], encodings: ["I420"])],
        settings: [SettingContract("title", .text, default: "Video", "Title of the window")])

    public static let terminal = NodeKind(
        "terminal", .renderer, "Shows pictures in the terminal as coloured half blocks",
        inputs: [Port("in", [.rawVideo], encodings: ["I420"])],
        settings: [
            SettingContract("columns", .integer(1...1000), unit: "characters", "Width; the terminal's when not given"),
            SettingContract("rows", .integer(1...500), unit: "characters", "Height; the terminal's when not given"),
            SettingContract("fps", .integer(1...60), default: 10, unit: "frames/s", "Pictures that are drawn at most"),
            SettingContract(
                "device", .text, default: "", "Another terminal, such as /dev/pts/3; the program's own when not given"),
        ])

    public static let speaker = NodeKind(
        "speaker", .renderer, "Plays sound where there is a device, measures it in any case",
        inputs: [Port("in", [.rawAudio])],
        settings: [
            SettingContract(
                "system", .choice(["auto", "pulse", "pipewire", "alsa"]), default: "auto",
                "Sound system; auto takes the first that answers, and plays to nobody where none does"),
            SettingContract(
                "device", .text, default: "",
                "Name of the output as the sound system has it; its default when not given"),
        ])

    public static let null = NodeKind(
        "null", .renderer, "Counts pictures or sound, as they come, and drops them",
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

    /// Writes picture number `frame`, counted from 1, to a PNG file.
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
