import RTP
import Testing

@testable import CongestionControl

@Suite struct ReportEstimateTests {
    /// Packets of 1250 bytes, and a report each second.
    private struct Path {
        var estimate = ReportEstimate()
        var time = 0.0

        /// - Parameter lost: the share that reports lack. Nil for no reports.
        mutating func run(seconds: Int, packets: Int = 100, lost: Double?) {
            for _ in 0..<seconds {
                for packet in 0..<packets {
                    estimate.sent(bytes: 1250, now: at(time + Double(packet) * 1000 / Double(packets)))
                }
                time += 1000
                if let lost { report(lost, of: packets) }
            }
        }

        mutating func report(_ lost: Double, of packets: Int) {
            estimate.reported(lost: lost, of: packets)
            estimate.judge(roundTrip: .milliseconds(50), now: at(time))
        }

        var rate: Double { estimate.rate.kilobits }
    }

    @Test func `nothing limits the rate before congestion, and then the rate that arrives does`() {
        var path = Path()
        path.run(seconds: 20, lost: 0.05)
        #expect(!path.estimate.rate.isLimited && !path.estimate.isCongested)
        path.run(seconds: 1, lost: 0.75)
        #expect(abs(path.rate - 250) < 1 && path.estimate.isCongested)
    }

    @Test func `losses just above a tenth count once many packets confirm them`() {
        var path = Path()
        path.run(seconds: 3, lost: 0.13)
        #expect(!path.estimate.rate.isLimited && !path.estimate.isCongested)
        path.run(seconds: 1, lost: 0.13)
        #expect(abs(path.rate - 870) < 5 && path.estimate.isCongested, "\(path.rate)")
        var lucky = Path()
        lucky.run(seconds: 1, packets: 20, lost: 0.15)
        lucky.run(seconds: 1, packets: 20, lost: 0.05)
        #expect(!lucky.estimate.isCongested)
    }

    @Test func `above a tenth of loss it falls by half of that, and below a fiftieth it rises by 8 % a second`() {
        var path = Path()
        path.run(seconds: 1, lost: 0.75)
        path.run(seconds: 1, lost: 0.2)
        #expect(abs(path.rate - 225) < 1)
        path.run(seconds: 10, lost: 0.05)
        #expect(abs(path.rate - 225) < 1 && !path.estimate.isCongested)
        path.run(seconds: 10, lost: 0.01)
        #expect(abs(path.rate - 225 * 2.159) < 2, "\(path.rate)")
    }

    @Test func `it falls to 50 kbit/s at least, and ends above the highest rate of a session`() {
        var path = Path()
        path.run(seconds: 60, lost: 0.9)
        #expect(path.rate == 50)
        path.run(seconds: 60, lost: 0)
        #expect(path.estimate.rate.isLimited)
        path.run(seconds: 20, lost: 0)
        #expect(!path.estimate.rate.isLimited)
    }

    @Test func `many reports at once, and those about few packets, change nothing`() {
        var path = Path()
        path.run(seconds: 1, lost: 0.5)
        let rate = path.rate
        for _ in 0..<100 { path.report(1, of: 1000) }
        #expect(path.rate == rate)
        path.run(seconds: 1, lost: 0)
        #expect(path.rate < rate, "the reports before are judged a second later")
        let lower = path.rate
        path.run(seconds: 1, packets: 5, lost: 1)
        #expect(path.rate == lower)
    }

    @Test func `a peer that reports no packets for twenty seconds gets 300 kbit/s until it does`() {
        var path = Path()
        path.run(seconds: 19, lost: nil)
        #expect(!path.estimate.rate.isLimited && !path.estimate.isCongested)
        path.run(seconds: 2, lost: nil)
        #expect(path.rate == 300 && path.estimate.isCongested)
        // It has got nothing since its report before.
        path.report(1, of: 0)
        #expect(path.rate == 300)
        path.run(seconds: 1, lost: 0)
        #expect(!path.estimate.rate.isLimited && !path.estimate.isCongested)
    }

    @Test func `the reports of all streams are judged together`() {
        var path = Path()
        path.run(seconds: 1, lost: nil)
        path.estimate.reported(lost: 0, of: 50)
        path.report(0.4, of: 150)
        #expect(path.estimate.isCongested && abs(path.rate - 700) < 5, "\(path.rate)")
    }

    @Test func `a pause of the streams counts neither as silence of the peer nor for the rate that was sent`() {
        var path = Path()
        path.run(seconds: 1, packets: 5, lost: nil)
        path.time += 60_000
        path.run(seconds: 1, packets: 200, lost: 0.5)
        #expect(abs(path.rate - 1000) < 5, "\(path.rate)")
    }
}
