public import MediaGraph

/// Nodes and the links between them, as handles: the value that `MediaPipeline { … }` runs.
///
/// A composition can be made of others: write one of them on a line of its own.
public struct Composition: Sendable {
    /// A link between ports, which may be open.
    private struct Joint: Hashable {
        struct End: Hashable {
            let node: ObjectIdentifier
            let port: String
        }

        let from: End
        let to: End
    }

    /// Each node once, in the order of their mention.
    private(set) var nodes: [NodeHandle] = []
    private var places: [ObjectIdentifier: Int] = [:]
    private var links: [Joint] = []
    private var linked: Set<Joint> = []
    /// Nodes that were given two names.
    private var renamed: [(String, String)] = []

    init() {}

    init(_ node: NodeHandle) { add(node) }

    /// The composition of the routes and nodes in a closure, one a line.
    public init(@CompositionBuilder _ compose: () -> Composition) {
        self = compose()
    }

    mutating func add(_ node: NodeHandle) {
        let id = ObjectIdentifier(node.identity)
        guard let place = places[id] else {
            places[id] = nodes.count
            return nodes.append(node)
        }
        nodes[place].isOptional = nodes[place].isOptional || node.isOptional
        guard let name = node.givenName else { return }
        if let other = nodes[place].givenName, other != name { renamed.append((other, name)) }
        nodes[place].givenName = name
    }

    mutating func link(_ output: NodeOutput, to input: NodeInput) {
        link(
            Joint(
                from: Joint.End(node: ObjectIdentifier(output.node.identity), port: output.port),
                to: Joint.End(node: ObjectIdentifier(input.node.identity), port: input.port)))
    }

    private mutating func link(_ link: Joint) {
        if linked.insert(link).inserted { links.append(link) }
    }

    mutating func add(_ other: Composition) {
        for node in other.nodes { add(node) }
        for link in other.links { self.link(link) }
        renamed += other.renamed
    }

    /// The composition as nodes with names, which can be planned, compared, and written as YAML. Open ports stay open; see
    /// `MediaGraph.settled(with:)`.
    ///
    /// - Throws: `graph.invalid` if two nodes were given one name, or one node two.
    public var graph: MediaGraph {
        get throws(MediaError) { graph(with: try names { _ in nil }) }
    }

    /// The name of each node, in the order of `nodes`: the one that it has, the one that it was given, or that of its kind,
    /// with a number if another node has it.
    ///
    /// - Parameters:
    ///   - inUse: names of running nodes, some of which may be about to leave.
    ///   - blocked: names of running nodes that stay.
    ///   - former: the name that a node has already.
    func names(
        inUse: Set<String> = [], blocked: Set<String> = [], of former: (NodeIdentity) -> String?
    ) throws(MediaError) -> [String] {
        if let (first, second) = renamed.first {
            throw Self.invalid("One node is named both \"\(first)\" and \"\(second)\". Name it once.")
        }
        var names: [String?] = []
        for node in nodes {
            let there = former(node.identity)
            let name = there ?? node.givenName
            if let name {
                if let given = node.givenName, given != name {
                    throw Self.invalid(
                        "The node \"\(name)\" runs already, so it cannot be named \"\(given)\" any more.")
                }
                guard there != nil || !blocked.contains(name), !names.contains(name) else {
                    throw Self.invalid("Two nodes are named \"\(name)\". Name one of them differently.")
                }
                // The running node of that name would stay, and with it the code of its handle.
                guard there != nil || !inUse.contains(name) || node.identity.code == nil else {
                    throw Self.invalid(
                        "Another handle is named \"\(name)\", and runs. Use it, or name the new one differently.")
                }
            }
            names.append(name)
        }
        var taken = inUse.union(blocked).union(names.compactMap(\.self))
        return zip(nodes, names).map { node, name in
            let name = name ?? Self.freeName(node.identity.plainName, taken)
            taken.insert(name)
            return name
        }
    }

    private static func freeName(_ kind: String, _ taken: Set<String>) -> String {
        guard taken.contains(kind) else { return kind }
        var number = 2
        while taken.contains("\(kind)-\(number)") { number += 1 }
        return "\(kind)-\(number)"
    }

    func graph(with names: [String]) -> MediaGraph {
        func port(_ end: Joint.End) -> PortReference {
            guard let place = places[end.node] else { preconditionFailure("a link of a node that is not there") }
            return PortReference(node: names[place], port: end.port)
        }
        return MediaGraph(
            nodes: zip(nodes, names).map { node, name in
                Node(
                    node.identity.kind, name: name, settings: node.identity.settings, isOptional: node.isOptional)
            },
            links: links.map { Link(from: port($0.from), to: port($0.to)) })
    }

    static func invalid(_ message: String) -> MediaError {
        MediaError(code: MediaError.Code.graphInvalid, message: message)
    }
}

/// Makes a composition of routes, nodes and other compositions, one a line.
@resultBuilder
public enum CompositionBuilder {
    /// A line with a route.
    public static func buildExpression(_ route: Route) -> Composition { route.composition }
    /// A line with a node.
    public static func buildExpression(_ node: some MediaNode) -> Composition { Composition(node.handle) }
    /// A line with another composition.
    public static func buildExpression(_ composition: Composition) -> Composition { composition }
    /// All lines together.
    public static func buildBlock(_ parts: Composition...) -> Composition { buildArray(parts) }
    /// An `if` without an `else`.
    public static func buildOptional(_ part: Composition?) -> Composition { part ?? Composition() }
    /// The first branch of an `if` or a `switch`.
    public static func buildEither(first part: Composition) -> Composition { part }
    /// Another branch of an `if` or a `switch`.
    public static func buildEither(second part: Composition) -> Composition { part }

    /// A `for` loop.
    public static func buildArray(_ parts: [Composition]) -> Composition {
        var whole = Composition()
        for part in parts { whole.add(part) }
        return whole
    }
}
