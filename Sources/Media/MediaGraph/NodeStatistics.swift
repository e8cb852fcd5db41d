/// Statistics of one node since its watch began.
public struct NodeStatistics: Sendable, Hashable, Codable {
    /// The name of the node.
    public var node: String
    /// The name of the node's kind.
    public var kind: String
    /// Frames (buffers) that arrived, at all inputs together. 0 for a capturer.
    public var framesIn = 0
    /// Arrivals by input.
    public var inputs: [String: Arrivals] = [:]
    /// Frames that left, at all outputs together. At an end of the graph: frames rendered, written or sent. The packets
    /// of one frame count as one.
    public var framesOut = 0
    /// Frames that left, by output. Empty at an end of the graph.
    public var outputs: [String: Int] = [:]
    /// Bytes that left.
    public var bytesOut = 0
    /// Dropped frames, by queue.
    public var dropped: [Drop] = []
    /// Frames that are in the node's queues now.
    public var queued = 0
    /// Seconds between entering and leaving, the median of the latest frames; nil for capturers and before the first
    /// frame.
    public var secondsInNode: Double?
    /// Seconds between capture and leaving the node, the median of the latest frames. At an end of the graph, this is
    /// the total latency.
    public var latency: Double?
    /// The state of a source, or of a loudspeaker, whose device may come and go. Nil for other nodes.
    public var source: SourceStatus?
    /// Why nothing of the node reaches its room at present, or nothing arrives from there. Nil while media flows.
    public var outage: String?
    /// The frames of a camera that went wrong. Nil for other nodes.
    public var camera: MediaStatistics.Camera?
    /// Seconds since counting began: at the start of the watch, or when the node was added.
    public var secondsCounted = 0.0
    /// The levels of a level meter's last interval, left before right. Empty for other nodes.
    public var levels: [MediaStatistics.ChannelLevel] = []
    /// The format at the first output, or at the input of an end; nil before the first frame.
    public var format: MediaFormat?

    /// The frames that arrived at one input.
    public struct Arrivals: Sendable, Hashable, Codable {
        /// Frames (buffers) that arrived.
        public var frames: Int
        /// Bytes that arrived.
        public var bytes: Int
        /// Seconds between capture and arrival, the median of the latest frames; nil before the first frame.
        public var latency: Double?

        /// Counts, and a latency in seconds.
        public init(frames: Int, bytes: Int, latency: Double? = nil) {
            self.frames = frames
            self.bytes = bytes
            self.latency = latency
        }
    }

    /// The frames that one queue dropped.
    public struct Drop: Sendable, Hashable, Codable {
        /// The queue, such as `queue` or `branch-in`.
        public var queue: String
        /// The rule by which the queue drops.
        public var rule: QueuePlan.Rule
        /// Dropped frames.
        public var frames: Int

        /// A count for a queue.
        public init(queue: String, rule: QueuePlan.Rule, frames: Int) {
            self.queue = queue
            self.rule = rule
            self.frames = frames
        }
    }

    /// Figures of a node before its first frame.
    public init(node: String, kind: String) {
        self.node = node
        self.kind = kind
    }
}

/// The state of a source, or of a loudspeaker, whose device may come and go.
public struct SourceStatus: Sendable, Hashable, Codable {
    /// The steps of a device that comes and goes.
    public enum State: String, Sendable, Hashable, Codable {
        /// The source does not run.
        case stopped
        /// The device is not there.
        case waiting
        /// The device is being opened.
        case opening
        /// The device delivers, or plays.
        case streaming
        /// The device delivers nothing for a few frame times, or takes no audio.
        case silent
        /// The device is lost and being closed.
        case lost
        /// The device failed, and is opened again soon.
        case backingOff = "backing off"
        /// Another device has taken over.
        case failedOver = "failed over"
    }

    /// The step at which the device is.
    public var state: State
    /// The device that is open, or is opened next.
    public var device: String
    /// Why the device delivers or plays nothing; nil while it does.
    public var cause: String?
    /// How often the device was lost.
    public var losses = 0
    /// Frames, or buffers of silence, that stood in for those of the device.
    public var standIns = 0

    /// A status without losses.
    public init(state: State, device: String) {
        self.state = state
        self.device = device
    }
}
