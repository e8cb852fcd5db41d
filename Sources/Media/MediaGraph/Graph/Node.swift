/// One step of a graph: a name that is unique in the graph, a kind, and settings.
public struct Node: Sendable, Hashable, Codable {
    /// The name, unique in the graph.
    public var name: String
    /// The name of the node's kind, such as `vp8-encoder`.
    public var kind: String
    /// Settings that differ from the kind's defaults.
    public var settings: [String: SettingValue]
    /// The branch of the node. An edit can remove or replace a branch by this name.
    public var branch: String?
    /// Whether a failure ends only this node and the nodes that only it feeds, instead of the whole graph.
    public var isOptional: Bool

    /// A node of a kind, with the kind's name unless it gets another one.
    public init(
        _ kind: String, name: String? = nil, settings: [String: SettingValue] = [:], branch: String? = nil,
        isOptional: Bool = false
    ) {
        self.name = name ?? kind
        self.kind = kind
        self.settings = settings
        self.branch = branch
        self.isOptional = isOptional
    }

    /// Any installed GStreamer element. Its settings are the element's properties.
    ///
    /// - Parameter factory: the element's type as `gst-inspect-1.0` lists it.
    package static func element(
        _ factory: String, name: String? = nil, _ properties: [String: SettingValue] = [:]
    ) -> Node {
        Node(NodeKind.elementPrefix + factory, name: name ?? factory, settings: properties)
    }

    /// The node, with a failure ending only it and the nodes that only it feeds.
    package var optional: Node {
        var node = self
        node.isOptional = true
        return node
    }

    private enum CodingKeys: String, CodingKey {
        case name, kind, settings, branch, isOptional
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        kind = try container.decode(String.self, forKey: .kind)
        name = try container.decodeIfPresent(String.self, forKey: .name) ?? kind
        settings = try container.decodeIfPresent([String: SettingValue].self, forKey: .settings) ?? [:]
        branch = try container.decodeIfPresent(String.self, forKey: .branch)
        isOptional = try container.decodeIfPresent(Bool.self, forKey: .isOptional) ?? false
    }
}

/// One port of one node of a graph.
public struct PortReference: Sendable, Hashable, Codable, CustomStringConvertible {
    /// The name of the node.
    public var node: String
    /// Empty for a port that is still open; see `MediaGraph.settled(with:)`.
    public var port: String

    /// A port of a node, by their names.
    public init(node: String, port: String) {
        self.node = node
        self.port = port
    }

    public var description: String { port.isEmpty ? node : "\(node).\(port)" }
}

/// A connection from an output to an input. An output may feed several inputs (a tee). An input has one source.
public struct Link: Sendable, Hashable, Codable {
    /// The output.
    public var from: PortReference
    /// The input.
    public var to: PortReference

    /// A link from an output to an input.
    public init(from: PortReference, to: PortReference) {
        self.from = from
        self.to = to
    }
}
