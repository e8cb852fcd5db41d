import CongestionControl
import RTP
import Testing

@Suite struct ControllerTests {
    private func call(
        _ kilobits: Double, seconds: Double, _ change: (CallSimulation) -> Void = { _ in }
    ) -> CallSimulation {
        let call = CallSimulation(forward: SimulatedLink.Settings(kilobits, delay: 25))
        change(call)
        return call.run(until: seconds)
    }

    @Test("The first target is the start rate, and the first probes are at 3 and 6 times of it")
    func start() {
        let controller = CongestionController(.init(start: .kilobits(400)))
        controller.begin(now: at(0))
        #expect(controller.control.target == .kilobits(400))
        #expect(controller.control.pacing == .kilobits(1000))
        var probes: [Double] = []
        while let probe = controller.takeProbe() { probes.append(probe.rate.kilobits) }
        #expect(probes == [1200, 2400])
    }

    @Test("Settings in the wrong order are put in order")
    func settings() {
        let settings = CongestionController.Settings(
            minimum: .kilobits(100), start: .kilobits(5), maximum: .kilobits(50))
        #expect(settings.start == .kilobits(100))
        #expect(settings.maximum == .kilobits(100))
    }

    @Test("Nothing is due for an idle path after the first seconds")
    func idle() {
        let controller = CongestionController(.init())
        #expect(controller.nextTimeout == .never)
        controller.begin(now: at(0))
        while controller.nextTimeout < at(60_000) {
            controller.handleTimeout(now: controller.nextTimeout)
            while controller.takeProbe() != nil {}
        }
        #expect(controller.nextTimeout == .never)
    }

    @Test("REMB caps the target, and without transport-wide feedback it raises it")
    func receiverEstimate() {
        let controller = CongestionController(.init(start: .kilobits(300), maximum: .kilobits(2000)))
        controller.received(ReceiverEstimate(sender: SSRC(1), bitsPerSecond: 800_000, sources: []), now: at(0))
        #expect(controller.control.target == .kilobits(800))
        controller.received(ReceiverEstimate(sender: SSRC(1), bitsPerSecond: 200_000, sources: []), now: at(100))
        #expect(controller.control.target == .kilobits(200))
        controller.received(ReceiverEstimate(sender: SSRC(1), bitsPerSecond: 0, sources: []), now: at(200))
        #expect(controller.control.target == .kilobits(800))
    }

    @Test("A process that stood still for 2 s keeps its estimate and its round trip")
    func stall() {
        let call = call(2000, seconds: 14) { $0.stall = (10, 12) }
        #expect(call.estimate(at: 12.2) > call.estimate(at: 9.9) * 0.85)
        #expect(call.estimate(at: 14) > 1500)
        #expect(call.records[0].samples.allSatisfy { $0.roundTrip < 300 })
    }

    @Test func `packets without a report lower the estimate after 3 s, and a pause before them does not count`() {
        let controller = CongestionController(.init(start: .kilobits(400)))
        controller.begin(now: at(0))
        controller.sent(bytes: 1000, now: at(0))
        controller.received(feedback(base: 0, [25]), now: at(60))
        let before = controller.estimate
        for time in stride(from: 5000.0, through: 9000, by: 500) {
            controller.sent(bytes: 1000, now: at(time))
            controller.handleTimeout(now: at(time + 100))
            #expect((controller.estimate < before) == (time >= 8000), "\(time)")
        }
    }

    @Test("After an outage of the path, the estimate begins at half, and a probe brings it back")
    func outage() {
        let call = call(2000, seconds: 15) { call in
            call.at(10) { $0.changeForward { $0.rates += [(10, 0), (12, 2000)] } }
        }
        let before = call.estimate(at: 10)
        let first = call.records[0].samples.first { $0.time > 12 && $0.estimate < before * 0.99 }
        #expect(abs((first?.estimate ?? 0) - before / 2) < before * 0.05)
        #expect(call.estimate(at: 15) > before * 0.85)
    }

    @Test("The pacer holds no packet longer than 150 ms in a call, and audio not at all")
    func hold() {
        let call = call(600, seconds: 10)
        #expect(call.records[0].longestHold <= 151)
        #expect(call.records[0].longestAudioHold == 0)
    }

    @Test("An audio-only call keeps its rate on a link of 100 kbit/s")
    func audio() {
        var flow = CallSimulation.Flow()
        flow.video = nil
        let call = CallSimulation(forward: SimulatedLink.Settings(100, delay: 25), flows: [flow]).run(until: 20)
        #expect(call.lowest(2, 20) > 60)
        #expect(call.queue(0.95, 2, 20) < 40)
        // Audio has no RTX.
        #expect(call.records[0].paddingDelivered.isEmpty)
    }

    @Test("The maximum limits the estimate, and a new one counts immediately")
    func limits() {
        let call = call(3000, seconds: 6) { call in
            call.at(4) { $0.controller(0) { $0.setLimits(minimum: .kilobits(10), maximum: .kilobits(500), now: $1) } }
        }
        #expect(call.estimate(at: 3.9) > 2000)
        #expect(call.estimate(at: 4.1) == 500)
    }

    @Test("Feedback that a peer makes up never traps, and the target stays within its limits")
    func hostile() {
        let controller = CongestionController(.init())
        controller.begin(now: at(0))
        for index in 0..<5000 {
            let now = at(Double(index) * 7)
            while controller.takeProbe() != nil {}
            controller.sent(bytes: 1200, probe: UInt16(index % 9), now: now)
            var strange = feedback(base: UInt16(truncatingIfNeeded: index &* 7919), [1, nil, 40, 3])
            strange.referenceTime = UInt32(truncatingIfNeeded: index &* 2_654_435_761) & 0xff_ffff
            if index % 3 == 0 { strange.base = controller.nextNumber.advanced(by: -4) }
            controller.received(strange, now: now)
            controller.handleTimeout(now: now)
            #expect(controller.control.target >= .kilobits(10) && controller.control.target <= .kilobits(10_000))
        }
    }
}
