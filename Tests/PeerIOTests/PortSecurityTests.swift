import Glibc
import PeerSession
import RTP
import Testing
import TestSupport

@testable import PeerIO
import PeerLoop

/// Attacks on the media port of a server.
@Suite(.serialized)
struct PortSecurityTests {
    @Test("S1: a third host that floods the port with ClientHellos neither stops a call nor gets a response")
    func clientHelloRace() async throws {
        try await withPort { port, loop in
            let attacker = Attacker()
            let hello = try clientHello()
            let number = await onLoop(loop) { port.value.number }
            let certificate = try Certificate()
            for _ in 0..<5 {
                let call = try await begin(on: port) {
                    ($0.offererCertificate, $0.answererCertificate) = (certificate, certificate)
                }
                let before = await onLoop(loop) { port.value.statistics.ignored }
                // Before, during and after ICE and DTLS.
                var sent = 0
                let isSecured = await eventually {
                    for _ in 0..<20 { attacker.send(hello, to: number) }
                    sent += 20
                    return await onLoop(loop) {
                        call.offerer.value.securedAt != nil && call.answerer.value.securedAt != nil
                    }
                }
                #expect(isSecured)
                await call.sendVideo(20)
                #expect(await eventually { await call.videoReceived().count == 20 })
                // The handshake, 20 packets and a few reports: the port passed on none of the forged datagrams.
                let received = await onLoop(loop) { call.answerer.value.peer.statistics.datagramsReceived }
                #expect(received < 50)
                let wanted = before + sent
                #expect(await eventually { await onLoop(loop) { port.value.statistics.ignored } >= wanted })
                #expect(attacker.receive() == nil)
                await call.close()
            }
        }
    }

    @Test("S2: 100,000 SRTP packets with invalid tags from the peer's address are counted, and reported once a second")
    func badTags() async throws {
        try await withPort { port, loop in
            let path = Path()
            let call = try await begin(on: port) { $0.route = { path.route($0, ofOfferer: $1) } }
            try #require(await call.isSecured())
            await call.sendVideo(50)
            #expect(await eventually { await call.videoReceived().count == 50 })
            var forged = try #require(path.captured.first)
            let (wanted, started) = (100_000, EventLoop.now)
            let failures = { @Sendable in
                await onLoop(loop) { call.answerer.value.peer.statistics.session.dropped.authenticationFailures }
            }
            for sent in 0..<wanted {
                forged[3] = UInt8(truncatingIfNeeded: sent)
                forged[2] = UInt8(truncatingIfNeeded: sent >> 8) | 0x40
                forged[forged.count - 1] &+= 1
                path.inject(forged)
                // Waits until the loop has read them, so that the socket's buffer does not overflow.
                if sent % 50 == 0 { _ = await eventually(within: 1) { await failures() >= sent * 9 / 10 } }
            }
            #expect(await eventually { await failures() > wanted * 9 / 10 })
            await call.sendVideo(50, from: 50)
            // Those behind the forged ones may be lost, which later ones show.
            var next = 100
            let haveArrived = await eventually {
                await call.sendVideo(1, from: next)
                next += 1
                return await Set(call.videoReceived()).isSuperset(of: 0..<100)
            }
            #expect(haveArrived)
            // The room server writes one line for each.
            let reports = await onLoop(loop) {
                call.answerer.value.events.count { if case .unauthenticated = $0 { true } else { false } }
            }
            #expect((1...1 + Int((EventLoop.now - started).seconds)).contains(reports))
            await call.close()
            path.stop()
        }
    }

