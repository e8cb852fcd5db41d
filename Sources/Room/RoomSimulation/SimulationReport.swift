public import RTP

/// The frames that participants saw.
public struct SimulationReport: Sendable {
    /// One subscription.
    public struct Viewer: Sendable {
        public var client: String
        public var stream: Int
        /// Frames.
        public var shown: Int
        /// Packets that never came.
        public var skippedPackets: Int
        /// From the subscription to the first frame. Nil without one.
        public var firstFrame: TimeInterval?
        /// The longest time between two frames.
        public var longestFreeze: TimeInterval
    }

    public var seed: UInt64
    /// Virtual time since the beginning.
    public var time: TimeInterval
    /// A sum over all datagrams and their times. Equal for equal runs.
    public var digest: UInt64
    public var datagrams: Int
    public var viewers: [Viewer]
    /// Of all publishers.
    public var keyframes: Int
    /// Sequence numbers that the server did not send to a receiver, although it sent later ones. Publishers that lose
    /// nothing cause none.
    public var missingNumbers: Int
}
