import MediaGraph

/// Keeps a node's capture times increasing. Receives the time.
struct CapturedTimes: Sendable {
    private var last: UInt64 = 0
    private var isReported = false

    /// The time to use: the stated one, or the arrival time if the stated one is not later than the previous one.
    /// `isNews` is true for the first replaced time.
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