    @Test("S3: RTP with the right SSRC from another address is not delivered")
    func injection() async throws {
        try await withPort { port, loop in
            let path = Path()
            let call = try await begin(on: port) { $0.route = { path.route($0, ofOfferer: $1) } }
            try #require(await call.isSecured())
            await call.sendVideo(20)
            #expect(await eventually { await call.videoReceived().count == 20 })
            let before = await onLoop(loop) { call.answerer.value.peer.statistics }
            let ignored = await onLoop(loop) { port.value.statistics.ignored }
            let attacker = Attacker()
            let number = await onLoop(loop) { port.value.number }
            let genuine = path.captured
            for packet in 0..<500 {
                // Unencrypted packets; then the sender's real packets, from a stranger's address.
                attacker.send(rtp(100 + packet, type: 96, ssrc: Call.video.rawValue, length: 500), to: number)
                attacker.send(genuine[packet % genuine.count], to: number)
                if packet % 50 == 0 { await onLoop(loop) {} }
            }
            #expect(await eventually { await onLoop(loop) { port.value.statistics.ignored } >= ignored + 1000 })
            await call.sendVideo(20, from: 20)
            #expect(await eventually { await call.videoReceived().count == 40 })
            #expect(await call.videoReceived() == Array(0..<40))
            let after = await onLoop(loop) { call.answerer.value.peer.statistics }
            #expect(after.datagramsReceived - before.datagramsReceived < 40)
            #expect(after.session.dropped.authenticationFailures == before.session.dropped.authenticationFailures)
            #expect(attacker.receive() == nil)
            await call.close()
            path.stop()
        }
    }

