/// What a watched node has done since it is watched.
public struct NodeStatistics: Sendable, Hashable, Codable {
    public var node: String
    public var kind: String
    /// Frames (buffers) that came, at all inputs together. 0 for a capturer.
    public var framesIn = 0
    /// What came, by input.
    public var inputs: [String: Arrivals] = [:]
    /// Frames that left, at all outputs together; at an end of the graph, those that were rendered, written or sent. The
    /// packets of one frame count as one.
    public var framesOut = 0
    /// Bytes that left.
    public var bytesOut = 0
    /// Frames that were thrown away, by the queue and its rule.
    public var dropped: [Drop] = []
    /// Frames that wait in the node's queues now.
    public var queued = 0
    /// Seconds from entering to leaving, the median of the last frames; nil for capturers and before the first.
    public var secondsInNode: Double?
    /// Seconds from capture to leaving the node, the median of the last frames; at an end that is the whole way.
    public var latency: Double?
    /// Seconds for which the node has been counted: since the watch began, or since the node came.
    public var secondsCounted = 0.0
    /// Of a level meter, how loud the last interval was: left before right. Empty for other nodes.
    public var levels: [MediaStatistics.ChannelLevel] = []
    /// What leaves by the first output, or arrives at an end; nil before the first frame.
    public var format: MediaFormat?

    public struct Arrivals: Sendable, Hashable, Codable {
        public var frames: Int
        public var bytes: Int
        /// Seconds from capture to coming here, the median of the last frames; nil before the first.
        public var latency: Double?

        public init(frames: Int, bytes: Int, latency: Double? = nil) {
            self.frames = frames
            self.bytes = bytes
            self.latency = latency
        }
    }

    public struct Drop: Sendable, Hashable, Codable {
        /// The queue, such as `queue` or `branch-in`.
        public var queue: String
        public var rule: QueuePlan.Rule
        public var frames: Int

        public init(queue: String, rule: QueuePlan.Rule, frames: Int) {
            self.queue = queue
            self.rule = rule
            self.frames = frames
        }
    }

    public init(node: String, kind: String) {
        self.node = node
        self.kind = kind
    }
}
