import PeerIO
import PeerLoop
import PeerSession
import RTP
import RoomProtocol

@testable import ClientCore

/// A path without sockets, whose events are those that the test reports.
final class StillPath: PeerPath {
    let ufrag = "abcd"
    let password = "abcdefghijklmnopqrstuv"
    let isLite = false
    let consent = TimeInterval.seconds(50)
    let selectedPair: (local: String, remote: String)? = nil
    let servers: ICEServers
    let events: (ICEEvent) -> Void
    private let loop: Loop

    init(_ loop: Loop, _ servers: ICEServers, _ events: @escaping (ICEEvent) -> Void) {
        (self.loop, self.servers, self.events) = (loop, servers, events)
    }

    func gather() throws(TransportError) {}
    func setRemote(ufrag: String, password: String) -> Bool { true }
    /// As a socket whose network is away.
    func send(_ fill: (inout DatagramBatch) -> Void) -> (sent: Int, refused: Int) { loop.refuse(fill) }
    func close() {}
}

extension Peer {
    /// A peer on a path of the test.
    static func still(
        on loop: Loop, _ certificate: Certificate, connectTimeout: TimeInterval, servers: ICEServers,
        makePath: @escaping (ICEServers, @escaping (ICEEvent) -> Void) throws(TransportError) -> StillPath
    ) throws(TransportError) -> Peer {
        let session = PeerSession(
            dtls: try OpenSSLDTLS(certificate: certificate),
            configuration: PeerSessionConfiguration(cname: "client", seed: 1), scratch: loop.sessionScratch,
            makeSRTP: { try OpenSSLSRTP(keys: &$0) })
        return try Peer(loop: loop, session: session, connectTimeout: connectTimeout, servers: servers) {
            servers, events, _ throws(TransportError) in try makePath(servers, events)
        }
    }
}

/// A client on a loop that the test moves. Its peers have no sockets.
final class SteppedClient {
    let loop = Loop(now: MonotonicTime(nanoseconds: 1_000_000_000_000))
    let client: Client
    private let peers = Peers()

    private final class Peers { var all: [Peer] = [] }

    init() throws {
        let (certificate, loop, peers) = (try Certificate(), loop, peers)
        client = try Client(loop, mayReturn: true) { request throws(TransportError) in
            let peer = try Peer.still(
                on: loop, certificate, connectTimeout: .seconds(1000), servers: request.servers
            ) { servers, events throws(TransportError) in StillPath(loop, servers, events) }
            peers.all.append(peer)
            return peer
        }
    }

    /// The server offers the down session, whose peer is secured.
    func secureDownSession() throws {
        client.hear(try downOffer(1, revision: 1))
        peers.all.last?.onEvent?(.secured(.aeadAES128GCM))
    }

    func advance(by time: TimeInterval) {
        let end = loop.now + time
        while loop.nextTimer <= end {
            loop.now = max(loop.now, loop.nextTimer)
            while loop.fireNextTimer() {}
            loop.endTurn()
        }
        loop.now = end
    }
}
