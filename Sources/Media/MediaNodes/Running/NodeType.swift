package import GStreamerKit
package import MediaGraph

/// One kind of node: its contract, its plan, and its behaviour while it runs.
package protocol NodeType: SendableMetatype {
    static var kind: NodeKind { get }

    /// An input of the kind, narrowed by a node's settings.
    static func input(_ port: Port, of node: Node) -> Port

    /// The same, narrowed or put into another order by the machine too.
    static func input(_ port: Port, of node: Node, on environment: any PlanEnvironment) -> Port

    /// The outputs that have the format of an input, by input. Their consumers decide what the input gets.
    static var repeatedInputs: [String: String] { get }

    /// Files that a node writes beside those that its settings name.
    static func otherFiles(writtenBy node: Node) -> [String]

    /// The plan of a node. Pure: queries the machine through the request's environment only.
    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan

    /// Attaches the probes to the plan's elements, which are in the pipeline but not yet linked to other nodes. Nil if
    /// no probes are needed.
    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)?
}

extension NodeType {
    package static func input(_ port: Port, of node: Node) -> Port { port }

    package static func input(_ port: Port, of node: Node, on environment: any PlanEnvironment) -> Port {
        input(port, of: node)
    }

    package static var repeatedInputs: [String: String] { [:] }

    package static func otherFiles(writtenBy node: Node) -> [String] { [] }

    package static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? { nil }
}

/// A node's behaviour in the running pipeline.
package protocol RunningNode: Sendable {
    /// Called when the elements are in place, before they play.
    func prepare() throws(MediaError)
    /// Called before the first `finish` of several nodes: asks other processes to end, so that they end in parallel.
    /// Does not block.
    func prepareToFinish()
    /// Called before the node stops: ends its work in progress. May block briefly.
    func finish()
    /// Called when a node of the running graph has finished: reports its missing results to the reporter. Not called
    /// for a node of an edit that failed.
    func reportShortfall()
    /// Called instead of `finish` for a node whose graph never ran.
    func discard()
    /// Called when all streaming threads of the node have returned.
    func stopped()
    func report(into statistics: inout MediaStatistics, as name: String)
    /// The error for a failure of one of the node's elements. Nil for the general error. `missing` is the format that
    /// no installed element can decode, if that was reported before.
    func explain(_ failure: PipelineFailure, missing: String?) -> MediaError?
    /// Called for a failure of one of the node's elements while the node leaves the graph, which is not reported
    /// otherwise. A node that lost data by it reports that in `reportShortfall`.
    func failedWhileLeaving(_ failure: PipelineFailure)
    /// The error if no media arrived at the start. Nil for the general error.
    var stalled: MediaError? { get }
    /// The upstream node for the nodes that an output feeds, if outputs are independent, such as the video and the audio
    /// of a participant.
    func part(behind output: String) -> any RunningNode
    /// Whether the node may stay without media indefinitely, so that the start does not wait for it downstream.
    var mayStayEmpty: Bool { get }
    /// Why the node shows stand-ins for the media of its device. Nil while it shows that media.
    var absence: MediaError? { get }
    /// Calls `body` once, on any thread, when the node's device has delivered or `absence` has a reason.
    func whenDecided(_ body: @escaping @Sendable () -> Void)
    /// For a node that plays by the clock: seconds from a timestamp until it is heard. Nil for another one.
    var secondsUntilHeard: Double? { get }
    /// Delays media by so many seconds beyond the node's own delay, for lip-sync. Approaches it slowly.
    func hold(seconds: Double)
    /// The reason why the node's audio output ends without data, such as a file without audio. Nil if it has data.
    var silence: String? { get }
    /// Changes a setting that the contract declares as changeable, to a valid value. If it returns false, the runner
    /// sets the property of this name on the node's only element that has it.
    func set(_ setting: String, to value: SettingValue) throws(MediaError) -> Bool
    /// Throws the error that `set` would throw, as far as it is known without changing the setting.
    func check(_ setting: String, to value: SettingValue) throws(MediaError)
    /// Called when a changeable setting without a default in the contract is removed from the graph: the node chooses
    /// again.
    func reset(_ setting: String) throws(MediaError)
}

/// A running node that shows its inputs outside of this process, such as a participant of a room. Inputs may be added
/// and removed.
package protocol PublishingNode: RunningNode {
    /// Attaches the probes to an input's elements, which are in place. The node shows no input before `appear`.
    func add(_ input: String, of instance: NodeInstance) throws(MediaError)
    /// Called when an input gets no data any more.
    func remove(_ input: String)
    /// Shows all inputs from now on. Called at the start, and by an edit once all new nodes have delivered a first
    /// frame and all new encoded sources are held. `done` is called once, on any thread, when others can see the inputs,
    /// or with the reason why they cannot.
    func appear(_ done: @escaping @Sendable (MediaError?) -> Void)
    /// Called at the start, after an edit, and when a source that feeds an input may have begun to show stand-ins, or its
    /// media again. Called on a queue of the pipeline, in order, also when nothing has changed.
    func feedChanged(of input: String, _ feed: InputFeed)
}

extension PublishingNode {
    package func feedChanged(of input: String, _ feed: InputFeed) {}
}

/// The nodes upstream of an input, as others outside of this process may notice them.
package struct InputFeed: Sendable {
    /// Why a source shows stand-ins for the media of its device. Nil while all show their media.
    package var absence: MediaError?
    /// The format of the link into the input.
    package var format: MediaFormat?
    /// Counters of the video encoder. Nil if nothing is encoded on the way to the input.
    package var encoder: (@Sendable () -> MediaStatistics.VideoEncoder?)?
    /// Those of the audio encoder, likewise.
    package var audioEncoder: (@Sendable () -> MediaStatistics.AudioEncoder?)?

    package init() {}
}

extension RunningNode {
    package func prepare() throws(MediaError) {}
    package func prepareToFinish() {}
    package func finish() {}
    package func discard() {}
    package func reportShortfall() {}
    package func stopped() {}
    package func report(into statistics: inout MediaStatistics, as name: String) {}
    package func explain(_ failure: PipelineFailure, missing: String?) -> MediaError? { nil }
    package func failedWhileLeaving(_ failure: PipelineFailure) {}
    package var stalled: MediaError? { nil }
    package func part(behind output: String) -> any RunningNode { self }
    package var mayStayEmpty: Bool { false }
    package var absence: MediaError? { nil }
    package func whenDecided(_ body: @escaping @Sendable () -> Void) { body() }
    package var silence: String? { nil }
    package var secondsUntilHeard: Double? { nil }
    package func hold(seconds: Double) {}
    package func set(_ setting: String, to value: SettingValue) throws(MediaError) -> Bool { false }
    package func check(_ setting: String, to value: SettingValue) throws(MediaError) {}
    package func reset(_ setting: String) throws(MediaError) {}
}
