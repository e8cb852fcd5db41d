internal import RTP

/// Whether media flows between this client and the server, as the user is told. It is told the time.
struct MediaWatch {
    /// A server that gets media reports on it many times a second, and one that sends media is heard as often.
    static let patience = TimeInterval.milliseconds(2500)
    /// Another way is looked for after this.
    static let endurance = TimeInterval.seconds(5)

    enum Change: Equatable {
        case interrupted(isOutgoing: Bool, TimeInterval)
        /// It has lasted for `endurance`.
        case lasting(isOutgoing: Bool)
        case restored(TimeInterval, isOutgoing: Bool)
    }

    /// Since when nothing was heard.
    private(set) var since: MonotonicTime?
    /// When the server was heard last, and how many frames had been sent by then.
    private var answered = (at: MonotonicTime.zero, frames: 0)
    /// Since when frames have been sent without a word of the server.
    private var unanswered: MonotonicTime?

    /// Since when the server reports no arrivals.
    private var blocked: MonotonicTime?
    private var (isKnownToLast, isOutgoing) = (false, false)

    /// - Parameters:
    ///   - up: when the server was heard last on the up session, and the frames sent so far. Nil without such a session
    ///   - isBlocked: whether the server reports no arrivals. It may be heard nevertheless
    ///   - down: when it was heard last on the down session, if that is silent although there is something to send
    mutating func update(
        up: (heard: MonotonicTime, frames: Int)?, isBlocked: Bool = false, down: MonotonicTime?, now: MonotonicTime
    ) -> Change? {
        var isUpGone = false
        if let up {
            if up.heard != answered.at || up.frames < answered.frames {
                answered = (up.heard, up.frames)
                unanswered = nil
            }
            // A server to which nothing is sent may report seldom.
            if up.frames > answered.frames { unanswered = unanswered ?? now }
            isUpGone = unanswered.map { now - max($0, up.heard) >= Self.patience } ?? false
        }
        blocked = isBlocked ? blocked ?? now : nil
        if let blocked, since != nil || now - blocked >= Self.patience { isUpGone = true }
        guard isUpGone || down != nil else {
            guard let since else { return nil }
            self.since = nil
            isKnownToLast = false
            return .restored(now - since, isOutgoing: isOutgoing)
        }
        if let since {
            guard !isKnownToLast, now - since >= Self.endurance else { return nil }
            isKnownToLast = true
            return .lasting(isOutgoing: isUpGone)
        }
        let heard = isUpGone ? min(up?.heard ?? now, blocked ?? now) : down ?? now
        (since, isOutgoing) = (heard, isUpGone)
        return .interrupted(isOutgoing: isUpGone, now - heard)
    }
}
