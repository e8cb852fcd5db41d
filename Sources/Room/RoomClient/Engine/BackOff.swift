internal import RTP

/// When something that failed is tried again: soon at first, then ever later; what has held for a while starts over.
struct BackOff {
    static let first = TimeInterval.milliseconds(250)
    /// A device that was plugged in again is taken up within this time.
    static let longest = TimeInterval.seconds(8)
    /// What ran for this long before it failed was well.
    static let trust = TimeInterval.seconds(10)

    private var delay = Self.first
    private var runningSince: MonotonicTime?
    /// How often it failed since it was last well.
    private(set) var failures = 0

    mutating func succeeded(at now: MonotonicTime) { runningSince = now }

    /// How long to wait before the next try.
    mutating func failed(at now: MonotonicTime) -> TimeInterval {
        if let runningSince, now - runningSince >= Self.trust {
            delay = Self.first
            failures = 0
        }
        runningSince = nil
        failures += 1
        defer { delay = min(delay * 2, Self.longest) }
        return delay
    }
}
