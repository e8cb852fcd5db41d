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

    /// Returns a registry with these nodes too. Throws `node.name-taken` if another kind has the name of one.
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

/// The values of the nodes of a kind: one for each node, or the one that the program has made.
struct NodeValues<Kind: WrittenNode>: Sendable {
    /// The value of a node with these settings.
    let planned: @Sendable ([String: SettingValue]) throws(MediaError) -> Kind
    /// The same for a node that begins.
    let begun: @Sendable ([String: SettingValue]) throws(MediaError) -> Kind

    init(madeBy make: @escaping @Sendable () -> any WrittenNode) {
        planned = { (settings) throws(MediaError) in
            guard let value = make() as? Kind else {
                throw MediaError(
                    code: MediaError.Code.nodeFailed,
                    message:
                        "The function of the kind \(Kind.name) made a value of another type. Let it always make a "
                        + "\(Kind.self).")
            }
            try value.begin(with: settings)
            return value
        }
        begun = planned
    }

    init(_ value: Kind) {
        planned = { _ in value }
        begun = { (settings) throws(MediaError) in
            try value.setLive(settings)
            return value
        }
    }
}
