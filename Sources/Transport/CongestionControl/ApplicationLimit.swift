internal import RTP

/// Whether the application sends much less than the estimate, so that the estimate cannot be tested by media.
struct ApplicationLimit: Sendable {
    /// The share of the estimate that a busy application uses.
    static let usage = 0.65
    /// The unused share of half a second at which the limit begins, and at which it ends.
    static let begin = 0.8
    static let end = 0.5
    static let window = TimeInterval.milliseconds(500)

    /// Since when the application limits the rate. Nil while it does not.
    private(set) var since: MonotonicTime?
    private var rate: DataRate
    private var budget = 0.0
    private var newest: MonotonicTime?

    init(estimate: DataRate) { rate = estimate * Self.usage }

    mutating func setEstimate(_ estimate: DataRate) {
        rate = estimate * Self.usage
        budget = min(max(budget, -capacity), capacity)
    }

    private var capacity: Double { rate.bytes(in: Self.window) }

    mutating func sent(bytes: Int, now: MonotonicTime) {
        guard let before = newest else {
            newest = now
            return
        }
        newest = now
        budget = max(budget - Double(bytes), -capacity)
        budget = min(budget + rate.bytes(in: now - before), capacity)
        guard capacity > 0 else { return }
        let share = budget / capacity
        if share > Self.begin, since == nil {
            since = now
        } else if share < Self.end {
            since = nil
        }
    }
}
