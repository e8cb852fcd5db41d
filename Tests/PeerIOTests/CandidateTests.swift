import Testing

@testable import PeerIO

struct CandidateTests {
    @Test("a host candidate of browsers and of libnice is read, with or without a=")
    func good() throws {
        let browser = try CandidateAttribute(
            "candidate:842163049 1 udp 1677729535 203.0.113.7 46154 typ srflx raddr 0.0.0.0 rport 0 generation 0 "
                + "ufrag EsAw network-cost 999")
        #expect(browser.address == "203.0.113.7")
        #expect(browser.port == 46154)
        let own = try CandidateAttribute("a=candidate:1 1 UDP 2013266431 fd00::2 50000 typ host")
        #expect(own.address == "fd00::2")
        #expect(own.text == "candidate:1 1 UDP 2013266431 fd00::2 50000 typ host")
    }

    @Test(
        "what cannot or must not be tried is refused with its reason",
        arguments: [
            ("", CandidateAttribute.Refusal.malformed),
            ("candidate:1 1 udp 1", .malformed),
            ("candidate:1 1 udp 1 example.org 50000 typ host", .malformed),
            ("candidate:1 1 udp 1 127.0.0.1 99999 typ host", .malformed),
            ("candidate:1 1 udp 99999999999 127.0.0.1 9 typ host", .malformed),
            ("candidate:1 1 udp 1 127.0.0.1 9 typ ghost", .malformed),
            ("candidate:1 1 udp 1 127.0.0.1\r\n 9 typ host", .malformed),
            ("candidate:1 1 udp 1 127.0.0.1 9 typ host " + String(repeating: "x", count: 600), .malformed),
            ("candidate:1 1 tcp 1 127.0.0.1 9 typ host tcptype active", .unsupported),
            ("candidate:1 2 udp 1 127.0.0.1 9 typ host", .unsupported),
            ("candidate:1 1 udp 1 0b9f4a60-1e3d-4a5c.local 9 typ host", .hidden),
            ("candidate:1 1 udp 1 127.0.0.1 0 typ host", .unreachable),
            ("candidate:1 1 udp 1 0.0.0.0 9 typ host", .unreachable),
            ("candidate:1 1 udp 1 239.1.2.3 9 typ host", .unreachable),
            ("candidate:1 1 udp 1 255.255.255.255 9 typ host", .unreachable),
            ("candidate:1 1 udp 1 ff02::1 9 typ host", .unreachable),
            ("candidate:1 1 udp 1 :: 9 typ host", .unreachable),
        ])
    func bad(text: String, reason: CandidateAttribute.Refusal) {
        #expect(throws: reason) { try CandidateAttribute(text) }
    }
}
