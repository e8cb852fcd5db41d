/// The media that a link carries.
@frozen
public enum MediaKind: String, Sendable, Hashable, Codable {
    /// Uncompressed frames; I420 unless a port names another pixel format.
    case rawVideo
    /// Interleaved signed 16-bit stereo at 48 kHz.
    case rawAudio
    case encodedVideo
    case encodedAudio
    case rtp
    /// Other data between GStreamer elements: bytes of a file, a container, subtitles.
    case data
    /// Frames that the application pushes or receives outside of the graph.
    case applicationFrames

    /// The kind's name in messages and documents, such as `raw video`.
    public var words: String {
        switch self {
        case .rawVideo: "raw video"
        case .rawAudio: "raw audio"
        case .encodedVideo: "encoded video"
        case .encodedAudio: "encoded audio"
        case .rtp: "RTP"
        case .data: "other data"
        case .applicationFrames: "frames of the application"
        }
    }
}

/// The value of a node's setting.
@frozen
public enum SettingValue: Sendable, Hashable {
    case flag(Bool)
    case integer(Int)
    case number(Double)
    case text(String)
}

extension SettingValue {
    /// Numbers are equal if their values are: `30` equals `30.0`.
    public static func == (left: SettingValue, right: SettingValue) -> Bool {
        switch (left.whole, right.whole) {
        case (.flag(let left), .flag(let right)): left == right
        case (.integer(let left), .integer(let right)): left == right
        case (.number(let left), .number(let right)): left == right
        case (.text(let left), .text(let right)): left == right
        default: false
        }
    }

    public func hash(into hasher: inout Hasher) {
        switch whole {
        case .flag(let value): hasher.combine(value)
        case .integer(let value): hasher.combine(value)
        case .number(let value): hasher.combine(value)
        case .text(let value): hasher.combine(value)
        }
    }

    /// An integer instead of a number without a fraction.
    private var whole: SettingValue {
        if case .number(let number) = self, let integer = Int(exactly: number) { return .integer(integer) }
        return self
    }
}

extension SettingValue: ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByStringLiteral, CustomStringConvertible
{
    public init(booleanLiteral value: Bool) { self = .flag(value) }
    public init(integerLiteral value: Int) { self = .integer(value) }
    public init(floatLiteral value: Double) { self = .number(value) }
    public init(stringLiteral value: String) { self = .text(value) }

    public var description: String {
        switch self {
        case .flag(let value): "\(value)"
        case .integer(let value): "\(value)"
        case .number(let value): "\(value)"
        case .text(let value): "\"\(value)\""
        }
    }
}

extension SettingValue: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let value = try? container.decode(Bool.self) {
            self = .flag(value)
        } else if let value = try? container.decode(Int.self) {
            self = .integer(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else {
            self = .text(try container.decode(String.self))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .flag(let value): try container.encode(value)
        case .integer(let value): try container.encode(value)
        case .number(let value): try container.encode(value)
        case .text(let value): try container.encode(value)
        }
    }
}

/// One step of a graph: a name that is unique in the graph, a kind, and settings.
public struct Node: Sendable, Hashable, Codable {
    public var name: String
    /// The name of the node's kind, such as `vp8-encoder`; see `NodeKind.builtIn`.
    public var kind: String
    /// Settings that differ from the kind's defaults.
    public var settings: [String: SettingValue]
    /// The branch of the node. An edit can remove or replace a branch by this name.
    public var branch: String?
    /// Whether a failure ends only this node and the nodes that only it feeds, instead of the whole graph.
    public var isOptional: Bool

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

    /// A built-in node with the settings of `given` that differ from the kind's defaults. It equals the node of a file
    /// that omits defaults.
    init(_ kind: String, name: String?, given: [String: SettingValue]) {
        let contract = NodeKind.builtIn.first { $0.name == kind }
        self.init(
            kind, name: name,
            settings: given.filter { setting, value in contract?.setting(setting)?.defaultValue != value })
    }

    /// Any installed GStreamer element. Its settings are the element's properties.
    ///
    /// - Parameter factory: the element's type as `gst-inspect-1.0` lists it.
    public static func element(
        _ factory: String, name: String? = nil, _ properties: [String: SettingValue] = [:]
    ) -> Node {
        Node(NodeKind.elementPrefix + factory, name: name ?? factory, settings: properties)
    }

    /// The node, with a failure ending only it and the nodes that only it feeds.
    public var optional: Node {
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
    public var node: String
    /// Empty for a port that is still open; see `MediaGraph.settled(with:)`.
    public var port: String

    public init(node: String, port: String) {
        self.node = node
        self.port = port
    }

    public var description: String { port.isEmpty ? node : "\(node).\(port)" }
}

/// A connection from an output to an input. An output may feed several inputs (a tee). An input has one source.
public struct Link: Sendable, Hashable, Codable {
    public var from: PortReference
    public var to: PortReference

    public init(from: PortReference, to: PortReference) {
        self.from = from
        self.to = to
    }
}
