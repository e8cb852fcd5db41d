package import MediaGraph

/// The functions of the program that nodes call, by the names of the nodes.
///
/// All of them run on a GStreamer thread, one call after the other for each node. Return soon and never block. To stop
/// the pipeline from one of them, start a Task.
package struct NodeBindings: Sendable {
    /// Called once for each encoded frame.
    package var rtpOutputs: [String: @Sendable (RTPBatch) -> Void] = [:]
    /// Called for each frame.
    package var frames: [String: @Sendable (VideoFrame) -> Void] = [:]
    /// Called for each chunk of audio, 10 to 25 ms long.
    package var audio: [String: @Sendable (AudioChunk) -> Void] = [:]
    /// Called for each frame, to change it in place.
    package var frameFunctions: [String: @Sendable (inout MutableVideoFrame) -> Void] = [:]
    /// Kinds that single nodes bring along.
    package var own: [String: NodeImplementation] = [:]
    /// Called for each event; see `MediaEvent`.
    package var events: (@Sendable (MediaEvent) -> Void)?

    package init() {}

    /// Adds the bindings of `more`, but not its events.
    mutating func merge(_ more: NodeBindings) {
        rtpOutputs.merge(more.rtpOutputs) { $1 }
        frames.merge(more.frames) { $1 }
        audio.merge(more.audio) { $1 }
        frameFunctions.merge(more.frameFunctions) { $1 }
        own.merge(more.own) { $1 }
    }

    /// The bindings that nodes of a graph call, without those for a former node of the same name but another kind. With
    /// `passing`, names that are not in it keep their bindings.
    func only(for graph: MediaGraph, _ registry: NodeRegistry, among passing: Set<String>? = nil) -> NodeBindings {
        func kept<Function>(_ functions: [String: Function], _ binding: CodeBinding) -> [String: Function] {
            let names = graph.nodes.filter { registry.kind(named: $0.kind)?.binding == binding }.map(\.name)
            return functions.filter { names.contains($0.key) || passing?.contains($0.key) == false }
        }
        var bindings = self
        bindings.rtpOutputs = kept(rtpOutputs, .rtpOutput)
        bindings.frames = kept(frames, .frames)
        bindings.audio = kept(audio, .audio)
        bindings.frameFunctions = kept(frameFunctions, .frameFunction)
        bindings.own = own.filter {
            graph.node($0.key)?.kind == $0.value.kind.name || passing?.contains($0.key) == false
        }
        return bindings
    }

    /// The nodes that have bindings.
    var nodes: Set<String> {
        names.values.reduce(into: Set(own.keys)) { $0.formUnion($1) }
    }

    var names: BoundNames {
        [
            .rtpOutput: Set(rtpOutputs.keys), .frames: Set(frames.keys), .audio: Set(audio.keys),
            .frameFunction: Set(frameFunctions.keys),
        ]
    }
}

extension NodeInstance {
    /// The function that the program binds to this node. Traps without one, which validation reports.
    package func bound<Function>(_ functions: KeyPath<NodeBindings, [String: Function]>) -> Function {
        guard let function = context.bound.bindings[keyPath: functions][name] else {
            preconditionFailure("a validated graph has an unbound \(name)")
        }
        return function
    }
}
