import RTP
import Testing

@testable import PeerSession

/// Sessions whose receiving end estimates what the path carries (REMB), as for aiortc in both directions.
@Suite struct ReceiverEstimateTests {
    @Test("A sender without transport-wide numbers gets the rate of the link, and follows it down and up")
    func follows() throws {
        let paced = PacedCall(rate: 700_000, feedback: .sendTimes)
        paced.call.secure()
        paced.send(for: .seconds(30), most: 1_500_000)
        let low = try #require(paced.target)
        #expect((450_000...800_000).contains(low), "\(low)")
        #expect(paced.queue(0.95, since: .seconds(15)) < .milliseconds(150))
        // Before the first estimate, the queue overflows.
        #expect(paced.audio.missing < 30)
        paced.call.paths[0].rate = 3_000_000
        paced.send(for: .seconds(40), most: 1_500_000)
        let high = try #require(paced.target)
        #expect(high > 1_500_000, "\(high)")
        paced.call.paths[0].rate = 700_000
        paced.send(for: .seconds(20), most: 1_500_000)
        #expect(try #require(paced.target) < 800_000)
        #expect(paced.queue(0.95, since: .seconds(80)) < .milliseconds(150))
    }

    @Test("On 600 kbit/s and a round trip of 100 ms, the target is inside libwebrtc's band for REMB")
    func band() {
        let paced = PacedCall(rate: 600_000, delay: .milliseconds(50), feedback: .sendTimes)
        paced.call.secure()
        paced.send(for: .seconds(30), most: 1_500_000)
        let settled = paced.targets.filter { $0.at >= .seconds(5) }.map(\.rate)
        // Narrower than the band of 300 to 800. The goal is 450 to 630.
        #expect(settled.count > 5 && settled.allSatisfy { (450_000...660_000).contains($0) }, "\(settled)")
    }

    @Test("Before the first estimate, packets leave at once")
    func beginning() {
        let paced = PacedCall(rate: nil, feedback: .sendTimes)
        paced.call.secure()
        paced.call.run(for: .milliseconds(10))
        paced.video.send(100)
        paced.call.run(for: .milliseconds(100))
        #expect(paced.video.missing == 0)
    }

    @Test("Without times of sending, the estimate follows the losses")
    func losses() throws {
        let paced = PacedCall(rate: 5_000_000, feedback: .losses)
        paced.call.secure()
        paced.send(for: .seconds(10), most: 1_500_000)
        let before = try #require(paced.target)
        paced.call.paths[0].loss = 0.25
        paced.send(for: .seconds(10), most: 1_500_000)
        let lossy = try #require(paced.target)
        #expect(lossy < before / 2, "\(before), \(lossy)")
        paced.call.paths[0].loss = 0
        paced.send(for: .seconds(30), most: 1_500_000)
        #expect(try #require(paced.target) > lossy * 2)
    }

    @Test("Padding lets the estimate rise to what the streams could use, and ends there")
    func search() throws {
        let paced = PacedCall(rate: 600_000, feedback: .sendTimes)
        paced.call.secure()
        paced.send(for: .seconds(15), most: 1_500_000)
        paced.call.paths[0].rate = 5_000_000
        // The lowest layer, although the subscriber wants the highest.
        func sendLittle(for seconds: Int) {
            paced.call.a.setDemand(bitsPerSecond: 1_560_000, now: paced.call.now)
            paced.call.every(.milliseconds(50), count: seconds * 20) { _ in paced.video.send(1) }
            paced.call.run(for: .seconds(Int64(seconds)))
        }
        sendLittle(for: 40)
        let estimate = try #require(paced.sending).estimatedBitsPerSecond
        #expect(estimate > 1_560_000, "\(estimate)")
        func padding() -> Int { paced.call.a.statistics(of: paced.video.sender)?.paddingPackets ?? 0 }
        let packets = padding()
        #expect(packets > 0)
        sendLittle(for: 5)
        #expect(padding() == packets)
        #expect(paced.video.repeated == 0)
    }

    @Test("Padding rests while the estimate does not rise")
    func rest() {
        var search = EstimateSearch()
        func at(_ seconds: Int64) -> MonotonicTime { .zero + .seconds(100 + seconds) }
        func padding(_ second: Int64) -> EstimateSearch.Padding { search.padding(now: at(second)).padding }
        search.heard(300, demand: 200, now: at(0))
        #expect(padding(0) == .none)
        for second in 1...5 as ClosedRange<Int64> {
            search.heard(300, demand: 500, now: at(second))
            #expect(padding(second) == .full, "\(second)")
        }
        for second in 6...35 as ClosedRange<Int64> {
            search.heard(300, demand: 500, now: at(second))
            #expect(padding(second) == .none, "\(second)")
        }
        search.heard(300, demand: 500, now: at(36))
        #expect(padding(36) == .full)
        search.heard(400, demand: 500, now: at(40))
        search.heard(400, demand: 500, now: at(44))
        #expect(padding(44) == .full)
        search.heard(350, demand: 500, now: at(44))
        #expect(padding(44) == .none)
    }

