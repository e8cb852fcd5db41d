import PeerSession
import RTP
import Testing

@Suite struct LivenessTests {
    /// An RTP packet and a report such as any sender can send from a forged address.
    private let forgeries: [[UInt8]] = [
        [0x80, 96, 0, 1, 0, 0, 0, 1, 0, 0, 0x03, 0xe8] + [UInt8](repeating: 7, count: 60),
        [0x80, 201, 0, 7, 0, 0, 0x03, 0xe8] + [UInt8](repeating: 7, count: 60),
        [22, 0xfe, 0xfd] + [UInt8](repeating: 0, count: 40),
    ]

    private func secured() -> Call {
        let call = Call()
        call.secure()
        return call
    }

    @Test("Forged bytes from the peer's address do not extend consent: media ends 30 s after the last authentic packet")
    func forgery() {
        let call = secured()
        let stream = Stream.video(call)
        call.at(.seconds(2)) { call.paths[Call.End.b.rawValue].isCut = true }
        call.every(.milliseconds(20), count: 3000) { _ in stream.send() }
        call.every(.milliseconds(100), count: 600) { index in
            if index > 20 { call.deliver(forgeries[index % forgeries.count], to: .a) }
        }
        call.run(for: .seconds(13))
        #expect(call.events[0].contains(.silent))
        #expect(!call.events[0].contains(.consentLost))
        let last = call.a.lastReceived
        #expect(last - call.start < .seconds(3))
        call.run(until: { $0.events[0].contains(.consentLost) })
        let unanswered = call.now - last
        #expect((TimeInterval.seconds(30)...TimeInterval.milliseconds(30_100)).contains(unanswered))
        let sent = call.sent[0]
        call.run(for: .seconds(5))
        #expect(call.sent[0] == sent)
        #expect(call.a.isEnded && !call.events[0].contains(.heard))
    }

    @Test("A silent peer that receives nothing is reported once, causes no timeouts and is kept")
    func silentHour() {
        let call = secured()
        for end in 0...1 { call.paths[end].isCut = true }
        call.run(for: .seconds(3600))
        #expect(call.events.map { $0.count { $0 == .silent } } == [1, 1])
        #expect(call.timeouts == [1, 1])
        #expect(!call.a.isEnded && !call.b.isEnded)
    }

    @Test("A peer that removed its receiver before the last packets arrived is kept, as the sender is removed too")
    func endedStream() {
        let call = secured()
        let stream = Stream.video(call)
        call.at(.seconds(2)) {
            call.b.removeReceiver(stream.receiver)
            stream.send()
            call.a.removeSender(stream.sender, now: call.now)
        }
        call.run(for: .seconds(60))
        #expect(!call.events[0].contains(.consentLost))
        #expect(!call.a.isEnded && !call.b.isEnded)
    }

    @Test(
        "A process that is stopped for 20 s and goes on keeps its session and its media", arguments: [Call.End.a, .b])
    func stopped(end: Call.End) {
        let call = secured()
        let stream = Stream.video(call)
        call.every(.milliseconds(20), count: 2000) { _ in if call.stopped != .a { stream.send() } }
        call.at(.seconds(2)) { call.stop(end) }
        call.at(.seconds(22)) { call.goOn() }
        call.run(for: .seconds(45))
        #expect(!call.a.isEnded && !call.b.isEnded)
        #expect(stream.missing == 0)
        #expect(stream.repeated == 0)
        #expect(stream.count >= (end == .a ? 990 : 2000))
        // The other end notices the silence and its end.
        let other = call.events[end.other.rawValue]
        #expect(other.count { $0 == .silent } == 1)
        #expect(other.count { $0 == .heard } == 1)
    }

    @Test("A hundred silent peers wake the loop only for their reports")
    func wakeUps() {
        let calls = (0..<100).map { _ in secured() }
        for call in calls {
            call.paths[0].isCut = true
            call.paths[1].isCut = true
            _ = Stream.audio(call)
            call.run(for: .seconds(60))
        }
        // That of the silence.
        #expect(calls.allSatisfy { $0.timeouts == [1, 1] })
    }

    @Test("The first packet after a silence is reported immediately")
    func heardAgain() {
        let call = secured()
        call.paths[0].isCut = true
        call.run(for: .seconds(20))
        #expect(call.events[1].last == .silent)
        let silence = call.events[1].count - 1
        call.paths[0].isCut = false
        let stream = Stream.video(call)
        stream.send()
        call.run(for: .milliseconds(20))
        #expect(call.events[1].firstIndex(of: .heard) == silence + 1)
        #expect(call.b.lastReceived == call.now)
    }

    @Test("Media sent after a long silence has the whole consent time for a response", arguments: [true, false])
    func lateSubscription(answers: Bool) {
        let call = secured()
        call.paths[1].isCut = true
        call.run(for: .seconds(100))
        let stream = Stream.video(call)
        call.every(.milliseconds(100), count: 400) { _ in stream.send() }
        call.run(for: .seconds(29))
        #expect(!call.a.isEnded)
        if answers { call.paths[1].isCut = false }
        call.run(for: .seconds(2))
        #expect(call.a.isEnded != answers)
    }

    @Test func `a silent session sends a report in five seconds, and one in a second as soon as media flows`() {
        let call = secured()
        let stream = Stream.video(call)
        stream.send()
        call.run(for: .seconds(30))
        var before = call.sent
        call.run(for: .seconds(1000))
        for end in 0...1 { #expect((160...240).contains(call.sent[end] - before[end])) }
        #expect(call.events.allSatisfy { !$0.contains(.silent) })
        stream.send()
        before = call.sent
        call.run(for: .milliseconds(1600))
        for end in 0...1 { #expect(call.sent[end] > before[end]) }
    }

    @Test(arguments: [true, false])
    func `a released handshake notices that the peer closes by its silence, and ignores forged alerts`(closes: Bool) {
        let call = Call(releasesHandshake: true)
        call.secure()
        let stream = Stream.video(call)
        call.every(.milliseconds(20), count: 1000) { _ in stream.send() }
        call.run(for: .seconds(5))
        #expect(call.handshakes.allSatisfy { $0.isReleased })
        if closes { call.b.close(now: call.now) } else { call.deliver(HandshakeDouble.alert, to: .a) }
        call.run(for: .seconds(19))
        #expect(!call.events[0].contains(.closed))
        call.run(for: .seconds(2))
        #expect(call.events[0].contains(.closed) == closes)
        #expect(call.a.isEnded == closes)
    }

    @Test func `a handshake is kept until the peer has sent a packet, and without the setting`() {
        let unproven = Call(releasesHandshake: true)
        unproven.secure()
        #expect(unproven.handshakes.allSatisfy { !$0.isReleased })
        let kept = secured()
        let stream = Stream.video(kept)
        kept.every(.milliseconds(20), count: 100) { _ in stream.send() }
        kept.run(for: .seconds(5))
        #expect(kept.handshakes.allSatisfy { !$0.isReleased })
    }

    @Test func `a forged alert does not end a session without streams, whose peer has nothing to report`() {
        let call = Call(releasesHandshake: true)
        call.secure()
        let stream = Stream.video(call)
        call.every(.milliseconds(20), count: 100) { _ in stream.send() }
        call.run(for: .seconds(5))
        #expect(call.handshakes.allSatisfy { $0.isReleased })
        call.a.removeSender(stream.sender, now: call.now)
        call.b.removeReceiver(stream.receiver)
        call.deliver(HandshakeDouble.alert, to: .a)
        call.run(for: .seconds(60))
        #expect(!call.events[0].contains(.closed) && !call.a.isEnded)
    }
}
