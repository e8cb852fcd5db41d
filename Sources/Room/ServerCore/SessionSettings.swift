package import PeerLoop
internal import PeerSession
package import RTP
package import RoomProtocol

/// Shared by all sessions of a loop: how they make peers, send to many clients, and number things. On the loop only.
package final class SessionSettings {
    package let loop: Loop
    package static let cname = "server"
    /// Makes the media connection of a session.
    package let makePeer: (ICERole, ClientPlace) throws(RoomError) -> Peer
    /// The STUN and TURN servers for participants with an access token.
    let iceServers: (_ token: String) -> [ICEServerInfo]
    /// Sends one message to many connections of this server.
    let broadcast: (ServerMessage, [any ClientConnection]) -> Void
    /// For how long a participant stays without a connection. Zero if it leaves at once.
    let grace: TimeInterval
    /// How many video receivers a participant gets at most.
    let mostReceivers: Int
    /// All random numbers of the rooms, the secrets of participants among them.
    private var random: any RandomNumberGenerator
    private var usedSSRCs: UInt32
    /// Begins the recording of a stream. Nil if the server records nothing.
    var record: ((RecordedStream) throws(RoomError) -> any RecordingSink)?
    /// Packets for other parts of this loop's rooms that had no room in their pipes.
    var packetsNotPiped = 0

    /// - Parameters:
    ///   - random: unpredictable, except in simulations.
    ///   - grace: for how long a participant stays without a connection, in full seconds. Zero if it leaves at once.
    ///   - makePeer: throws if the server has no room for another peer.
    ///   - broadcast: nil sends to one connection after the other.
    package init(
        loop: Loop, random: any RandomNumberGenerator = SystemRandomNumberGenerator(),
        grace: TimeInterval = SessionSettings.defaultGrace, mostReceivers: Int = ReceiverPool().maximum,
        broadcast: ((ServerMessage, [any ClientConnection]) -> Void)? = nil,
        iceServers: @escaping (_ token: String) -> [ICEServerInfo] = { _ in [] },
        makePeer: @escaping (ICERole, ClientPlace) throws(RoomError) -> Peer
    ) {
        self.loop = loop
        self.random = random
        self.grace = grace
        self.mostReceivers = mostReceivers
        self.makePeer = makePeer
        self.iceServers = iceServers
        self.broadcast = broadcast ?? { message, connections in for each in connections { each.send(message) } }
        usedSSRCs = 0
        usedSSRCs = UInt32.random(in: 0x1000...0x7fff_ffff, using: &self.random)
    }

    /// A cut network, or the way from one network to another, takes seconds.
    package static let defaultGrace = TimeInterval.seconds(30)

    func nextSessionID() -> UInt64 { UInt64.random(in: 1...(1 << 62), using: &random) }

    /// 72 random bits, so that no two servers give the same id.
    func nextParticipantID() -> String { "p-" + text(12) }

    /// 132 random bits.
    func nextSecret() -> String { text(22) }

    private func text(_ length: Int) -> String {
        var text = ""
        for _ in 0..<length { text.unicodeScalars.append(Self.alphabet[Int.random(in: 0..<64, using: &random)]) }
        return text
    }

    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".unicodeScalars)

    func nextSequenceNumber() -> SequenceNumber { Splice.randomStart(using: &random) }

    /// Unique among the sessions of this loop.
    package func nextSSRC() -> SSRC {
        usedSSRCs &+= 1
        return SSRC(usedSSRCs)
    }

    func start(_ peer: Peer) throws(RoomError) {
        do throws(TransportError) {
            try peer.start()
        } catch {
            throw RoomError(.mediaConnectionFailed, "The server cannot open a media session: \(error.message)")
        }
    }

    func connect(_ peer: Peer, to transport: TransportDescription, as role: DTLSRole) throws(RoomError) {
        do throws(TransportError) {
            try peer.setRemote(transport, dtlsRole: role)
        } catch {
            throw RoomError(.mediaConnectionFailed, "The description's transport is unusable: \(error.message)")
        }
    }

    /// Whether a later description restarts ICE (RFC 8829, section 5.7). Throws if it begins another transport: a session has one.
    func restartsICE(
        _ new: TransportDescription, from old: TransportDescription, _ code: RoomError.Code
    ) throws(RoomError) -> Bool {
        guard Set(new.fingerprints) == Set(old.fingerprints) else {
            throw RoomError(
                code, "The description has another certificate than before. Join the room again.")
        }
        return new.iceUfrag != old.iceUfrag || new.icePwd != old.icePwd
    }

    func restart(_ peer: Peer, with remote: TransportDescription) throws(RoomError) {
        do throws(TransportError) {
            try peer.restart(with: remote)
        } catch {
            throw RoomError(.mediaConnectionFailed, "The description's transport is unusable: \(error.message)")
        }
    }

    func restart(_ peer: Peer) throws(RoomError) {
        do throws(TransportError) {
            try peer.restart()
        } catch {
            throw RoomError(.mediaConnectionFailed, "The server cannot open another path: \(error.message)")
        }
    }
}
