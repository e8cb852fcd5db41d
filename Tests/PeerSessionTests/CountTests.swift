import PeerSession
import RTP
import Testing

/// The counters of streams.
@Suite struct CountTests {
    /// 10 packets of 1100 bytes for each of 30 frames a second.
    private func play(_ stream: Stream, on call: Call, seconds: Int) {
        call.every(.microseconds(33_333), count: seconds * 30) { _ in stream.send(10) }
        call.run(for: .seconds(Int64(seconds) + 2))
    }

    @Test func `both ends count the same packets, payloads and headers`() throws {
        let call = Call()
        call.secure()
        let stream = Stream.video(call) { $0.mid = "v" }
        play(stream, on: call, seconds: 3)
        let sent = try #require(call.a.statistics(of: stream.sender))
        let received = try #require(call.b.statistics(of: stream.receiver)).arrivals
        #expect(sent.packets == 900 && received.packets == 900)
        #expect(sent.bytes - sent.headerBytes == 900 * 1100)
        #expect(received.payloadBytes == 900 * 1100)
        #expect(received.headerBytes == sent.headerBytes && sent.headerBytes >= 900 * RTPHeader.minimumLength)
        #expect(received.retransmittedPackets == 0 && received.last != nil)
    }

    @Test func `repeats count as such at both ends, with the original number as payload`() throws {
        let call = Call(path: Path(loss: 0.05))
        call.secure()
        let stream = Stream.video(call)
        play(stream, on: call, seconds: 20)
        let sent = try #require(call.a.statistics(of: stream.sender))
        let received = try #require(call.b.statistics(of: stream.receiver))
        let repeats = received.arrivals.retransmittedPackets
        #expect(sent.retransmittedPackets > 200 && (1...sent.retransmittedPackets).contains(repeats))
        #expect(received.arrivals.retransmittedBytes == repeats * 1102)
        #expect(sent.retransmittedBytes - sent.retransmittedHeaderBytes == sent.retransmittedPackets * 1102)
        #expect(received.nacks > 0 && sent.nacks > 0 && sent.nacks <= received.nacks)
    }

    @Test func `reports measure the round trip of each stream`() throws {
        let call = Call()
        call.secure()
        let stream = Stream.video(call)
        play(stream, on: call, seconds: 10)
        let sent = try #require(call.a.statistics(of: stream.sender))
        // The path takes 20 ms each way.
        #expect(abs(try #require(sent.roundTrip).milliseconds - 40) < 0.1)
        #expect(sent.roundTrips >= 5)
        #expect(abs(sent.totalRoundTrip.milliseconds / Double(sent.roundTrips) - 40) < 0.1)
        #expect(sent.reportedAt != nil)
    }

    @Test func `a receiver knows what the sender has sent by its reports`() throws {
        let call = Call()
        call.secure()
        let stream = Stream.video(call)
        play(stream, on: call, seconds: 10)
        let sent = try #require(call.a.statistics(of: stream.sender))
        let received = try #require(call.b.statistics(of: stream.receiver))
        let told = try #require(received.sent)
        #expect(told.packets == sent.packets && told.bytes == sent.bytes - sent.packets * RTPHeader.minimumLength)
        #expect(told.reports >= 5)
    }

    @Test func `the counts of reports go on beyond 32 bits, and a late report changes nothing`() {
        func report(_ packets: UInt32, _ bytes: UInt32) -> SenderInformation {
            SenderInformation(
                ssrc: SSRC(1), ntp: NTPTime(rawValue: 1), rtp: RTPTimestamp(0), packetCount: packets,
                octetCount: bytes)
        }
        var sent = ReportedPackets(report(10, .max - 99), now: .zero)
        sent.receive(report(20, 900), now: .zero)
        #expect(sent.packets == 20 && sent.bytes == 1 << 32 + 900)
        sent.receive(report(15, .max - 10), now: .zero)
        #expect(sent.packets == 20 && sent.bytes == 1 << 32 + 900 && sent.reports == 3)
    }

    @Test func `FIR and PLI are counted apart`() throws {
        let call = Call()
        call.secure()
        let stream = Stream.video(call)
        call.at(.seconds(1)) { call.b.requestKeyframe(stream.receiver, now: call.now) }
        play(stream, on: call, seconds: 3)
        let sent = try #require(call.a.statistics(of: stream.sender))
        #expect(sent.keyframeRequests == 1 && sent.fullIntraRequests == 0)
        #expect(call.b.statistics(of: stream.receiver)?.keyframeRequests == 1)
    }
}
