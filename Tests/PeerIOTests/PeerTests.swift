import Glibc
import PeerSession
import RTP
import Testing
import TestSupport

@testable import PeerIO
@testable import PeerLoop

@Suite(.serialized)
struct PeerTests {
    @Test("two peers that trickle candidates connect over loopback and agree on GCM; packets flow both ways")
    func connects() async throws {
        let loop = EventLoop(name: "call")
        let call = try await Call.begin(on: loop)
        try #require(await call.isSecured())
        #expect(await onLoop(loop) { call.offerer.value.profile } == .aeadAES128GCM)
        await call.sendVideo(300)
        await call.sendAudio(20)
        #expect(await eventually { await call.videoReceived().count == 300 })
        #expect(await eventually { await call.audioReceived() == 20 })
        #expect(await call.videoReceived() == Array(0..<300))
        let payload = await onLoop(loop) { call.answerer.value.packets[7].payload }
        #expect(payload == Array(rtp(7, type: 96, ssrc: 0, length: 1000).dropFirst(12)))
        await call.close()
        loop.shutdown()
    }

    @Test("median of ten connects on loopback, from the first call to keys on both ends, is under 60 ms")
    func connectTime() async throws {
        let loop = EventLoop(name: "call")
        let certificates = (try Certificate(), try Certificate())
        var times: [Double] = []
        for _ in 0..<10 {
            var options = Call.Options()
            options.offererCertificate = certificates.0
            options.answererCertificate = certificates.1
            let call = try await Call.begin(on: loop, options)
            try #require(await call.isSecured())
            times.append(try #require(await call.connectTime()).milliseconds)
            await call.close()
        }
        loop.shutdown()
        times.sort()
        print("connect on loopback: median \(times[5]) ms, \(times[0])...\(times[9])")
        #expect(times[5] < 60)
    }

    @Test("a peer that supports only AES-CM gets it", arguments: [true, false])
    func fallback(offererIsOld: Bool) async throws {
        let loop = EventLoop(name: "call")
        var options = Call.Options()
        let old = try Certificate(profiles: [.aes128CMSHA1_80])
        if offererIsOld { options.offererCertificate = old } else { options.answererCertificate = old }
        let call = try await Call.begin(on: loop, options)
        try #require(await call.isSecured())
        #expect(await onLoop(loop) { call.answerer.value.profile } == .aes128CMSHA1_80)
        await call.sendVideo(10)
        #expect(await eventually { await call.videoReceived() == Array(0..<10) })
        await call.close()
        loop.shutdown()
    }

    @Test("the loopback scope has only 127.0.0.1")
    func loopbackScope() async throws {
        let candidates = try await gathered(.loopback)
        #expect(candidates.count == 1)
        #expect(candidates.allSatisfy { $0.split(separator: " ")[4] == "127.0.0.1" })
    }

    @Test("the any scope has the machine's addresses and 127.0.0.1, by UDP only")
    func anyScope() async throws {
        let candidates = try await gathered(.any)
        #expect(candidates.contains { $0.split(separator: " ")[4] == "127.0.0.1" })
        #expect(candidates.allSatisfy { $0.split(separator: " ")[2].lowercased() == "udp" })
        #expect(candidates.allSatisfy { !$0.contains("fe80:") })
    }

    @Test("a peer for another machine neither has nor tries a loopback address")
    func noLoopback() async throws {
        let candidates = (try? await gathered(.anyButLoopback)) ?? []
        #expect(candidates.allSatisfy { !$0.split(separator: " ")[4].hasPrefix("127.") })
        let loop = EventLoop(name: "peer")
        let certificate = try Certificate()
        let ignored = try await onLoop(loop) {
            Result {
                try [ListeningScope.any, .anyTryingNoLoopback, .anyButLoopback].map { scope in
                    let peer = try Peer(
                        loop: loop,
                        configuration: PeerConfiguration(
                            iceRole: .controlled, certificate: certificate, cname: "test", scope: scope))
                    for address in ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1", "0.0.0.0", "224.0.0.1"] {
                        peer.addRemoteCandidate("candidate:1 1 udp 1 \(address) 20000 typ host")
                    }
                    peer.close()
                    return peer.statistics.candidatesIgnored
                }
            }
        }.get()
        #expect(ignored == [4, 6, 6])
        await onLoop(loop) {}
        loop.shutdown()
    }

