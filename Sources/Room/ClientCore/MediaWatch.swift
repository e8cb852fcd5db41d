internal import RTP

/// Whether media flows between this client and the server, as the user is told. It is told the time.
struct MediaWatch {
    /// A server that gets media reports on it many times a second, and one that sends media is heard as often.
    static let patience = TimeInterval.milliseconds(2500)
    /// A server without media to forward sends a report every 2.5 to 7.5 s, of which one may be lost.
    static let idlePatience = TimeInterval.seconds(17)
    /// A pause of this length that is over before it was told is told afterwards.
    static let brief = TimeInterval.seconds(2)
    /// Frames of a stream that flows have been sent by the next call, twice a second.
    private static let sampling = TimeInterval.seconds(1)

    /// When the server last reported media, the frames sent so far, and when anything of the server last arrived.
    typealias Sent = (report: MonotonicTime, frames: Int, heard: MonotonicTime)
    /// When the server was last heard, and whether that was media.
    typealias Arrived = (at: MonotonicTime, isMedia: Bool)

    enum Change: Equatable {
        case interrupted(isOutgoing: Bool, TimeInterval)
        /// Media flows again. The interruption was told, unless it was shorter than `patience`.
        case restored(TimeInterval, isOutgoing: Bool)
    }

    /// Since when nothing was heard. Nil while media flows, and before an interruption is told.
    private(set) var since: MonotonicTime?
    private(set) var isOutgoing = false
    /// From when the time to give up counts. A silence of reports shows late that it is one, so it counts from then on. So does an
    /// interruption in which frames begin again.
    private(set) var limitBegan = MonotonicTime.zero
    /// Whether anybody misses media: frames are still sent, or none arrive.
    private(set) var isMissed = false
    /// When the server last reported media, and how many frames had been sent by then.
    private var answered = (at: MonotonicTime.zero, frames: 0)
    /// Since when frames have been sent without a word of the server.
    private var unanswered: MonotonicTime?
    /// The frames sent so far, and when the newest was noticed.
    private var newest = (frames: 0, at: MonotonicTime.zero)
    /// Since when the server has had something to send. Nil while it has not.
    private var expectedSince: MonotonicTime?
    /// When the server was last heard since then, and whether that was media.
    private var arrived: Arrived = (.zero, false)

    /// - Parameters:
    ///   - up: Nil without an up session
    ///   - down: Nil while the server has nothing to send
    mutating func update(up: Sent?, down: Arrived?, now: MonotonicTime) -> Change? {
        let pauses = [(true, pause(of: up, now: now)), (false, pause(of: down, now: now))]
        let isUpGone = silenceOfServer.map { now - $0 >= Self.patience } ?? false
        let patience = arrived.isMedia ? Self.patience : Self.idlePatience
        let isDownGone = expectedSince != nil && now - arrived.at >= patience
        isMissed = isDownGone || now - newest.at < Self.patience
        guard isUpGone || isDownGone else {
            if let since {
                self.since = nil
                return .restored(now - since, isOutgoing: isOutgoing)
            }
            let longest = pauses.max { $0.1 < $1.1 }
            guard let longest, longest.1 >= Self.brief else { return nil }
            return .restored(longest.1, isOutgoing: longest.0)
        }
        guard since == nil else {
            if !isDownGone, now - newest.at >= Self.idlePatience { limitBegan = now }
            return nil
        }
        let heard = isUpGone ? silenceOfServer ?? now : arrived.at
        (since, isOutgoing) = (heard, isUpGone)
        limitBegan = isUpGone || arrived.isMedia ? heard : now
        return .interrupted(isOutgoing: isUpGone, now - heard)
    }

    /// Since when the server has not reported media that is sent.
    private var silenceOfServer: MonotonicTime? {
        unanswered.map { $0 - answered.at > Self.sampling ? $0 : answered.at }
    }

    /// The length of the pause of outgoing media that is over since the last call.
    private mutating func pause(of up: Sent?, now: MonotonicTime) -> TimeInterval {
        guard let up else {
            (answered, unanswered) = ((.zero, 0), nil)
            return .zero
        }
        if up.frames != newest.frames { newest = (up.frames, now) }
        guard up.report == answered.at, up.frames >= answered.frames else {
            defer { (answered, unanswered) = ((up.report, up.frames), nil) }
            return silenceOfServer.map { up.report - $0 } ?? .zero
        }
        // Nobody reports frames that ended during an interruption. A sign of life shows that it is over.
        if up.heard > newest.at + Self.patience { (answered.frames, unanswered) = (up.frames, nil) }
        // A server to which nothing is sent may report seldom.
        if up.frames > answered.frames { unanswered = unanswered ?? now }
        return .zero
    }

    /// The length of the pause of incoming media that is over since the last call.
    private mutating func pause(of down: Arrived?, now: MonotonicTime) -> TimeInterval {
        guard let down else {
            (expectedSince, arrived) = (nil, (.zero, false))
            return .zero
        }
        // Silence before media was expected tells nothing.
        let since = expectedSince ?? now
        expectedSince = since
        defer { arrived = (max(down.at, since), down.isMedia && down.at >= since) }
        return arrived.isMedia && down.at > arrived.at ? down.at - arrived.at : .zero
    }
}
