public import RTP

/// The frames that participants saw.
public struct SimulationReport: Sendable {
    /// One subscription.
    public struct Viewer: Sendable, Equatable {
        /// The name of the subscriber.
        public var client: String
        /// The server's id of the video.
        public var stream: Int
        /// Frames that were shown.
        public var shown: Int
        /// Packets that never came.
        public var skippedPackets: Int
        /// From the subscription to the first frame. Nil without one.
        public var firstFrame: TimeInterval?
        /// The longest time between two frames.
        public var longestFreeze: TimeInterval
        /// From the capture of the newest frame until it was shown, as the viewer measures it. Nil before it can.
        public var latency: TimeInterval?
        /// The same in virtual time, which no client knows.
        public var trueLatency: TimeInterval?
        /// Whether the latency comes from capture times in the packets, instead of sender reports.
        public var hasCaptureTimes: Bool
        /// The largest difference between both, over all frames whose latency round trips measured. Zero without any.
        public var largestLatencyError: TimeInterval
        /// The frames whose latency round trips measured.
        public var measuredFrames: Int
        /// The layer of the newest frame, 0 for the lowest one. Nil without simulcast, and before the first frame.
        public var layer: Int?
        /// How often it went on with another layer.
        public var switches: Int
        /// A sum over its frames and the times at which it showed them. Equal for equal views.
        public var digest: UInt64
    }

    /// One audio stream in one client.
    public struct Listener: Sendable, Equatable {
        /// The name of the listener.
        public var client: String
        /// The server's id of the audio.
        public var stream: Int
        /// Packets of 20 ms that arrived.
        public var packets: Int
    }

    /// The seed of the run.
    public var seed: UInt64
    /// Virtual time since the beginning.
    public var time: TimeInterval
    /// A sum over all datagrams and their times. Equal for equal runs.
    public var digest: UInt64
    /// All datagrams on all links.
    public var datagrams: Int
    /// Of all datagrams, without headers of UDP and IP.
    public var bytes: Int
    /// The most bytes that waited for the rate of one link.
    public var deepestQueue: Int
    /// All subscriptions.
    public var viewers: [Viewer]
    /// All audio streams, in each client that hears them.
    public var listeners: [Listener]
    /// Of all publishers.
    public var keyframes: Int
    /// Sequence numbers that the server did not send to a receiver, although it sent later ones. Publishers that lose
    /// nothing cause none.
    public var missingNumbers: Int
    /// Zero for a run without bounds.
    public var extremes: RoomExtremes
}