    @Test("S3: nothing but an authenticated check changes the address that media goes to")
    func addressChange() async throws {
        try await withPort { port, loop in
            let client = try await BareClient(on: port, certificate: try Certificate())
            try #require(await client.connect())
            let server = client.server
            let remote = { @Sendable in
                await onLoop(loop) { server.value.peer.selectedPair.map { String($0.remote.drop { $0 != ":" }) } }
            }
            #expect(await remote() == ":\(client.socket.port)")
            let attacker = Attacker()
            let number = await onLoop(loop) { port.value.number }
            let ignored = await onLoop(loop) { port.value.statistics.ignored }
            client.say([.receiverReport(SSRC(1), [])])
            let ufrags = "\(client.local.iceUfrag):\(BareClient.ufrag)"
            let attacks: [[UInt8]] = [
                // Without the password, with another one, for another peer, and without a fingerprint.
                connectivityCheck(ufrags, password: nil, priority: .max),
                client.check(password: BareClient.password, priority: .max),
                connectivityCheck("\(client.local.iceUfrag):other", password: client.local.icePwd, priority: .max),
                connectivityCheck(ufrags, password: client.local.icePwd, priority: .max, hasFingerprint: false),
                // Media and the handshake.
                rtp(1, type: 96, ssrc: 1, length: 100), [22, 254, 253] + [UInt8](repeating: 0, count: 60),
            ]
            for attack in attacks { attacker.send(attack, to: number) }
            #expect(
                await eventually { await onLoop(loop) { port.value.statistics.ignored } == ignored + attacks.count })
            #expect(await remote() == ":\(client.socket.port)")
            #expect(attacker.receive() == nil)
            // The password makes the difference.
            attacker.send(client.check(priority: .max), to: number)
            #expect(await eventually { await remote() == ":\(attacker.port)" })
            await client.close()
        }
    }

    @Test("S3: forged checks and packets from the peer's own address do not keep a lost peer alive")
    func forgedConsent() async throws {
        let consent = TimeInterval.milliseconds(300)
        try await withPort(consent: consent) { port, loop in
            let client = try await BareClient(on: port, certificate: try Certificate())
            try #require(await client.connect())
            let forged = connectivityCheck(
                "\(client.local.iceUfrag):\(BareClient.ufrag)", password: BareClient.password)
            let server = client.server
            let isLost = await eventually {
                client.send(forged)
                client.send(rtp(1, type: 96, ssrc: 1, length: 100))
                return await onLoop(loop) { server.value.failure?.code == "transport.connection-lost" }
            }
            #expect(isLost)
            await client.close()
        }
    }

    @Test("S5: STUN with wrong lengths and truncated attributes crashes nothing and gets no answer")
    func hostileSTUN() async throws {
        try await withPort { port, loop in
            let client = try await BareClient(on: port, certificate: try Certificate())
            try #require(await client.connect())
            let attacker = Attacker()
            let number = await onLoop(loop) { port.value.number }
            let before = await onLoop(loop) { port.value.statistics.ignored }
            let attacks = damaged(client.check())
            for (index, attack) in attacks.enumerated() {
                attacker.send(attack, to: number)
                if index % 50 == 0 { await onLoop(loop) {} }
            }
            #expect(
                await eventually { await onLoop(loop) { port.value.statistics.ignored } == before + attacks.count })
            #expect(attacker.receive() == nil)
            #expect(await onLoop(loop) { port.value.pairCount } == 1)
            // The port still works, and the same check without damage gets an answer.
            attacker.send(client.check(nominates: false), to: number)
            #expect(await eventually { attacker.receive() != nil })
            await client.close()
        }
    }

    @Test("S12: a reflected request gets no answer, and an answer is never longer than an authenticated request")
    func reflection() async throws {
        try await withPort { port, loop in
            let client = try await BareClient(on: port, certificate: try Certificate())
            try #require(await client.connect())
            let number = await onLoop(loop) { port.value.number }
            let ufrags = "\(client.local.iceUfrag):\(BareClient.ufrag)"
            // The victim, in whose name somebody asks.
            let victim = Attacker()
            let wrong = BareClient.password
            var questions: [[UInt8]] = [
                connectivityCheck(nil, password: nil), connectivityCheck(ufrags, password: nil),
                connectivityCheck(ufrags, password: nil, hasFingerprint: false),
                connectivityCheck(ufrags, password: wrong), connectivityCheck("none:none", password: wrong),
                // An attribute that must be refused with its type.
                connectivityCheck(ufrags, password: nil, others: (0..<100).map { (0x7000 + $0, 0) }),
                connectivityCheck(ufrags, password: wrong, others: (0..<100).map { (0x7000 + $0, 0) }),
                // A request of plain STUN, as for a STUN server.
                [0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42] + [UInt8](repeating: 7, count: 12),
                try clientHello(), [UInt8](repeating: 0, count: 48),
            ]
            // Allocate of TURN, an indication, and responses.
            for type: [UInt8] in [[0, 3], [0, 0x11], [1, 1], [1, 0x11]] {
                questions.append(type + connectivityCheck(ufrags, password: client.local.icePwd).dropFirst(2))
            }
            let before = await onLoop(loop) { port.value.statistics.ignored }
            for question in questions { victim.send(question, to: number) }
            #expect(
                await eventually { await onLoop(loop) { port.value.statistics.ignored } == before + questions.count })
            #expect(victim.receive() == nil)
            // With the password, refusals and answers have at most the length of the request.
            let authentic = [
                client.check(nominates: false),
                connectivityCheck(ufrags, password: client.local.icePwd, others: [(0x7001, 0)]),
                connectivityCheck(ufrags, password: client.local.icePwd, others: (0..<100).map { (0x7000 + $0, 0) }),
            ]
            for request in authentic {
                victim.send(request, to: number)
                var answer: [UInt8]?
                #expect(
                    await eventually {
                        answer = victim.receive()?.bytes
                        return answer != nil
                    })
                #expect((answer?.count ?? .max) <= request.count)
            }
            #expect(victim.receive() == nil)
            await client.close()
        }
    }

    @Test("S15: 10,000 candidates and checks from 10,000 addresses leave no more than a session's few pairs")
    func candidates() async throws {
        try await withPort { port, loop in
            let client = try await BareClient(on: port, certificate: try Certificate())
            try #require(await client.connect())
            let server = client.server
            let stranger = Attacker()
            await onLoop(loop) {
                for number in 0..<10_000 {
                    let other = number % 2 == 0 ? UInt16(number) : stranger.port
                    server.value.peer.addRemoteCandidate(
                        "candidate:\(number) 1 udp 1 127.0.0.1 \(other) typ host")
                }
                server.value.peer.remoteCandidatesEnded()
            }
            let number = await onLoop(loop) { port.value.number }
            for _ in 0..<100 {
                // 100 sockets at a time, so that no address is used again.
                let sockets = (0..<100).map { _ in Attacker() }
                for socket in sockets { socket.send(client.check(nominates: false), to: number) }
                for socket in sockets { #expect(await eventually { socket.receive() != nil }) }
                #expect(await onLoop(loop) { port.value.pairCount } <= 8)
            }
            // A lite end tries no candidate.
            #expect(stranger.receive() == nil)
            client.say([.receiverReport(SSRC(1), [])])
            await client.close()
            #expect(await onLoop(loop) { port.value.pairCount } == 0)
        }
    }

    @Test("S15: a media port accepts no TCP connection")
    func idleTCP() async throws {
        typealias Call = (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32
        func call(_ function: Call, _ descriptor: Int32, _ number: UInt16) -> Int32 {
            var address = loopbackAddress(port: number)
            return withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    function(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        }
        // Another process may listen at the number over TCP: a port whose number is free for TCP proves it.
        var isFree = false
        for _ in 0..<10 where !isFree {
            try await withPort { port, loop in
                let number = await onLoop(loop) { port.value.number }
                let holder = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
                defer { close(holder) }
                isFree = call(bind, holder, number) == 0
                guard isFree else { return }
                for _ in 0..<100 {
                    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
                    defer { close(descriptor) }
                    #expect(call(connect, descriptor, number) == -1 && errno == ECONNREFUSED)
                }
            }
        }
        #expect(isFree)
    }
}

/// A session whose other end requests too much.
@Suite(.serialized)
struct PortFeedbackTests {
    @Test("S17: NACKs for everything get at most the repairs' share of the bitrate and the minimum")
    func nackStorm() async throws {
        try await withPort { port, loop in
            let sender = SenderBox()
            let client = try await BareClient(on: port, certificate: try Certificate()) { peer in
                sender.id = peer.addSender(
                    SenderConfiguration(
                        ssrc: Call.video, retransmissionSSRC: Call.repair, clockRate: 90000,
                        retransmissionPayloadTypes: [96: 97]))
            }
            try #require(await client.connect())
            let (server, started) = (client.server, EventLoop.now)
            var requested = 0
            for round in 0..<100 {
                await onLoop(loop) { sender.send(20 * round..<(20 * round + 20), of: server.value) }
                let first = max(0, 20 * round - 200)
                let lost = (first..<(20 * round + 20)).map { SequenceNumber(UInt16($0)) }
                for _ in 0..<20 {
                    client.say([.receiverReport(SSRC(1), []), .nack(sender: SSRC(1), media: Call.video, lost: lost)])
                    requested += lost.count
                }
                await onLoop(loop) {}
                client.exchange()
            }
            let wanted = requested
            #expect(
                await eventually {
                    await onLoop(loop) { sender.statistics(of: server.value)?.nackedPackets ?? 0 } > wanted * 9 / 10
                })
            let statistics = try #require(await onLoop(loop) { sender.statistics(of: server.value) })
            let milliseconds = Int((EventLoop.now - started).milliseconds) + 1
            // 30 % of the bytes sent, 12,500 bytes a second, and 64 KiB of saved credit.
            let budget = statistics.bytes * 3 / 10 + 12_500 * milliseconds / 1000 + 65_536
            #expect(statistics.retransmittedBytes <= budget)
            #expect(statistics.retransmittedPackets > 0 && statistics.retransmissionsOverBudget > 0)
            await client.close()
        }
    }

    @Test("S17: RTCP bombs get no response, and the session goes on")
    func bombs() async throws {
        try await withPort { port, loop in
            let sender = SenderBox()
            let client = try await BareClient(on: port, certificate: try Certificate()) { peer in
                sender.id = peer.addSender(
                    SenderConfiguration(ssrc: Call.video, clockRate: 90000))
            }
            try #require(await client.connect())
            let server = client.server
            await onLoop(loop) { sender.send(0..<20, of: server.value) }
            #expect(await client.receives(20))
            let sent = await onLoop(loop) { server.value.peer.statistics.datagramsSent }
            let received = await onLoop(loop) { server.value.peer.statistics.datagramsReceived }
            let started = EventLoop.now
            let bombs = rtcpBombs()
            for (index, bomb) in bombs.enumerated() {
                client.say(bomb)
                if index % 50 == 0 { await onLoop(loop) {} }
            }
            #expect(
                await eventually {
                    await onLoop(loop) { server.value.peer.statistics.datagramsReceived } >= received + bombs.count
                })
            let after = await onLoop(loop) { server.value.peer.statistics }
            // Nothing but the regular reports.
            #expect(after.datagramsSent - sent <= 2 + 2 * Int((EventLoop.now - started).seconds))
            #expect(after.session.dropped.malformed > 0)
            let requests = await onLoop(loop) {
                server.value.events.count { if case .keyframeRequested = $0 { true } else { false } }
            }
            // One for each datagram at most, however many requests it has.
            #expect((1..<bombs.count).contains(requests))
            await onLoop(loop) { sender.send(20..<40, of: server.value) }
            #expect(await client.receives(40))
            await client.close()
        }
    }
}

