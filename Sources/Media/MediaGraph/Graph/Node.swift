/// What travels along a link.
@frozen
public enum MediaKind: String, Sendable, Hashable, Codable {
    /// Pictures; I420 unless a port says otherwise.
    case rawVideo
    /// Interleaved signed 16-bit stereo sound at 48 kHz.
    case rawAudio
    case encodedVideo
    case encodedAudio
    case rtp
    /// Bytes of a file, a container, subtitles: what only GStreamer's elements say to one another.
    case data
    /// What the application pushes in or is handed, outside the graph.
    case applicationFrames

    /// The kind as messages and documents name it, such as `raw video`.
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
    /// Numbers are equal when their values are: a rate of 30 is the same, however it was written.
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

    /// A number without a fraction as an integer.
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

/// One step of a graph: a kind, a name that is unique in the graph, and settings.
public struct Node: Sendable, Hashable, Codable {
    public var name: String
    /// The name of the node's kind, such as `vp8-encoder`; see `NodeKind.builtIn`.
    public var kind: String
    /// Settings that differ from the kind's defaults.
    public var settings: [String: SettingValue]
    /// The branch that the node belongs to, by which an edit may name it.
    public var branch: String?
    /// Whether a failure of this node ends only it and what it alone feeds, not the whole graph.
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

    /// A built-in node with what of `given` differs from the defaults of its kind: equal to what a file that leaves them
    /// out gives.
    init(_ kind: String, name: String?, given: [String: SettingValue]) {
        let contract = NodeKind.builtIn.first { $0.name == kind }
        self.init(
            kind, name: name,
            settings: given.filter { setting, value in contract?.setting(setting)?.defaultValue != value })
    }

    /// Any installed GStreamer element, by the name of its factory; settings are its properties.
    public static func element(
        _ factory: String, name: String? = nil, _ properties: [String: SettingValue] = [:]
    ) -> Node {
        Node(NodeKind.elementPrefix + factory, name: name ?? factory, settings: properties)
    }

    /// The node as one whose failure ends only it and what it alone feeds.
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
    /// Empty for the port that fits, as long as the node's kind was not known; see `MediaGraph.settled(with:)`.
    public var port: String

    public init(node: String, port: String) {
        self.node = node
        self.port = port
    }

    public var description: String { port.isEmpty ? node : "\(node).\(port)" }
}

/// A connection from an output to an input. An output may feed several inputs (a tee); an input has one source.
public struct Link: Sendable, Hashable, Codable {
    public var from: PortReference
    public var to: PortReference

    public init(from: PortReference, to: PortReference) {
        self.from = from
        self.to = to
    }
}
