public import RTP

/// A burst of packets that measures whether the link carries a higher rate.
public struct ProbeCluster: Sendable, Equatable {
    /// Not 0, which stands for no probe.
    public var id: UInt16
    public var rate: DataRate
    /// How long it lasts at least.
    public var duration: TimeInterval
    public var minimumPackets: Int
    /// The time between its bursts of packets.
    public var interval: TimeInterval
    /// When it was requested.
    public var requested: MonotonicTime
    /// The estimate that it tests, if it only explores whether the link carries more.
    public var explored: DataRate?

    public init(
        id: UInt16, rate: DataRate, duration: TimeInterval, minimumPackets: Int = 5, interval: TimeInterval,
        requested: MonotonicTime, explored: DataRate? = nil
    ) {
        self.id = id
        self.rate = rate
        self.duration = duration
        self.minimumPackets = minimumPackets
        self.interval = interval
        self.requested = requested
        self.explored = explored
    }

    /// The bytes that it has at least.
    public var minimumBytes: Double { rate.bytes(in: duration) }
}
