import PeerSession
import RTP
import TestSupport
import Testing

@Suite struct MediaTests {
    /// 10 packets per frame, 30 frames per second.
    private func play(_ stream: Stream, on call: Call, seconds: Int) {
        // A loss at the very end shows only when later packets arrive: four packets that do not count.
        call.every(.microseconds(33_333), count: seconds * 30 + 1) { index in
            stream.send(index == seconds * 30 ? 4 : 10)
        }
        call.run(for: .seconds(Int64(seconds) + 2))
    }

    @Test("Over a clean path every packet arrives once, in order, with only the path's delay")
    func clean() {
        let call = Call()
        call.secure()
        let stream = Stream.video(call)
        play(stream, on: call, seconds: 10)
        #expect(stream.missing == 0 && stream.repeated == 0 && stream.late == 0)
        #expect(stream.slowest == .milliseconds(20))
        #expect(call.b.statistics(of: stream.receiver)?.nackedPackets == 0)
        #expect(call.a.statistics(of: stream.sender)?.retransmittedPackets == 0)
        #expect(call.b.statistics(of: stream.receiver)?.packets == stream.count)
    }

    @Test(
        "At 5 % loss in both directions every video packet is delivered once, across the wrap of sequence numbers",
        arguments: 1...2)
    func lossy(seed: Int) throws {
        let call = Call(seed: UInt64(seed), path: Path(loss: 0.05, jitter: .milliseconds(5)))
        call.secure()
        let stream = Stream.video(call)
        play(stream, on: call, seconds: 30)
        let receiving = try #require(call.b.statistics(of: stream.receiver))
        let sending = try #require(call.a.statistics(of: stream.sender))
        #expect(stream.missing - stream.received.suffix(4).count { $0 == 0 } == 0)
        #expect(stream.repeated == 0)
        #expect(receiving.unrecovered == 0)
        // Each repair costs little more than one request and one retransmission.
        #expect(Double(sending.retransmittedPackets) < 1.3 * Double(receiving.lost))
        #expect(abs(Double(receiving.lost) / Double(stream.count) - 0.05) < 0.01)
        #expect(abs(sending.remoteLost - receiving.lost) < 40)
        #expect(stream.slowest < .milliseconds(400))
    }

    @Test("With 20 % duplicated and reordered every packet is delivered once")
    func duplicatedAndReordered() throws {
        let call = Call(seed: 3, path: Path(duplication: 0.2, reordering: 0.2))
        call.secure()
        let stream = Stream.video(call)
        play(stream, on: call, seconds: 20)
        #expect(stream.missing == 0 && stream.repeated == 0)
        let dropped = call.b.statistics.dropped
        #expect(dropped.authenticationFailures > 500, "SRTP's replay protection meets duplicates first")
        #expect(try #require(call.b.statistics(of: stream.receiver)).unrecovered == 0)
    }

    @Test("Loss, duplication, reordering and jitter together at 300 ms round trip lose less than one in two hundred")
    func everythingAtOnce() {
        let path = Path(
            loss: 0.05, duplication: 0.05, reordering: 0.05, delay: .milliseconds(150), jitter: .milliseconds(30))
        let call = Call(seed: 4, path: path)
        call.secure()
        let stream = Stream.video(call)
        play(stream, on: call, seconds: 30)
        // A packet is given up after 400 ms, in which one repair arrives. Sometimes that is lost too.
        #expect(stream.missing - stream.received.suffix(4).count { $0 == 0 } < stream.count / 200)
        #expect(stream.repeated == 0)
    }

    /// Ten minutes in make test, and an hour in make soak.
    @Test("A long call runs on virtual time, with reports each second and statistics that add up")
    func long() throws {
        let seconds = Soak.rounds(600, soak: 3600)
        let count = seconds * 50
        let call = Call(seed: 5, path: Path(loss: 0.01, jitter: .milliseconds(2)))
        call.secure()
        let audio = Stream.audio(call)
        let video = Stream.video(call, length: 100)
        call.every(.milliseconds(20), count: count) { _ in audio.send() }
        call.every(.milliseconds(200), count: seconds * 5) { _ in video.send(2) }
        call.run(for: .seconds(Int64(seconds) + 2))
        #expect(video.missing - video.received.suffix(2).count { $0 == 0 } == 0)
        #expect(video.repeated == 0 && audio.repeated == 0)
        #expect(abs(Double(audio.missing) / Double(count) - 0.01) < 0.002)
        let receiving = try #require(call.b.statistics(of: audio.receiver))
        #expect(abs(receiving.lost - audio.missing) <= 2)
        #expect(receiving.nackedPackets == 0)
        let reports = call.events[1].count { if case .senderReport = $0 { true } else { false } }
        let perStream = Double(reports) / 2 / Double(seconds)
        #expect((0.89...1.08).contains(perStream), "two streams, a report of each about every second: \(reports)")
        #expect(call.b.statistics.dropped.authenticationFailures == 0)
        let roundTrip = try #require(call.a.statistics.roundTrip)
        #expect((TimeInterval.milliseconds(40)...TimeInterval.milliseconds(46)).contains(roundTrip))
    }

    @Test("Two runs with the same seed are identical")
    func reproducible() {
        func transcript() -> [Int] {
            let call = Call(seed: 6, path: Path(loss: 0.05, duplication: 0.02, reordering: 0.05))
            call.secure()
            let stream = Stream.video(call)
            play(stream, on: call, seconds: 5)
            return call.sent + call.sentBytes + [stream.late]
        }
        #expect(transcript() == transcript())
    }

    @Test("A cut of three seconds is reported as unrepairable loss, and the stream continues")
    func cut() throws {
        let call = Call(seed: 7)
        call.secure()
        let stream = Stream.video(call)
        call.at(.seconds(2)) { call.paths[0].isCut = true }
        call.at(.seconds(5)) { call.paths[0].isCut = false }
        play(stream, on: call, seconds: 8)
        #expect(call.events[1].contains(.lossBeyondRepair(stream.receiver)))
        let receiving = try #require(call.b.statistics(of: stream.receiver))
        #expect(receiving.unrecovered > 800 && receiving.unrecovered <= 910)
        #expect(stream.received.suffix(800).allSatisfy { $0 == 1 })
    }

    @Test("A sender that restarts with distant numbers is followed")
    func restart() {
        let call = Call()
        call.secure()
        let first = Stream.video(call, first: 100)
        for _ in 0..<50 { first.send() }
        call.run(for: .seconds(1))
        call.a.removeSender(first.sender, now: call.now)
        var packet = PacketBuffer()
        let second = call.a.addSender(
            SenderConfiguration(ssrc: SSRC(1000), clockRate: 90000), now: call.now)
        var delivered = 0
        call.onMedia = { _, _, _, _ in delivered += 1 }
        for number in 0..<50 {
            let number = SequenceNumber(UInt16(30_000 + number))
            guard
                packet.assignRTP(
                    payloadType: 96, sequenceNumber: number, timestamp: RTPTimestamp(1), ssrc: SSRC(1),
                    payload: [UInt8](repeating: 1, count: 50)),
                let header = RTPHeader(parsing: packet)
            else { continue }
            call.a.send(packet, header: header, rewrite: Rewrite(keeping: header), via: second, now: call.now)
        }
        call.flush()
        call.run(for: .seconds(1))
        #expect(delivered == 49)
        #expect(call.events[1].contains(.bye(first.receiver)))
    }
}
