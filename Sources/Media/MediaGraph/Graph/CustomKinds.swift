extension WrittenNode {
    /// A node of this kind for a graph.
    package static func node(_ settings: [String: SettingValue] = [:], name: String? = nil) -> Node {
        Node(Self.name, name: name, settings: settings)
    }

    /// The contracts for a node that is made of this value. It states all of its settings, so they have no defaults.
    package var contractsOfValue: [SettingContract] {
        contracts.map {
            SettingContract(
                $0.name, $0.domain, isRequired: $0.isRequired, isChangeable: $0.isChangeable, unit: $0.unit, $0.summary)
        }
    }

    /// Sets the settings that can change while the node runs.
    package func setLive(_ settings: [String: SettingValue]) throws(MediaError) {
        for contract in contracts where contract.isChangeable {
            if let value = settings[contract.name] { try set(contract.name, to: value) }
        }
    }
}

extension CustomNode {
    /// The kind's name, ports and settings. The settings of `.elements` are empty here: the registry reads them from the
    /// installed elements.
    public var kind: NodeKind {
        switch self {
        case .capturer(_, let make): make().kind
        case .processor(_, let make): make().kind
        case .renderer(_, let make): make().kind
        case .elements(let node):
            NodeKind(
                node.name, node.group, node.summary,
                inputs: node.takes.map { [Port("in", [$0.kind], encodings: $0.encodings)] } ?? [],
                outputs: node.gives.map {
                    [Port(node.takes == nil ? $0.outputName : "out", [$0.kind], encodings: $0.encodings)]
                } ?? [])
        }
    }
}

extension Capturer {
    fileprivate var kind: NodeKind { Self.kind(contracts) }

    package static func kind(_ settings: [SettingContract]) -> NodeKind {
        NodeKind(name, .capturer, summary, outputs: [Format.port], settings: settings)
    }
}

extension Processor {
    fileprivate var kind: NodeKind { Self.kind(contracts) }

    package static func kind(_ settings: [SettingContract]) -> NodeKind {
        NodeKind(
            name, .processor, summary, inputs: [VideoFrame.port],
            outputs: [Port("out", [.rawVideo], encodings: ["I420"])], settings: settings)
    }
}

extension Renderer {
    fileprivate var kind: NodeKind { Self.kind(contracts) }

    package static func kind(_ settings: [SettingContract]) -> NodeKind {
        NodeKind(name, .renderer, summary, inputs: [Media.port], settings: settings)
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
    /// The role of the node: a capturer without an input, a renderer without an output, else a processor.
    public var group: NodeGroup {
        switch (takes, gives) {
        case (nil, _): .capturer
        case (_, nil): .renderer
        default: .processor
        }
    }
}
