package import MediaGraph
package import PeerLoop
package import RTP
package import RoomProtocol

/// Options of a `RoomConnection`.
package struct ConnectionOptions: Sendable {
    package var receivers: ReceiverPool
    /// From `begin` to the secured down session, without TURN servers.
    package var connectDeadline: TimeInterval
    /// STUN and TURN servers. Without any, those that the server names.
    package var servers: ICEServers
    /// Loss at the sockets of the up and the down session, for tests of bad networks.
    package var impairment: LinkImpairment?
    /// For how long the connection tries to return after the server is lost. Zero ends it at once.
    package var returnTimeout: TimeInterval
    /// How often `RoomEvent.statistics` comes. Zero for never.
    package var statisticsInterval = TimeInterval.zero

    package static let standardReturnTimeout = TimeInterval.seconds(120)

    /// Leaves a margin below the 10 s that a connection may take.
    package static let standardDeadline = TimeInterval.milliseconds(9500)
    /// How much longer a connection may take if a TURN server is known. The way through one has about five round trips more,
    /// and begins later.
    package static let allowanceForRelays = TimeInterval.seconds(7)

    package init(
        receivers: ReceiverPool = ReceiverPool(), connectDeadline: TimeInterval = standardDeadline,
        servers: ICEServers = ICEServers(), impairment: LinkImpairment? = nil,
        returnTimeout: TimeInterval = standardReturnTimeout
    ) {
        self.receivers = receivers
        self.servers = servers
        self.connectDeadline = connectDeadline
        self.impairment = impairment
        self.returnTimeout = returnTimeout
    }
}

/// Seeded loss of this client's datagrams except STUN, 0...1 in each direction.
package struct LinkImpairment: Sendable {
    package var seed: UInt64
    package var outgoingLoss: Double
    package var incomingLoss: Double

    package init(seed: UInt64, outgoingLoss: Double, incomingLoss: Double) {
        self.seed = seed
        self.outgoingLoss = outgoingLoss
        self.incomingLoss = incomingLoss
    }
}

/// The outside of a `RoomConnection`. Every closure is called on the connection's loop and returns immediately.
package struct RoomEnvironment {
    /// The seed of every random number of the connection: ids of session descriptions, SSRCs, first sequence numbers,
    /// and the seeds of its peers.
    package var seed: UInt64
    /// Creates a peer on the connection's loop. The connection starts and closes it.
    package var makePeer: (PeerRequest) throws(TransportError) -> Peer
    /// The wall-clock time at a point of the loop's time, for sender reports.
    package var wallClock: (MonotonicTime) -> NTPTime
    /// Returns the sinks of an audio stream that the server assigned. Nil ignores the stream.
    package var sound: (_ participant: String, _ stream: Int) -> SinkSource?
    /// Keeps the capture times of the published frames. Nil keeps none.
    package var captures: (any CaptureLog)?
    /// Opens another link to the server, with a token, and passes it on, on the loop. Nil ends the connection when its link is
    /// lost.
    package var openLink: LinkOpener?

    package init(
        seed: UInt64, makePeer: @escaping (PeerRequest) throws(TransportError) -> Peer,
        wallClock: @escaping (MonotonicTime) -> NTPTime,
        sound: @escaping (_ participant: String, _ stream: Int) -> SinkSource? = { _, _ in nil },
        captures: (any CaptureLog)? = nil,
        openLink: LinkOpener? = nil
    ) {
        self.seed = seed
        self.makePeer = makePeer
        self.wallClock = wallClock
        self.sound = sound
        self.captures = captures
        self.openLink = openLink
    }
}

/// The peer that a session needs.
package struct PeerRequest {
    package var session: SessionDirection
    package var role: ICERole
    /// Canonical name in RTCP (RFC 7022).
    package var cname: String
    /// The literal address of the server's signalling, which tells where media has to go. Nil if it is unknown.
    package var server: String?
    package var servers = ICEServers()
    package var impairment: Impairment?
    /// For the random numbers of a peer that has to be reproducible. Not for secrets.
    package var seed: UInt64
    /// For how long the peer waits for another path when it has lost its own.
    package var pathTimeout = standardPathTimeout

    package static let standardPathTimeout = TimeInterval.seconds(30)

    /// From the descriptions to a secured session. Joining may take 10 s in all, and longer with TURN servers.
    package var connectTimeout: TimeInterval {
        .seconds(8) + (servers.hasRelays ? ConnectionOptions.allowanceForRelays : .zero)
    }
}

extension ICEServers {
    /// The TURN servers.
    package var relays: [ICEServer] { servers.filter { $0.relayTransport != nil } }
    var hasRelays: Bool { !relays.isEmpty }
    /// Such as `192.0.2.1:3478 or turn.example.org:443`.
    var relayPlaces: String { relays.map(\.place).unique.joined(separator: " or ") }
}

extension [String] {
    /// Each once, in the same order.
    fileprivate var unique: Self { reduce(into: []) { if !$0.contains($1) { $0.append($1) } } }
}

/// The open signalling connection to the server, as a pipe of texts. Its other direction is
/// `RoomConnection.receive`.
package struct SignallingLink {
    /// Tells the link from other ones of the connection.
    package var number: Int
    /// The literal address of the server. Nil if it is unknown.
    package var remoteAddress: String?
    /// The literal address of this machine that the connection uses. Nil if it is unknown.
    package var localAddress: String?
    /// Queues a text. `SignallingSession` bounds the queue.
    package var send: (String) -> Void
    /// Sends the texts that wait, and closes.
    package var close: () -> Void
    /// Closes without a farewell, so that another link can resume.
    package var abandon: () -> Void
    /// Whether `.closed` is still to come. A link may close before the connection has it.
    package var isOpen: () -> Bool

    /// - Parameter abandon: nil means `close`.
    package init(
        number: Int = 0, remoteAddress: String?, localAddress: String? = nil, send: @escaping (String) -> Void,
        close: @escaping () -> Void, abandon: (() -> Void)? = nil, isOpen: @escaping () -> Bool = { true }
    ) {
        self.number = number
        self.remoteAddress = remoteAddress
        self.localAddress = localAddress
        self.send = send
        self.close = close
        self.abandon = abandon ?? close
        self.isOpen = isOpen
    }
}

/// Opens a link. The refused token is one that the server no longer accepts, so that another one is needed.
package typealias LinkOpener = (
    _ refusedToken: String?, _ then: @escaping (Result<OpenedLink, RoomError>) -> Void
) -> Void

/// An open link, and the access token to resume or join with.
package struct OpenedLink {
    package var link: SignallingLink
    package var token: String
    /// The server may have moved.
    package var address: ServerAddress

    package init(link: SignallingLink, token: String, address: ServerAddress) {
        self.link = link
        self.token = token
        self.address = address
    }
}

/// Input from the signalling connection.
package enum SignallingInput: Sendable {
    case text(String)
    /// Data without a message arrived, such as a WebSocket ping.
    case heard
    /// The last input. The error is nil if the cause is unknown.
    case closed(RoomError?)
}

/// A stream, unique among all servers.
package struct StreamKey: Hashable, Sendable {
    /// Stream ids are unique only within a server.
    package var server: ServerAddress
    package var stream: Int

    package init(server: ServerAddress, stream: Int) {
        self.server = server
        self.stream = stream
    }
}

/// Keeps the capture times of published frames, so that a receiver in the same process can measure their latency.
package protocol CaptureLog {
    /// A frame of the stream was sent.
    func record(_ key: StreamKey, rtpTimestamp: UInt32, captured: MediaTime)
    /// The stream ended.
    func remove(_ key: StreamKey)
}