    @Test(
        "In a silence, a little padding asks for an estimate for a part of each half minute, if the streams could use more"
    )
    func silence() {
        var search = EstimateSearch()
        func at(_ seconds: Int64) -> MonotonicTime { .zero + .seconds(100 + seconds) }
        func padding(_ second: Int64) -> EstimateSearch.Padding { search.padding(now: at(second)).padding }
        // Nothing has ever been heard.
        search.setDemand(500)
        #expect(padding(50) == .none && search.padding(now: at(50)).until == .never)
        search.heard(300, demand: 500, now: at(0))
        #expect(search.padding(now: at(2)) == (.full, until: at(3)))
        #expect(search.padding(now: at(3)) == (.least, until: at(13)))
        #expect(search.padding(now: at(13)) == (.none, until: at(33)))
        #expect(search.padding(now: at(33)) == (.least, until: at(43)))
        #expect(search.padding(now: at(3693)) == (.least, until: at(3703)))
        search.setDemand(200)
        #expect(padding(3694) == .none)
        search.setDemand(500)
        #expect(padding(3694) == .least)
    }

    @Test("A peer that makes no more estimates gets little padding, and no timer fires while there is none")
    func outage() throws {
        let paced = PacedCall(rate: 600_000, feedback: .sendTimes)
        paced.call.secure()
        paced.send(for: .seconds(15), most: 1_500_000)
        paced.call.a.setDemand(bitsPerSecond: 1_560_000, now: paced.call.now)
        // Datagrams arrive, and no report or estimate returns.
        paced.call.paths[1].isCut = true
        paced.call.run(for: .seconds(3))
        func padding() -> Int { paced.call.a.statistics(of: paced.video.sender)?.paddingBytes ?? 0 }
        var before = padding()
        paced.call.run(for: .seconds(9))
        let question = padding() - before
        #expect((10_000...70_000).contains(question), "\(question)")
        paced.call.run(for: .seconds(2))
        before = padding()
        let timeouts = paced.call.timeouts[0]
        paced.call.run(for: .seconds(10))
        #expect(padding() == before)
        #expect(paced.call.timeouts[0] - timeouts < 100)
    }

    @Test("Estimates about streams of others count for nothing, and those about streams of this end do")
    func strangers() throws {
        let paced = PacedCall(rate: nil, feedback: .none)
        paced.call.secure()
        let peer = try Voice(paced.call, to: .a)
        func say(_ rate: UInt64, _ sources: some Sequence<UInt32>) {
            peer.say([
                .receiverEstimate(
                    ReceiverEstimate(sender: SSRC(99), bitsPerSecond: rate, sources: sources.map { SSRC($0) }))
            ])
        }
        say(300_000, 5000..<5255)
        #expect(!paced.call.a.isPaced)
        say(2_000_000, [1000])
        #expect(paced.call.a.isPaced)
        for first in 0..<64 as Range<UInt32> { say(9_000_000, (10_000 + first * 255)..<(10_255 + first * 255)) }
        #expect(paced.sending?.targetBitsPerSecond == 2_100_000)
        // RTX is a stream of this end, too.
        say(400_000, [7777, 1001, 1000, 1001])
        #expect(paced.sending?.targetBitsPerSecond == 420_000)
        let streams = paced.call.a.streams
        #expect(streams.sentSources(of: (0..<255).map { SSRC($0 % 2 == 0 ? 1000 : 4) }) == [SSRC(1000)])
    }

    @Test("Estimates about different streams add up, and a newer one replaces that about its streams")
    func sum() {
        var estimates = ReceiverEstimates()
        func add(_ rate: UInt64, _ sources: [UInt32], at seconds: Int64) -> UInt64 {
            let estimate = ReceiverEstimate(sender: SSRC(1), bitsPerSecond: rate, sources: sources.map { SSRC($0) })
            return estimates.joined(estimate, now: .zero + .seconds(seconds)).bitsPerSecond
        }
        #expect(add(100, [1, 2], at: 0) == 100)
        #expect(add(50, [3], at: 1) == 150)
        #expect(add(200, [2], at: 2) == 250)
        #expect(add(.max, [4], at: 3) == .max)
        #expect(add(10, [2], at: 9) == 10)
        #expect(add(70, [], at: 9) == 70)
        #expect(add(20, [1], at: 9) == 20)
    }
}
