import Testing

@testable import PeerIO
import PeerLoop

struct CandidateTests {
    @Test("a host candidate of browsers and of libnice is parsed, with or without a=")
    func good() throws {
        let browser = try CandidateAttribute(
            "candidate:842163049 1 udp 1677729535 203.0.113.7 46154 typ srflx raddr 0.0.0.0 rport 0 generation 0 "
                + "ufrag EsAw network-cost 999")
        #expect(browser.address == "203.0.113.7")
        #expect(browser.port == 46154)
        let own = try CandidateAttribute("a=candidate:1 1 UDP 2013266431 fd00::2 50000 typ host")
        #expect(own.address == "fd00::2")
        #expect(own.text == "candidate:1 1 udp 2013266431 fd00::2 50000 typ host")
        #expect(browser.text == "candidate:842163049 1 udp 1677729535 203.0.113.7 46154 typ srflx")
    }

    @Test(
        "unusable and forbidden candidates are refused with their reason",
        arguments: [
            ("", CandidateAttribute.Refusal.malformed),
            ("candidate:1 1 udp 1", .malformed),
            ("candidate:1 1 udp 1 example.org 50000 typ host", .malformed),
            ("candidate:1 1 udp 1 127.0.0.1 99999 typ host", .malformed),
            ("candidate:1 1 udp 99999999999 127.0.0.1 9 typ host", .malformed),
            ("candidate:1 1 udp 1 127.0.0.1 9 typ ghost", .malformed),
            ("candidate:1 1 udp 1 127.0.0.1\r\n 9 typ host", .malformed),
            ("candidate:1 1 udp 1 127.0.0.1 9 typ host " + String(repeating: "x", count: 600), .malformed),
            // Each space is a field to libnice, which then reads 169.254.169.254 and port 22.
            ("candidate:1 1 UDP  2852039166 22.1.1.1 5000 typ host x typ host", .malformed),
            ("candidate:1  1 udp 1 203.0.113.7 5000 typ host", .malformed),
            ("candidate:1 1 udp 1 203.0.113.7 5000 typ  host", .malformed),
            ("candidate:1 1 tcp 1 127.0.0.1 9 typ host tcptype active", .unsupported),
            ("candidate:1 2 udp 1 127.0.0.1 9 typ host", .unsupported),
            ("candidate:1 1 udp 1 0b9f4a60-1e3d-4a5c.local 9 typ host", .hidden),
            ("candidate:1 1 udp 1 127.0.0.1 0 typ host", .privileged),
            ("candidate:1 1 udp 1 0.0.0.0 5000 typ host", .unreachable),
            ("candidate:1 1 udp 1 239.1.2.3 5000 typ host", .unreachable),
            ("candidate:1 1 udp 1 255.255.255.255 5000 typ host", .unreachable),
            ("candidate:1 1 udp 1 ff02::1 5000 typ host", .unreachable),
            ("candidate:1 1 udp 1 :: 5000 typ host", .unreachable),
            ("candidate:1 1 udp 1 ::ffff:127.0.0.1 5000 typ host", .unreachable),
            ("candidate:1 1 udp 1 ::ffff:0:127.0.0.1 5000 typ host", .unreachable),
            ("candidate:1 1 udp 1 64:ff9b::7f00:1 5000 typ host", .unreachable),
            ("candidate:1 1 udp 1 64:ff9b::a9fe:a9fe 5000 typ host", .unreachable),
            ("candidate:1 1 udp 1 64:ff9b:1::cb00:7107 5000 typ host", .unreachable),
            ("candidate:1 1 udp 1 2002:a00:1::1 5000 typ host", .unreachable),
            ("candidate:1 1 udp 1 fec0::1 5000 typ host", .unreachable),
            ("candidate:1 1 udp 1 203.0.113.7 53 typ host", .privileged),
            ("candidate:1 1 udp 1 192.168.1.1 80 typ host", .privileged),
        ])
    func bad(text: String, reason: CandidateAttribute.Refusal) {
        #expect(throws: reason) { try CandidateAttribute(text) }
    }

    @Test("the spelling of an address does not matter")
    func spelling() throws {
        for text in ["2001:db8::1", "2001:DB8:0::1", "2001:0db8:0:0:0:0:0:1", "2001:db8::0.0.0.1"] {
            #expect(try CandidateAttribute("candidate:1 1 udp 1 \(text) 5000 typ host").address == "2001:db8::1")
        }
    }

    @Test("ports 80 and 443 are allowed at public addresses")
    func webPorts() throws {
        #expect(try CandidateAttribute("candidate:1 1 udp 1 203.0.113.7 443 typ relay").port == 443)
        #expect(try CandidateAttribute("candidate:1 1 udp 1 2001:db8::1 80 typ host").port == 80)
    }

    @Test(arguments: ["fe80::1%eth0", "fe80::1%25eth0", "10.0.0.1%lo"])
    func `an address with the zone of another machine is malformed`(address: String) {
        #expect(throws: CandidateAttribute.Refusal.malformed) {
            try CandidateAttribute("candidate:1 1 udp 1 \(address) 5000 typ host")
        }
    }

    @Test(
        "an address is tried only from within its scope",
        arguments: [
            ("203.0.113.7", "10.0.0.1", true), ("64:ff9b::cb00:7107", "10.0.0.1", true),
            ("2002:cb00:7107::1", "10.0.0.1", true), ("198.18.0.1", "203.0.113.9", false),
            ("192.0.0.2", "10.0.0.1", true),
            ("203.0.113.7", "127.0.0.1", true), ("2001:db8::1", "10.0.0.1", true),
            ("127.0.0.1", "127.0.0.1", true), ("127.8.8.8", "10.0.0.1", false), ("::1", "127.0.0.1", false),
            ("10.1.2.3", "192.168.0.7", true), ("172.16.0.1", "10.0.0.1", true), ("172.32.0.1", "203.0.113.9", true),
            ("100.64.0.1", "10.0.0.1", true), ("192.168.1.1", "203.0.113.9", false), ("10.1.2.3", "fd00::1", false),
            ("fd00::2", "fd00::1", true), ("fd00::2", "2001:db8::1", false),
            ("169.254.169.254", "10.0.0.1", false), ("169.254.169.254", "203.0.113.9", false),
            ("169.254.1.2", "169.254.3.4", true), ("fe80::1", "2001:db8::1", false), ("224.0.0.1", "10.0.0.1", false),
        ])
    func scopes(remote: String, own: String, isTried: Bool) throws {
        let scope = try #require(AddressScope(remote))
        #expect(scope.isOpen(to: [try #require(AddressScope(own))]) == isTried)
    }
}
