@testable import ICELite
import RTP
import Testing
import TestSupport

@Suite struct AgentTests {
    private static let other = "abcdefghijabcdefghijab"

    @Test func `a check is answered with the address it came from`() throws {
        let server = QuickServer()
        let session = try #require(server.add())
        for remote in [peer(1), TransportAddress(ipv6: 0x2001_0db8 << 32, 1, port: 9)] {
            #expect(server.receive(QuickCheck(), from: remote) == .check(session, selected: false))
            let response = try #require(parse(server.answer))
            #expect(response.kind == .success && Response(server.answer)?.mappedAddress == remote)
            #expect(response.transaction == QuickCheck().transaction)
            #expect(response.isSigned(with: QuickKey(password: Array(QuickCheck.password.utf8)), in: server.answer))
            #expect(response.hasFingerprint(in: server.answer))
        }
        let mapped = TransportAddress(ipv6: 0, 0xffff_c000_0209, port: 1)
        #expect(server.receive(QuickCheck(), from: mapped) == .check(session, selected: false))
        #expect(Response(server.answer)?.mappedAddress?.ipv4 == 0xc000_0209)
    }

    @Test func `two sessions behind one address get their own media`() throws {
        let server = QuickServer()
        let first = try #require(server.add("aaaa"))
        let second = try #require(server.add("bbbb"))
        _ = server.receive(QuickCheck(username: "aaaa:x", nominates: true), from: peer(1, port: 1000))
        _ = server.receive(QuickCheck(username: "bbbb:x", nominates: true), from: peer(1, port: 1001))
        #expect(server.receive(hello, from: peer(1, port: 1000)) == .media(first))
        #expect(server.receive(hello, from: peer(1, port: 1001)) == .media(second))
        #expect(server.receive(hello, from: peer(1, port: 1002)) == .ignored(.unknownAddress))
    }

    @Test func `one remote address leads to two sessions over two local addresses`() throws {
        let server = QuickServer()
        let first = try #require(server.add("aaaa"))
        let second = try #require(server.add("bbbb"))
        let other = TransportAddress(ipv4: 0xc633_6402, port: 3478)
        _ = server.receive(QuickCheck(username: "aaaa:x", nominates: true), from: peer(1))
        _ = server.receive(QuickCheck(username: "bbbb:x", nominates: true), from: peer(1), to: other)
        #expect(server.receive(hello, from: peer(1)) == .media(first))
        #expect(server.receive(hello, from: peer(1), to: other) == .media(second))
        #expect(server.agent.path(of: second)?.pair.local == other)
    }

    @Test func `TCP and UDP from one address are different pairs`() throws {
        let server = QuickServer()
        let session = try #require(server.add())
        let stream = TransportAddress(ipv4: 0xc000_0201, port: 5000, transport: .tcp)
        _ = server.receive(QuickCheck(), from: stream)
        #expect(server.receive(hello, from: stream) == .media(session))
        #expect(server.receive(hello, from: peer(1)) == .ignored(.unknownAddress))
    }

    // MARK: Nomination

    @Test func `media is received from a checked pair, and sent on the nominated one only`() throws {
        let server = QuickServer()
        let session = try #require(server.add())
        _ = server.receive(QuickCheck(), from: peer(1))
        #expect(server.receive(hello, from: peer(1)) == .media(session))
        #expect(server.agent.path(of: session) == nil && server.agent.nextTimeout == .never)
        #expect(server.receive(QuickCheck(nominates: true), from: peer(1)) == .check(session, selected: true))
        #expect(server.remote(of: session) == peer(1))
        #expect(server.receive(QuickCheck(nominates: true), from: peer(1)) == .check(session, selected: false))
    }

    @Test func `the last nomination of a peer that chooses pairs counts, whatever its priority`() throws {
        let server = QuickServer()
        let session = try #require(server.add())
        _ = server.receive(QuickCheck(priority: 200), from: peer(1))
        _ = server.receive(QuickCheck(priority: 200, nominates: true), from: peer(1))
        _ = server.receive(QuickCheck(priority: 100), from: peer(2))
        #expect(server.remote(of: session) == peer(1))
        let moved = server.receive(QuickCheck(priority: 100, nominates: true), from: peer(2))
        #expect(moved == .check(session, selected: true))
        #expect(server.remote(of: session) == peer(2))
    }

