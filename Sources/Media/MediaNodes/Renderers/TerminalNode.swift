import MediaGraph

/// Shows frames in the program's terminal, or in another, as coloured half blocks.
enum TerminalNode: NodeType {
    static let kind = NodeKind(
        "terminal", .renderer, "Shows frames in the terminal as coloured half blocks",
        inputs: .rawVideoIn,
        settings: [
            SettingContract("columns", .integer(1...1000), unit: "characters", "Width (default: that of the terminal)"),
            SettingContract("rows", .integer(1...500), unit: "characters", "Height (default: that of the terminal)"),
            SettingContract("fps", .integer(1...60), default: 10, unit: "frames/s", "Highest frame rate"),
            SettingContract(
                "device", .text, default: "", "Another terminal, such as /dev/pts/3 (default: the program's own)"),
        ])

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var plan = NodePlan.sink(request)
        plan.notes.append(
            "at most \(request.integer("fps")) frames/s are drawn; a slow terminal gets fewer")
        return plan
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        let device = instance.text("device")
        let screen = try TerminalScreen(
            device: device, columns: instance.optionalInteger("columns"), rows: instance.optionalInteger("rows"),
            picturesPerSecond: instance.integer("fps"))
        return VideoRendererNode(instance, handOver: screen.show, onStop: screen.close)
    }
}

/// Shows frames in the terminal as coloured half blocks.
public struct Terminal: MediaNode {
    public var handle: NodeHandle

    /// A renderer for a terminal.
    ///
    /// - Parameters:
    ///   - columns: the width in characters; nil for that of the terminal.
    ///   - rows: the height in characters; nil for that of the terminal.
    ///   - framesPerSecond: the highest frame rate.
    ///   - device: another terminal, such as `/dev/pts/3`.
    public init(columns: Int? = nil, rows: Int? = nil, framesPerSecond: Int? = nil, device: String? = nil) {
        handle = NodeHandle(
            TerminalNode.kind, ["columns": columns, "rows": rows, "fps": framesPerSecond, "device": device])
    }
}
