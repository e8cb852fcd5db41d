public import MediaGraph

/// The contents of a graph file: the graph, its description, its variables with their values, and the places of all
/// parts.
public struct GraphDocument: Sendable {
    public var graph: MediaGraph
    /// The graph's purpose, in one or more sentences.
    public var description: String?
    /// In the order of their first use. Unused declared ones are last.
    public var variables: [GraphVariable]
    public var places: GraphPlaces

    public init(
        graph: MediaGraph, description: String? = nil, variables: [GraphVariable] = [],
        places: GraphPlaces = GraphPlaces()
    ) {
        self.graph = graph
        self.description = description
        self.variables = variables
        self.places = places
    }
}

/// A variable of a graph file: `${name}` or `${name:-default}`.
public struct GraphVariable: Sendable, Hashable {
    public var name: String
    /// The description of the file's `variables`.
    public var summary: String?
    public var defaultValue: String?
    /// The value. Nil if there is neither a value nor a default.
    public var value: String?
    /// Whether it is used in a secret setting.
    public var isSecret = false

    public init(name: String, summary: String? = nil, defaultValue: String? = nil, value: String? = nil) {
        self.name = name
        self.summary = summary
        self.defaultValue = defaultValue
        self.value = value
    }
}

/// A place in a file. Lines and columns count from 1, columns in Unicode scalars.
public struct GraphPlace: Sendable, Hashable, Comparable, CustomStringConvertible {
    public var line: Int
    public var column: Int

    public init(line: Int, column: Int) {
        self.line = line
        self.column = column
    }

    public static func < (left: GraphPlace, right: GraphPlace) -> Bool {
        (left.line, left.column) < (right.line, right.column)
    }

    public var description: String { "\(line):\(column)" }
}

/// The places of a graph's parts in its file.
public struct GraphPlaces: Sendable {
    /// By node name: the place of its kind.
    public var nodes: [String: GraphPlace] = [:]
    /// By node name and setting: the place of the value.
    public var settings: [String: [String: GraphPlace]] = [:]
    /// The place that creates a link: the downstream step, or the `to:` that names it.
    public var links: [Link: GraphPlace] = [:]

    public init() {}
}

/// The keys at the top of a file.
enum TopKey {
    static let description = "description"
    static let variables = "variables"
    static let chains = "chains"
    static let schema = "$schema"
    static let all = [description, variables, chains]
}
