public import RTP

/// The rate that a path carries, by the losses in the peer's receiver reports (RFC 3550, section 6.4.1). For a peer that neither
/// reports arrivals nor estimates the path.
///
/// Nothing limits the rate before the first congestion. Then the estimate begins with the rate that arrived, and follows
/// draft-ietf-rmcat-gcc-02, section 6. A peer that reports nothing gets little. It is told the time.
public struct ReportEstimate: Sendable {
    /// Reports are judged together until they cover so many packets, and so long beside the round trip: the losses before the
    /// last fall must not count again.
    static let packets = 20
    /// With fewer packets, losses may exceed the threshold by chance. A share within two standard deviations above it waits for
    /// more reports.
    static let certainPackets = 400
    static let period = TimeInterval.milliseconds(300)
    /// The rate rises by the time between two judgements, up to this. A running peer reports at least every 8 s.
    static let longestRise = TimeInterval.seconds(8)
    /// The peer gets `unreported` after so long without a report of packets.
    /// One report of a peer may be lost.
    static let patience = TimeInterval.seconds(20)
    static let unreported = DataRate.kilobits(300)
    static let minimum = DataRate.kilobits(50)
    /// After a pause of the streams, the sent rate is measured again.
    static let pause = TimeInterval.seconds(1)

    /// `.unlimited` before congestion, and after the estimate has risen beyond what sessions begin with at most.
    private var limit = DataRate.unlimited
    /// The share of lost packets in the last judged reports.
    private var loss = 0.0
    private var (expected, lost) = (0, 0.0)
    private var judged: MonotonicTime?
    /// The bytes that were sent since the last judgement, and when they began.
    private var (bytes, since) = (0, MonotonicTime?.none)
    private var newest = MonotonicTime.zero
    /// The first packet that no report has followed.
    private var unreportedSince: MonotonicTime?

    public init() {}

    /// A packet is sent.
    ///
    /// - Parameter bytes: its length with the headers of UDP and IP
    public mutating func sent(bytes: Int, now: MonotonicTime) {
        let silence = now - newest
        if since == nil || silence >= Self.pause { (self.bytes, since) = (0, now) }
        if unreportedSince == nil || silence >= Self.patience { unreportedSince = now }
        self.bytes += bytes
        newest = now
    }

    /// A report about some packets of a stream has arrived. After those of all streams, call `judge`.
    ///
    /// - Parameters:
    ///   - lost: the share that did not arrive, 0...1
    ///   - packets: those since the report before
    public mutating func reported(lost: Double, of packets: Int) {
        // Nothing has arrived since the report before.
        guard packets > 0 else { return }
        unreportedSince = nil
        expected += packets
        self.lost += min(max(lost, 0), 1) * Double(packets)
    }

    /// Follows the reports since the last judgement, if they cover enough.
    ///
    /// - Parameter roundTrip: nil if it is unknown
    public mutating func judge(roundTrip: TimeInterval?, now: MonotonicTime) {
        let elapsed = judged.map { now - $0 } ?? Self.longestRise
        guard expected >= Self.packets, elapsed >= Self.period + (roundTrip ?? .zero) else { return }
        let share = self.lost / Double(expected)
        guard !isUncertain(share) else { return }
        loss = share
        follow(elapsed, now: now)
        (expected, self.lost, judged) = (0, 0, now)
        (bytes, since) = (0, nil)
    }

    private func isUncertain(_ share: Double) -> Bool {
        let excess = share - ArrivalEstimate.congestedLoss
        return expected < Self.certainPackets && excess > 0
            && excess * excess < 4 * share * (1 - share) / Double(expected)
    }

    private mutating func follow(_ elapsed: TimeInterval, now: MonotonicTime) {
        if loss > ArrivalEstimate.congestedLoss {
            let sent = since.map { DataRate(bytes: Double(bytes), in: now - $0) } ?? .unlimited
            let rate = min(limit, sent)
            guard rate.isLimited else { return }
            limit = max(Self.minimum, rate * (limit.isLimited ? 1 - loss / 2 : 1 - loss))
        } else if loss < ArrivalEstimate.harmlessLoss, limit.isLimited {
            limit = limit * power(ArrivalEstimate.growth, min(elapsed, Self.longestRise).seconds)
            if limit > CongestionController.Settings().maximum { limit = .unlimited }
        }
    }

    /// `.unlimited` if nothing shows that the path carries less than it gets.
    public var rate: DataRate { isUnreported ? min(limit, Self.unreported) : limit }

    /// Whether the path carries less than it gets, by the last reports or because there are none.
    public var isCongested: Bool { isUnreported || loss > ArrivalEstimate.congestedLoss }

    private var isUnreported: Bool { unreportedSince.map { newest - $0 >= Self.patience } ?? false }
}
