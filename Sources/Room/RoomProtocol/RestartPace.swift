package import RTP

/// Limits how often the other end restarts ICE, because each restart is a description, sends checks to other addresses, and
/// opens sockets unless media has one port.
package struct RestartPace: Sendable {
    package static let burst = 10

    private var pace = Pace(burst: burst, interval: .seconds(2))

    package init() {}

    /// Counts a restart. Throws if it comes too soon.
    package mutating func admit(now: MonotonicTime) throws(RoomError) {
        guard pace.admits(now: now) else {
            throw RoomError(
                .tooManyRequests,
                "ICE is restarted too often. Restart it at most \(Self.burst) times at once, then every 2 s.")
        }
    }
}
