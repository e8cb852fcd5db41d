import RTP
import Testing
import TestSupport

@testable import PeerSession

/// Sends in the place of a peer, with the keys of its session.
final class Voice {
    private let call: Call
    private let to: Call.End
    private let cipher: CipherDouble
    private var packet = PacketBuffer()

    /// Delivers a datagram that `to` accepts as its peer's.
    init(_ call: Call, to: Call.End) throws {
        self.call = call
        self.to = to
        let key: UInt8 = to == .b ? 0x5a : 0xa5
        var keys = SRTPKeys(profile: .aeadAES128GCM, local: [key], remote: [0])
        cipher = try CipherDouble(keys: &keys)
    }

    func say(_ packets: [RTCPPacket]) {
        packet.count = 0
        for one in packets where !one.append(to: &packet) { Issue.record("\(one) does not fit.") }
        guard cipher.protectRTCP(&packet) else { return }
        call.deliver(Array(packet.bytes[..<packet.count]), to: to)
    }

    /// An RTP packet as given, with its header.
    func send(_ bytes: [UInt8]) {
        guard packet.assign(bytes), cipher.protectRTP(&packet) else { return }
        call.deliver(Array(packet.bytes[..<packet.count]), to: to)
    }
}

@Suite struct FeedbackTests {
    @Test("A keyframe request reaches the sender")
    func keyframeRequest() {
        let call = Call()
        call.secure()
        let stream = Stream.video(call)
        stream.send()
        call.run(for: .milliseconds(100))
        call.b.requestKeyframe(stream.receiver, now: call.now)
        call.run(for: .milliseconds(20))
        #expect(call.events[0].contains(.keyframeRequested(stream.sender)))
        #expect(call.a.statistics(of: stream.sender)?.keyframeRequests == 1)
        #expect(call.b.statistics(of: stream.receiver)?.keyframeRequests == 1)
    }

    @Test("Keyframe requests are sent at most every 200 ms")
    func keyframeRequestRate() {
        let call = Call()
        call.secure()
        let stream = Stream.video(call)
        call.every(.milliseconds(1), count: 1000) { _ in call.b.requestKeyframe(stream.receiver, now: call.now) }
        call.run(for: .seconds(3))
        // At 0, 200, ... 800 ms, and one for the requests after that.
        #expect(call.b.statistics(of: stream.receiver)?.keyframeRequests == 6)
        #expect(call.a.statistics(of: stream.sender)?.keyframeRequests == 6)
    }

    @Test("A keyframe requested before the session is secured is requested when it is")
    func earlyKeyframeRequest() {
        let call = Call()
        let stream = Stream.video(call)
        call.b.requestKeyframe(stream.receiver, now: call.now)
        call.secure()
        call.run(for: .milliseconds(100))
        #expect(call.a.statistics(of: stream.sender)?.keyframeRequests == 1)
    }

    @Test("An FIR counts once for each command number; many requests cause one event")
    func fullIntraRequest() throws {
        let call = Call()
        call.secure()
        let stream = Stream.video(call)
        let voice = try Voice(call, to: .a)
        for command: UInt8 in [1, 1, 1, 2, 2] {
            voice.say([.fullIntraRequest(sender: SSRC(1), requests: [.init(ssrc: SSRC(1000), command: command)])])
        }
        #expect(call.a.statistics(of: stream.sender)?.keyframeRequests == 2)
        #expect(call.a.statistics(of: stream.sender)?.fullIntraRequests == 2)
        #expect(call.a.pollEvent() == .keyframeRequested(stream.sender))
        #expect(call.a.pollEvent() == nil)
    }

    @Test("The first sender report follows the first packet immediately, with the extrapolated clock")
    func senderReport() throws {
        let call = Call()
        call.secure()
        let stream = Stream.video(call)
        let origin = NTPTime(unixNanoseconds: 1_763_697_600_000_000_000)
        call.run(for: .milliseconds(420))
        let sentAt = call.now
        stream.send()
        call.run(for: .milliseconds(20))
        guard case .senderReport(let id, let report) = call.events[1].last else {
            Issue.record("\(call.events[1])")
            return
        }
        #expect(id == stream.receiver)
        #expect(report.arrival == sentAt + .milliseconds(20))
        #expect(report.ntp == origin.advanced(by: sentAt - call.start))
        #expect(report.rtp.rawValue == UInt32((sentAt - call.start).nanoseconds * 9 / 100_000))
    }

