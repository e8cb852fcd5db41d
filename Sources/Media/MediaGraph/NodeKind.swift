/// An input or an output that every node of a kind has.
public struct Port: Sendable, Hashable {
    public let name: String
    /// What may travel there; what does is settled by the link.
    public let kinds: Set<MediaKind>
    /// Whether a graph that leaves the port unconnected is refused.
    public let isRequired: Bool

    public init(_ name: String, _ kinds: Set<MediaKind>, isRequired: Bool = true) {
        self.name = name
        self.kinds = kinds
        self.isRequired = isRequired
    }
}

/// What a setting of a node may be.
public struct SettingContract: Sendable, Hashable {
    public enum Domain: Sendable, Hashable {
        case flag
        case integer(ClosedRange<Int>)
        case number(ClosedRange<Double>)
        case text
        case choice([String])
    }

    public let name: String
    public let domain: Domain
    /// What holds when the setting is not given; nil when the node decides.
    public let defaultValue: SettingValue?
    public let isRequired: Bool
    /// The unit of a number, such as `bit/s`.
    public let unit: String?
    public let summary: String

    public init(
        _ name: String, _ domain: Domain, default defaultValue: SettingValue? = nil, isRequired: Bool = false,
        unit: String? = nil, _ summary: String
    ) {
        self.name = name
        self.domain = domain
        self.defaultValue = defaultValue
        self.isRequired = isRequired
        self.unit = unit
        self.summary = summary
    }
}

/// The function of the program that a node calls under its own name.
public enum CodeBinding: String, Sendable, Hashable {
    case rtpOutput
    case frames
    case audio
}

/// What all nodes of a kind have in common: ports and settings.
public struct NodeKind: Sendable, Hashable {
    public let name: String
    public let summary: String
    public let inputs: [Port]
    public let outputs: [Port]
    public let settings: [SettingContract]
    /// The function of the program that such a node calls, if it calls one.
    public let binding: CodeBinding?

    public init(
        _ name: String, _ summary: String, inputs: [Port] = [], outputs: [Port] = [],
        settings: [SettingContract] = [], binding: CodeBinding? = nil
    ) {
        self.name = name
        self.summary = summary
        self.inputs = inputs
        self.outputs = outputs
        self.settings = settings
        self.binding = binding
    }

    /// The contract of a setting, if the kind has it.
    public func setting(_ name: String) -> SettingContract? {
        settings.first { $0.name == name }
    }
}

extension [NodeKind] {
    /// The kind of this name, if it is there.
    public func named(_ name: String) -> NodeKind? {
        first { $0.name == name }
    }
}
