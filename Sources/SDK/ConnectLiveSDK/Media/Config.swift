internal import PeerLoop
internal import RoomClient
internal import RoomProtocol

/// Settings of local media and of rooms.
public struct Config: Sendable {
    /// The media to publish.
    public var mediaOptions = LocalMediaOptions()
    /// How many videos can be received at first. At most `videoReceiverMaximumCount`.
    public var videoReceiverInitialCount = 9
    /// How many videos can be received. A server allows 20, or as many as `serve --max-receivers` says, 60 at most. An `onError` with
    /// 2021 reports that it grants fewer than these. Further subscriptions fail with 1322.
    public var videoReceiverMaximumCount = 20
    /// How many receivers are added when all are in use.
    public var videoReceiverGrowthRate = 1
    /// Whether to play remote audio on the loudspeaker, if there is one. It is decoded either way. (Linux)
    public var playsRemoteAudio = true
    /// STUN and TURN servers, at most 8 URLs. Without any, those of the environment (`CONNECTLIVE_TURN`) count, and
    /// otherwise those that the room's server names. An unusable one ends `connect` with `setting.invalid`. (Linux)
    public var iceServers: [IceServer] = []
    /// Whether media may go directly, or through TURN servers alone. Nil, the default, means the policy of the environment
    /// (`CONNECTLIVE_ICE_POLICY`), else `all`. (Linux)
    public var iceTransportPolicy: IceTransportPolicy?
    /// A PEM file with the authorities of `turns` servers that the room's server names. Nil means that of the
    /// environment (`CONNECTLIVE_TURN_CA`), else those of the system.
    package var namedServerAuthorities: String?

    /// For how many seconds a connected room tries to return when it has lost the server or media, until it ends. 120 by default;
    /// 0 ends it when the server or a session of media is lost. The time begins with the last media, or if there was none to send, with the loss of the server.
    ///
    /// Within the grace period of the server, 30 s unless configured, the room resumes and nobody sees this participant leave.
    /// After that, and after a restart of the server, the room joins again by itself. See `RoomDelegate.onReconnected`.
    public var reconnectSeconds = 120

    /// How often `RoomDelegate.onStat` comes, in seconds. 5 by default; 0 for never.
    public var qualityStatInterval: UInt = 5

    /// The size and rate at which `Room.requestScreenShare` shares a screen. (Linux)
    public var screenShare = ScreenShareOptions()

    /// Settings with the defaults of each.
    public init() {}

    var receivers: ReceiverPool {
        let maximum = max(0, videoReceiverMaximumCount)
        return ReceiverPool(
            initial: min(max(0, videoReceiverInitialCount), maximum), maximum: maximum,
            growth: max(1, videoReceiverGrowthRate))
    }

    var servers: Result<ICEServers, RoomError> { servers(with: TURNSettings()) }

    /// - Parameter environment: the servers and the policy of the environment.
    func servers(with environment: TURNSettings) -> Result<ICEServers, RoomError> {
        Result { () throws(RoomError) in
            var environment = environment
            environment.policy = iceTransportPolicy.flatMap { ICEPolicy(rawValue: $0.rawValue) }
            environment.authorities = namedServerAuthorities
            guard !iceServers.isEmpty else { return try environment.servers() }
            var all = ICEServers(policy: try environment.effectivePolicy())
            for server in iceServers {
                var settings = TURNSettings(environment: [:])
                settings.urls = server.urls
                (settings.user, settings.password) = (server.name, server.credential)
                settings.authorities = server.certificateAuthorities
                settings.credentialAdvice = "Set its name and credential"
                all.servers += try settings.servers().servers
            }
            guard all.servers.count <= ICEServer.limit else {
                throw RoomError(.settingInvalid, "The ICE servers have more than \(ICEServer.limit) URLs. Name fewer.")
            }
            return all
        }
    }
}
