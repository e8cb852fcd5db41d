internal import RTP

/// When the packets of probe clusters are due, one cluster after the other.
struct ProbePacing: Sendable {
    static let maximumClusters = 5
    static let lifetime = TimeInterval.seconds(5)
    /// A cluster whose packets are later than this measures nothing, and ends.
    static let maximumLateness = TimeInterval.milliseconds(10)

    private var clusters = Ring<ProbeCluster>(capacity: 8)
    private var began: MonotonicTime?
    private var bytes = 0.0
    private var packets = 0
    /// The bytes of the burst that is being sent.
    private var burst = 0.0

    mutating func add(_ cluster: ProbeCluster) {
        while let first = clusters.first,
            clusters.count >= Self.maximumClusters || cluster.requested - first.requested > Self.lifetime
        {
            end()
        }
        clusters.append(cluster)
    }

    @inline(__always) var isIdle: Bool { clusters.isEmpty }

    /// When the next packet of a probe is due. `.never` without a probe.
    @inline(__always) var due: MonotonicTime {
        guard let cluster = clusters.first else { return .never }
        guard let began else { return .zero }
        return burst > 0 ? began : began + cluster.rate.time(for: bytes)
    }

    /// The cluster whose packets are due, and the bytes of its burst that are left.
    mutating func current(now: MonotonicTime) -> (probe: UInt16, bytes: Double)? {
        if began != nil, burst == 0, now - due > Self.maximumLateness { end() }
        guard due <= now, let cluster = clusters.first else { return nil }
        return (cluster.id, max(1, cluster.rate.bytes(in: cluster.interval) - burst))
    }

    /// A packet of the current cluster was sent. Returns true if its burst is complete.
    mutating func sent(bytes count: Double, now: MonotonicTime) {
        guard let cluster = clusters.first else { return }
        if began == nil { began = now }
        bytes += count
        burst += count
        packets += 1
        if burst >= cluster.rate.bytes(in: cluster.interval) { burst = 0 }
        if bytes >= cluster.minimumBytes, packets >= cluster.minimumPackets { end() }
    }

    /// Ends the current cluster: it is complete, or nothing can be sent for it.
    mutating func end() {
        clusters.removeFirst()
        (began, bytes, packets, burst) = (nil, 0, 0, 0)
    }
}
