import PeerLoop
import RTP
import Testing

struct ICEServerTests {
    private func read(_ url: String) -> ICEServer? { try? ICEServer(url: url, username: "u", credential: "p") }

    @Test func `URLs of STUN and TURN servers are read, with their usual ports`() throws {
        let cases: [(String, ICEServer.Kind, String, UInt16)] = [
            ("stun:stun.example.org", .stun, "stun.example.org", 3478),
            ("turn:turn.example.org", .turn(.udp), "turn.example.org", 3478),
            ("turn:203.0.113.7:80?transport=udp", .turn(.udp), "203.0.113.7", 80),
            ("TURN:turn.example.org:443?transport=TCP", .turn(.tcp), "turn.example.org", 443),
            ("turns:turn.example.org", .turn(.tls), "turn.example.org", 5349),
            ("turns:turn.example.org:443?transport=tcp", .turn(.tls), "turn.example.org", 443),
            ("turn:[2001:db8::1]:3479", .turn(.udp), "2001:db8::1", 3479),
            ("turn:[2001:db8::1]", .turn(.udp), "2001:db8::1", 3478),
        ]
        for (url, kind, host, port) in cases {
            let server = try #require(read(url), "\(url)")
            #expect(server.kind == kind && server.host == host && server.port == port, "\(url)")
        }
    }

    @Test(arguments: [
        "", "turn", "turn:", "turn::3478", "http://turn.example.org", "turn://turn.example.org", "turn:a:0",
        "turn:a:65536",
        "turn:a:b", "turn:a:+1", "turn:a b", "turn:a\r\nb", "turn:user@host", "turn:a?transport=sctp",
        "stun:a?transport=udp",
        "turns:a?transport=udp", "turn:2001:db8::1", "turn:[2001:db8::1", "turn:[::1]x", "turn:a/b", "turn:é",
        "stuns:a",
        "turn:" + String(repeating: "a", count: 254), "turn:a?" + String(repeating: "a", count: 600),
    ])
    func `other texts are refused with a code and the form to write`(url: String) {
        #expect {
            _ = try ICEServer(url: url, username: "u", credential: "p")
        } throws: {
            let error = $0 as? TransportError
            return error?.code == "transport.ice-server" && error?.message.contains("turn:HOST:PORT") == true
        }
    }

    @Test func `a TURN server needs a user and a password, and a STUN server neither`() {
        #expect(throws: TransportError.self) { try ICEServer(url: "turn:a") }
        #expect(throws: TransportError.self) { try ICEServer(url: "turn:a", username: "u\0", credential: "p") }
        #expect(throws: Never.self) { try ICEServer(url: "stun:a") }
    }
}
