import ICELite
import RTP
import Testing
import TestSupport

/// A full agent in the controlling role, as far as a lite end sees it: sockets, checks, nomination and consent.
private struct FullAgent {
    enum Style: CaseIterable {
        /// One nomination after the checks; consent without USE-CANDIDATE (RFC 8445, section 8.1.1).
        case regular
        /// Like browsers: each check of the chosen pair nominates it.
        case regularRepeated
        /// Every check nominates (RFC 5245, section 8.1.1.2).
        case aggressive
    }

    /// A socket and a server address.
    struct Candidate {
        var socket: Int
        var local: TransportAddress
        var priority: UInt32
        var isOpen: Bool
        var attempts = 0
        var nextCheck: MonotonicTime
        var isValid = false
    }

    let session: ICESessionID
    let style: Style
    let start: MonotonicTime
    var ufrags: String
    /// Whether it believes to be controlling. It learns so from 487.
    var isControlling: Bool
    /// The addresses that the address translator gives to the sockets.
    var mappings: [TransportAddress]
    var candidates: [Candidate]
    var chosen: Int?
    var isNominated = false
    var nextConsent = MonotonicTime.never
    /// The candidate and whether it was nominated, by transaction.
    var sent: [UInt64: (candidate: Int, nominates: Bool)] = [:]

    /// The pair that the agent uses, as the server sees it.
    var pair: AddressPair? {
        guard isNominated, let chosen else { return nil }
        return AddressPair(remote: mappings[candidates[chosen].socket], local: candidates[chosen].local)
    }

    private func best() -> Int? {
        candidates.indices.filter { candidates[$0].isValid }.max { candidates[$0].priority < candidates[$1].priority }
    }

    /// The checks to send now: candidate and USE-CANDIDATE.
    mutating func due(_ now: MonotonicTime) -> [(candidate: Int, nominates: Bool)] {
        var checks: [(Int, Bool)] = []
        for index in candidates.indices where candidates[index].nextCheck <= now && !isNominated {
            candidates[index].attempts += 1
            candidates[index].nextCheck =
                candidates[index].attempts < 9 && !candidates[index].isValid ? now + .milliseconds(250) : .never
            if !candidates[index].isValid { checks.append((index, style == .aggressive)) }
        }
        // Aggressive agents are done with the best pair, others choose when the checks had their time.
        if !isNominated, now - start > .seconds(3), let best = best() {
            chosen = chosen ?? best
            if style == .aggressive { isNominated = true }
            nextConsent = min(nextConsent, now)
        }
        if let chosen, nextConsent <= now {
            checks.append((chosen, !isNominated || style != .regular))
            nextConsent = now + .milliseconds(400)
        }
        return checks
    }

    mutating func receive(_ answer: [UInt8], now: MonotonicTime) {
        guard let response = parse(answer), let (index, nominates) = sent[response.transaction.low] else { return }
        if Response(answer)?.errorCode == 487 {
            isControlling = true
            return
        }
        guard response.kind == .success else { return }
        candidates[index].isValid = true
        guard index == chosen else { return }
        if nominates { isNominated = true }
        if isNominated { nextConsent = now + .seconds(5) }
    }
}

/// A link with loss, delay, duplicates and therefore reordering, between peers and a server.
private struct Link {
    enum Packet {
        case toServer(peer: Int, remote: TransportAddress, local: TransportAddress, [UInt8])
        case toPeer(Int, [UInt8])
    }

    var random: Seeded
    let loss: Double
    private var flying: [(time: MonotonicTime, packet: Packet)] = []

    init(_ random: Seeded) {
        self.random = random
        loss = Double.random(in: 0...0.3, using: &self.random)
    }

    mutating func send(_ packet: Packet, now: MonotonicTime) {
        for _ in 0..<(Int.random(in: 0..<10, using: &random) == 0 ? 2 : 1)
        where Double.random(in: 0..<1, using: &random) >= loss {
            flying.append((now + .milliseconds(.random(in: 5...150, using: &random)), packet))
        }
    }

    mutating func arrived(_ now: MonotonicTime) -> [Packet] {
        let due = flying.filter { $0.time <= now }.sorted { $0.time < $1.time }
        flying.removeAll { $0.time <= now }
        return due.map(\.packet)
    }
}

@Suite struct ModelTests {
    private static let locals = [Server<QuickKey>.address, TransportAddress(ipv4: 0xc633_6402, port: 3478)]