    @Test func `the highest priority counts if every check nominates`() throws {
        let server = QuickServer()
        let session = try #require(server.add())
        for (host, priority) in [(1, 100), (3, 300), (2, 200), (1, 100)] as [(UInt8, UInt32)] {
            _ = server.receive(QuickCheck(priority: priority, nominates: true), from: peer(host))
        }
        #expect(server.remote(of: session) == peer(3))
        // Its checks stop, those of a lower pair go on.
        for _ in 0..<3 {
            #expect(server.remote(of: session) == peer(3))
            server.now = server.now + .seconds(2)
            _ = server.receive(QuickCheck(priority: 200, nominates: true), from: peer(2))
        }
        #expect(server.remote(of: session) == peer(2))
    }

    @Test func `a mapping that moves is followed at its next nomination`() throws {
        let server = QuickServer()
        let session = try #require(server.add())
        _ = server.receive(QuickCheck(nominates: true), from: peer(1, port: 1000))
        #expect(server.receive(hello, from: peer(1, port: 1001)) == .ignored(.unknownAddress))
        #expect(server.remote(of: session) == peer(1, port: 1000))
        _ = server.receive(QuickCheck(nominates: true), from: peer(1, port: 1001))
        #expect(server.remote(of: session) == peer(1, port: 1001))
    }

    @Test func `a controlled peer gets a role conflict, and becomes controlling`() throws {
        let server = QuickServer()
        let session = try #require(server.add())
        for tie in [0, 1, UInt64.max] {
            let check = QuickCheck(nominates: true, role: .controlled(tie))
            #expect(server.receive(check, from: peer(1)) == .check(session, selected: false))
            #expect(Response(server.answer)?.errorCode == 487)
        }
        #expect(server.agent.path(of: session) == nil)
        _ = server.receive(QuickCheck(nominates: true), from: peer(1))
        #expect(server.remote(of: session) == peer(1))
    }

    @Test func `unknown required attributes are refused, optional ones are not`() throws {
        let server = QuickServer()
        let session = try #require(server.add())
        _ = server.receive(QuickCheck(nominates: true, others: [0x7fff]), from: peer(1))
        #expect(Response(server.answer)?.errorCode == 420)
        #expect(server.agent.path(of: session) == nil)
        _ = server.receive(QuickCheck(nominates: true, others: [0xc057, 0x8000]), from: peer(1))
        #expect(server.remote(of: session) == peer(1))
    }

    @Test func `a nomination needs a priority and the controlling role, another check does not`() throws {
        let server = QuickServer()
        let session = try #require(server.add())
        for check in [QuickCheck(priority: nil, nominates: true), QuickCheck(nominates: true, role: nil)] {
            _ = server.receive(check, from: peer(1))
            #expect(Response(server.answer)?.errorCode == 400)
        }
        _ = server.receive(QuickCheck(priority: nil, role: nil), from: peer(1))
        #expect(parse(server.answer)?.kind == .success)
        #expect(server.agent.path(of: session) == nil)
    }

    // MARK: Sessions

    @Test func `a ufrag belongs to one session`() throws {
        let server = QuickServer()
        let first = try #require(server.add("aaaa"))
        let second = try #require(server.add("bbbb"))
        #expect(server.add("aaaa", password: Self.other) == nil)
        #expect(!server.restart(second, "aaaa") && !server.restart(first, "aaaa"))
        #expect(server.agent.count == 2)
        let check = QuickCheck(username: "aaaa:x", nominates: true)
        #expect(server.receive(check, from: peer(1)) == .check(first, selected: true))
        server.agent.remove(first)
        #expect(server.receive(check, from: peer(1)) == .ignored(.unknownUfrag))
        #expect(server.restart(second, "aaaa"))
    }

    @Test func `credentials that ICE does not allow are refused`() {
        let password = QuickCheck.password
        #expect(ICECredentials(ufrag: "abc", password: password) == nil)
        #expect(ICECredentials(ufrag: "abcdefghijklmnopq", password: password) == nil)
        #expect(ICECredentials(ufrag: "abcd", password: "tooshort") == nil)
        #expect(ICECredentials(ufrag: "abcd", password: String(repeating: "a", count: 65)) == nil)
        #expect(ICECredentials(ufrag: "ab:d", password: password) == nil)
        #expect(ICECredentials(ufrag: "abcdefghijklmnop", password: String(repeating: "/", count: 64)) != nil)
        var random = Seeded(1)
        let many = (0..<100).map { _ in ICECredentials(using: &random) }
        #expect(Set(many.map(\.ufrag)).count == 100 && Set(many.map(\.password)).count == 100)
        #expect(many.allSatisfy { ICECredentials(ufrag: $0.ufrag, password: $0.password) == $0 })
    }

