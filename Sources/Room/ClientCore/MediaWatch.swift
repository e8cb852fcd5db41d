internal import RTP

/// Whether media flows between this client and the server, as the user is told. It is told the time.
struct MediaWatch {
    /// A server that gets media reports on it many times a second, and one that sends media is heard as often.
    static let patience = TimeInterval.milliseconds(2500)
    /// A pause of this length that is over before it was told is told afterwards.
    static let brief = TimeInterval.seconds(2)
    /// Frames of a stream that flows have been sent by the next call, twice a second.
    private static let sampling = TimeInterval.seconds(1)

    enum Change: Equatable {
        case interrupted(isOutgoing: Bool, TimeInterval)
        /// Media flows again. The interruption was told, unless it was shorter than `patience`.
        case restored(TimeInterval, isOutgoing: Bool)
    }

    /// Since when nothing was heard. Nil while media flows, and before an interruption is told.
    private(set) var since: MonotonicTime?
    private(set) var isOutgoing = false
    /// When the server last reported media, and how many frames had been sent by then.
    private var answered = (at: MonotonicTime.zero, frames: 0)
    /// Since when frames have been sent without a word of the server.
    private var unanswered: MonotonicTime?
    /// When the server was last heard, and whether media has been missing since then.
    private var arrived = (at: MonotonicTime.zero, isStopped: false)

    /// - Parameters:
    ///   - up: when the server last reported media, and the frames sent so far. Nil without an up session
    ///   - down: when the server was last heard on the down session, and whether its media has stopped since. Nil if it has
    ///     nothing to send
    mutating func update(
        up: (at: MonotonicTime, frames: Int)?, down: (at: MonotonicTime, isStopped: Bool)?, now: MonotonicTime
    ) -> Change? {
        let pauses = [(true, pause(of: up, now: now)), (false, pause(of: down))]
        let isUpGone = silenceOfServer.map { now - $0 >= Self.patience } ?? false
        let isDownGone = arrived.isStopped && now - arrived.at >= Self.patience
        guard isUpGone || isDownGone else {
            if let since {
                self.since = nil
                return .restored(now - since, isOutgoing: isOutgoing)
            }
            let longest = pauses.max { $0.1 < $1.1 }
            guard let longest, longest.1 >= Self.brief else { return nil }
            return .restored(longest.1, isOutgoing: longest.0)
        }
        guard since == nil else { return nil }
        let heard = isUpGone ? silenceOfServer ?? now : arrived.at
        (since, isOutgoing) = (heard, isUpGone)
        return .interrupted(isOutgoing: isUpGone, now - heard)
    }

    /// Since when the server has not reported media that is sent.
    private var silenceOfServer: MonotonicTime? {
        unanswered.map { $0 - answered.at > Self.sampling ? $0 : answered.at }
    }

    /// The length of the pause of outgoing media that is over since the last call.
    private mutating func pause(of up: (at: MonotonicTime, frames: Int)?, now: MonotonicTime) -> TimeInterval {
        guard let up else {
            (answered, unanswered) = ((.zero, 0), nil)
            return .zero
        }
        guard up.at == answered.at, up.frames >= answered.frames else {
            defer { (answered, unanswered) = (up, nil) }
            return silenceOfServer.map { up.at - $0 } ?? .zero
        }
        // A server to which nothing is sent may report seldom.
        if up.frames > answered.frames { unanswered = unanswered ?? now }
        return .zero
    }

    /// The length of the pause of incoming media that is over since the last call.
    private mutating func pause(of down: (at: MonotonicTime, isStopped: Bool)?) -> TimeInterval {
        guard let down else {
            arrived.isStopped = false
            return .zero
        }
        defer { arrived = down }
        return arrived.isStopped && down.at > arrived.at ? down.at - arrived.at : .zero
    }
}
