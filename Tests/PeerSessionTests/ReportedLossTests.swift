import RTP
import Testing

@testable import PeerSession

/// Sessions whose peer neither reports arrivals nor estimates the path: receiver reports are all there is.
@Suite struct ReportedLossTests {
    private static let wish = 2_000_000

    private func send(_ paced: PacedCall, for seconds: Int64) {
        paced.send(for: .seconds(seconds), most: Self.wish, first: Self.wish + 60_000)
    }

    @Test func `a sender comes near the rate of a narrow link, and back when the link carries more`() throws {
        let paced = PacedCall(rate: 500_000, feedback: .none)
        paced.call.secure()
        send(paced, for: 80)
        #expect(paced.call.a.isPaced)
        let rates = paced.targets.filter { $0.at >= .seconds(20) }.map(\.rate).sorted()
        try #require(rates.count > 20)
        #expect((250_000...800_000).contains(rates[rates.count / 2]), "\(rates)")
        #expect(rates[0] >= 100_000 && rates[rates.count - 1] < 1_500_000, "\(rates)")
        paced.call.paths[0].rate = 5_000_000
        send(paced, for: 60)
        #expect(try #require(paced.target) > Self.wish)
        #expect(!paced.call.a.isCongested)
    }

    @Test func `a link that carries everything is left alone`() {
        let paced = PacedCall(rate: 5_000_000, feedback: .none)
        paced.call.secure()
        send(paced, for: 20)
        paced.call.run(for: .seconds(1))
        #expect(!paced.call.a.isPaced && paced.target == nil)
        #expect(paced.video.missing == 0 && paced.audio.missing == 0)
    }

    @Test func `a peer without any report gets 300 kbit/s after twenty seconds, and everything once it reports`() {
        let paced = PacedCall(rate: nil, feedback: .none)
        paced.call.secure()
        paced.call.paths[1].isCut = true
        send(paced, for: 19)
        #expect(!paced.call.a.isPaced)
        send(paced, for: 4)
        #expect(paced.target == 300_000 && paced.call.a.isCongested)
        paced.call.paths[1].isCut = false
        send(paced, for: 4)
        #expect(paced.target ?? 0 > Self.wish && !paced.call.a.isCongested)
    }

    @Test func `on another path, the reports of the former one limit nothing`() throws {
        let paced = PacedCall(rate: 300_000, feedback: .none)
        paced.call.secure()
        send(paced, for: 10)
        #expect(try #require(paced.sending).targetBitsPerSecond < 1_000_000)
        paced.call.a.routeChanged(now: paced.call.now)
        #expect(try #require(paced.sending).targetBitsPerSecond > Self.wish && !paced.call.a.isCongested)
    }

    @Test func `with transport-wide numbers, receiver reports limit nothing any longer`() throws {
        let paced = PacedCall(rate: 500_000, feedback: .none)
        paced.call.secure()
        send(paced, for: 5)
        #expect(paced.call.a.isPaced)
        paced.call.paths[0].rate = 5_000_000
        for sender in [paced.video.sender, paced.audio.sender] {
            paced.call.a.setExtensions(PacedCall.numbers, of: sender, now: paced.call.now)
        }
        for receiver in [paced.video.receiver, paced.audio.receiver] {
            paced.call.b.setExtensions(PacedCall.numbers, of: receiver)
        }
        send(paced, for: 8)
        #expect(try #require(paced.target) > 1_000_000)
    }

    /// As a client that unpublishes and publishes again.
    @Test func `the reports of a session that has had transport-wide numbers limit nothing later`() throws {
        let paced = PacedCall(rate: 5_000_000)
        let senders = [paced.video.sender, paced.audio.sender]
        paced.call.secure()
        paced.call.paths[0].loss = 0.3
        send(paced, for: 10)
        paced.call.paths[0].loss = 0
        for sender in senders { paced.call.a.setExtensions(HeaderExtensionIDs(), of: sender, now: paced.call.now) }
        paced.call.run(for: .seconds(3))
        for sender in senders { paced.call.a.setExtensions(PacedCall.numbers, of: sender, now: paced.call.now) }
        send(paced, for: 20)
        #expect(try #require(paced.target) > 1_000_000)
    }

    @Test func `what the streams could use counts also for an estimate that begins the control`() throws {
        let paced = PacedCall(rate: nil, feedback: .none)
        paced.call.secure()
        paced.call.a.setDemand(bitsPerSecond: 1_500_000, now: paced.call.now)
        try Voice(paced.call, to: .a).say([
            .receiverEstimate(ReceiverEstimate(sender: SSRC(99), bitsPerSecond: 400_000, sources: []))
        ])
        #expect(paced.call.a.isCongested)
    }

    @Test
    func `forged losses lower the rate to 50 kbit/s, and those of packets that were never sent count for nothing`()
        throws
    {
        let paced = PacedCall(rate: nil, feedback: .none)
        paced.call.secure()
        let peer = try Voice(paced.call, to: .a)
        func report(_ highest: UInt32) {
            let block = ReportBlock(
                ssrc: SSRC(1000), fractionLost: 255, cumulativeLost: 0, extendedHighestSequence: highest, jitter: 0,
                lastSenderReport: 0, delaySinceLastSenderReport: 0)
            peer.say([.receiverReport(SSRC(99), [block])])
        }
        report(.max)
        #expect(!paced.call.a.isPaced)
        paced.call.every(.milliseconds(10), count: 500) { index in
            paced.video.send()
            report(UInt32(truncatingIfNeeded: index &* 0x1234_5678))
        }
        paced.call.run(for: .seconds(6))
        #expect(paced.sending?.targetBitsPerSecond == 50_000)
        #expect(paced.video.missing == 0)
    }
}
