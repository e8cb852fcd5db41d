import PeerLoop
import RTP
import TestSupport
import Testing

@testable import connectlive

@Suite struct NetworkFlagsTests {
    @Test func `a TURN server that refuses the password is named although the call works without it`() async throws {
        let servers = try ["udp", "tcp"].map {
            try ICEServer(url: "turn:127.0.0.1:9?transport=\($0)", username: "ada", credential: "wrong")
        }
        let (said, tried) = (Collected<String>(), Collected<String>())
        NetworkFlags.tryRelays(
            of: ICEServers(servers),
            allocate: { server in
                tried.append(server.url)
                let code = server.url.hasSuffix("udp") ? "turn.unauthorized" : "turn.unreachable"
                throw TransportError(code: code, message: "The TURN server refuses the password.")
            }, say: { said.append($0) })
        #expect(await eventually { tried.all.count == 2 && !said.all.isEmpty })
        #expect(
            said.all == [
                "The TURN server refuses the password. (turn.unauthorized) The call goes on without this server."
            ])
    }
}
