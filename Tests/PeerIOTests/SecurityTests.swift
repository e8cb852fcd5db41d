import PeerIO
import PeerLoop
import PeerSession
import RTP
import Testing
import TestSupport

@Suite(.serialized)
struct SecurityTests {
    @Test("S1: a third host that floods the media ports with ClientHellos neither stops the call nor gets a response")
    func clientHelloRace() async throws {
        let loop = EventLoop(name: "call")
        let attacker = Attacker()
        let hello = try clientHello()
        let certificates = (try Certificate(), try Certificate())
        for _ in 0..<5 {
            var options = Call.Options()
            options.offererCertificate = certificates.0
            options.answererCertificate = certificates.1
            let call = try await Call.begin(on: loop, options)
            let ports = await call.ports()
            // Before, during and after ICE and DTLS.
            let isSecured = await eventually {
                for _ in 0..<20 {
                    attacker.send(hello, to: ports.offerer)
                    attacker.send(hello, to: ports.answerer)
                }
                return await onLoop(loop) {
                    call.offerer.value.securedAt != nil && call.answerer.value.securedAt != nil
                }
            }
            #expect(isSecured)
            for _ in 0..<100 { attacker.send(hello, to: ports.offerer) }
            await call.sendVideo(20)
            #expect(await eventually { await call.videoReceived().count == 20 })
            let received = await onLoop(loop) { call.offerer.value.peer.statistics.datagramsReceived }
            // The handshake and a few reports: ICE passed on none of the hundreds of forged datagrams.
            #expect(received < 30)
            #expect(attacker.receive() == nil)
            await call.close()
        }
        loop.shutdown()
    }

    @Test("S2: 100,000 SRTP packets with invalid tags from the peer's address are counted, and the session survives")
    func badTags() async throws {
        let loop = EventLoop(name: "call")
        let path = Path()
        var options = Call.Options()
        options.route = { path.route($0, ofOfferer: $1) }
        let call = try await Call.begin(on: loop, options)
        try #require(await call.isSecured())
        await call.sendVideo(50)
        #expect(await eventually { await call.videoReceived().count == 50 })
        var forged = try #require(path.captured.first)
        var sent = 0
        let wanted = 100_000
        while sent < wanted {
            for _ in 0..<25 {
                forged[3] = UInt8(truncatingIfNeeded: sent)
                forged[2] = UInt8(truncatingIfNeeded: sent >> 8) | 0x40
                forged[forged.count - 1] &+= 1
                path.inject(forged)
                sent += 1
            }
            // Waits for the loop, so that the socket's buffer does not overflow. One turn reads up to 32 datagrams.
            await onLoop(loop) {}
        }
        let failures = { @Sendable in
            await onLoop(loop) { call.answerer.value.peer.statistics.session.dropped.authenticationFailures }
        }
        #expect(await eventually { await failures() > wanted * 9 / 10 })
        await call.sendVideo(50, from: 50)
        #expect(await eventually { await call.videoReceived() == Array(0..<100) })
        await call.close()
        path.stop()
        loop.shutdown()
    }

    @Test("S3: forged packets from the peer's own address do not keep a lost peer alive")
    func forgedConsent() async throws {
        let loop = EventLoop(name: "call")
        let path = Path()
        var options = Call.Options()
        options.route = { path.route($0, ofOfferer: $1) }
        options.silence = .milliseconds(100)
        options.consent = .milliseconds(300)
        let call = try await Call.begin(on: loop, options)
        try #require(await call.isSecured())
        await call.sendVideo(10)
        #expect(await eventually { await call.videoReceived().count == 10 })
        var forged = try #require(path.captured.first)
        forged[forged.count - 1] &+= 1
        path.isCut = true
        await call.sendAudio(1)
        let isLost = await eventually(within: 5) {
            path.inject(forged)
            return await onLoop(loop) { call.answerer.value.failure?.code == "transport.connection-lost" }
        }
        #expect(isLost)
        let failures = await onLoop(loop) {
            call.answerer.value.peer.statistics.session.dropped.authenticationFailures
        }
        #expect(failures > 0)
        await call.close()
        path.stop()
        loop.shutdown()
    }

