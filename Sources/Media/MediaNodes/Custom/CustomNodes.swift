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
        case .capturer(let type): self = CapturerHost.implementation(type)
        case .processor(let type): self = ProcessorHost.implementation(type)
        case .renderer(let type): self = RendererHost.implementation(type)
        case .elements(let elements): self = try ElementsHost.implementation(elements)
        }
    }
}
