internal import GStreamerKit
package import MediaGraph
import Synchronization

/// A node of a composition: a handle that is linked with `>>>` and used again while the pipeline runs.
///
/// Each kind of node has a type of its own, named after the kind: `test-pattern` is ``TestPattern``. A setting that is nil
/// has the default of the kind; `connectlive nodes KIND` prints both.
///
/// A handle is small, and its copies are the same node. So a handle that is linked twice is one node with two branches:
///
/// ```swift
/// let camera = Camera()
/// let pipeline = try await MediaPipeline {
///     camera >>> Window().optional
///     camera >>> VideoEncoder(.vp8) >>> Publish(room: "kitchen")
/// }
/// ```
///
/// A handle belongs to one pipeline at a time, until that one has stopped or an edit has removed the node. Its calls may
/// come from any thread. They throw `node.not-running` while the node is in no pipeline.
public protocol MediaNode: Upstream, Downstream {
    /// The identity of the node, with its settings. Copies of the handle are the same node.
    var handle: NodeHandle { get set }
}

extension MediaNode {
    /// The same node, with a failure ending only it and the nodes that only it feeds, instead of the whole pipeline.
    /// One mention of the node as optional is enough.
    public var optional: Self {
        var node = self
        node.handle.isOptional = true
        return node
    }

    /// The same node, under this name in plans, events, messages and the control socket. Without one, a node has the name
    /// of its kind, with a number if another node has it.
    ///
    /// - Parameter name: unique in the pipeline, without dots.
    public func named(_ name: String) -> Self {
        var node = self
        node.handle.givenName = name
        return node
    }

    /// The node's name in its pipeline, which may have stopped; nil while it is in none.
    public var name: String? { handle.identity.seat?.name }

    /// The route of the node alone.
    public var route: Route { Route(Composition(handle), entry: entry, end: NodeOutput(handle)) }
    public var entry: NodeInput { NodeInput(handle) }
}

/// The identity of a node, and how a composition mentions it. Only nodes of this library make handles.
public struct NodeHandle: Sendable {
    let identity: NodeIdentity
    var isOptional = false
    var givenName: String?

    package init(_ kind: NodeKind, _ settings: [String: (any SettingRepresentable)?] = [:], code: NodeCode? = nil) {
        self.init(kind.name, settings.compactMapValues { $0?.settingValue }, code)
    }

    /// A node of another module, whose kind the registry may lack.
    package init(_ implementation: NodeImplementation, _ settings: [String: (any SettingRepresentable)?]) {
        self.init(implementation.kind, settings, code: .kind(implementation))
    }

    init(
        _ kind: String, _ settings: [String: SettingValue], _ code: NodeCode?, of value: (any WrittenNode)? = nil
    ) {
        identity = NodeIdentity(kind, settings, code, of: value)
    }
}

/// The code of the application that a node brings along.
package enum NodeCode: Sendable {
    case rtpOutput(@Sendable (RTPBatch) -> Void)
    case frames(@Sendable (VideoFrame) -> Void)
    case audio(@Sendable (AudioChunk) -> Void)
    case frameFunction(@Sendable (inout MutableVideoFrame) -> Void)
    /// A value that the node uses as long as it exists.
    case retained(any Sendable)
    /// A kind that the registry may lack.
    case kind(NodeImplementation)
    /// A kind of the application, with its objects. Making it may block.
    case own(@Sendable () throws(MediaError) -> NodeImplementation)
}

/// The common part of all copies of a handle.
final class NodeIdentity: Sendable {
    let kind: String
    let settings: [String: SettingValue]
    let code: NodeCode?
    /// The value that the node is made of, if it is.
    let value: (any WrittenNode)?
    private let place = Mutex<(seat: Seat?, lastName: String?)>((nil, nil))

    /// A place in a pipeline.
    struct Seat: Sendable {
        let roster: WeakBox<NodeRoster>
        let name: String
    }

    init(
        _ kind: String, _ settings: [String: SettingValue], _ code: NodeCode?, of value: (any WrittenNode)? = nil
    ) {
        self.value = value
        self.kind = kind
        self.settings = settings
        self.code = code
    }

    /// The kind without the prefix of elements, after which nodes are named in files too.
    var plainName: String {
        kind.hasPrefix(NodeKind.elementPrefix) ? String(kind.dropFirst(NodeKind.elementPrefix.count)) : kind
    }

    /// Its place; nil also if the pipeline is gone.
    var seat: Seat? { place.withLock { $0.seat?.roster.value == nil ? nil : $0.seat } }

    /// Its name, or that which it had in the last pipeline: an event about it may be read after it has left.
    var latestName: String? { place.withLock { $0.seat?.name ?? $0.lastName } }

    /// Takes a place in a pipeline. False if the node has one in another pipeline that has not stopped.
    func sit(in roster: NodeRoster, as name: String) -> Bool {
        place.withLock { place in
            if let other = place.seat?.roster.value, other !== roster, !other.isOver { return false }
            place.seat = Seat(roster: WeakBox(roster), name: name)
            return true
        }
    }

    /// Leaves a pipeline, unless the node has a place in another one by now.
    func leave(_ roster: NodeRoster) {
        place.withLock { place in
            if let seat = place.seat, seat.roster.value === roster { place = (nil, seat.name) }
        }
    }
}

extension Duration {
    /// In seconds, as settings have it.
    package var inSeconds: Double { self / .seconds(1) }
    /// In milliseconds, rounded, as settings have it.
    package var inMilliseconds: Int { Int((self / .milliseconds(1)).rounded()) }
}
