import RTP

/// How many sent packets a peer may have looked up. A NACK names thousands of numbers in 1200 bytes, and each lookup
/// searches the history.
struct LookupBudget {
    /// At once: more than a second of a video with a loss of all packets.
    static let most = 1024
    static let perSecond: Int64 = 10_000

    private var left = Self.most
    private var filledAt = MonotonicTime.zero

    /// Returns how many of the wanted lookups are allowed.
    mutating func take(_ wanted: Int, now: MonotonicTime) -> Int {
        if left < Self.most {
            let elapsed = min((now - filledAt).nanoseconds, 1_000_000_000)
            let more = Int(elapsed * Self.perSecond / 1_000_000_000)
            if more > 0 {
                left = min(Self.most, left + more)
                filledAt = now
            }
        } else {
            filledAt = now
        }
        let allowed = min(wanted, left)
        left -= allowed
        return allowed
    }
}
