package import ClientCore
package import PeerLoop
package import RTP
package import RoomProtocol

/// Options of a room connection.
package struct RoomOptions: Sendable {
    package var receivers: ReceiverPool
    /// Returns the destination of an audio stream that the server assigned, by participant and stream. Nil ignores it.
    /// Called on the loop.
    package var sound: @Sendable (_ participant: String, _ stream: Int) -> StreamDestination?
    /// From `connect` to the secured down session.
    package var connectDeadline = ConnectionOptions.standardDeadline
    /// STUN and TURN servers, or the reason why they cannot be used. Without any, those that the server names. By default
    /// those of the environment.
    package var servers: Result<ICEServers, RoomError>
    /// For how long the connection tries to return after the server is lost. Zero ends it at once.
    package var returnTimeout = ConnectionOptions.standardReturnTimeout
    /// How often `RoomEvent.statistics` comes, in seconds. Zero for never.
    package var statisticsSeconds = 0
    /// Likewise. At most a million seconds.
    package var statisticsInterval: TimeInterval { .seconds(Int64(min(max(0, statisticsSeconds), 1_000_000))) }
    /// Loss at the sockets of the up and the down session, for tests of bad networks.
    package var impairment: LinkImpairment?

    /// - Parameter playsSound: whether to play remote audio. It is decoded and measured either way.
    package init(
        receivers: ReceiverPool = ReceiverPool(), playsSound: Bool = true, impairment: LinkImpairment? = nil,
        returnTimeoutSeconds: Int? = nil
    ) {
        self.receivers = receivers
        if let returnTimeoutSeconds { returnTimeout = .seconds(Int64(min(max(0, returnTimeoutSeconds), 1_000_000))) }
        sound = { _, _ in .sound(isAudible: playsSound) }
        self.impairment = impairment
        servers = Result { () throws(RoomError) in try TURNSettings().servers() }
    }
}

/// How to use a received stream.
package enum StreamDestination: Sendable {
    /// Video frames, decoded by the engine.
    case frames(FrameFanout)
    /// Audio, decoded in the process's one output and either played or only measured.
    case sound(isAudible: Bool)
    /// Encoded packets.
    case packets(any IncomingSink & Sendable)
}
