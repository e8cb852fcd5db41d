package import RTP

/// Limits how often the other end may ask for one thing: a burst, and then once per interval. It is told the time.
package struct RequestPace: Sendable {
    private var pace: Pace
    private let refusal: String

    /// - Parameter refusal: the sentences of the error, for a burst.
    package init(burst: Int, interval: TimeInterval, refusal: (_ burst: Int) -> String) {
        pace = Pace(burst: burst, interval: interval)
        self.refusal = refusal(burst)
    }

    /// Counts this many requests. Throws, and counts none, if they come too soon.
    package mutating func admit(_ requests: Int = 1, now: MonotonicTime) throws(RoomError) {
        guard pace.admits(requests, now: now) else { throw RoomError(.tooManyRequests, refusal) }
    }

    /// Of restarts of ICE, because each is a description, sends checks to other addresses, and opens sockets unless media has
    /// one port.
    package static let restarts = RequestPace(burst: 10, interval: .seconds(2)) {
        "ICE is restarted too often. Restart it at most \($0) times at once, then every 2 s."
    }
}
