internal import RTP

/// The rate that follows the loss in receiver reports, for peers without transport-wide feedback
/// (draft-ietf-rmcat-gcc-02, section 6).
struct LossReports: Sendable {
    static let low = 0.02
    static let high = 0.1
    static let growth = 1.08
    static let growthInterval = TimeInterval.seconds(1)
    static let decreaseInterval = TimeInterval.milliseconds(300)
    static let minimumPackets = 20

    private var packets = 0
    private var lost = 0
    private var increased: MonotonicTime?
    private var decreased: MonotonicTime?

    /// Returns the next rate after a report of lost and expected packets since the one before.
    mutating func add(
        lost: Int, of packets: Int, target: DataRate, roundTrip: TimeInterval, now: MonotonicTime
    ) -> DataRate {
        self.packets += max(0, packets)
        self.lost += lost
        guard self.packets >= Self.minimumPackets else { return target }
        let share = Double(max(0, self.lost)) / Double(self.packets)
        (self.packets, self.lost) = (0, 0)
        if share <= Self.low {
            let elapsed = min(increased.map { now - $0 } ?? Self.growthInterval, Self.growthInterval)
            increased = now
            return target * power(Self.growth, elapsed.seconds) + .kilobits(1)
        }
        guard share > Self.high, now - (decreased ?? .zero) >= Self.decreaseInterval + roundTrip else { return target }
        decreased = now
        return target * (1 - 0.5 * min(1, share))
    }
}
