internal import RTP

/// Which layer a subscriber follows as the estimates of its link change: a lower one immediately, a higher one after a
/// pause. It is told the time.
struct LayerChoice {
    /// Without congestion, an estimate that is too low for the present layer has to last for so long.
    static let doubt = TimeInterval.seconds(2)
    /// After the link forced a lower layer.
    static let pause = TimeInterval.seconds(3)
    /// A higher layer that fails this soon makes the next attempt wait twice as long.
    static let trial = TimeInterval.seconds(15)
    static let longestPause = TimeInterval.seconds(60)

    private var doubtsSince: MonotonicTime?
    private var lastRise = MonotonicTime.zero
    private var wait = Self.pause
    private var risesAfter = MonotonicTime.zero

    /// The layer to follow, between the lowest one and the highest one that the view can use.
    ///
    /// - Parameters:
    ///   - fitting: the highest layer for which the link has room
    mutating func rank(
        from current: Int, fitting: Int, highest: Int, isCongested: Bool, now: MonotonicTime
    ) -> Int {
        guard current <= highest else {
            doubtsSince = nil
            return min(fitting, highest)
        }
        guard fitting < current else {
            doubtsSince = nil
            guard fitting > current, now >= risesAfter else { return current }
            lastRise = now
            return fitting
        }
        let since = doubtsSince ?? now
        doubtsSince = since
        guard isCongested || now - since >= Self.doubt else { return current }
        doubtsSince = nil
        let hasFailed = lastRise > .zero && now - lastRise < Self.trial
        wait = hasFailed ? min(wait + wait, Self.longestPause) : Self.pause
        risesAfter = now + wait
        return fitting
    }

    /// Without congestion for this long, the lowest layer is sent whole, whatever the estimate says.
    static let calm = TimeInterval.seconds(1)
    static let longestCalm = TimeInterval.seconds(16)
    private var calmSince: MonotonicTime?
    private var neededCalm = Self.calm
    private var isTrying = false

    /// Whether to send the whole lowest layer although the estimate is lower. After a collapse of the link, the estimate
    /// follows what is sent, and would stay low for long if frames were left out.
    mutating func triesLowest(isCongested: Bool, now: MonotonicTime) -> Bool {
        guard !isCongested else {
            if isTrying { neededCalm = min(neededCalm + neededCalm, Self.longestCalm) }
            (calmSince, isTrying) = (nil, false)
            return false
        }
        let since = calmSince ?? now
        calmSince = since
        isTrying = now - since >= neededCalm
        if now - since >= neededCalm + Self.trial { neededCalm = Self.calm }
        return isTrying
    }
}