/// Many sessions, one after the other.
@Suite(.serialized)
struct PortSessionTests {
    /// 100,000 sessions in `make soak`.
    @Test("S18: sessions that are opened, connected and dropped leave no session, pair, descriptor, thread or memory")
    func openedAndDropped() async throws {
        let (rounds, each) = (Soak.isOn ? 2000 : 60, 50)
        let certificate = try Certificate()
        try await withPort { port, loop in
            let sockets = (0..<each).map { _ in Attacker() }
            var before: (descriptors: Int, threads: Int, kilobytes: Int)?
            for round in 0..<rounds {
                var clients: [BareClient] = []
                for socket in sockets {
                    clients.append(try await BareClient(on: port, certificate: certificate, socket: socket))
                }
                // A third each: a pair without nomination, one with a ClientHello, and nothing.
                for (index, client) in clients.enumerated() where index % 3 > 0 {
                    client.send(client.check(nominates: index % 3 == 1))
                    if index % 3 == 1 {
                        client.session.start(role: .client, expecting: client.local.fingerprints, now: EventLoop.now)
                        client.session.transportConnected(now: EventLoop.now)
                        client.exchange()
                    }
                }
                let pairs = clients.indices.count { $0 % 3 > 0 }
                #expect(await eventually { await onLoop(loop) { port.value.pairCount } == pairs })
                #expect(await onLoop(loop) { port.value.sessionCount } == each)
                for client in clients { await client.close() }
                for client in clients { while client.socket.receive() != nil {} }
                #expect(await onLoop(loop) { port.value.sessionCount + port.value.pairCount } == 0)
                let now = (descriptorCount(), threadCount(), residentKilobytes())
                // The first rounds fill caches.
                if round == rounds / 2 { before = now }
                guard let before, round == rounds - 1 else { continue }
                #expect(now.0 <= before.descriptors && now.1 <= before.threads)
                // A leaked session takes more than 30 KB.
                if !isAddressSanitized { #expect(now.2 - before.kilobytes < (rounds - 1 - rounds / 2) * each * 8) }
            }
        }
    }
}

/// The sender of a peer on a port. On the loop only, after the peer was configured.
private final class SenderBox: @unchecked Sendable {
    // Sendable by hand: written and read on the loop alone.
    var id: SenderID?

