internal import RTP

/// Lowers the rate while feedback is seconds late or missing: packets are sent, and nothing shows that they arrive.
struct FeedbackTimeout: Sendable {
    static let limit = TimeInterval.seconds(3)
    static let interval = TimeInterval.seconds(1)
    static let drop = 0.8
    static let floor = DataRate.kilobits(5)

    private var roundTrip = TimeInterval.zero
    /// Since when the peer has not reported: its newest report, or the first packet after a pause.
    private var silentSince: MonotonicTime?
    private var newestSent: MonotonicTime?
    private var dropped: MonotonicTime?

    /// - Parameter isAlone: whether nothing else is on its way. Then the peer had nothing to report before.
    mutating func sent(isAlone: Bool, now: MonotonicTime) {
        if isAlone { silentSince = now }
        newestSent = now
    }

    mutating func received(roundTrip: TimeInterval?, now: MonotonicTime) {
        silentSince = now
        if let roundTrip { self.roundTrip = roundTrip }
    }

    /// This end did not read its feedback for this long.
    mutating func stalled(for time: TimeInterval) { silentSince = silentSince.map { $0 + time } }

    var isExceeded: Bool {
        guard let newestSent, let silentSince else { return false }
        return max(newestSent - silentSince, .zero) + roundTrip > Self.limit
    }

    /// The lowered rate. The rate itself if a drop is not due.
    mutating func lowered(_ rate: DataRate, now: MonotonicTime) -> DataRate {
        guard isExceeded, rate > Self.floor else { return rate }
        if let dropped, now - dropped < Self.interval { return rate }
        dropped = now
        return max(rate * Self.drop, Self.floor)
    }
}
