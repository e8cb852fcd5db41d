import MediaGraph

/// Keeps the capture times of a node going forward. Is told the time.
struct CapturedTimes: Sendable {
    private var last: UInt64 = 0
    private var isReported = false

    /// The time to use: the stated one, or the time of arrival where the stated one is not later than the one before.
    /// `isNews` is true for the first time that was replaced.
    mutating func settle(_ stated: MediaTime, now: MediaTime) -> (time: MediaTime, isNews: Bool) {
        guard stated.nanoseconds <= last else {
            last = stated.nanoseconds
            return (stated, false)
        }
        last = max(now.nanoseconds, last + 1)
        defer { isReported = true }
        return (MediaTime(nanoseconds: last), !isReported)
    }
}
