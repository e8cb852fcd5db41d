/// Nodes where media leaves a graph for eyes, ears and the application.
extension NodeKind {
    static let renderers: [NodeKind] = [frames, sound, image, window, speaker, null]

    public static let frames = NodeKind(
        "frames", .renderer, "Hands each picture to the program",
        inputs: [Port("in", [.rawVideo], encodings: ["I420"])], binding: .frames)

    public static let sound = NodeKind(
        "sound", .renderer, "Hands each stretch of sound to the program", inputs: [Port("in", [.rawAudio])],
        binding: .audio)

    public static let image = NodeKind(
        "image", .renderer, "Writes one picture to a PNG file",
        inputs: [Port("in", [.rawVideo], encodings: ["I420"])],
        settings: [
            SettingContract("path", .text, isRequired: true, "The file to write"),
            SettingContract("frame", .integer(1...1_000_000), default: 1, "Which picture, counted from 1"),
        ])

    public static let window = NodeKind(
        "window", .renderer, "Shows pictures in a window",
        inputs: [Port("in", [.rawVideo], encodings: ["I420"])],
        settings: [SettingContract("title", .text, default: "Video", "Title of the window")])

    public static let speaker = NodeKind(
        "speaker", .renderer, "Plays sound where there is a device, measures it in any case",
        inputs: [Port("in", [.rawAudio])])

    public static let null = NodeKind(
        "null", .renderer, "Counts pictures or sound and drops them", inputs: [Port("in", [.rawVideo, .rawAudio])])
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
