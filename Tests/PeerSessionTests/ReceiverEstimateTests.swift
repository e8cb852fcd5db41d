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

    @Test("Padding rests while the estimate does not rise, and without estimates")
    func rest() {
        var search = EstimateSearch()
        func at(_ seconds: Int64) -> MonotonicTime { .zero + .seconds(100 + seconds) }
        search.heard(300, demand: 200, now: at(0))
        #expect(!search.isPadding)
        for second in 1...5 as ClosedRange<Int64> {
            search.heard(300, demand: 500, now: at(second))
            #expect(search.allowsPadding(now: at(second)), "\(second)")
        }
        #expect(search.allowsPadding(now: at(9)))
        for second in 6...35 as ClosedRange<Int64> {
            search.heard(300, demand: 500, now: at(second))
            #expect(!search.allowsPadding(now: at(second)), "\(second)")
        }
        // A peer that gets nothing makes no estimate.
        #expect(search.allowsPadding(now: at(39)))
        search.heard(300, demand: 500, now: at(36))
        #expect(search.isPadding)
        search.heard(400, demand: 500, now: at(40))
        search.heard(400, demand: 500, now: at(44))
        #expect(search.isPadding)
        search.heard(350, demand: 500, now: at(44))
        #expect(!search.isPadding)
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
