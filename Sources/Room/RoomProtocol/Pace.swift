package import RTP

/// Admits a burst of events, and then one per interval (the generic cell rate algorithm of ITU-T I.371). It is told the
/// time.
package struct Pace: Sendable {
    private let burst: TimeInterval
    private let interval: TimeInterval
    /// The time at which all counted events would be over at one per interval.
    private var paid = MonotonicTime.zero

    package init(burst: Int, interval: TimeInterval) {
        self.burst = interval * Int64(burst)
        self.interval = interval
    }

    /// How long this many events would have to wait; nil when they may happen now.
    package func delay(_ events: Int = 1, now: MonotonicTime) -> TimeInterval? {
        let over = max(paid, now) + interval * Int64(events)
        return over > now + burst ? over - (now + burst) : nil
    }

    /// Counts events that happen. Those that are beyond the burst, because they had to happen, delay no later ones.
    ///
    /// - Parameter reserve: the part of the burst that these events leave to others.
    package mutating func count(_ events: Int = 1, reserve: Int = 0, now: MonotonicTime) {
        let most = now + burst + (.zero - interval * Int64(reserve))
        paid = max(paid, min(max(paid, now) + interval * Int64(events), most))
    }

    /// Counts this many events, or counts none and returns false if they would have to wait.
    package mutating func admits(_ events: Int = 1, now: MonotonicTime) -> Bool {
        guard delay(events, now: now) == nil else { return false }
        count(events, now: now)
        return true
    }

    /// Whether the whole burst is admitted again.
    package func isRested(now: MonotonicTime) -> Bool { paid <= now }
}
