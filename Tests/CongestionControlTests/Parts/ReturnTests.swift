import RTP
import TestSupport
import Testing

@testable import CongestionControl

/// A path that was out, or that became another one.
@Suite struct ReturnTests {
    private func time(_ seconds: Double) -> MonotonicTime { MonotonicTime(nanoseconds: UInt64((seconds + 100) * 1e9)) }

    @Test func `the window's reduction ends soon, however long too much was on its way`() {
        var window = CongestionWindow()
        window.add(roundTrip: .milliseconds(100))
        let rate = DataRate.kilobits(200)
        let bytes = window.bytes(at: rate) ?? 0
        for _ in 0..<200 { _ = window.lowered(rate, estimate: rate, inFlight: bytes * 2) }
        var updates = 0
        while window.lowered(rate, estimate: rate, inFlight: bytes * 0.2) < rate, updates < 1000 { updates += 1 }
        #expect(updates < 45)
    }

    @Test func `the window lowers nothing after an outage`() {
        var window = CongestionWindow()
        window.add(roundTrip: .milliseconds(100))
        let rate = DataRate.kilobits(200)
        let bytes = window.bytes(at: rate) ?? 0
        for _ in 0..<20 { _ = window.lowered(rate, estimate: rate, inFlight: bytes * 2) }
        window.returned()
        #expect(window.lowered(rate, estimate: rate, inFlight: bytes * 0.5) == rate)
    }

    /// The queue after feedback of each 50 ms, with the delay of each packet in milliseconds at a time.
    /// - Parameter returning: when packets arrive again after an outage
    private func queue(after seconds: Double, returning: Double? = nil, delay: (Double) -> Double) -> Double {
        var path = PathDelay()
        var number = 0
        for step in 0..<Int(seconds * 20) {
            if let returning, step == Int(returning * 20) { path.returned(now: time(returning)) }
            let packets = (0..<5).map { index in
                let sent = Double(step) / 20 + Double(index) / 100
                number += 1
                return PacketResult(
                    number: number, bytes: 1200, sent: time(sent), arrival: time(sent + delay(sent) / 1000))
            }
            path.add(packets, now: time(Double(step + 1) / 20 + 0.2))
        }
        return path.queue.milliseconds
    }

    @Test func `a delay that stays longer is that of the path after some seconds, and no queue`() {
        let longer = { (time: Double) in time < 10 ? 20.0 : 90 }
        #expect(queue(after: 11, delay: longer) > 69)
        #expect(queue(after: 18, delay: longer) < 1)
    }

    @Test func `after an outage, a longer delay is that of the path within three seconds`() {
        let longer = { (time: Double) in time < 10 ? 20.0 : 75 }
        #expect(queue(after: 10.5, returning: 10, delay: longer) > 54)
        #expect(queue(after: 12.8, returning: 10, delay: longer) < 1)
        // A queue that drains is none.
        let draining = { (time: Double) in time < 10 ? 20.0 : max(20, 320 - (time - 10) * 150) }
        #expect(queue(after: 11.5, returning: 10, delay: draining) > 60)
        // Nor is one that begins later.
        #expect(queue(after: 16, returning: 10) { $0 < 13 ? 20 : 75 } > 54)
    }

    @Test func `after an outage, a queue that another flow keeps full for a second and a half stays a queue`() {
        let full = { (time: Double) in time < 10 ? 20.0 : time < 11.7 ? 150 : 130 }
        #expect(queue(after: 11.6, returning: 10, delay: full) > 120)
        #expect(queue(after: 14, returning: 10, delay: full) > 100)
    }

    @Test func `jitter does not hide a longer path`() {
        var random = Seeded(3)
        let jittering = { (time: Double) in
            (time < 10 ? 20.0 : 90) + Double.random(in: 0..<8, using: &random)
        }
        #expect(queue(after: 20, delay: jittering) < 10)
    }

    @Test func `a queue that grows, drains or is short stays a queue`() {
        #expect(queue(after: 20) { $0 < 10 ? 20 : 60 + ($0 - 10) * 5 } > 80)
        #expect(queue(after: 20) { $0 < 10 ? 20 : 120 - ($0 - 10) * 5 } > 45)
        #expect(queue(after: 20) { $0 < 10 ? 20 : 35 } > 14)
    }

    @Test(arguments: [
        (packets: 5, silence: 800.0, isOutage: false), (packets: 20, silence: 800, isOutage: true),
        (packets: 20, silence: 450, isOutage: false),
    ])
    func `a silence in which few packets were sent is no outage, and neither is a short one`(
        packets: Int, silence: Double, isOutage: Bool
    ) {
        let controller = CongestionController(.init(start: .kilobits(400)))
        controller.begin(now: at(0))
        var number: UInt16 = 0
        func send(_ count: Int, from start: Double, over length: Double) -> [Double] {
            (0..<count).map { index in
                let sent = start + length * Double(index) / Double(count)
                while controller.takeProbe() != nil {}
                controller.sent(bytes: 1000, now: at(sent))
                number &+= 1
                return sent
            }
        }
        for step in 0..<30 {
            let sent = send(10, from: Double(step) * 100, over: 100)
            let report = feedback(base: number &- 10, sent.map { $0 + 25 }, number: UInt8(step))
            controller.received(report, now: at(Double(step) * 100 + 150))
        }
        let before = controller.estimate
        // One report, about all of them.
        let sent = send(packets, from: 3000, over: silence)
        let report = feedback(base: number &- UInt16(packets), sent.map { $0 + 25 }, number: 30)
        controller.received(report, now: at(3050 + silence))
        let left = controller.estimate / before
        #expect(isOutage ? (0.45...0.55).contains(left) : left > 0.9, "\(left)")
    }

    @Test func `what is lost while a link stops for half a second lowers no rate`() throws {
        let screen = try #require(Scenario.peers.first { $0.name.hasPrefix("screen, 4000") })
        #expect(screen.call().lowest(2, 20) > 3000)
    }

    @Test func `a probe of the rate before follows an outage, also one in which missing feedback lowered the estimate`()
    {
        var settings = SimulatedLink.Settings(rates: [(0, 2000), (10, 0), (25, 2000)], delay: 25)
        settings.queue = 600
        var flow = CallSimulation.Flow()
        flow.settings = .init(start: .kilobits(300), maximum: .kilobits(5000))
        let call = CallSimulation(forward: settings, flows: [flow]).run(until: 30)
        #expect(call.estimate(at: 24.9) < 200)
        #expect(call.estimate(at: 27) > 1300, "\(call.estimate(at: 27))")
    }
}