    @Test func `the longest ufrag finds its session, and a part of it does not`() throws {
        let server = QuickServer()
        let session = try #require(server.add("abcdefghijklmnop"))
        for name in ["abcdefghijklmno:x", "bcdefghijklmnop:x", "abcdefghijklmnopq:x", ":x", "abcdefghijklmnop", ""] {
            #expect(server.receive(QuickCheck(username: name), from: peer(1)) == .ignored(.unknownUfrag))
        }
        let check = QuickCheck(username: "abcdefghijklmnop:x")
        #expect(server.receive(check, from: peer(1)) == .check(session, selected: false))
    }

    @Test func `a check of another peer is ignored once the peer's ufrag is known`() throws {
        let server = QuickServer()
        let session = try #require(server.add())
        #expect(server.receive(QuickCheck(), from: peer(1)) == .check(session, selected: false))
        server.agent.setRemoteUfrag("them", of: session)
        for name in ["serv:peer", "serv:", "serv:the", "serv:them2"] {
            #expect(server.receive(QuickCheck(username: name), from: peer(1)) == .ignored(.unknownPeer))
        }
        let check = QuickCheck(username: "serv:them")
        #expect(server.receive(check, from: peer(1)) == .check(session, selected: false))
    }

    @Test func `a removed session leaves nothing behind, and its handle means no other session`() throws {
        let server = QuickServer()
        let removed = try #require(server.add("aaaa"))
        #expect(server.restart(removed, "cccc"))
        for host in 1...5 as ClosedRange<UInt8> {
            _ = server.receive(QuickCheck(username: "aaaa:x", nominates: true), from: peer(host))
        }
        server.agent.remove(removed)
        #expect(server.agent.count == 0 && server.agent.pairCount == 0 && server.agent.nextTimeout == .never)
        #expect(server.receive(hello, from: peer(1)) == .ignored(.unknownAddress))
        #expect(server.receive(QuickCheck(username: "cccc:x"), from: peer(1)) == .ignored(.unknownUfrag))
        let next = try #require(server.add("aaaa"))
        #expect(next.index == removed.index && next != removed)
        _ = server.receive(QuickCheck(username: "aaaa:x", nominates: true), from: peer(1))
        server.agent.remove(removed)
        server.agent.setRemoteUfrag("none", of: removed)
        #expect(!server.restart(removed, "cccc") && server.agent.path(of: removed) == nil)
        #expect(server.agent.count == 1 && server.remote(of: next) == peer(1))
        #expect(server.receive(QuickCheck(username: "aaaa:x"), from: peer(1)) == .check(next, selected: false))
    }

    @Test func `a session has eight pairs at most, and keeps the selected one`() throws {
        let server = QuickServer()
        let session = try #require(server.add())
        _ = server.receive(QuickCheck(nominates: true), from: peer(1))
        for host in 2...100 as ClosedRange<UInt8> {
            server.now = server.now + .milliseconds(1)
            _ = server.receive(QuickCheck(), from: peer(host))
            #expect(server.agent.pairCount == min(Int(host), 8))
        }
        #expect(server.receive(hello, from: peer(1)) == .media(session))
        #expect(server.receive(hello, from: peer(94)) == .media(session))
        #expect(server.receive(hello, from: peer(93)) == .ignored(.unknownAddress))
    }

    @Test func `a session takes no selected pair of another one, and any other pair`() throws {
        let server = QuickServer()
        let first = try #require(server.add("aaaa"))
        let second = try #require(server.add("bbbb"))
        let claim = QuickCheck(username: "bbbb:x", nominates: true)
        _ = server.receive(QuickCheck(username: "aaaa:x", nominates: true), from: peer(1))
        _ = server.receive(QuickCheck(username: "aaaa:x"), from: peer(2))
        #expect(server.receive(claim, from: peer(1)) == .ignored(.addressInUse))
        #expect(server.answer.isEmpty && server.receive(hello, from: peer(1)) == .media(first))
        #expect(server.receive(claim, from: peer(2)) == .check(second, selected: true))
        #expect(server.receive(hello, from: peer(2)) == .media(second))
        // Once it has expired, the address is free.
        server.now = server.now + .seconds(20)
        _ = server.receive(claim, from: peer(2))
        server.now = server.now + .seconds(10)
        #expect(server.expired() == first)
        #expect(server.receive(claim, from: peer(1)) == .check(second, selected: true))
    }

