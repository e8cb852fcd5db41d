import GStreamerKit
public import MediaGraph

extension MediaNode {
    /// The pipeline in which the node runs, and its name there.
    ///
    /// - Throws: `node.not-running` if the node is in no pipeline, was removed, or was left out as optional, or if the
    ///   pipeline has stopped.
    func running() throws(MediaError) -> (pipeline: MediaPipeline, name: String) {
        guard handle.identity.seat?.roster.value?.isOver != true else { throw handle.identity.notRunning(as: nil) }
        return try placed()
    }

    /// The pipeline of the node, even if it has stopped, and the node's name there.
    ///
    /// - Throws: `node.not-running` if the node is in no pipeline, was removed, or was left out as optional.
    private func placed() throws(MediaError) -> (pipeline: MediaPipeline, name: String) {
        let identity = handle.identity
        guard let seat = identity.seat, let pipeline = seat.roster.value?.pipeline.value else {
            throw identity.notRunning(as: nil)
        }
        // While an edit replaces the node of this name, it is still the other one.
        guard pipeline.plan.node(seat.name) != nil, pipeline.graph.owner(of: seat.name) == ObjectIdentifier(identity)
        else { throw identity.notRunning(as: seat.name) }
        return (pipeline, seat.name)
    }

    /// Changes a live setting, like `MediaPipeline.set`.
    package func change(_ setting: String, to value: some SettingRepresentable) async throws(MediaError) {
        try await change(setting, to: value.settingValue)
    }

    /// The figures of a kind of node since the pipeline started. Counters only grow. Those of a stopped pipeline are
    /// final, while the program keeps the pipeline.
    func figures<Figures>(_ all: (MediaStatistics) -> [String: Figures]) throws(MediaError) -> Figures? {
        let (pipeline, name) = try placed()
        return all(pipeline.statistics)[name]
    }

    package func change(_ setting: String, to value: SettingValue) async throws(MediaError) {
        let (pipeline, name) = try running()
        try await pipeline.set(name, setting, to: value, of: ObjectIdentifier(handle.identity))
    }
}

extension NodeIdentity {
    func notRunning(as name: String?) -> MediaError {
        MediaError(
            code: MediaError.Code.nodeNotRunning,
            message: name.map { "\"\($0)\" is not in the running graph. Add it with an edit of the pipeline." }
                ?? "This \(plainName) is in no running pipeline. Link it in the composition of one first.",
            node: name)
    }
}

extension GraphPlan {
    /// The plan of a node of a pipeline; nil if it is in none.
    public func node(_ node: some MediaNode) -> NodePlan? { node.name.flatMap { self.node($0) } }
}

extension NodeWatch {
    /// Statistics of one node since the watch began; nil if it is not in the graph.
    public func sample(of node: some MediaNode) -> NodeStatistics? {
        node.name.flatMap { name in sample().first { $0.node == name } }
    }
}
