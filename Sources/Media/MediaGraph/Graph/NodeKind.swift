/// An input or an output that every node of a kind has.
public struct Port: Sendable, Hashable {
    public let name: String
    /// What may travel there; what does is settled by the link.
    public let kinds: Set<MediaKind>
    /// The encodings that an input takes or an output gives, best first; empty for any of its kinds. What comes in
    /// another is converted, encoded or decoded on the way.
    public let encodings: [String]
    /// Whether a graph that leaves the port unconnected is refused.
    public let isRequired: Bool
    /// Whether the port stands for any number of ports, named by it and a number from 1: `in1`, `in2`.
    public let isRepeated: Bool

    public init(
        _ name: String, _ kinds: Set<MediaKind>, encodings: [String] = [], isRequired: Bool = true,
        isRepeated: Bool = false
    ) {
        self.name = name
        self.kinds = kinds
        self.encodings = encodings
        self.isRequired = isRequired
        self.isRepeated = isRepeated
    }

    /// Whether `reference` names this port, or one of those that it stands for.
    public func matches(_ reference: String) -> Bool {
        guard isRepeated else { return reference == name }
        guard reference.hasPrefix(name), let number = Int(reference.dropFirst(name.count)) else { return false }
        return (1...1000).contains(number) && reference == "\(name)\(number)"
    }
}

/// What a setting of a node may be.
public struct SettingContract: Sendable, Hashable {
    @frozen
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
    /// Whether it may be set while the graph runs.
    public let isChangeable: Bool
    /// Whether nobody says if it may be set while the graph runs: a property of an element that does not tell. It counts
    /// as changeable, because most of them take it.
    public var isChangeUnsaid = false
    /// How text has to be written; nil for any text.
    public internal(set) var form: Form?
    /// The only values of a whole number, where they are few; nil for all of the domain.
    public internal(set) var values: [Int]?
    /// A value that is fit to be copied; nil where the default is, or any value of the domain.
    public internal(set) var example: SettingValue?
    /// Settings that may not be given together with this one.
    public internal(set) var excludedSettings: [String] = []
    /// What the node does with the file that the setting names; nil where the setting names none.
    public var file: FileUse?
    /// Whether nobody else is to read it: it is shown as `SettingContract.hidden`.
    public let isSecret: Bool

    public init(
        _ name: String, _ domain: Domain, default defaultValue: SettingValue? = nil, isRequired: Bool = false,
        isChangeable: Bool = false, isSecret: Bool = false, unit: String? = nil, _ summary: String
    ) {
        self.isSecret = isSecret
        self.isChangeable = isChangeable
        self.name = name
        self.domain = domain
        self.defaultValue = defaultValue
        self.isRequired = isRequired
        self.unit = unit
        self.summary = summary
    }
}

/// What a node does with a file.
@frozen
public enum FileUse: String, Sendable, Hashable {
    case reads
    case writes
}

extension SettingContract {
    /// The same setting, which names a file that the node uses like this.
    public func naming(_ use: FileUse) -> SettingContract {
        var contract = self
        contract.file = use
        return contract
    }
}

/// The function of the program that a node calls under its own name.
@frozen
public enum CodeBinding: String, Sendable, Hashable, CaseIterable {
    case rtpOutput
    case frames
    case audio
    case frameFunction
}

/// Where a node stands in the flow.
@frozen
public enum NodeGroup: String, Sendable, Hashable, Codable, CaseIterable {
    case capturer
    case processor
    case codec
    case renderer
    case recorder
    case transport
    case element
}

/// What all nodes of a kind have in common: ports and settings.
public struct NodeKind: Sendable, Hashable {
    /// What the names of GStreamer's elements begin with when they are used as kinds.
    public static let elementPrefix = "element:"

    public let name: String
    public let group: NodeGroup
    public let summary: String
    public let inputs: [Port]
    public let outputs: [Port]
    public let settings: [SettingContract]
    /// The function of the program that such a node calls, if it calls one.
    public let binding: CodeBinding?

    public init(
        _ name: String, _ group: NodeGroup, _ summary: String, inputs: [Port] = [], outputs: [Port] = [],
        settings: [SettingContract] = [], binding: CodeBinding? = nil
    ) {
        self.name = name
        self.group = group
        self.summary = summary
        self.inputs = inputs
        self.outputs = outputs
        self.settings = settings
        self.binding = binding
    }

    /// The input of this name, if the kind has it.
    public func input(_ name: String) -> Port? { inputs.first { $0.matches(name) } }

    /// The output of this name, if the kind has it.
    public func output(_ name: String) -> Port? { outputs.first { $0.matches(name) } }

    /// The contract of a setting, if the kind has it.
    public func setting(_ name: String) -> SettingContract? {
        settings.first { $0.name == name }
    }
}

/// The kinds of nodes that a graph may be made of.
public protocol NodeCatalogue: Sendable {
    /// Every kind that can be listed; a catalogue may know more by name (GStreamer's elements).
    var kinds: [NodeKind] { get }
    /// The kind of this name, if it is known.
    func kind(named name: String) -> NodeKind?
    /// Why a kind cannot be had, in words, where more than "unknown" can be said.
    func reasonForLack(of name: String) -> String?
    /// Whether there is such a kind, which this machine lacks: an element that is not installed.
    func isLacking(_ name: String) -> Bool
}

extension NodeCatalogue {
    public func reasonForLack(of name: String) -> String? { nil }
    public func isLacking(_ name: String) -> Bool { false }
}

extension [NodeKind]: NodeCatalogue {
    public var kinds: [NodeKind] { self }

    public func kind(named name: String) -> NodeKind? {
        first { $0.name == name }
    }
}
