import RTP
import TestSupport
import Testing

@testable import CongestionControl

@Suite struct LossBasedEstimateTests {
    /// Sends at a rate in kbit/s. Packets are lost with a probability that depends on it. Times are in seconds.
    private func run(
        _ estimate: inout LossBasedEstimate, rate: (Double) -> Double, delayBased: Double = 2000,
        from start: Double = 0,
        seconds: Double, loss: (Double) -> Double
    ) {
        var random = Seeded(21)
        var time = start * 1000
        var number = Int(start * 1000)
        var batch: [PacketResult] = []
        while time < (start + seconds) * 1000 {
            let isLost = Double.random(in: 0..<1, using: &random) < loss(rate(time))
            batch.append(packet(number, sent: time, arrival: isLost ? nil : time + 40))
            time += 1200 * 8 / rate(time)
            number += 1
            if batch.count == 20 {
                estimate.setAcknowledged(.kilobits(rate(time) * (1 - loss(rate(time)))))
                estimate.add(batch, delayBased: .kilobits(delayBased), isApplicationLimited: false)
                batch = []
            }
        }
    }

    private func new() -> LossBasedEstimate { LossBasedEstimate(minimum: .kilobits(10), maximum: .kilobits(5000)) }

    @Test("Without loss, the estimate is that of the delay, after three observations")
    func none() {
        var estimate = new()
        run(&estimate, rate: { _ in 1000 }, seconds: 0.5) { _ in 0 }
        #expect(estimate.estimate == nil)
        run(&estimate, rate: { _ in 1000 }, from: 1, seconds: 3) { _ in 0 }
        #expect(estimate.estimate == .kilobits(2000))
        #expect(estimate.state == .unlimited)
    }

    @Test("Little loss that does not depend on the rate does not limit it")
    func random() {
        var estimate = new()
        run(&estimate, rate: { _ in 1900 }, seconds: 10) { _ in 0.01 }
        #expect((estimate.estimate?.kilobits ?? 0) > 1900)
    }

    @Test("More loss than a link has by itself limits the rate, also if it does not depend on the rate")
    func heavy() {
        var estimate = new()
        run(&estimate, rate: { _ in 1900 }, delayBased: 4000, seconds: 10) { _ in 0.15 }
        let reached = estimate.estimate?.kilobits ?? 0
        #expect(reached >= 1600 && reached < 1700, "\(reached)")
    }

    @Test("Loss that begins above a rate lowers the estimate towards it")
    func congestion() {
        var estimate = new()
        run(&estimate, rate: { _ in 1800 }, seconds: 6) { max(0, ($0 - 1200) / $0) }
        let reached = estimate.estimate?.kilobits ?? 0
        #expect(reached >= 1150 && reached < 1400, "\(reached)")
        #expect(estimate.state == .decreasing)
    }

    @Test("The estimate is never below the acknowledged rate, and rises when the loss ends")
    func recovery() {
        var estimate = new()
        run(&estimate, rate: { _ in 1800 }, seconds: 6) { max(0, ($0 - 900) / $0) }
        #expect((estimate.estimate?.kilobits ?? 0) >= 899)
        let low = estimate.estimate?.kilobits ?? 0
        run(&estimate, rate: { _ in 900 }, from: 6, seconds: 12) { _ in 0 }
        #expect((estimate.estimate?.kilobits ?? 0) > low * 1.07)
    }

    @Test func `loss that comes with a higher rate raises the estimate no further`() {
        var estimate = new()
        run(&estimate, rate: { _ in 1800 }, seconds: 6) { max(0, ($0 - 950) / $0) }
        run(&estimate, rate: { _ in 940 }, from: 6, seconds: 6) { _ in 0.01 }
        let before = estimate.estimate?.kilobits ?? 0
        run(&estimate, rate: { _ in 1050 }, from: 12, seconds: 6) { _ in 0.1 }
        let reached = estimate.estimate?.kilobits ?? 0
        #expect(before > 930 && reached < 1100, "\(before), \(reached)")
    }
}

@Suite struct LossObservationsTests {
    @Test("A packet that arrives after it was reported missing is not lost, and none counts twice")
    func late() {
        var observations = LossObservations()
        _ = observations.add([packet(0, sent: 0, arrival: 10), packet(1, sent: 100, arrival: nil)])
        _ = observations.add([packet(1, sent: 100, arrival: 150, wasMissing: true)])
        let isComplete = observations.add([packet(2, sent: 300, arrival: 310)])
        #expect(isComplete)
        #expect(observations.averageLoss == 0)
        observations.forEach { observation, _ in #expect(observation.sent == 3.6) }
    }

    @Test("One bad period among many does not count")
    func spike() {
        var observations = LossObservations()
        for index in 0..<10 {
            let packets = (0..<10).map { place in
                packet(
                    index * 10 + place, sent: Double(index) * 300 + Double(place) * 30,
                    arrival: index == 5 && place < 5 ? nil : 1)
            }
            _ = observations.add(packets)
        }
        #expect(observations.averageLoss < 0.001)
    }
}

@Suite struct FeedbackTimeoutTests {
    @Test("The rate drops by a fifth each second when feedback is missing for 3 s")
    func drops() {
        var timeout = FeedbackTimeout()
        timeout.sent(isAlone: true, now: at(0))
        timeout.received(roundTrip: milliseconds(100), now: at(100))
        timeout.sent(isAlone: true, now: at(110))
        timeout.sent(isAlone: false, now: at(2900))
        #expect(!timeout.isExceeded)
        timeout.sent(isAlone: false, now: at(3110))
        #expect(timeout.isExceeded)
        let rates = [(100.0, 3100.0), (80, 3600), (80, 4100)].map { timeout.lowered(.kilobits($0), now: at($1)) }
        #expect(rates == [.kilobits(80), .kilobits(80), .kilobits(64)])
    }

    @Test("A pause without packets, and a stall of this process, are no timeout")
    func pause() {
        var timeout = FeedbackTimeout()
        timeout.sent(isAlone: true, now: at(0))
        timeout.received(roundTrip: milliseconds(100), now: at(100))
        #expect(!timeout.isExceeded)
        timeout.stalled(for: milliseconds(5000))
        timeout.sent(isAlone: false, now: at(5200))
        #expect(!timeout.isExceeded)
        timeout.sent(isAlone: true, now: at(15_000))
        #expect(!timeout.isExceeded)
    }
}
