import PeerLoop
import RTP
import RoomProtocol
import Testing

@testable import ClientCore

struct NamedServerTests {
    @Test func `four usable URLs of a server's list count, with the server as their origin`() {
        let list = [
            ICEServerInfo(urls: ["http://a", "turn:b", "turns:c", "x:y"], username: "u", credential: "p"),
            ICEServerInfo(urls: ["turn:without-a-user"]),
            ICEServerInfo(urls: ["stun:d", "stun:e", "stun:f"]),
        ]
        let servers = ICEServers(list, namedByEndAt: "203.0.113.7", policy: .relay, authorities: "/ca.pem")
        #expect(servers.servers.map(\.host) == ["b", "c", "d", "e"])
        #expect(servers.servers.allSatisfy { $0.origin == .named(byEndAt: "203.0.113.7") })
        #expect(servers.servers.allSatisfy { $0.authorities == "/ca.pem" })
        #expect(servers.policy == .relay)
    }

    @Test func `a huge list is cut`() {
        let list = Array(repeating: ICEServerInfo(urls: Array(repeating: "stun:a", count: 50)), count: 50)
        #expect(ICEServers(list, namedByEndAt: nil, policy: .all).servers.count == 4)
    }

    @Test func `a session gets more time if a TURN server is known, because the way through it takes more round trips`()
        throws
    {
        var request = PeerRequest(session: .down, role: .controlled, cname: "c", seed: 1)
        #expect(request.connectTimeout == .seconds(8))
        request.servers = ICEServers([try ICEServer(url: "stun:a")])
        #expect(request.connectTimeout == .seconds(8))
        request.servers = ICEServers([try ICEServer(url: "turn:a", username: "u", credential: "p")])
        #expect(request.connectTimeout == .seconds(15))
    }
}
