/// A kind of node that a program or a plugin adds to those that ship.
public enum CustomNode: Sendable {
    case capturer(any Capturer.Type)
    case processor(any Processor.Type)
    case renderer(any Renderer.Type)
    case elements(ElementsNode)

    /// What all nodes of the kind have in common. The settings of a node around elements are read off the elements by
    /// whoever runs it, and are empty here.
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

    /// What capturers call their outputs.
    fileprivate var outputName: String {
        switch kind {
        case .rawAudio, .encodedAudio: "audio"
        default: "video"
        }
    }
}
