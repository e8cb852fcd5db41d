package import RTP

/// Whether a client is still there, by its signalling and its media. It is told the time.
package struct ClientLiveness {
    package enum Verdict: Equatable {
        case alive
        /// Signalling is silent: `heardMedia` is needed to decide.
        case askForMedia
        case gone
    }

    /// How often the server asks for a sign of life. Without media, a network cut of 5 s lasts 8.2 s for signalling: up to
    /// one interval before it, and 1.2 s until TCP, whose pauses double from 0.2 s, tries again.
    package static let pingInterval = TimeInterval.seconds(2)
    /// How long a client may be silent, media included. A closed laptop or a cut network is detected within 10 s, and a
    /// network cut of 5 s does not exceed it.
    package static let silenceLimit = TimeInterval.seconds(9)
    /// How long signalling alone may be silent. After a cut, media returns immediately, but TCP doubles its pauses and
    /// may be silent as long again as the cut.
    package static let signallingSilence = TimeInterval.seconds(20)
    /// How long a connection may take to join.
    package static let joinDeadline = TimeInterval.seconds(10)

    private let opened: MonotonicTime
    package private(set) var lastHeard: MonotonicTime
    /// As last asked. It is asked for only while signalling is silent.
    private var lastMedia = MonotonicTime.zero

    package init(now: MonotonicTime) {
        opened = now
        lastHeard = now
    }

    /// Signalling arrived: a message, a ping or a pong.
    package mutating func heard(now: MonotonicTime) { lastHeard = max(lastHeard, now) }

    /// Media last arrived at this time.
    package mutating func heardMedia(at time: MonotonicTime) { lastMedia = max(lastMedia, time) }

    /// When the silence of both reaches its limit.
    package var silenceEnds: MonotonicTime { max(lastHeard, lastMedia) + Self.silenceLimit }

    package func verdict(now: MonotonicTime, hasJoined: Bool) -> Verdict {
        guard hasJoined || now - opened <= Self.joinDeadline, now - lastHeard < Self.signallingSilence else {
            return .gone
        }
        return now < silenceEnds ? .alive : .askForMedia
    }
}
