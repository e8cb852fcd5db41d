internal import MediaGraph
internal import RTP

/// The retries of something that fails. The pause between them grows with each failure, and starts over after a stable run.
struct Retries {
    /// A device that was plugged in again is used within the longest pause.
    private static let pauses = Backoff(first: 0.25, longest: 8)
    /// A run of at least this length counts as stable.
    private static let trust = TimeInterval.seconds(10)

    private var runningSince: MonotonicTime?
    /// Failures since the last stable run.
    private(set) var failures = 0

    mutating func succeeded(at now: MonotonicTime) { runningSince = now }

    /// Records a failure and returns the time until the next try.
    mutating func failed(at now: MonotonicTime) -> TimeInterval {
        if let runningSince, now - runningSince >= Self.trust { failures = 0 }
        runningSince = nil
        defer { failures += 1 }
        return .milliseconds(Int64(Self.pauses.pause(after: failures) * 1000))
    }
}
