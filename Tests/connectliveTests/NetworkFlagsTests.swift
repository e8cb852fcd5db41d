import RTP
import TestSupport
import Testing

@testable import connectlive

@Suite struct NetworkFlagsTests {
    @Test func `a TURN server that refuses the password is named although the call works without it`() async throws {
        var flags = try NetworkFlags.parse([])
        flags.urls = ["stun:127.0.0.1:9", "turn:127.0.0.1:9?transport=udp", "turn:127.0.0.1:9?transport=tcp"]
        flags.turnUser = "ada"
        let said = Collected<String>()
        let tried = Collected<String>()
        flags.tryRelays(
            { server in
                tried.append(server.url)
                let isUDP = tried.all.count == 1
                throw TransportError(
                    code: isUDP ? "turn.unauthorized" : "turn.unreachable",
                    message: "The TURN server refuses the password.")
            }, say: { said.append($0) })
        await eventually("both were tried") { tried.all.count == 2 }
        await eventually("one line") { said.all.count == 1 }
        #expect(
            said.all == [
                "The TURN server refuses the password. (turn.unauthorized) The call goes on without this server."
            ])
    }
}