    @Test("loopback is reached over loopback, and other addresses over every address but loopback")
    func reaching() {
        for address in ["127.0.0.1", "127.0.1.1"] { #expect(ListeningScope.reaching(address) == .loopback) }
        #expect(ListeningScope.reaching("::1") == .addresses(["127.0.0.1", "::1"]))
        for address in ["192.0.2.1", "10.0.0.1", "2001:db8::1", "0.0.0.0"] {
            #expect(ListeningScope.reaching(address) == .anyButLoopback)
        }
        #expect(ListeningScope.reaching(nil) == .anyButLoopback)
    }

    @Test("two peers on all addresses connect too")
    func anyConnects() async throws {
        let loop = EventLoop(name: "call")
        var options = Call.Options()
        options.scope = .any
        let call = try await Call.begin(on: loop, options)
        #expect(await call.isSecured())
        await call.sendVideo(20)
        #expect(await eventually { await call.videoReceived().count == 20 })
        await call.close()
        loop.shutdown()
    }

    @Test("an invalid address, or one of another machine, is refused with a message")
    func badAddress() async throws {
        for address in ["nowhere", "203.0.113.200"] {
            await #expect(throws: TransportError.self) { try await gathered(.addresses([address])) }
        }
    }

    @Test("ports stay within the requested range")
    func ports() async throws {
        let candidates = try await gathered(.loopback, ports: 42100...42199)
        let port = candidates.first.flatMap { UInt16($0.split(separator: " ")[5]) }
        #expect((42100...42199).contains(try #require(port)))
    }

    @Test("a peer that could open no port may be started again")
    func startAgain() async throws {
        let loop = EventLoop(name: "peer")
        let outcomes = await onLoop(loop) { () -> [String] in
            var outcomes: [String] = []
            do throws(TransportError) {
                var inTheWay: Attacker? = Attacker()
                let port = inTheWay?.port ?? 0
                var configuration = PeerConfiguration(
                    iceRole: .controlled, certificate: try Certificate(), cname: "test")
                configuration.ports = port...port
                let peer = try Peer(loop: loop, configuration: configuration)
                for attempt in 0..<3 {
                    if attempt == 2 { inTheWay = nil }
                    do throws(TransportError) {
                        try peer.start()
                        outcomes.append("\(peer.local.candidates.count) candidate")
                    } catch {
                        outcomes.append(error.code)
                    }
                }
                peer.close()
            } catch {
                outcomes.append(error.code)
            }
            return outcomes
        }
        #expect(outcomes == ["transport.no-address", "transport.no-address", "1 candidate"])
        await onLoop(loop) {}
        loop.shutdown()
    }

    @Test("32 remote candidates are tried, 8 of them at one address; the others are counted and do no harm")
    func candidateCap() async throws {
        let loop = EventLoop(name: "call")
        let call = try await Call.begin(on: loop)
        try #require(await call.isSecured())
        let ignored = await onLoop(loop) {
            let peer = call.offerer.value.peer
            var ignored: [Int] = []
            func note() { ignored.append(peer.statistics.candidatesIgnored - ignored.reduce(0, +)) }
            // The call listens on loopback only.
            for address in ["10.1.2.3", "169.254.169.254", "::1"] {
                peer.addRemoteCandidate("candidate:1 1 udp 1 \(address) 20000 typ host")
            }
            note()
            for number in 0..<10_000 {
                peer.addRemoteCandidate("candidate:\(number) 1 udp 1 127.0.0.1 \(20_000 + number) typ host")
            }
            note()
            for number in 1...40 {
                peer.addRemoteCandidate("candidate:\(number) 1 udp 1 127.0.9.\(number) 20000 typ host")
            }
            note()
            for text in ["", "candidate:1 1 udp 1 abc.local 1 typ host", "nonsense", "a=candidate:"] {
                peer.addRemoteCandidate(text)
            }
            note()
            return ignored
        }
        // The call's own candidate counts towards the 8, and towards the 32.
        #expect(ignored == [3, 9_993, 16, 4])
        await call.sendVideo(10)
        #expect(await eventually { await call.videoReceived().count == 10 })
        await call.close()
        loop.shutdown()
    }

    @Test("a description without credentials or a strong fingerprint is refused with a message")
    func badDescription() async throws {
        let loop = EventLoop(name: "call")
        let certificate = try Certificate()
        let codes: [String] = await onLoop(loop) {
            let good = TransportDescription(
                iceUfrag: "abcd", icePwd: String(repeating: "p", count: 22),
                fingerprints: [certificate.fingerprint], setup: .active)
            var cases = [good, good, good, good]
            cases[0].iceUfrag = "a"
            cases[1].icePwd = "short"
            cases[2].fingerprints = []
            cases[3].fingerprints = [Fingerprint(algorithm: "md5", digest: [1])]
            return cases.map { description in
                do throws(TransportError) {
                    let peer = try Peer(
                        loop: loop,
                        configuration: PeerConfiguration(iceRole: .controlled, certificate: certificate, cname: "x"))
                    defer { peer.close() }
                    try peer.start()
                    try peer.setRemote(description, dtlsRole: .client)
                    return "accepted"
                } catch {
                    return error.code
                }
            }
        }
        loop.shutdown()
        #expect(codes == Array(repeating: "transport.remote-description", count: 4))
    }

    @Test("a peer without any response times out with a message")
    func unanswered() async throws {
        let loop = EventLoop(name: "call")
        var options = Call.Options()
        options.route = { _, _ in "candidate:1 1 udp 1 127.0.0.1 9 typ host" }
        options.connectTimeout = .milliseconds(300)
        let call = try await Call.begin(on: loop, options)
        #expect(await eventually { await onLoop(loop) { call.offerer.value.failure != nil } })
        #expect(await onLoop(loop) { call.offerer.value.failure?.code } == "transport.connect-timeout")
        await call.close()
        loop.shutdown()
    }

    @Test("a peer whose checks are late connects, though ICE had tried all candidates")
    func lateChecks() async throws {
        let loop = EventLoop(name: "call")
        let path = Path()
        path.isCut = true
        var options = Call.Options()
        options.route = { path.route($0, ofOfferer: $1) }
        let call = try await Call.begin(on: loop, options)
        await onLoop(loop) {
            call.offerer.value.peer.remoteCandidatesEnded()
            call.offerer.value.peer.handle(.failed)
        }
        path.isCut = false
        #expect(await call.isSecured(within: 20))
        #expect(await onLoop(loop) { call.offerer.value.failure == nil })
        await call.close()
        path.stop()
        loop.shutdown()
    }

    @Test("a peer that ICE could not reach fails as unreachable after the timeout")
    func unreachable() async throws {
        let loop = EventLoop(name: "call")
        var options = Call.Options()
        options.route = { _, _ in "candidate:1 1 udp 1 127.0.0.1 9 typ host" }
        options.connectTimeout = .milliseconds(300)
        let call = try await Call.begin(on: loop, options)
        await onLoop(loop) { call.offerer.value.peer.handle(.failed) }
        #expect(await eventually { await onLoop(loop) { call.offerer.value.failure != nil } })
        #expect(await onLoop(loop) { call.offerer.value.failure?.code } == "transport.unreachable")
        await call.close()
        loop.shutdown()
    }

    @Test("closing notifies the other end, which reports it once")
    func closing() async throws {
        let loop = EventLoop(name: "call")
        let call = try await Call.begin(on: loop)
        try #require(await call.isSecured())
        await onLoop(loop) { call.offerer.value.peer.close() }
        #expect(await eventually { await onLoop(loop) { call.answerer.value.isClosedByPeer } })
        await call.close()
        loop.shutdown()
    }

    @Test("a peer can be closed from its own callbacks")
    func closingInside() async throws {
        let loop = EventLoop(name: "call")
        let call = try await Call.begin(on: loop)
        try #require(await call.isSecured())
        await onLoop(loop) {
            let end = call.answerer.value
            end.peer.onMedia = { [unowned end] _, _, _, _ in end.peer.close() }
        }
        await call.sendVideo(200)
        #expect(await eventually { await onLoop(loop) { call.offerer.value.isClosedByPeer } })
        await call.close()
        loop.shutdown()
    }

    @Test("loss of one seed repeats at about the requested rate, whatever is received meanwhile")
    func seededLoss() {
        var one = Impairment(seed: 7, outgoingLoss: 0.05, incomingLoss: 0.05)
        var other = one
        let admitted = (0..<1000).map { _ in one.admitsOutgoing() }
        let again = (0..<1000).map { _ in
            _ = other.admitsIncoming()
            return other.admitsOutgoing()
        }
        #expect(admitted == again)
        #expect((930...970).contains(admitted.count { $0 }))
    }

    @Test("seeded loss at the socket is counted, and all other packets arrive")
    func impairment() async throws {
        let loop = EventLoop(name: "call")
        let call = try await Call.begin(on: loop)
        try #require(await call.isSecured())
        await onLoop(loop) {
            call.offerer.value.peer.impairment = Impairment(seed: 7, outgoingLoss: 0.05)
        }
        await call.sendVideo(1000)
        // A lost datagram may be a report.
        let lost = await onLoop(loop) { call.offerer.value.peer.statistics.datagramsImpaired }
        #expect((30...70).contains(lost))
        #expect(await eventually { await call.videoReceived().count >= 1000 - lost })
        #expect(await call.videoReceived().count <= 1000 - lost + 2)
        await call.close()
        loop.shutdown()
    }

    @Test("at 5 % loss in both directions every packet arrives once, by NACK and RTX over real sockets")
    func repair() async throws {
        let loop = EventLoop(name: "call")
        var options = Call.Options()
        options.repairs = true
        let call = try await Call.begin(on: loop, options)
        try #require(await call.isSecured())
        await onLoop(loop) {
            call.offerer.value.peer.impairment = Impairment(seed: 3, outgoingLoss: 0.05, incomingLoss: 0.05)
        }
        for turn in 0..<100 {
            await call.sendVideo(10, from: turn * 10, perTurn: 10)
            // Paced like a camera's frames: repairs get a share of the sending rate, which takes time to spend.
            try await Task.sleep(for: .milliseconds(5))
        }
        // The last packet may be lost, and no later packet shows the gap.
        #expect(await eventually { await Set(call.videoReceived()).isSuperset(of: 0..<980) })
        let numbers = await call.videoReceived()
        #expect(Set(numbers).count == numbers.count)
        let repaired = await onLoop(loop) {
            call.answerer.value.peer.statistics(of: call.videoReceiver)?.recovered ?? 0
        }
        #expect(repaired > 20)
        await call.close()
        loop.shutdown()
    }

    @Test("a ClientHello that arrives before ICE has selected a pair is kept, because browsers send it early")
    func earlyHandshake() async throws {
        let loop = EventLoop(name: "call")
        let path = Path()
        path.withholdsAnswersFromOfferer = true
        var options = Call.Options()
        options.route = { path.route($0, ofOfferer: $1) }
        let call = try await Call.begin(on: loop, options)
        #expect(await eventually { path.handshakesToOfferer > 0 })
        #expect(await onLoop(loop) { call.offerer.value.peer.selectedPair == nil })
        path.withholdsAnswersFromOfferer = false
        #expect(await call.isSecured())
        let dropped = await onLoop(loop) { call.offerer.value.peer.statistics.session.dropped }
        #expect(dropped.beforeConnected == 0)
        await call.close()
        path.stop()
        loop.shutdown()
    }

    @Test("a cut of the path is reported as silence and ends when packets arrive again")
    func cut() async throws {
        let loop = EventLoop(name: "call")
        let path = Path()
        var options = Call.Options()
        options.route = { path.route($0, ofOfferer: $1) }
        options.silence = .milliseconds(400)
        let call = try await Call.begin(on: loop, options)
        try #require(await call.isSecured())
        await call.sendVideo(10)
        #expect(await eventually { await call.videoReceived().count == 10 })
        path.isCut = true
        func count(_ matches: @escaping @Sendable (PeerEvent) -> Bool) async -> Int {
            await onLoop(loop) { call.answerer.value.events.filter(matches).count }
        }
        #expect(await eventually { await count { if case .disconnected = $0 { true } else { false } } == 1 })
        path.isCut = false
        await call.sendVideo(10, from: 10)
        #expect(await eventually { await call.videoReceived().count == 20 })
        #expect(await eventually { await count { if case .connected = $0 { true } else { false } } == 2 })
        await call.close()
        path.stop()
        loop.shutdown()
    }

    @Test("nothing is sent to an address that no longer answers checks (RFC 7675, section 5.1)")
    func lostConsent() async throws {
        let loop = EventLoop(name: "call")
        var options = Call.Options()
        options.pathTimeout = .seconds(30)
        let call = try await Call.begin(on: loop, options)
        try #require(await call.isSecured())
        await call.sendVideo(10)
        #expect(await eventually { await call.videoReceived().count == 10 })
        await onLoop(loop) { (call.offerer.value.peer.path as? ICEAgent)?.failed() }
        await call.sendVideo(10, from: 10)
        #expect(await eventually { await onLoop(loop) { call.offerer.value.peer.statistics.datagramsRefused >= 10 } })
        #expect(await call.videoReceived().count == 10)
        await call.close()
        loop.shutdown()
    }

    @Test("sending media to a lost peer ends soon, but a peer that receives no media may be silent")
    func consent() async throws {
        let loop = EventLoop(name: "call")
        let path = Path()
        var options = Call.Options()
        options.route = { path.route($0, ofOfferer: $1) }
        options.silence = .milliseconds(200)
        options.consent = .milliseconds(600)
        let call = try await Call.begin(on: loop, options)
        try #require(await call.isSecured())
        path.isCut = true
        @Sendable func isSilent(_ end: LoopBound<End>) async -> Bool {
            await onLoop(loop) { end.value.events.contains { if case .disconnected = $0 { true } else { false } } }
        }
        @Sendable func isLost(_ end: LoopBound<End>) async -> Bool {
            await onLoop(loop) {
                end.value.events.contains {
                    if case .failed(let error) = $0 { error.code == "transport.connection-lost" } else { false }
                }
            }
        }
        #expect(await eventually { await isSilent(call.offerer) })
        #expect(await eventually { await isSilent(call.answerer) })
        await call.sendVideo(1)
        #expect(await eventually { await isLost(call.offerer) })
        #expect(await !isLost(call.answerer))
        await call.close()
        path.stop()
        loop.shutdown()
    }

    @Test("datagrams that the socket refuses are counted and lost, and the next ones arrive")
    func refusedDatagrams() async throws {
        let loop = EventLoop(name: "call")
        let call = try await Call.begin(on: loop)
        try #require(await call.isSecured())
        await call.sendVideo(10)
        #expect(await eventually { await call.videoReceived().count == 10 })
        let descriptor = try #require(udpDescriptor(port: await call.ports().offerer))
        let refused = await onLoop(loop) { call.offerer.value.peer.statistics.datagramsRefused }
        let kept = await onLoop(loop) {
            let kept = dup(descriptor)
            // A socket that sends nothing more, in place of the peer's.
            let broken = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
            shutdown(broken, Int32(SHUT_WR))
            dup2(broken, descriptor)
            close(broken)
            return kept
        }
        await call.sendVideo(100, from: 10)
        await onLoop(loop) {
            dup2(kept, descriptor)
            close(kept)
        }
        let lost = await onLoop(loop) { call.offerer.value.peer.statistics.datagramsRefused } - refused
        #expect(lost >= 100)
        await call.sendVideo(10, from: 110)
        #expect(await eventually { await call.videoReceived().count == 20 })
        #expect(await call.videoReceived() == Array(0..<10) + Array(110..<120))
        await call.close()
        loop.shutdown()
    }

    @Test("opening and closing 200 peers leaks no descriptor or thread")
    func openAndClose() async throws {
        let loop = EventLoop(name: "call")
        let certificate = try Certificate()
        func open(_ count: Int) async throws {
            for _ in 0..<count {
                var options = Call.Options()
                options.offererCertificate = certificate
                options.answererCertificate = certificate
                let call = try await Call.begin(on: loop, options)
                try #require(await call.isSecured())
                await call.close()
            }
        }
        try await open(5)
        let before = (descriptorCount(), threadCount(), residentKilobytes())
        try await open(100)
        #expect(await eventually { descriptorCount() <= before.0 })
        #expect(threadCount() <= before.1 + 2)
        let grown = residentKilobytes() - before.2
        print("200 peers opened and closed: resident set grew by \(grown) KiB")
        // The address sanitizer keeps freed memory for a while, on purpose.
        if !isAddressSanitized { #expect(grown < 4 * 1024) }
        loop.shutdown()
    }
}

/// The descriptor of the UDP socket of this process on loopback's port.
private func udpDescriptor(port: UInt16) -> Int32? {
    (3..<4096).first { descriptor in
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        var type: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        let isNamed = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) == 0 }
        }
        return isNamed && address.sin_port == port.bigEndian
            && getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) == 0
            && type == Int32(SOCK_DGRAM.rawValue)
    }
}

private func gathered(_ scope: ListeningScope, ports: ClosedRange<UInt16>? = nil) async throws -> [String] {
    let loop = EventLoop(name: "gather")
    let certificate = try Certificate()
    let result: Result<[String], any Error> = await onLoop(loop) {
        Result {
            let peer = try Peer(
                loop: loop,
                configuration: PeerConfiguration(
                    iceRole: .controlling, certificate: certificate, cname: "test", scope: scope, ports: ports))
            defer { peer.close() }
            try peer.start()
            return peer.local.candidates
        }
    }
    loop.shutdown()
    return try result.get()
}
