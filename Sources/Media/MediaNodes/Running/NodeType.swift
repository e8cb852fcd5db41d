package import GStreamerKit
package import MediaGraph

/// One kind of node: its contract, how it is planned, and what it does while it runs.
package protocol NodeType: SendableMetatype {
    static var kind: NodeKind { get }

    /// An input of the kind as the settings of a node narrow it down.
    static func input(_ port: Port, of node: Node) -> Port

    /// What the node becomes. Pure: asks the machine through the request's environment only.
    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan

    /// The elements of the plan are made and in the pipeline, not yet linked to other nodes: attaches what watches
    /// them. Nil where nothing has to be watched.
    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)?
}

extension NodeType {
    package static func input(_ port: Port, of node: Node) -> Port { port }

    package static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? { nil }
}

/// What a node leaves behind for the running pipeline.
package protocol RunningNode: Sendable {
    var name: String { get }
    /// The elements are in place and about to play.
    func prepare() throws(MediaError)
    /// The node and others with it are about to be finished: who is outside of this process and takes time to end is told
    /// now, and has it together with the others. Does not block.
    func windUp()
    /// The node is about to stop: what is under way should come to an end. May block for a moment.
    func finish()
    /// A node that belonged to the running graph has finished: reports to the reporter what it was asked for and did not
    /// do. Not called for a node of an edit that failed.
    func reportShortfall()
    /// All streaming threads of the node have left.
    func stopped()
    func report(into statistics: inout MediaStatistics)
    /// A failure of one of the node's elements, in the node's words; nil to leave it to the general ones. `missing`
    /// is what nothing installed can decode, when that was said before.
    func explain(_ failure: PipelineFailure, missing: String?) -> MediaError?
    /// A failure of one of the node's elements while the node leaves the graph. Nobody else hears of it: a node that has
    /// lost something by it reports that in `reportShortfall`.
    func failedWhileLeaving(_ failure: PipelineFailure)
    /// What to say when nothing came at the start, in the node's words; nil to leave it to the general ones.
    var stalled: MediaError? { get }
    /// Whether the node's media may stay away for as long as it likes: nobody behind it is to wait for it at the start.
    var mayStayEmpty: Bool { get }
    /// One of the node's elements has posted something that it measured.
    func hear(_ message: ElementMessage)
    /// Changes a setting that the contract calls changeable, to a value that fits it. False where the node leaves that
    /// to the runner, which sets the property of this name on the node's only element that has it.
    func set(_ setting: String, to value: SettingValue) throws(MediaError) -> Bool
}

/// A running node whose outputs have lives of their own, such as the picture and the sound of a room's participant.
package protocol BranchingNode: RunningNode {
    /// What those who are fed by an output take for the node above them.
    func part(behind output: String) -> (any RunningNode)?
}

/// A running node that shows what comes to it outside of this process, such as a participant of a room. Its inputs may come
/// and go.
package protocol PublishingNode: RunningNode {
    /// The elements of an input are in place: attaches what watches them. The node shows no input before `appear`.
    func add(_ input: String, of instance: NodeInstance) throws(MediaError)
    /// Nothing comes to this input any more.
    func remove(_ input: String)
    /// Shows all inputs from now on. Called at the start, and by an edit once everything new has delivered a first frame.
    /// `done` is called once, on any thread, when others can see the inputs, or with why they cannot.
    func appear(_ done: @escaping @Sendable (MediaError?) -> Void)
}

extension RunningNode {
    package func prepare() throws(MediaError) {}
    package func windUp() {}
    package func finish() {}
    package func reportShortfall() {}
    package func stopped() {}
    package func report(into statistics: inout MediaStatistics) {}
    package func explain(_ failure: PipelineFailure, missing: String?) -> MediaError? { nil }
    package func failedWhileLeaving(_ failure: PipelineFailure) {}
    package var stalled: MediaError? { nil }
    package var mayStayEmpty: Bool { false }
    package func hear(_ message: ElementMessage) {}
    package func set(_ setting: String, to value: SettingValue) throws(MediaError) -> Bool { false }
}

extension [any RunningNode] {
    /// Finishes all; those that need time have it at once, and not one after the other.
    func finish() {
        for node in self { node.windUp() }
        for node in self { node.finish() }
    }
}
