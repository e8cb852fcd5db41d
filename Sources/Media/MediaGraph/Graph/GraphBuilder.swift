/// Part of a graph under construction. Its links may leave ports open.
public struct GraphFragment: Sendable {
    /// A link that may leave its ports open.
    public struct OpenLink: Sendable {
        public var from: String
        public var fromPort: String?
        public var to: String
        public var toPort: String?

        public init(from: String, fromPort: String? = nil, to: String, toPort: String? = nil) {
            self.from = from
            self.fromPort = fromPort
            self.to = to
            self.toPort = toPort
        }
    }

    public var nodes: [Node]
    public var links: [OpenLink]

    public init(nodes: [Node] = [], links: [OpenLink] = []) {
        self.nodes = nodes
        self.links = links
    }

    mutating func append(_ other: GraphFragment) {
        nodes += other.nodes
        links += other.links
    }
}

/// An item of `MediaGraph { }`: a node or a chain.
public protocol GraphPart {
    var fragment: GraphFragment { get }
}

/// An item of `Chain { }` or `Tee { }`.
public enum ChainItem: Sendable {
    /// The next step.
    case node(Node)
    /// A side branch that receives the same media as the next step.
    case tee([ChainItem], branch: String?, isOptional: Bool)
    /// The end of a chain: a port of a node elsewhere in the graph.
    case join(node: String, port: String?)
}

extension Node: GraphPart {
    public var fragment: GraphFragment { GraphFragment(nodes: [self]) }
}

/// A sequence of nodes, each linked to the next.
///
/// A link without a named port uses the first output that fits and the first free input that fits. `from:port:` starts
/// the chain at a node elsewhere in the graph, at the given output.
public struct Chain: GraphPart {
    let start: (node: String, port: String?)?
    let items: [ChainItem]

    public init(@ChainBuilder _ build: () -> [ChainItem]) {
        start = nil
        items = build()
    }

    public init(from node: String, port: String? = nil, @ChainBuilder _ build: () -> [ChainItem]) {
        start = (node, port)
        items = build()
    }

    public var fragment: GraphFragment {
        var fragment = GraphFragment()
        Self.append(items, after: start, to: &fragment)
        return fragment
    }

    private static func append(
        _ items: [ChainItem], after start: (node: String, port: String?)?, to fragment: inout GraphFragment
    ) {
        var previous = start
        for item in items {
            switch item {
            case .node(let node):
                fragment.nodes.append(node)
                if let previous {
                    fragment.links.append(.init(from: previous.node, fromPort: previous.port, to: node.name))
                }
                previous = (node.name, nil)
            case .tee(let items, let branch, let isOptional):
                var side = GraphFragment()
                append(items, after: previous, to: &side)
                for index in side.nodes.indices {
                    side.nodes[index].branch = side.nodes[index].branch ?? branch
                    side.nodes[index].isOptional = side.nodes[index].isOptional || isOptional
                }
                fragment.append(side)
            case .join(let node, let port):
                if let previous {
                    fragment.links.append(
                        .init(from: previous.node, fromPort: previous.port, to: node, toPort: port))
                }
                previous = nil
            }
        }
    }
}

/// A side branch of a chain. Its nodes receive the same media as the chain's next node.
public struct Tee: Sendable {
    let items: [ChainItem]
    let branch: String?
    let isOptional: Bool

    /// - Parameters:
    ///   - branch: a name by which the branch can be removed or replaced while the graph runs.
    ///   - isOptional: whether a failure in the branch ends only the branch.
    ///   - build: the branch's nodes.
    public init(
        _ branch: String? = nil, isOptional: Bool = false, @ChainBuilder _ build: () -> [ChainItem]
    ) {
        self.branch = branch
        self.isOptional = isOptional
        items = build()
    }
}

/// The end of a chain that is linked to a node elsewhere in the graph.
public struct Join: Sendable {
    let node: String
    let port: String?

    public init(_ node: String, port: String? = nil) {
        self.node = node
        self.port = port
    }
}

@resultBuilder
public enum ChainBuilder {
    public static func buildExpression(_ node: Node) -> [ChainItem] { [.node(node)] }
    public static func buildExpression(_ tee: Tee) -> [ChainItem] {
        [.tee(tee.items, branch: tee.branch, isOptional: tee.isOptional)]
    }
    public static func buildExpression(_ join: Join) -> [ChainItem] { [.join(node: join.node, port: join.port)] }
    public static func buildBlock(_ parts: [ChainItem]...) -> [ChainItem] { parts.flatMap { $0 } }
    public static func buildOptional(_ part: [ChainItem]?) -> [ChainItem] { part ?? [] }
    public static func buildEither(first part: [ChainItem]) -> [ChainItem] { part }
    public static func buildEither(second part: [ChainItem]) -> [ChainItem] { part }
    public static func buildArray(_ parts: [[ChainItem]]) -> [ChainItem] { parts.flatMap { $0 } }
}

@resultBuilder
public enum GraphBuilder {
    public static func buildExpression(_ part: some GraphPart) -> GraphFragment { part.fragment }
    public static func buildBlock(_ parts: GraphFragment...) -> GraphFragment { buildArray(parts) }
    public static func buildOptional(_ part: GraphFragment?) -> GraphFragment { part ?? GraphFragment() }
    public static func buildEither(first part: GraphFragment) -> GraphFragment { part }
    public static func buildEither(second part: GraphFragment) -> GraphFragment { part }

    public static func buildArray(_ parts: [GraphFragment]) -> GraphFragment {
        var whole = GraphFragment()
        for part in parts { whole.append(part) }
        return whole
    }
}

extension MediaGraph {
    /// Settles open ports between nodes of built-in kinds. The others stay open until the graph is validated or run.
    public init(_ fragment: GraphFragment) {
        let links = fragment.links.map { open in
            Link(
                from: PortReference(node: open.from, port: open.fromPort ?? ""),
                to: PortReference(node: open.to, port: open.toPort ?? ""))
        }
        self = MediaGraph(nodes: fragment.nodes, links: links).settled(with: NodeKind.builtIn)
    }
}
