package import RTP

/// Measures the turns of a loop: how many, how long, and the share of the time that they take. A turn is the time from a
/// wakeup until the loop waits again, or begins the next turn. It is told the time, and costs the same for any turn.
struct TurnMeter {
    private(set) var statistics = TurnStatistics()
    private var began = MonotonicTime.zero

    mutating func begin(at now: MonotonicTime) { began = now }

    mutating func end(at now: MonotonicTime) {
        guard began > .zero else { return }
        let time = now - began
        statistics.turns += 1
        statistics.busy = statistics.busy + time
        statistics.longest = max(statistics.longest, time)
        statistics.counts[TurnStatistics.bucket(of: time)] += 1
    }
}

/// The turns of a loop since its start.
package struct TurnStatistics: Sendable, Equatable {
    package internal(set) var turns = 0
    /// The time of all turns together.
    package internal(set) var busy = TimeInterval.zero
    package internal(set) var longest = TimeInterval.zero
    /// How many turns took a time of each bucket. A bucket is a quarter of an octave, in microseconds.
    var counts = [Int](repeating: 0, count: Self.buckets)

    /// 4 s or more are in the last one.
    static let buckets = 4 * 22

    /// The buckets with turns: the time below which a turn is in the bucket, and how many there are.
    package var times: [(below: TimeInterval, turns: Int)] {
        counts.indices.filter { counts[$0] > 0 }.map { (.microseconds(Int64(Self.end(of: $0))), counts[$0]) }
    }

    static func bucket(of time: TimeInterval) -> Int {
        let microseconds = UInt64(max(0, time.nanoseconds)) / 1000
        guard microseconds >= 4 else { return Int(microseconds) }
        let octave = 63 - microseconds.leadingZeroBitCount
        return min(4 * (octave - 1) + Int(microseconds >> UInt64(octave - 2) & 3), buckets - 1)
    }

    /// The first number of microseconds after a bucket.
    static func end(of bucket: Int) -> Int {
        guard bucket >= 4 else { return bucket + 1 }
        return (bucket % 4 + 5) << (bucket / 4 - 1)
    }
}
