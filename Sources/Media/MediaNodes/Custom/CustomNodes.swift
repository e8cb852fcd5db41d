public import MediaGraph

extension NodeRegistry {
    /// This registry with the kinds of a program or plugin.
    ///
    /// - Throws: `node.name-taken` if the registry already has a kind with one of the names.
    public func adding(_ nodes: [CustomNode]) throws(MediaError) -> NodeRegistry {
        var registry = self
        for node in nodes {
            let implementation = try NodeImplementation(node)
            let name = implementation.kind.name
            guard registry.kind(named: name) == nil else {
                throw CustomNode.nameTaken(name)
            }
            registry = registry.adding([implementation])
        }
        return registry
    }

    public func adding(_ nodes: CustomNode...) throws(MediaError) -> NodeRegistry { try adding(nodes) }
}

extension CustomNode {
    static func nameTaken(_ name: String) -> MediaError {
        MediaError(
            code: MediaError.Code.nodeNameTaken,
            message: "A kind of node called \(name) exists already. Give the type another name, such as "
                + "static let name = \"my-\(name)\".")
    }
}

extension NodeImplementation {
    init(_ node: CustomNode) throws(MediaError) {
        switch node {
        case .capturer(let type, let make): self = CapturerHost.implementation(type, make)
        case .processor(let type, let make): self = ProcessorHost.implementation(type, make)
        case .renderer(let type, let make): self = RendererHost.implementation(type, make)
        case .elements(let elements): self = try ElementsHost.implementation(elements)
        }
    }
}

extension WrittenNode {
    /// A value that a kind's function has made, with a graph's settings.
    static func made(_ value: any WrittenNode, _ settings: [String: SettingValue]) throws(MediaError) -> Self {
        guard let value = value as? Self else {
            throw MediaError(
                code: MediaError.Code.nodeFailed,
                message:
                    "The function of the kind \(name) made a value of another type. Let it always make a \(Self.self).")
        }
        try value.begin(with: settings)
        return value
    }
}
