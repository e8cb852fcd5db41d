import PeerIO
import PeerLoop
import PeerSession
import RTP

@testable import ClientCore

extension UpSession {
    /// A client's up session without the rest of its connection.
    static func lone(on loop: EventLoop) throws -> UpSession {
        let peer = try Peer(
            loop: loop,
            configuration: PeerConfiguration(iceRole: .controlling, certificate: try Certificate(), cname: "client"))
        let environment = RoomEnvironment(
            seed: 0, makePeer: { _ in preconditionFailure("the peer exists") },
            wallClock: { NTPTime(unixNanoseconds: $0.nanoseconds) })
        return try UpSession(
            loop: loop, server: try ServerAddress("ws://127.0.0.1:1"), peer: peer, cname: "client",
            environment: environment, seed: 1)
    }
}
