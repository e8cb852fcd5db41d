internal import RTP

/// Admits a burst of events, and then one per interval (the generic cell rate algorithm of ITU-T I.371). It is told the
/// time.
struct Pace {
    private let slack: TimeInterval
    private let interval: TimeInterval
    /// The time at which all counted events would be over at one per interval.
    private var paid = MonotonicTime.zero

    init(burst: Int, interval: TimeInterval) {
        slack = interval * Int64(burst - 1)
        self.interval = interval
    }

    /// How long an event would have to wait; nil when it may happen now.
    func delay(now: MonotonicTime) -> TimeInterval? {
        guard paid > now + slack else { return nil }
        return paid - (now + slack)
    }

    mutating func count(now: MonotonicTime) { paid = max(paid, now) + interval }

    /// Whether the whole burst is admitted again.
    func isRested(now: MonotonicTime) -> Bool { paid <= now }
}

/// A pace for each key, in bounded memory.
struct PaceTable<Key: Hashable> {
    private let fresh: Pace
    private let capacity: Int
    private var paces: [Key: Pace] = [:]

    init(_ fresh: Pace, capacity: Int = 10_000) {
        self.fresh = fresh
        self.capacity = capacity
    }

    var count: Int { paces.count }

    func delay(of key: Key, now: MonotonicTime) -> TimeInterval? { paces[key]?.delay(now: now) }

    /// Counts an event. A new key beyond the capacity makes the table forget the keys that are rested, or else all keys:
    /// a flood from many addresses must not lock out others.
    mutating func count(_ key: Key, now: MonotonicTime) {
        if paces[key] == nil, paces.count >= capacity {
            paces = paces.filter { !$0.value.isRested(now: now) }
            if paces.count >= capacity { paces = [:] }
        }
        paces[key, default: fresh].count(now: now)
    }
}