    // MARK: Restart

    @Test func `the old pair carries on through a restart until a new one is nominated`() throws {
        let server = QuickServer()
        let session = try #require(server.add("aaaa"))
        server.agent.setRemoteUfrag("one", of: session)
        let old = QuickCheck(username: "aaaa:one", priority: 900, nominates: true)
        var new = QuickCheck(username: "bbbb:two", password: Self.other, priority: 1)
        _ = server.receive(old, from: peer(1))
        #expect(server.restart(session, "bbbb", password: Self.other))
        server.agent.setRemoteUfrag("two", of: session)

        #expect(server.receive(new, from: peer(2)) == .check(session, selected: false))
        #expect(server.receive(old, from: peer(1)) == .check(session, selected: false))
        #expect(server.agent.path(of: session)?.generation == 0)
        #expect(server.receive(hello, from: peer(1)) == .media(session))
        new.nominates = true
        #expect(server.receive(new, from: peer(2)) == .check(session, selected: true))
        #expect(server.remote(of: session) == peer(2) && server.agent.path(of: session)?.generation == 1)
        #expect(server.receive(old, from: peer(1)) == .ignored(.unknownUfrag))
        // Packets that were on their way still arrive.
        #expect(server.receive(hello, from: peer(1)) == .media(session))
    }

