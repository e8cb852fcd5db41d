/// An input or output of all nodes of a kind.
public struct Port: Sendable, Hashable {
    public let name: String
    /// The media that the port can carry. The link settles which of them it is.
    public let kinds: Set<MediaKind>
    /// The encodings that the port accepts or delivers, best first; empty for all encodings. Input in another encoding
    /// is converted, encoded or decoded.
    public let encodings: [String]
    /// Whether a graph that leaves the port unlinked is rejected.
    public let isRequired: Bool
    /// Whether this stands for any number of ports with this name and a number from 1, such as `in1` and `in2`.
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

    /// Whether `reference` names this port, or one of its numbered ports.
    public func matches(_ reference: String) -> Bool {
        guard isRepeated else { return reference == name }
        guard reference.hasPrefix(name), let number = Int(reference.dropFirst(name.count)) else { return false }
        return (1...1000).contains(number) && reference == "\(name)\(number)"
    }
}

/// The contract of a setting: the values that it accepts, its default and its meaning.
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
    /// The value of a setting that is not given; nil if the node decides.
    public let defaultValue: SettingValue?
    public let isRequired: Bool
    /// The unit of a number, such as `bit/s`.
    public let unit: String?
    public let summary: String
    /// Whether it can change while the graph runs.
    public let isChangeable: Bool
    /// Whether the element does not document changes while it runs. Such a setting counts as changeable, because most
    /// elements accept the change.
    public var isChangeUnsaid = false
    /// The form of a text; nil for any text.
    public internal(set) var form: Form?
    /// The accepted integers, if they are few; nil for the whole range.
    public internal(set) var values: [Int]?
    /// A value to copy; nil if the default, or any value of the domain, will do.
    public internal(set) var example: SettingValue?
    /// Settings that cannot be given together with this one.
    public internal(set) var excludedSettings: [String] = []
    /// The use of the file that the setting names; nil if it names no file.
    public var file: FileUse?
    /// Whether the value is hidden from output: it is shown as `SettingContract.hidden`.
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

/// A node's use of a file.
@frozen
public enum FileUse: String, Sendable, Hashable {
    case reads
    case writes
}

extension SettingContract {
    /// The contract of the same setting, naming a file with this use.
    public func naming(_ use: FileUse) -> SettingContract {
        var contract = self
        contract.file = use
        return contract
    }
}

/// The type of function that a program binds to a node's name.
@frozen
public enum CodeBinding: String, Sendable, Hashable, CaseIterable {
    case rtpOutput
    case frames
    case audio
    case frameFunction
}

/// The role of a kind in a graph.
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

/// The contract of all nodes of a kind: ports and settings.
public struct NodeKind: Sendable, Hashable {
    /// The start of a kind's name that stands for a GStreamer element.
    public static let elementPrefix = "element:"

    public let name: String
    public let group: NodeGroup
    public let summary: String
    public let inputs: [Port]
    public let outputs: [Port]
    public let settings: [SettingContract]
    /// The type of function that the node calls, if it calls one.
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

    /// The input with this name.
    public func input(_ name: String) -> Port? { inputs.first { $0.matches(name) } }

    /// The output with this name.
    public func output(_ name: String) -> Port? { outputs.first { $0.matches(name) } }

    /// The contract of a setting.
    public func setting(_ name: String) -> SettingContract? {
        settings.first { $0.name == name }
    }
}

/// The kinds of nodes that a graph may use.
public protocol NodeCatalogue: Sendable {
    /// All kinds that can be listed. A catalogue may know more by name, such as GStreamer's elements.
    var kinds: [NodeKind] { get }
    /// The kind with this name, or nil.
    func kind(named name: String) -> NodeKind?
    /// One sentence about why a kind is not available; nil if it is just unknown.
    func reasonForLack(of name: String) -> String?
    /// Whether the kind exists but not on this machine, such as an element that is not installed.
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
