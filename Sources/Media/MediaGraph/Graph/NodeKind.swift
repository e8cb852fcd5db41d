/// The type of function of a program that a node calls.
public enum CodeBinding: String, Sendable, Hashable, CaseIterable {
    /// A function that receives batches of RTP packets.
    case rtpOutput
    /// A function that receives frames.
    case frames
    /// A function that receives buffers of audio.
    case audio
    /// A function that changes frames.
    case frameFunction

    /// The type of the handle that brings along such a function.
    var handle: String {
        switch self {
        case .rtpOutput: "RTPOutput"
        case .frames: "Frames"
        case .audio: "Sound"
        case .frameFunction: "FrameFunction"
        }
    }
}

/// The role of a kind in a graph.
public enum NodeGroup: String, Sendable, Hashable, Codable, CaseIterable {
    /// Gives media: a camera, a file, a screen.
    case capturer
    /// Changes raw media.
    case processor
    /// Encodes or decodes.
    case codec
    /// Shows or plays media, or passes it to the program.
    case renderer
    /// Writes media to a file.
    case recorder
    /// Sends media to other machines, or receives it.
    case transport
    /// An element of GStreamer.
    case element
}

/// The contract of all nodes of a kind: ports and settings.
public struct NodeKind: Sendable, Hashable {
    /// The start of a kind's name that stands for a GStreamer element.
    public static let elementPrefix = "element:"

    /// The name of the kind, such as `camera`.
    public let name: String
    /// The role of its nodes in a graph.
    public let group: NodeGroup
    /// A few words about the kind, for `connectlive nodes`.
    public let summary: String
    /// The inputs of each node.
    public let inputs: [Port]
    /// The outputs of each node.
    public let outputs: [Port]
    /// The settings of each node.
    public let settings: [SettingContract]
    /// The type of function that the node calls, if it calls one.
    public let binding: CodeBinding?

    /// A contract by its name, group and summary.
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
    /// Files that a node writes beside those that its settings name, such as the first segment of an HLS recording.
    func otherFiles(writtenBy node: Node) -> [String]
}

extension NodeCatalogue {
    public func reasonForLack(of name: String) -> String? { nil }
    public func isLacking(_ name: String) -> Bool { false }
    public func otherFiles(writtenBy node: Node) -> [String] { [] }
}

extension [NodeKind]: NodeCatalogue {
    public var kinds: [NodeKind] { self }

    public func kind(named name: String) -> NodeKind? {
        first { $0.name == name }
    }
}