    @Test("Without a clock there is no sender report; with one it follows immediately")
    func noClock() {
        let call = Call()
        call.secure()
        var packet = PacketBuffer()
        let sender = call.a.addSender(SenderConfiguration(ssrc: SSRC(1000), clockRate: 90000), now: call.now)
        _ = call.b.addReceiver(
            ReceiverConfiguration(
                ssrc: SSRC(1000), mid: "v", clockRate: 90000, payloadTypes: [96], nack: true))
        let fits = packet.assignRTP(
            payloadType: 96, sequenceNumber: SequenceNumber(1), timestamp: RTPTimestamp(5), ssrc: SSRC(1), payload: [1])
        guard fits, let header = RTPHeader(parsing: packet) else { return }
        call.a.send(packet, header: header, rewrite: Rewrite(keeping: header), via: sender, now: call.now)
        call.run(for: .seconds(3))
        func reports() -> Int { call.events[1].count { if case .senderReport = $0 { true } else { false } } }
        #expect(reports() == 0)
        call.a.setClock(sender, ntp: NTPTime(unixNanoseconds: 5), rtp: RTPTimestamp(0), at: call.now)
        call.run(for: .milliseconds(21))
        #expect(reports() == 1)
    }

    @Test("The round trip is measured by reports, and by repairs at an end that sends nothing")
    func roundTrip() throws {
        let call = Call(seed: 8, path: Path(loss: 0.02, delay: .milliseconds(35)))
        call.secure()
        let stream = Stream.video(call)
        call.every(.milliseconds(10), count: 2000) { _ in stream.send(2) }
        call.run(for: .seconds(21))
        let sender = try #require(call.a.statistics.roundTrip)
        let receiver = try #require(call.b.statistics.roundTrip)
        #expect((70...71).contains(sender.milliseconds))
        #expect((70...75).contains(receiver.milliseconds))
        #expect(call.events[0].contains { if case .roundTrip = $0 { true } else { false } })
    }

    @Test func `S17: compounds cause at most 1024 lookups of sent packets at once, and 10,000 a second`() {
        let table = StreamTable(configuration: PeerSessionConfiguration(cname: "a", seed: 1))
        _ = table.addSender(SenderConfiguration(ssrc: SSRC(7), clockRate: 90000))
        let numbers = (0..<1000).map { SequenceNumber($0) }
        let storm = [RTCPPacket](repeating: .nack(sender: SSRC(1), media: SSRC(7), lost: numbers), count: 6)
        func lookups(at milliseconds: UInt64) -> Int {
            var lookups = 0
            table.receive(storm, now: MonotonicTime(nanoseconds: milliseconds * 1_000_000)) { _, lost in
                lookups += lost.count
            }
            return lookups
        }
        #expect(lookups(at: 1000) == 1024)
        #expect(lookups(at: 1000) == 0)
        #expect(lookups(at: 1050) == 500)
        #expect((1051...2050).reduce(0) { $0 + lookups(at: $1) } == 10_000)
        #expect(lookups(at: 60_000) == 1024)
    }

    @Test func `S17: feedback causes at most 16,384 lookups at once, and 40,000 a second`() {
        var budget = LookupBudget.feedback
        func lookups(at milliseconds: UInt64) -> Int {
            budget.take(100_000, now: MonotonicTime(nanoseconds: milliseconds * 1_000_000))
        }
        #expect(lookups(at: 1000) == 16_384)
        #expect(lookups(at: 1000) == 0)
        #expect((1001...2000).reduce(0) { $0 + lookups(at: $1) } == 40_000)
        func isAllowed(_ wanted: Int, at milliseconds: UInt64) -> Bool {
            budget.takeAll(wanted, now: MonotonicTime(nanoseconds: milliseconds * 1_000_000))
        }
        #expect(!isAllowed(41, at: 2001) && isAllowed(40, at: 2001) && !isAllowed(1, at: 2001))
    }