    private func makePeer(
        _ number: Int, _ session: ICESessionID, ufrags: String, start: MonotonicTime, _ random: inout Seeded
    ) -> FullAgent {
        let style = FullAgent.Style.allCases.randomElement(using: &random) ?? .regular
        // Several peers share an address translator, so only the port is theirs.
        let sockets = Int.random(in: 1...3, using: &random)
        let mappings = (0..<sockets).map { peer(UInt8(number % 2), port: UInt16(1000 + number * 100 + $0)) }
        var candidates: [FullAgent.Candidate] = []
        for socket in 0..<sockets {
            for local in Self.locals {
                let priority = UInt32.random(in: 1...10_000, using: &random) << 8 | UInt32(candidates.count)
                candidates.append(
                    .init(
                        socket: socket, local: local, priority: priority,
                        isOpen: candidates.isEmpty || Int.random(in: 0..<3, using: &random) > 0,
                        nextCheck: start + .milliseconds(Int64(candidates.count) * 20)))
            }
        }
        candidates.shuffle(using: &random)
        return FullAgent(
            session: session, style: style, start: start, ufrags: ufrags,
            isControlling: Int.random(in: 0..<4, using: &random) > 0, mappings: mappings, candidates: candidates)
    }

    @Test(arguments: 0..<200 as Range<UInt64>)
    func `each of several peers reaches the pair that it nominated`(seed: UInt64) throws {
        var random = Seeded(seed)
        let server = QuickServer()
        var link = Link(random)
        var peers: [FullAgent] = []
        for number in 0..<Int.random(in: 1...5, using: &random) {
            let session = try #require(server.add("serv\(number)"))
            peers.append(makePeer(number, session, ufrags: "serv\(number):p", start: server.now, &random))
        }
        var transaction: UInt64 = 0
        var hasChanged = false
        let end = server.now + .seconds(60)
        while server.now < end {
            server.now = server.now + .milliseconds(10)
            for number in peers.indices {
                for (candidate, nominates) in peers[number].due(server.now) {
                    transaction += 1
                    let chosen = peers[number].candidates[candidate]
                    peers[number].sent[transaction] = (candidate, nominates)
                    guard chosen.isOpen else { continue }
                    let check = QuickCheck(
                        transaction: STUNTransaction(high: 0, low: transaction), username: peers[number].ufrags,
                        priority: chosen.priority, nominates: nominates && peers[number].isControlling,
                        role: peers[number].isControlling ? .controlling(1) : .controlled(1))
                    let remote = peers[number].mappings[chosen.socket]
                    link.send(
                        .toServer(peer: number, remote: remote, local: chosen.local, check.datagram), now: server.now)
                }
            }
            for packet in link.arrived(server.now) {
                switch packet {
                case .toServer(let number, let remote, let local, let datagram):
                    let received = server.receive(datagram, from: remote, to: local)
                    if case .check(let session, _) = received { #expect(session == peers[number].session) }
                    if !server.answer.isEmpty { link.send(.toPeer(number, server.answer), now: server.now) }
                case .toPeer(let number, let answer):
                    peers[number].receive(answer, now: server.now)
                }
            }
            #expect(server.expired() == nil)
            if !hasChanged, server.now > end + .seconds(-40) {
                hasChanged = true
                change(&peers, server, &random)
            }
        }
        for peer in peers {
            let path = server.agent.path(of: peer.session)
            #expect(path?.pair == peer.pair && path != nil, "\(peer.style)")
            guard let pair = path?.pair else { continue }
            #expect(server.receive(hello, from: pair.remote, to: pair.local) == .media(peer.session))
        }
        #expect(server.agent.pairCount <= 8 * peers.count)
        #expect(server.agent.count(of: .unauthenticated) == 0 && server.agent.count(of: .malformed) == 0)
    }

    /// Some peers restart ICE with new sockets, and the address translator moves others to new ports.
    private func change(_ peers: inout [FullAgent], _ server: QuickServer, _ random: inout Seeded) {
        for number in peers.indices {
            if Bool.random(using: &random) {
                #expect(server.restart(peers[number].session, "again\(number)"))
                peers[number] = makePeer(
                    number + 50, peers[number].session, ufrags: "again\(number):q", start: server.now, &random)
            } else if peers[number].style != .regular {
                // A peer without repeated nominations keeps its old path until it restarts.
                for socket in peers[number].mappings.indices {
                    peers[number].mappings[socket] = peer(9, port: UInt16(1000 + number * 100 + socket))
                }
            }
        }
    }
}