    func send(_ numbers: Range<Int>, of end: End) {
        guard let id else { return }
        for number in numbers {
            var packet = PacketBuffer()
            _ = packet.assign(rtp(number, type: 96, ssrc: 1, length: 1000))
            guard let header = RTPHeader(parsing: packet) else { continue }
            end.peer.send(packet, header: header, rewrite: Rewrite(keeping: header), via: id)
        }
    }

    func statistics(of end: End) -> SenderStatistics? { id.flatMap { end.peer.statistics(of: $0) } }
}

/// The first flight of a real client.
private func clientHello() throws -> [UInt8] {
    let client = try OpenSSLDTLS(certificate: try Certificate())
    client.start(role: .client, expecting: [], now: EventLoop.now)
    var batch = DatagramBatch()
    client.drain(into: &batch)
    return Array(batch[0])
}

/// Variants of a check with false lengths, missing ends and random changes, half of them with a correct fingerprint.
private func damaged(_ check: [UInt8]) -> [[UInt8]] {
    var random = Seeded(5)
    var variants = (1..<check.count).map { Array(check[..<$0]) }
    variants += (1...8).map { check + [UInt8](repeating: 0, count: $0) }
    // The lengths of the header and of the attributes.
    var places = [2]
    var offset = 20
    while offset < check.count {
        places.append(offset + 2)
        offset += (4 + Int(check[offset + 2]) << 8 + Int(check[offset + 3]) + 3) & ~3
    }
    for place in places {
        for lie in [0, 1, 3, 4, 5, 19, 24, 60, 1000, 0x7fff, 0xfffc, 0xffff] {
            var variant = check
            (variant[place], variant[place + 1]) = (UInt8(lie >> 8), UInt8(lie & 0xff))
            variants += [variant, resealed(variant)]
        }
    }
    for _ in 0..<2000 {
        var variant = check
        for _ in 0..<4 {
            variant[Int.random(in: 0..<variant.count, using: &random)] = .random(in: 0...255, using: &random)
        }
        variants += [variant, resealed(variant)]
    }
    return variants.filter { $0 != check }
}

/// Compounds that are larger than their use: as many packets as fit, of each kind, and with false counts and lengths.
private func rtcpBombs() -> [[UInt8]] {
    var random = Seeded(17)
    var bombs: [[UInt8]] = []
    func header(_ format: UInt8, _ type: UInt8, words: Int) -> [UInt8] {
        [0x80 | format, type, UInt8(words >> 8 & 0xff), UInt8(words & 0xff)]
    }
    let stream: [UInt8] = [0, 0, 0, 1, 0x0b, 0xad, 0xca, 0xfe]
    let report = header(0, 201, words: 1) + [0, 0, 0, 1]
    let (loss, bye) = (header(1, 206, words: 2) + stream, header(1, 203, words: 1) + [0, 0, 0, 9])
    for part in [report, loss, bye] {
        let bomb = report + repeatElement(part, count: 1300 / part.count).joined()
        bombs += [[UInt8]](repeating: bomb, count: 100)
    }
    // FIR for the same source many times, and NACKs of packets that were never sent.
    for _ in 0..<100 {
        var sources: [UInt8] = []
        for _ in 0..<150 { sources += Array(stream[4...]) + [UInt8.random(in: 0...255, using: &random), 0, 0, 0] }
        bombs.append(report + header(4, 206, words: 2 + sources.count / 4) + stream + sources)
        var words: [UInt8] = []
        for _ in 0..<300 { words += [UInt8.random(in: 1...255, using: &random), 0, 0xff, 0xff] }
        bombs.append(report + header(1, 205, words: 2 + words.count / 4) + stream + words)
    }
    // Counts and lengths that lie, and noise.
    for _ in 0..<1000 {
        let (type, words) = (UInt8.random(in: 200...207, using: &random), Int.random(in: 0...65535, using: &random))
        var noise = report + loss + header(31, type, words: words)
        noise += (0..<Int.random(in: 0...200, using: &random)).map { _ in .random(in: 0...255, using: &random) }
        bombs.append(noise)
    }
    return bombs
}
