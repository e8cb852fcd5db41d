internal import RTP

/// The back-off between retries. It grows with each failure and starts over after a stable run.
struct BackOff {
    static let first = TimeInterval.milliseconds(250)
    /// A device that was plugged in again is used within this time.
    static let longest = TimeInterval.seconds(8)
    /// A run of at least this length counts as stable.
    static let trust = TimeInterval.seconds(10)

    private var delay = Self.first
    private var runningSince: MonotonicTime?
    /// Failures since the last stable run.
    private(set) var failures = 0

    mutating func succeeded(at now: MonotonicTime) { runningSince = now }

    /// Records a failure and returns the time until the next try.
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