    @Test func `passwords of two generations are not mixed up`() throws {
        let server = QuickServer()
        let session = try #require(server.add("aaaa"))
        #expect(server.restart(session, "bbbb", password: Self.other))
        let mixed = [
            QuickCheck(username: "aaaa:x", password: Self.other), QuickCheck(username: "bbbb:x"),
        ]
        for check in mixed { #expect(server.receive(check, from: peer(1)) == .ignored(.unauthenticated)) }
    }

    @Test func `a second restart replaces an unfinished first one`() throws {
        let server = QuickServer()
        let session = try #require(server.add("aaaa"))
        _ = server.receive(QuickCheck(username: "aaaa:x", nominates: true), from: peer(1))
        for ufrag in ["bbbb", "cccc"] {
            #expect(server.restart(session, ufrag))
        }
        #expect(server.receive(QuickCheck(username: "bbbb:x"), from: peer(1)) == .ignored(.unknownUfrag))
        #expect(server.remote(of: session) == peer(1))
        _ = server.receive(QuickCheck(username: "cccc:x", nominates: true), from: peer(1))
        #expect(server.agent.path(of: session)?.generation == 1)
        #expect(server.receive(QuickCheck(username: "aaaa:x"), from: peer(1)) == .ignored(.unknownUfrag))
    }

    // MARK: Consent

    @Test func `a path expires 30 s after its last check, and the peer can nominate again`() throws {
        let server = QuickServer()
        let session = try #require(server.add())
        let start = server.now
        _ = server.receive(QuickCheck(nominates: true), from: peer(1))
        server.now = start + .seconds(20)
        // Neither media nor checks of another pair are consent.
        _ = server.receive(hello, from: peer(1))
        _ = server.receive(QuickCheck(), from: peer(2))
        #expect(server.agent.nextTimeout == start + .seconds(30))
        _ = server.receive(QuickCheck(), from: peer(1))
        #expect(server.agent.nextTimeout == start + .seconds(50))
        server.now = start + .seconds(50) + .milliseconds(-1)
        #expect(server.expired() == nil)
        server.now = start + .seconds(50)
        #expect(server.expired() == session)
        #expect(server.expired() == nil && server.agent.nextTimeout == .never)
        #expect(server.agent.path(of: session) == nil && server.agent.pairCount == 0)
        #expect(server.receive(hello, from: peer(1)) == .ignored(.unknownAddress))
        #expect(server.receive(QuickCheck(nominates: true), from: peer(1)) == .check(session, selected: true))
    }

    @Test func `unauthenticated checks are no consent`() throws {
        let server = QuickServer()
        _ = try #require(server.add())
        _ = server.receive(QuickCheck(nominates: true), from: peer(1))
        let timeout = server.agent.nextTimeout
        server.now = server.now + .seconds(10)
        _ = server.receive(QuickCheck(password: Self.other, nominates: true), from: peer(1))
        #expect(server.agent.nextTimeout == timeout)
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `sessions expire in the order of their last checks`(seed: UInt64) throws {
        var random = Seeded(seed)
        let server = QuickServer()
        var deadlines: [ICESessionID: MonotonicTime] = [:]
        var sessions: [(id: ICESessionID, name: String)] = []
        for step in 0..<400 {
            server.now = server.now + .milliseconds(.random(in: 0...900, using: &random))
            while let expired = server.expired() {
                let deadline = try #require(deadlines[expired])
                deadlines[expired] = nil
                #expect(deadline <= server.now && deadlines.values.allSatisfy { $0 >= deadline })
            }
            let next = deadlines.values.min() ?? .never
            #expect(server.agent.nextTimeout == next && next > server.now)
            switch Int.random(in: 0..<10, using: &random) {
            case 0:
                sessions.append((try #require(server.add("name\(step)")), "name\(step)"))
            case 1:
                guard let place = sessions.indices.randomElement(using: &random) else { continue }
                let removed = sessions.remove(at: place).id
                server.agent.remove(removed)
                deadlines[removed] = nil
            default:
                guard let place = sessions.indices.randomElement(using: &random) else { continue }
                let (id, name) = sessions[place]
                let address = peer(UInt8(id.index), port: 6000)
                _ = server.receive(QuickCheck(username: "\(name):x", nominates: true), from: address)
                deadlines[id] = server.now + .seconds(30)
            }
        }
        #expect(server.agent.count == sessions.count && server.agent.pairCount == deadlines.count)
    }

    // MARK: Cost

    @Test func `a datagram costs as much among 10,000 sessions as in a single one`() throws {
        /// The most accesses to the table of sessions for one datagram of a kind.
        func cost(sessions count: Int) throws -> [Int] {
            let server = QuickServer()
            for index in 0..<count {
                _ = try #require(server.add("user\(index)"))
                let address = TransportAddress(ipv4: 0x0a00_0000 + UInt32(index), port: 5000)
                _ = server.receive(QuickCheck(username: "user\(index):x", nominates: true), from: address)
            }
            var costs: [Int] = []
            func note(_ body: (Int) -> Void) {
                var most = 0
                for index in stride(from: 0, to: count, by: max(1, count / 50)) {
                    let before = server.agent.sessions.accesses
                    body(index)
                    most = max(most, server.agent.sessions.accesses - before)
                }
                costs.append(most)
            }
            func address(_ index: Int) -> TransportAddress {
                TransportAddress(ipv4: 0x0a00_0000 + UInt32(index), port: 5000)
            }
            let stranger = QuickCheck(username: "user0:x", password: Self.other).datagram
            note { _ = server.receive(hello, from: address($0)) }
            note { _ = server.receive(hello, from: peer(UInt8($0 % 250))) }
            note { _ in _ = server.receive(QuickCheck(username: "none:x"), from: peer(1)) }
            note { _ in _ = server.receive(stranger, from: peer(1)) }
            func check(_ index: Int) -> QuickCheck { QuickCheck(username: "user\(index):x", nominates: true) }
            note { _ = server.receive(check($0), from: address($0)) }
            note { _ = server.receive(check($0), from: peer(1, port: UInt16($0 + 1))) }
            server.now = server.agent.nextTimeout
            note { _ in _ = server.expired() }
            return costs
        }
        let (one, many) = (try cost(sessions: 3), try cost(sessions: 10_000))
        #expect(many.prefix(3) == [0, 0, 0])
        for (few, most) in zip(one, many) { #expect(most <= few + 4) }
        #expect(many.allSatisfy { $0 <= 40 }, "\(many)")
    }

    @Test func `a stranger costs no sum unless it knows a ufrag, and then one`() throws {
        // The sums are those of the session's key, so the agent's own key is reached through its record.
        let server = QuickServer()
        let session = try #require(server.add())
        let key = try #require(server.agent.sessions.record(of: session)?.current?.key)
        for check in [QuickCheck(username: "none:x"), QuickCheck(hasFingerprint: false)] {
            _ = server.receive(check, from: peer(1))
        }
        #expect(key.sums == 0)
        _ = server.receive(QuickCheck(password: Self.other), from: peer(1))
        #expect(key.sums == 1)
        _ = server.receive(QuickCheck(), from: peer(1))
        #expect(key.sums == 3)
    }
}
