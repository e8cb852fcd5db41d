package import RTP
internal import RoomProtocol

/// Whether a client is still there, by its signalling and its media. It is told the time.
package struct ClientLiveness {
    package enum Verdict: Equatable {
        case alive
        /// Signalling is silent: `heardMedia` is needed to decide.
        case askForMedia
        case gone
    }

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
    package var silenceEnds: MonotonicTime { max(lastHeard, lastMedia) + SignsOfLife.silence }

    package func verdict(now: MonotonicTime, hasJoined: Bool) -> Verdict {
        guard hasJoined || now - opened <= Self.joinDeadline, now - lastHeard < SignsOfLife.signallingSilence else {
            return .gone
        }
        return now < silenceEnds ? .alive : .askForMedia
    }
}
