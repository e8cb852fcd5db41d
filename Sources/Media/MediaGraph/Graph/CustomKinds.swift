extension WrittenNode {
    /// A node of this kind for a graph.
    public static func node(_ settings: [String: SettingValue] = [:], name: String? = nil) -> Node {
        Node(Self.name, name: name, settings: settings)
    }
}

extension CustomNode {
    /// The kind's name, ports and settings. The settings of `.elements` are empty here: the registry reads them from the
    /// installed elements.
    public var kind: NodeKind {
        switch self {
        case .capturer(let type): Self.kind(of: type)
        case .processor(let type):
            NodeKind(
                type.name, .processor, type.summary, inputs: [VideoFrame.port],
                outputs: [Port("out", [.rawVideo], encodings: ["I420"])], settings: type.init().contracts)
        case .renderer(let type): Self.kind(of: type)
        case .elements(let node):
            NodeKind(
                node.name, node.group, node.summary,
                inputs: node.takes.map { [Port("in", [$0.kind], encodings: $0.encodings)] } ?? [],
                outputs: node.gives.map {
                    [Port(node.takes == nil ? $0.outputName : "out", [$0.kind], encodings: $0.encodings)]
                } ?? [])
        }
    }

    private static func kind<Kind: Capturer>(of type: Kind.Type) -> NodeKind {
        NodeKind(
            type.name, .capturer, type.summary, outputs: [Kind.Format.port], settings: type.init().contracts)
    }

    private static func kind<Kind: Renderer>(of type: Kind.Type) -> NodeKind {
        NodeKind(type.name, .renderer, type.summary, inputs: [Kind.Media.port], settings: type.init().contracts)
    }
}

extension MediaFormat {
    fileprivate var encodings: [String] { encoding.isEmpty || kind == .rawAudio ? [] : [encoding] }

    /// The name of a capturer's output.
    fileprivate var outputName: String {
        switch kind {
        case .rawAudio, .encodedAudio: "audio"
        default: "video"
        }
    }
}

extension ElementsNode {
    public var group: NodeGroup {
        switch (takes, gives) {
        case (nil, _): .capturer
        case (_, nil): .renderer
        default: .processor
        }
    }
}
