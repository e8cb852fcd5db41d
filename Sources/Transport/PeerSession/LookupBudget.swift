import RTP

/// How many sent packets a peer may have looked up. A NACK or a feedback names thousands of numbers in a few bytes, and each
/// lookup takes its time.
struct LookupBudget {
    /// At once.
    let most: Int
    let perSecond: Int64

    private var left: Int
    private var filledAt = MonotonicTime.zero

    /// For NACK. At once it allows more than a second of a video with a loss of all packets.
    static let repairs = LookupBudget(most: 1024, perSecond: 10_000)
    /// For transport-wide feedback. At once it allows all packets that are known, as after an outage, and as many again in the
    /// reports that follow. Then it allows 400 Mbit/s.
    static let feedback = LookupBudget(most: 2 * 8192, perSecond: 40_000)

    private init(most: Int, perSecond: Int64) {
        self.most = most
        self.perSecond = perSecond
        left = most
    }

    /// Returns how many of the wanted lookups are allowed.
    mutating func take(_ wanted: Int, now: MonotonicTime) -> Int {
        fill(now)
        let allowed = min(wanted, left)
        left -= allowed
        return allowed
    }

    /// Takes all of the wanted lookups or none. Returns whether they are allowed.
    mutating func takeAll(_ wanted: Int, now: MonotonicTime) -> Bool {
        fill(now)
        guard wanted <= left else { return false }
        left -= wanted
        return true
    }

    private mutating func fill(_ now: MonotonicTime) {
        if left < most {
            let elapsed = min((now - filledAt).nanoseconds, 1_000_000_000)
            let more = Int(elapsed * perSecond / 1_000_000_000)
            if more > 0 {
                left = min(most, left + more)
                filledAt = now
            }
        } else {
            filledAt = now
        }
    }
}
