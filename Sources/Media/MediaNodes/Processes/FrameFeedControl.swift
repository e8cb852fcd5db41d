import FrameSocket
import MediaGraph

/// A node that another process feeds, seen from the application: the screen that is shared, for one.
public struct FrameFeedControl: Sendable {
    /// How far the feeder has come. The numbers are those of the original's broadcast extension.
    public enum Status: Int, Sendable, Hashable, Codable {
        /// No feeder has come yet.
        case notAvailable = 0
        /// A feeder is accepted and has given nothing yet.
        case ready = 1
        case started = 2
        /// The feeder has gone; another one may come.
        case closed = 3
    }

    /// What is known of a feed at one moment.
    public struct State: Sendable, Hashable {
        public let status: Status
        /// What the feeder calls itself; that of the last one where none is there.
        public let feeder: String
        /// Whether the application has paused it.
        public let isHeldBack: Bool
        /// Whether the feeder says that it pauses.
        public let isFeederPausing: Bool
        /// Frames that feeders have announced since the start.
        public let received: Int
        /// Those of them that went into the graph.
        public let taken: Int
        /// The feeder's frames that the graph holds now.
        public let held: Int
    }

    let node: any FedNode

    public var state: State { node.hub.summary }

    /// Asks the feeder for no more pictures until `resume`, and takes none. Holds for feeders that come later, too.
    public func pause() { node.hub.hold(back: true) }

    public func resume() { node.hub.hold(back: false) }

    /// Asks the feeder to end. A `feed` node stays, and another feeder may come; a program of a `process` node is not started
    /// again, and its pictures end.
    public func stop(meetingIsOver: Bool = false) { node.stopFeeding(meetingIsOver ? .meetingFinished : .finished) }

    /// Calls `body` at each change of the status, on a queue of the node's own.
    public func onStatus(_ body: @escaping @Sendable (Status) -> Void) { node.hub.onStatus(body) }
}

/// A node with a feeder.
protocol FedNode: RunningNode {
    var hub: FeedHub { get }
    func stopFeeding(_ reason: StopReason)
}

extension MediaPipeline {
    /// The feeder of a `feed` or `process` node; nil when there is none of this name.
    public func frameFeed(_ node: String) -> FrameFeedControl? {
        (graph.runningNode(node) as? any FedNode).map { FrameFeedControl(node: $0) }
    }
}
