import RTP
import Testing
import TestSupport

@testable import ICELite

/// Two agents that share a port, in one process. Either may receive any datagram.
@Suite struct SharedPortTests {
    private let first = server(at: 0)
    private let second = server(at: 1)
    private let pair = AddressPair(remote: peer(1), local: QuickServer.address)

    private static func server(at place: Int) -> QuickServer {
        let server = QuickServer()
        server.agent = ICELiteAgent(place: place, of: 2)
        return server
    }

    /// Ufrags of the two agents: A is place 0, and B is place 1.
    private func check(_ ufrag: String, nominates: Bool = true) -> QuickCheck {
        QuickCheck(username: "\(ufrag):x", nominates: nominates)
    }

    private func lease(_ pair: AddressPair, to other: Int) -> Bool {
        first.agent.lease(pair, to: other, now: first.now)
    }

    @Test func `a check for another agent's session is that agent's, whoever receives it`() throws {
        let session = try #require(second.add("Bbbb"))
        #expect(first.receive(check("Bbbb"), from: peer(1)) == .elsewhere(1))
        #expect(first.answer.isEmpty)
        #expect(second.receive(check("Bbbb"), from: peer(1)) == .check(session, selected: true))
        #expect(second.receive(check("Axxx"), from: peer(1)) == .elsewhere(0))
    }

    @Test func `a check for no agent of the port is ignored`() {
        for ufrag in ["Axxx", "Cxxx", "/xxx", "-xxx", ""] {
            #expect(first.receive(check(ufrag), from: peer(1)) == .ignored(.unknownUfrag))
        }
        #expect(QuickServer().receive(check("Bxxx"), from: peer(1)) == .ignored(.unknownUfrag))
    }

    @Test func `media is the other agent's once that agent has answered a check`() {
        #expect(first.receive(hello, from: peer(1)) == .ignored(.unknownAddress))
        #expect(lease(pair, to: 1))
        #expect(first.receive(hello, from: peer(1)) == .elsewhere(1))
        #expect(first.agent.pairCount == 0)
    }

    @Test func `a lease ends with the consent unless checks renew it`() {
        _ = lease(pair, to: 1)
        first.now = first.now + .seconds(29)
        _ = lease(pair, to: 1)
        first.now = first.now + .seconds(29)
        #expect(first.receive(hello, from: peer(1)) == .elsewhere(1))
        first.now = first.now + .seconds(1)
        #expect(first.receive(hello, from: peer(1)) == .ignored(.unknownAddress))
    }

    @Test func `one agent leases a limited number of pairs, and others again when those have expired`() {
        func pair(_ index: Int) -> AddressPair {
            AddressPair(
                remote: TransportAddress(ipv4: UInt32(0x0a00_0000 + index), port: 5000), local: QuickServer.address)
        }
        #expect((0..<20_000).count { lease(pair($0), to: 1) } == 16_384)
        #expect(lease(pair(0), to: 1))
        first.now = first.now + .seconds(31)
        #expect((20_000..<21_000).allSatisfy { lease(pair($0), to: 1) })
    }

    @Test func `no session of one agent takes over the address of a session of another`() throws {
        let session = try #require(first.add("Aaaa"))
        _ = first.receive(check("Aaaa"), from: peer(1))
        #expect(!lease(pair, to: 1))
        #expect(first.receive(hello, from: peer(1)) == .media(session))
        #expect(first.agent.count(of: .addressInUse) == 1)

        let leased = AddressPair(remote: peer(2), local: QuickServer.address)
        #expect(lease(leased, to: 1))
        #expect(first.receive(check("Aaaa"), from: peer(2)) == .ignored(.addressInUse))
        #expect(first.receive(hello, from: peer(2)) == .elsewhere(1))
        // Its owner checks it no more.
        first.now = first.now + ICELiteAgent<QuickKey>.leaseHold
        #expect(first.receive(check("Aaaa"), from: peer(2)) == .check(session, selected: true))
        #expect(first.receive(hello, from: peer(2)) == .media(session))
    }

    @Test func `a third agent's lease waits until the second has checked no more`() {
        first.agent = ICELiteAgent(place: 0, of: 3)
        _ = lease(pair, to: 1)
        #expect(!lease(pair, to: 2))
        first.now = first.now + ICELiteAgent<QuickKey>.leaseHold
        #expect(lease(pair, to: 2))
        #expect(first.receive(hello, from: peer(1)) == .elsewhere(2))
    }

    @Test func `an address that a session checked and did not select can be leased`() throws {
        let session = try #require(first.add("Aaaa"))
        _ = first.receive(check("Aaaa", nominates: false), from: peer(1))
        #expect(first.agent.pairCount == 1)
        #expect(lease(pair, to: 1))
        #expect(first.agent.pairCount == 0)
        first.agent.remove(session)
        #expect(first.receive(hello, from: peer(1)) == .elsewhere(1))
    }

    @Test func `expired leases are forgotten, however many pairs are seen`() {
        var table = PairTable(term: .seconds(30))
        var now = MonotonicTime.zero + .seconds(1000)
        for port in 0..<UInt16(10_000) {
            now = now + .milliseconds(100)
            _ = table.lease(AddressPair(remote: peer(1, port: port), local: QuickServer.address), to: 1, now: now)
        }
        // 300 are present at a time.
        #expect(table.leases <= 2 * 300 + 1)
        #expect(table.sessionPairs == 0)
    }

    @Test func `random credentials name their agent`() {
        var random = Seeded(1)
        let places = (0..<ICECredentials.places).map { ICECredentials(using: &random, at: $0).ufrag.utf8.first }
        #expect(places.map { $0.flatMap(ICECredentials.place) } == Array(0..<64))
    }
}