    @Test("S3: RTP with the right SSRC from another address is not delivered")
    func injection() async throws {
        let loop = EventLoop(name: "call")
        let path = Path()
        var options = Call.Options()
        options.route = { path.route($0, ofOfferer: $1) }
        let call = try await Call.begin(on: loop, options)
        try #require(await call.isSecured())
        await call.sendVideo(20)
        #expect(await eventually { await call.videoReceived().count == 20 })
        let before = await onLoop(loop) { call.answerer.value.peer.statistics }
        let attacker = Attacker()
        let port = await call.ports().answerer
        let genuine = path.captured
        for number in 0..<500 {
            // Unencrypted packets; then the sender's real packets, from a stranger's address.
            attacker.send(rtp(100 + number, type: 96, ssrc: Call.video.rawValue, length: 500), to: port)
            attacker.send(genuine[number % genuine.count], to: port)
        }
        await call.sendVideo(20, from: 20)
        #expect(await eventually { await call.videoReceived().count == 40 })
        #expect(await call.videoReceived() == Array(0..<40))
        let after = await onLoop(loop) { call.answerer.value.peer.statistics }
        #expect(after.datagramsReceived - before.datagramsReceived < 40)
        #expect(after.session.dropped.authenticationFailures == before.session.dropped.authenticationFailures)
        #expect(
            await onLoop(loop) { call.answerer.value.peer.selectedPair?.remote }?.hasSuffix(":\(attacker.port)")
                == false)
        await call.close()
        path.stop()
        loop.shutdown()
    }

    @Test(
        "S4: with another certificate than signalled, nothing is secured and no byte is delivered",
        arguments: [true, false])
    func wrongCertificate(ofOfferer: Bool) async throws {
        let loop = EventLoop(name: "call")
        var options = Call.Options()
        let stranger = try Certificate().fingerprint
        if ofOfferer { options.fingerprintOfOfferer = stranger } else { options.fingerprintOfAnswerer = stranger }
        let call = try await Call.begin(on: loop, options)
        let deceived = ofOfferer ? call.answerer : call.offerer
        #expect(await eventually { await onLoop(loop) { deceived.value.failure != nil } })
        let failure = await onLoop(loop) { deceived.value.failure }
        #expect(failure?.code == "transport.dtls")
        #expect(failure?.message.contains("fingerprint") == true)
        await call.sendVideo(20)
        await call.sendAudio(20)
        await call.sendVideo(20, from: 20)
        #expect(await onLoop(loop) { call.offerer.value.securedAt == nil && call.answerer.value.securedAt == nil })
        #expect(await call.videoReceived().isEmpty)
        #expect(await call.audioReceived() == 0)
        await call.close()
        loop.shutdown()
    }

    @Test("S5: STUN with wrong lengths and truncated attributes crashes nothing and gets no binding")
    func hostileSTUN() async throws {
        let loop = EventLoop(name: "call")
        let attacker = Attacker()
        let call = try await Call.begin(on: loop)
        try #require(await call.isSecured())
        let ports = await call.ports()
        let ufrag = await onLoop(loop) { call.answerer.value.peer.local.iceUfrag }
        let requests = hostileRequests(ufrag: ufrag)
        for request in requests {
            attacker.send(request, to: ports.answerer)
            attacker.send(request, to: ports.offerer)
        }
        await call.sendVideo(20)
        #expect(await eventually { await call.videoReceived().count == 20 })
        var answers = 0
        while let (answer, _) = attacker.receive() {
            answers += 1
            // A Binding success is 0x0101. Errors (RFC 8489 section 9.1.3) are 0x0111 and allowed.
            #expect(answer.count >= 20 && answer[0] == 0x01 && answer[1] == 0x11)
        }
        print("S5: \(requests.count) hostile requests to each end, \(answers) error responses")
        #expect(
            await onLoop(loop) { call.answerer.value.peer.selectedPair?.remote }?.hasSuffix(":\(attacker.port)")
                == false)
        await call.close()
        loop.shutdown()
    }
}

/// The first flight of a real client.
private func clientHello() throws -> [UInt8] {
    let client = try OpenSSLDTLS(certificate: try Certificate())
    client.start(role: .client, expecting: [], now: EventLoop.now)
    var batch = DatagramBatch()
    client.drain(into: &batch)
    return Array(batch[0])
}

private func hostileRequests(ufrag: String) -> [[UInt8]] {
    var generator = SystemRandomNumberGenerator()

    func request(length: Int? = nil, _ attributes: [UInt8]) -> [UInt8] {
        let stated = length ?? attributes.count
        return [0x00, 0x01, UInt8(stated >> 8 & 0xff), UInt8(stated & 0xff), 0x21, 0x12, 0xa4, 0x42]
            + (0..<12).map { _ in UInt8.random(in: 0...255, using: &generator) } + attributes
    }

    func attribute(_ type: UInt16, _ value: [UInt8], length: Int? = nil) -> [UInt8] {
        let stated = length ?? value.count
        return [UInt8(type >> 8), UInt8(type & 0xff), UInt8(stated >> 8 & 0xff), UInt8(stated & 0xff)] + value
            + [UInt8](repeating: 0, count: (4 - value.count % 4) % 4)
    }

    let username = attribute(0x0006, Array("\(ufrag):peer".utf8))
    let useCandidate = attribute(0x0025, [])
    let falseIntegrity = attribute(0x0008, [UInt8](repeating: 1, count: 20))
    var requests = [
        request([]), request(username), request(username + useCandidate),
        request(username + useCandidate + falseIntegrity),
    ]
    for lie in [1, 4, 20, 1000, 0xfffc, 0xffff] {
        requests.append(request(length: lie, username))
        requests.append(request(attribute(0x0006, Array(ufrag.utf8), length: lie)))
        requests.append(request(username + attribute(0x0008, [1, 2, 3, 4], length: lie)))
        requests.append(request(username + attribute(0x8028, [1], length: lie)))
    }
    let whole = request(username + useCandidate + falseIntegrity)
    for length in 0..<whole.count { requests.append(Array(whole.prefix(length))) }
    for _ in 0..<500 {
        var damaged = whole
        for _ in 0..<4 {
            damaged[Int.random(in: 0..<damaged.count, using: &generator)] = .random(in: 0...255, using: &generator)
        }
        requests.append(damaged)
    }
    return requests
}
