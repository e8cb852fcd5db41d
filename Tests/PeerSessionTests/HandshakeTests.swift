import PeerSession
import RTP
import Testing
import TestSupport

@Suite struct HandshakeTests {
    @Test("Nothing is sent before the transport is connected, in any order of calls", arguments: [true, false])
    func nothingBefore(startsFirst: Bool) {
        let call = Call()
        func start() { call.a.start(role: .client, expecting: [call.b.localFingerprint], now: call.now) }
        if startsFirst { start() } else { call.a.transportConnected(now: call.now) }
        call.a.handleTimeout(now: call.now + .seconds(10))
        #expect(call.a.outgoingCount == 0)
        #expect(call.a.nextTimeout == .never)
        if startsFirst { call.a.transportConnected(now: call.now) } else { start() }
        #expect(call.a.outgoingCount == 1)
        #expect(call.a.nextTimeout < .never)
    }

    @Test("Two peers are secured after two round trips and report it once")
    func secured() {
        let call = Call()
        call.secure()
        #expect(call.elapsed == .milliseconds(80))
        call.run(for: .seconds(4))
        #expect(call.events == [[.secured(.aeadAES128GCM)], [.secured(.aeadAES128GCM)]])
    }

    @Test("The handshake survives 30 % loss in both directions", arguments: 1...20)
    func lossy(seed: Int) {
        let call = Call(seed: UInt64(seed), path: Path(loss: 0.3))
        call.secure()
    }

    @Test("S1: DTLS and media before ICE has validated a pair are dropped and counted; the call still connects")
    func beforeTransport() {
        let call = Call()
        call.a.start(role: .client, expecting: [call.b.localFingerprint], now: call.now)
        call.b.start(role: .server, expecting: [call.a.localFingerprint], now: call.now)
        for _ in 0..<1000 {
            call.deliver([22, 1], to: .b)
            call.deliver([0x80, 96] + [UInt8](repeating: 0, count: 30), to: .b)
        }
        #expect(call.b.outgoingCount == 0)
        #expect(call.handshakes[1].startedAt == nil)
        #expect(call.b.statistics.dropped.beforeConnected == 2000)
        call.a.transportConnected(now: call.now)
        call.b.transportConnected(now: call.now)
        call.run(until: { $0.a.isSecured && $0.b.isSecured })
        #expect(call.b.isSecured)
    }

    @Test("S4: with another certificate than signalled no byte is delivered, in either role", arguments: [0, 1])
    func wrongCertificate(suspicious: Int) {
        let call = Call()
        let stranger = [Fingerprint(algorithm: "sha-256", digest: [9, 9])]
        let stream = Stream.video(call)
        call.a.start(role: .client, expecting: suspicious == 0 ? stranger : [call.b.localFingerprint], now: call.now)
        call.b.start(role: .server, expecting: suspicious == 1 ? stranger : [call.a.localFingerprint], now: call.now)
        call.a.transportConnected(now: call.now)
        call.b.transportConnected(now: call.now)
        call.flush()
        call.every(.milliseconds(20), count: 100) { _ in stream.send() }
        call.run(for: .seconds(5))
        guard case .failed(let reason) = call.events[suspicious].first else {
            Issue.record("\(call.events[suspicious])")
            return
        }
        #expect(reason.contains("fingerprint"))
        #expect(!call.sessions[suspicious].isSecured)
        #expect(stream.missing == stream.count)
    }

    @Test("S4: media before the end of the handshake is dropped and counted")
    func mediaBeforeSecured() {
        let call = Call()
        call.connect()
        call.deliver([0x80, 96] + [UInt8](repeating: 0, count: 30), to: .b)
        call.deliver([0x80, 200] + [UInt8](repeating: 0, count: 30), to: .b)
        #expect(call.b.statistics.dropped.beforeSecured == 2)
        #expect(call.b.outgoingCount == 0)
    }

    @Test("S2: 100,000 packets with invalid tags are counted and change nothing")
    func badTags() {
        let call = Call()
        call.secure()
        let stream = Stream.video(call)
        var random = Seeded(2)
        var forged = [UInt8](repeating: 0, count: 60)
        for index in 0..<100_000 {
            forged[0] = 0x80
            forged[1] = index % 5 == 0 ? 200 : 96
            forged[3] = UInt8(truncatingIfNeeded: index)
            forged[10] = 3
            forged[11] = 0xe8
            forged[50] = UInt8.random(in: 0...255, using: &random)
            call.deliver(forged, to: .b)
            if index == 49_999 { call.run(for: .seconds(1)) }
        }
        #expect(call.b.statistics.dropped.authenticationFailures == 100_000)
        #expect(call.b.outgoingCount == 0)
        call.flush()
        let reports = call.events[1].compactMap { if case .unauthenticated(let packets) = $0 { packets } else { nil } }
        #expect(reports == [1, 50_001])
        call.every(.milliseconds(20), count: 100) { _ in stream.send() }
        call.run(for: .seconds(3))
        #expect(stream.missing == 0)
        #expect(call.b.statistics(of: stream.receiver)?.lost == 0)
    }

    @Test("Datagrams of other protocols and empty ones are counted")
    func otherProtocols() {
        let call = Call()
        call.secure()
        for first: UInt8 in [0, 3, 19, 64, 79, 127, 192, 255] { call.deliver([first, 0, 0, 0], to: .b) }
        call.deliver([], to: .b)
        #expect(call.b.statistics.dropped.unknownProtocol == 9)
        call.deliver([0x80], to: .b)
        call.deliver([0x80, 96, 1], to: .b)
        call.deliver([0x80, 200, 1], to: .b)
        #expect(call.b.statistics.dropped.malformed == 3)
    }

    @Test("Closing notifies the peer, which ends with one event; both fall silent")
    func closing() {
        let call = Call()
        call.secure()
        let stream = Stream.video(call)
        stream.send()
        call.a.close(now: call.now)
        call.a.close(now: call.now)
        call.run(for: .seconds(1))
        #expect(call.events[1].contains(.bye(stream.receiver)))
        #expect(call.events[1].last == .closed)
        #expect(call.b.isEnded && call.a.isEnded)
        #expect(call.a.nextTimeout == .never && call.b.nextTimeout == .never)
        let sent = call.sent
        stream.send()
        call.deliver([22, 1], to: .a)
        call.run(for: .seconds(10))
        #expect(call.sent == sent)
        #expect(call.a.statistics.dropped.afterEnd > 0)
    }
}
