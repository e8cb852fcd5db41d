import FrameSocket
import MediaGraph

/// The application's control of a node that another process feeds, such as a shared screen.
public struct FrameFeedControl: Sendable {
    /// The state of the connection to a feeder. The numbers are those of the original SDK's broadcast extension.
    public enum Status: Int, Sendable, Hashable, Codable {
        /// No feeder has connected yet.
        case notAvailable = 0
        /// A feeder is accepted and has sent no frame yet.
        case ready = 1
        /// Frames have arrived.
        case started = 2
        /// The feeder has disconnected. Another one may connect.
        case closed = 3
    }

    /// The state of a feed at one moment.
    public struct State: Sendable, Hashable {
        /// The connection to the feeder.
        public let status: Status
        /// The name of the feeder, or of the last one.
        public let feeder: String
        /// Whether the application has paused the feed.
        public let isHeldBack: Bool
        /// Whether the feeder has announced a pause.
        public let isFeederPausing: Bool
        /// Frames that feeders have announced since the start.
        public let received: Int
        /// Announced frames that entered the graph.
        public let taken: Int
        /// The number of the feeder's frames that the graph holds.
        public let held: Int
    }

    let node: any FedNode

    /// The state now.
    public var state: State { node.hub.summary }

    /// Asks the feeder for no more frames until `resume`, and drops frames that arrive. Also applies to feeders that
    /// connect later.
    public func pause() { node.hub.hold(back: true) }

    /// Asks the feeder for frames again.
    public func resume() { node.hub.hold(back: false) }

    /// Asks the feeder to end. A `feed` node keeps running and accepts another feeder. The program of a `process` node
    /// is not restarted, and the node's stream ends.
    public func stop(meetingIsOver: Bool = false) { node.stopFeeding(meetingIsOver ? .meetingFinished : .finished) }

    /// Calls `body` at each change of the status, on a queue of the node.
    public func onStatus(_ body: @escaping @Sendable (Status) -> Void) { node.hub.onStatus(body) }
}

/// A node with a feeder.
protocol FedNode: RunningNode, AnyObject {
    var hub: FeedHub { get }
    func stopFeeding(_ reason: StopReason)
    /// The end of messages about faults of the feeder; nil if they have no consequence.
    var consequence: String? { get }
    /// A feeder has said hello and waits for its start. Called on the hub's queue, like those below.
    func feedAccepted()
    /// A frame came. Returns whether the node takes frames now.
    func feedDelivers() -> Bool
    /// A feeder is gone. Faults are reported already.
    func feedEnded(_ end: FeedConnection.End, hasGivenPictures: Bool)
}

extension FedNode {
    var consequence: String? { nil }
}

extension MediaPipeline {
    /// The control of a `feed` or `process` node; nil if there is no such node with this name.
    public func frameFeed(_ node: String) -> FrameFeedControl? {
        (graph.node(node)?.running as? any FedNode).map { FrameFeedControl(node: $0) }
    }
}
