/// An item of `Chain { }` or `Tee { }`.
package enum ChainItem: Sendable {
    /// The next step.
    case node(Node)
    /// A side branch that receives the same media as the next step.
    case tee(Tee)
    /// The end of a chain: a port of a node elsewhere in the graph.
    case join(Join)
}

/// A sequence of nodes, each linked to the next.
///
/// A link without a named port uses the first output that fits and the first free input that fits. `from:port:` starts
/// the chain at a node elsewhere in the graph, at the given output.
package struct Chain {
    /// The port of another chain's node at which the chain begins.
    package let start: PortReference?
    package let items: [ChainItem]

    package init(from start: PortReference? = nil, items: [ChainItem]) {
        self.start = start
        self.items = items
    }

    package init(@ChainBuilder _ build: () -> [ChainItem]) {
        self.init(items: build())
    }

    package init(from node: String, port: String? = nil, @ChainBuilder _ build: () -> [ChainItem]) {
        self.init(from: PortReference(node: node, port: port ?? ""), items: build())
    }

    /// Its nodes and links, which may leave ports open.
    package var fragment: MediaGraph {
        var graph = MediaGraph()
        graph.append(items, after: start)
        return graph
    }
}

extension MediaGraph {
    fileprivate mutating func append(_ items: [ChainItem], after start: PortReference?) {
        var previous = start
        func link(to port: PortReference) -> [Link] { previous.map { [Link(from: $0, to: port)] } ?? [] }
        for item in items {
            switch item {
            case .node(let node):
                let port = PortReference(node: node.name, port: "")
                nodes.append(node)
                links += link(to: port)
                previous = port
            case .tee(let tee):
                var side = MediaGraph()
                side.append(tee.items, after: previous)
                for index in side.nodes.indices {
                    side.nodes[index].branch = side.nodes[index].branch ?? tee.branch
                    side.nodes[index].isOptional = side.nodes[index].isOptional || tee.isOptional
                }
                append(side)
            case .join(let join):
                links += link(to: join.target)
                previous = nil
            }
        }
    }

    mutating func append(_ other: MediaGraph) {
        nodes += other.nodes
        links += other.links
    }
}

/// A side branch of a chain. Its nodes receive the same media as the chain's next node.
package struct Tee: Sendable {
    package let items: [ChainItem]
    let branch: String?
    let isOptional: Bool

    package init(items: [ChainItem]) {
        self.init { return items }
    }

    /// - Parameters:
    ///   - branch: a name by which the branch can be removed or replaced while the graph runs.
    ///   - isOptional: whether a failure in the branch ends only the branch.
    ///   - build: the branch's nodes.
    package init(
        _ branch: String? = nil, isOptional: Bool = false, @ChainBuilder _ build: () -> [ChainItem]
    ) {
        self.branch = branch
        self.isOptional = isOptional
        items = build()
    }
}

/// The end of a chain that is linked to a node elsewhere in the graph.
package struct Join: Sendable {
    /// The node or port that is fed. An open port is empty.
    package let target: PortReference

    package init(_ target: PortReference) {
        self.target = target
    }

    package init(_ node: String, port: String? = nil) {
        self.init(PortReference(node: node, port: port ?? ""))
    }
}

@resultBuilder
package enum ChainBuilder {
    package static func buildExpression(_ node: Node) -> [ChainItem] { [.node(node)] }
    package static func buildExpression(_ tee: Tee) -> [ChainItem] { [.tee(tee)] }
    package static func buildExpression(_ join: Join) -> [ChainItem] { [.join(join)] }
    package static func buildBlock(_ parts: [ChainItem]...) -> [ChainItem] { parts.flatMap { $0 } }
    package static func buildOptional(_ part: [ChainItem]?) -> [ChainItem] { part ?? [] }
    package static func buildEither(first part: [ChainItem]) -> [ChainItem] { part }
    package static func buildEither(second part: [ChainItem]) -> [ChainItem] { part }
    package static func buildArray(_ parts: [[ChainItem]]) -> [ChainItem] { parts.flatMap { $0 } }
}

@resultBuilder
package enum GraphBuilder {
    package static func buildExpression(_ node: Node) -> MediaGraph { MediaGraph(nodes: [node]) }
    package static func buildExpression(_ chain: Chain) -> MediaGraph { chain.fragment }
    package static func buildBlock(_ parts: MediaGraph...) -> MediaGraph { buildArray(parts) }
    package static func buildOptional(_ part: MediaGraph?) -> MediaGraph { part ?? MediaGraph() }
    package static func buildEither(first part: MediaGraph) -> MediaGraph { part }
    package static func buildEither(second part: MediaGraph) -> MediaGraph { part }

    package static func buildArray(_ parts: [MediaGraph]) -> MediaGraph {
        var whole = MediaGraph()
        for part in parts { whole.append(part) }
        return whole
    }
}
