import RTP
import RoomFixtures
import RoomProtocol
import Testing

/// Session descriptions that are incompatible with one transport.
@Suite(.serialized) struct DescriptionRefusalTests {
    /// A changed offer of two videos; the second is new.
    private func second(_ change: (String) -> String) -> Publish {
        var publish = publication([.vp8, .vp8])
        publish.streams.removeFirst()
        publish.sdp = change(publish.sdp)
        return publish
    }

    @Test func `a later offer that changes the certificate is refused, and one may restart ICE`() async throws {
        try await withServer { server, grant in
            let (client, _) = try join(server, grant.accessToken)
            _ = try client.publish([.vp8], id: 2)
            let other = second { $0.replacing("sha-256 07:07", with: "sha-256 08:08") }
            #expect(try client.refusal(of: .publish(other), id: 3) == "1431")
            #expect(try client.refusal(of: .publish(second { $0 }), id: 4) == nil)
            // No stream is new.
            var restart = publication([.vp8, .vp8])
            restart.streams = []
            #expect(try client.refusal(of: .publish(restart), id: 5) == "1441")
            for id in 6...20 {
                var again = restart
                again.sdp = again.sdp.replacing("ice-ufrag:abcd", with: "ice-ufrag:efgh\(id)")
                let refusal = try client.refusal(of: .publish(again), id: id)
                #expect(refusal == (id < 16 ? nil : "server.too-many-requests"))
            }
        }
    }

    @Test func `an offer without BUNDLE or without rtcp-mux is refused`() async throws {
        try await withServer { server, grant in
            let (client, _) = try join(server, grant.accessToken)
            var publish = publication([.vp8, .opus])
            let sdp = publish.sdp
            publish.sdp = sdp.replacing("a=group:BUNDLE 0 1\r\n", with: "")
            #expect(try client.refusal(of: .publish(publish), id: 2) == "1431")
            publish.sdp = sdp.replacing("a=rtcp-mux\r\n", with: "")
            #expect(try client.refusal(of: .publish(publish), id: 3) == "1431")
            publish.sdp = sdp
            #expect(try client.refusal(of: .publish(publish), id: 4) == nil)
        }
    }

    @Test func `an answer without a DTLS role, or with an ICE restart of its own, is refused`() async throws {
        try await withServer { server, grant in
            let (client, _) = try join(server, grant.accessToken)
            let message = try client.message { if case .offer = $0.message { true } else { false } }
            guard case .offer(let offered) = message.message else { return }
            let offer = try SessionDescription(parsing: offered.sdp)
            func answer(_ setup: TransportDescription.Setup, ufrag: String = "abcd") -> ClientMessage {
                let transport = TransportDescription(
                    iceUfrag: ufrag, icePwd: "abcdefghijklmnopqrstuv",
                    fingerprints: [Fingerprint(algorithm: "sha-256", digest: Array(repeating: 7, count: 32))],
                    setup: setup)
                let sdp = DownDescription.answer(to: offer, sessionID: 2, transport: transport).serialized()
                return .answer(Description(session: .down, sdp: sdp, revision: offered.revision))
            }
            #expect(try client.refusal(of: answer(.actpass), id: 2) == "1433")
            client.sendMessage(answer(.active))
            #expect(try client.refusal(of: answer(.active, ufrag: "efgh"), id: 4) == "1433")
        }
    }
}
