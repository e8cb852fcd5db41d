public import MediaGraph

/// A graph as a file holds it: the graph, what it is for, the variables that were filled in, and where everything stands.
public struct GraphDocument: Sendable {
    public var graph: MediaGraph
    /// What the graph is for, in a sentence or more.
    public var description: String?
    /// In the order of their first use, those that are only declared last.
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
    /// What it stands for, as the file's `variables` say.
    public var summary: String?
    public var defaultValue: String?
    /// What was filled in; nil when there was neither a value nor a default.
    public var value: String?
    /// Whether it stands in a setting that nobody else is to read.
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

/// Where the parts of a graph stand in its file.
public struct GraphPlaces: Sendable {
    /// By node name: the word that says the kind.
    public var nodes: [String: GraphPlace] = [:]
    /// By node name and setting: the value.
    public var settings: [String: [String: GraphPlace]] = [:]
    /// Where a link comes about: at the step that is fed, or at the `to:` that names it.
    public var links: [Link: GraphPlace] = [:]

    public init() {}
}

/// The words at the top of a file.
enum TopKey {
    static let description = "description"
    static let variables = "variables"
    static let chains = "chains"
    static let schema = "$schema"
    static let all = [description, variables, chains]
}
