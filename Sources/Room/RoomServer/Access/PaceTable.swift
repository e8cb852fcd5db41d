internal import RTP
internal import RoomProtocol

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
