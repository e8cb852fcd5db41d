/// Nodes that change raw media.
extension NodeKind {
    static let processors: [NodeKind] = [scale, convert]

    public static let scale = NodeKind(
        "scale", .processor, "Changes the size or the rate of pictures",
        inputs: [Port("in", [.rawVideo], encodings: ["I420"])],
        outputs: [Port("out", [.rawVideo], encodings: ["I420"])],
        settings: [
            SettingContract("width", .integer(16...8192), unit: "pixels", "Width; as it comes when not given"),
            SettingContract("height", .integer(16...8192), unit: "pixels", "Height; as it comes when not given"),
            SettingContract("fps", .number(1...240), unit: "frames/s", "Frame rate; as it comes when not given"),
        ])

    public static let convert = NodeKind(
        "convert", .processor, "Changes the pixel format of pictures",
        inputs: [Port("in", [.rawVideo])], outputs: [Port("out", [.rawVideo])],
        settings: [
            SettingContract(
                "pixel-format", .text, default: "I420", "GStreamer's name of the format that comes out, such as NV12")
        ])
}

extension Node {
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

    /// Changes the pixel format; most nodes take I420 only and have this put before them by the planner.
    public static func convert(_ name: String = "convert", pixelFormat: String = "I420") -> Node {
        Node("convert", name: name, settings: ["pixel-format": .text(pixelFormat)])
    }
}
