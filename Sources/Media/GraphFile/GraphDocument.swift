public import MediaGraph

/// The contents of a graph file: the graph, its description, its variables with their values, and the places of all
/// parts.
public struct GraphDocument: Sendable {
    /// The graph.
    public var graph: MediaGraph
    /// The graph's purpose, in one or more sentences.
    public var description: String?
    /// In the order of their first use. Unused declared ones are last.
    public internal(set) var variables: [GraphVariable] = []
    /// The places of the graph's parts in the file. Empty for a graph that no file has.
    public internal(set) var places = GraphPlaces()

    /// A document without variables.
    public init(graph: MediaGraph, description: String? = nil) {
        self.graph = graph
        self.description = description
    }
}

/// A variable of a graph file: `${name}` or `${name:-default}`.
public struct GraphVariable: Sendable, Hashable {
    /// The name, without the braces.
    public var name: String
    /// The description of the file's `variables`.
    public var summary: String?
    /// The value after `:-`, or that of the file's `variables`. Nil without one.
    public var defaultValue: String?
    /// The value. Nil if there is neither a value nor a default.
    public var value: String?
    /// Whether it is used in a secret setting.
    public var isSecret = false
}

/// A place in a file. Lines and columns count from 1, columns in Unicode scalars.
public struct GraphPlace: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The line, from 1.
    public var line: Int
    /// The column, from 1, in Unicode scalars.
    public var column: Int

    public static func < (left: GraphPlace, right: GraphPlace) -> Bool {
        (left.line, left.column) < (right.line, right.column)
    }

    public var description: String { "\(line):\(column)" }

    /// The whole file, and what is nowhere in it.
    static let start = GraphPlace(line: 0, column: 0)
    static let end = GraphPlace(line: .max, column: 0)
}

/// The places of a graph's parts in its file.
public struct GraphPlaces: Sendable {
    /// By node name: the place of its kind.
    public var nodes: [String: GraphPlace] = [:]
    /// By node name and setting: the place of the value.
    public var settings: [String: [String: GraphPlace]] = [:]
    /// The place that creates a link: the downstream step, or the `to:` that names it.
    public var links: [Link: GraphPlace] = [:]
}

/// The `branch` and `optional` of a step.
struct BranchMarks {
    var branch: String?
    var isOptional = false
}

extension Node {
    /// The kind as in a file: an element by its factory.
    var kindInFiles: String {
        kind.hasPrefix(NodeKind.elementPrefix) ? String(kind.dropFirst(NodeKind.elementPrefix.count)) : kind
    }

    /// The settings in the order of the contract, which is by importance. Unknown ones are last.
    func settings(inOrderOf contract: NodeKind?) -> [(key: String, value: SettingValue)] {
        let known = contract?.settings.map(\.name) ?? []
        func place(_ name: String) -> Int { known.firstIndex(of: name) ?? known.count }
        return settings.sorted { (place($0.key), $0.key) < (place($1.key), $1.key) }
    }

    /// Takes the marks of a tee or a `from`, unless it has its own.
    mutating func inherit(_ marks: BranchMarks) {
        branch = branch ?? marks.branch
        isOptional = isOptional || marks.isOptional
    }
}

/// The keys at the top of a file.
enum TopKey {
    static let description = "description"
    static let variables = "variables"
    static let chains = "chains"
    static let schema = "$schema"
    static let all = [description, variables, chains]
}