    @Test("S17: a storm of NACKs gets at most the repairs' share of the bitrate and the minimum")
    func nackStorm() throws {
        let call = Call()
        call.secure()
        let stream = Stream.video(call)
        let voice = try Voice(call, to: .a)
        // Fewer a second than may be looked up, so that the budget of bytes decides.
        let recent = { index in
            (0..<90).map { SequenceNumber(65000).advanced(by: stream.count - 1 - (90 * index + $0) % 400) }
        }
        call.every(.milliseconds(10), count: 1000) { index in
            stream.send()
            if stream.count >= 400 {
                voice.say([.nack(sender: SSRC(1), media: SSRC(1000), lost: recent(index))])
            }
        }
        call.run(for: .seconds(11))
        let statistics = try #require(call.a.statistics(of: stream.sender))
        #expect(statistics.nackedPackets > 50_000)
        // 30 % of the bytes sent, 12,500 bytes a second for ten seconds, plus 64 KiB of saved credit.
        let budget = statistics.bytes * 3 / 10 + 125_000 + 65_536
        #expect(statistics.retransmittedBytes <= budget)
        #expect(statistics.retransmittedBytes > budget / 2)
        #expect(statistics.retransmissionsOverBudget > 10_000)
        #expect(stream.missing == 0)
    }

    @Test("A packet is resent once per 10 ms or half a round trip, however often it is requested")
    func repeatInterval() throws {
        let call = Call()
        call.secure()
        let stream = Stream.video(call)
        let voice = try Voice(call, to: .a)
        stream.send()
        for _ in 0..<100 { voice.say([.nack(sender: SSRC(1), media: SSRC(1000), lost: [SequenceNumber(65000)])]) }
        let statistics = try #require(call.a.statistics(of: stream.sender))
        #expect(statistics.retransmittedPackets == 1)
        #expect(statistics.retransmissionsHeldBack == 99)
        call.run(for: .milliseconds(30))
        voice.say([.nack(sender: SSRC(1), media: SSRC(1000), lost: [SequenceNumber(65000), SequenceNumber(9)])])
        let later = try #require(call.a.statistics(of: stream.sender))
        #expect(later.retransmittedPackets == 2)
        #expect(later.retransmissionsMissed == 1)
    }

    @Test("Audio without NACK requests nothing; losses are counted")
    func audio() throws {
        let call = Call(seed: 9, path: Path(loss: 0.1))
        call.secure()
        let stream = Stream.audio(call)
        call.every(.milliseconds(20), count: 2000) { _ in stream.send() }
        call.run(for: .seconds(39))
        let receiving = try #require(call.b.statistics(of: stream.receiver))
        let sending = try #require(call.a.statistics(of: stream.sender))
        #expect(receiving.nackedPackets == 0 && sending.nacks == 0)
        #expect(abs(receiving.lost - stream.missing) <= 3, "those on their way are neither")
        #expect((100...300).contains(stream.missing))
        #expect((0.02...0.25).contains(sending.remoteFractionLost))
    }

    @Test("Malformed RTCP of an authenticated peer is counted and changes nothing")
    func malformedControl() throws {
        let call = Call()
        call.secure()
        var keys = SRTPKeys(profile: .aeadAES128GCM, local: [0x5a], remote: [0])
        let cipher = try CipherDouble(keys: &keys)
        var random = Seeded(10)
        for _ in 0..<20_000 {
            var packet = PacketBuffer()
            var bytes = (0..<Int.random(in: 8...80, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            bytes[0] = 0x80 | bytes[0] & 0x3f
            bytes[1] = UInt8.random(in: 200...207, using: &random)
            bytes[2] = 0
            guard packet.assign(bytes), cipher.protectRTCP(&packet) else { continue }
            call.deliver(Array(packet.bytes[..<packet.count]), to: .b)
        }
        #expect(call.b.statistics.dropped.malformed > 10_000)
        #expect(call.b.isSecured)
    }

    @Test("A gap needs handleTimeout after 10 ms, for a NACK")
    func deadline() {
        let call = Call()
        call.secure()
        let stream = Stream.video(call)
        stream.send()
        call.run(for: .milliseconds(50))
        call.paths[0].isCut = true
        stream.send()
        call.flush()
        call.paths[0].isCut = false
        stream.send()
        call.run(for: .milliseconds(20))
        #expect(call.b.nextTimeout == call.now + .milliseconds(10))
    }

    @Test("Outgoing datagrams that are not sent stop at the capacity and are counted")
    func outgoingCapacity() {
        let call = Call(outgoingCapacity: 16)
        call.secure()
        let stream = Stream.video(call)
        stream.send(20)
        #expect(call.a.outgoingCount == 16)
        #expect(call.a.statistics.dropped.outgoingFull == 4)
    }
}
