import RTP
import Testing

@testable import CongestionControl

@Suite struct AcknowledgedRateTests {
    /// Packets of 1250 bytes each 10 ms: 1000 kbit/s.
    private func steady(_ range: Range<Int>, into rate: inout AcknowledgedRate, arrival: (Int) -> Double) {
        for index in range {
            rate.add(packet(index, sent: Double(index) * 10, arrival: arrival(index), bytes: 1250))
        }
    }

    @Test("The rate is the one that arrives, after ten packets")
    func steady() {
        var rate = AcknowledgedRate()
        steady(0..<9, into: &rate) { Double($0) * 10 + 40 }
        #expect(rate.rate == nil)
        steady(9..<200, into: &rate) { Double($0) * 10 + 40 }
        #expect(abs((rate.rate?.kilobits ?? 0) - 1000) < 1)
    }

    @Test("A delay spike and the burst after it change nothing")
    func spike() {
        var rate = AcknowledgedRate()
        steady(0..<103, into: &rate) { (100..<130).contains($0) ? 1340 + Double($0) / 100 : Double($0) * 10 + 40 }
        #expect(abs((rate.rate?.kilobits ?? 0) - 1000) < 30)
    }

    @Test("The recent rate follows a link that becomes slower within a quarter of a second")
    func recent() {
        var rate = AcknowledgedRate()
        steady(0..<100, into: &rate) { Double($0) * 10 + 40 }
        // 250 kbit/s from now on.
        steady(100..<112, into: &rate) { 1040 + Double($0 - 99) * 40 }
        #expect(abs((rate.recentRate?.kilobits ?? 0) - 250) < 25)
        #expect((rate.rate?.kilobits ?? 0) > 500)
    }

    @Test("A pause of sending, over which a queue lasts, hardly lowers the recent rate")
    func draining() {
        var rate = AcknowledgedRate()
        steady(0..<130, into: &rate) { Double($0) * 10 + 540 }
        for index in 130..<142 {
            rate.add(
                packet(index, sent: 1750 + Double(index - 130), arrival: Double(index) * 10 + 540, bytes: 1250))
        }
        #expect((rate.recentRate?.kilobits ?? 0) > 600)
    }

    @Test("Reordered packets count, and a receiver's clock that is set starts again")
    func reordering() {
        var rate = AcknowledgedRate()
        steady(0..<100, into: &rate) { Double($0 ^ 1) * 10 + 40 }
        #expect(abs((rate.rate?.kilobits ?? 0) - 1000) < 20)
        rate.add(packet(100, sent: 1000, arrival: -4000))
        #expect(rate.rate == nil)
    }
}

@Suite struct RateControlTests {
    private func control(_ kilobits: Double) -> RateControl {
        var control = RateControl(start: .kilobits(kilobits), minimum: .kilobits(10))
        control.roundTrip = milliseconds(100)
        control.update(.normal, acknowledged: .kilobits(kilobits), recent: nil, now: at(0))
        return control
    }

    @Test("Without a known capacity, the rate grows by 8 % a second")
    func multiplicative() {
        var control = control(500)
        for step in 1...10 {
            control.update(.normal, acknowledged: .kilobits(600), recent: nil, now: at(Double(step) * 100))
        }
        #expect(abs(control.estimate.kilobits - 545) < 10)
    }

    @Test("An estimate below the rate that arrives without a queue follows it, but not soon after a back-off")
    func confirmed() {
        var control = control(200)
        control.update(.over, acknowledged: .kilobits(150), recent: nil, now: at(1000))
        control.update(.normal, acknowledged: .kilobits(180), recent: nil, now: at(1100))
        control.confirm(now: at(2900))
        #expect(control.estimate < .kilobits(135))
        control.confirm(now: at(3200))
        #expect(control.estimate == .kilobits(171))
    }

    @Test("Near the capacity, the rate grows by one packet per response time")
    func additive() {
        var control = control(1000)
        control.update(.over, acknowledged: .kilobits(1000), recent: nil, now: at(300))
        control.set(.kilobits(950), now: at(400))
        control.update(.normal, acknowledged: .kilobits(950), recent: nil, now: at(500))
        let before = control.estimate
        control.update(.normal, acknowledged: .kilobits(950), recent: nil, now: at(1500))
        // Frames of 3958 bytes are four packets, one of them each 400 ms.
        let step = (control.estimate - before).kilobits
        #expect(step > 15 && step < 25)
        control.roundTrip = milliseconds(300)
        #expect(control.nearMaximumIncrease.kilobits < step / 1.8)
    }

    @Test
    func `far below a capacity that a probe showed, the rate grows as without one`() {
        func growth(capacity: Double) -> Double {
            var control = control(500)
            control.setCapacity(.kilobits(capacity))
            for step in 1...10 {
                control.update(.normal, acknowledged: .kilobits(500), recent: nil, now: at(Double(step) * 100))
            }
            return control.estimate.kilobits - 500
        }
        #expect(growth(capacity: 700) > 35)
        #expect(growth(capacity: 520) < 25)
        // Others left less than the estimate for a moment.
        #expect(growth(capacity: 480) > 35)
    }

    @Test("The rate exceeds the acknowledged one by half and 10 kbit/s at most")
    func lead() {
        var control = control(500)
        for step in 1...100 {
            control.update(.normal, acknowledged: .kilobits(400), recent: nil, now: at(Double(step) * 100))
        }
        #expect(control.estimate == .kilobits(610))
    }

    @Test("A back-off goes to 85 % of the acknowledged rate, and to 93 % if it is the same as before")
    func backOff() {
        var control = control(1200)
        control.update(.over, acknowledged: .kilobits(1000), recent: .kilobits(1000), now: at(300))
        #expect(control.estimate == .kilobits(845))
        control.set(.kilobits(1100), now: at(600))
        control.update(.over, acknowledged: .kilobits(1000), recent: .kilobits(990), now: at(1000))
        #expect(abs(control.estimate.kilobits - (990 * 0.93 - 5)) < 0.01)
        control.set(.kilobits(1100), now: at(1200))
        control.update(.over, acknowledged: .kilobits(1000), recent: .kilobits(700), now: at(1500))
        #expect(abs(control.estimate.kilobits - (700 * 0.85 - 5)) < 0.01)
    }

    @Test("While the queue lasts, a higher rate corrects a back-off, up to the estimate before it")
    func corrected() {
        var control = control(1000)
        let before = control.estimate
        control.beginOveruse()
        control.update(.over, acknowledged: .kilobits(900), recent: .kilobits(300), now: at(300))
        #expect(control.estimate == .kilobits(250))
        control.correct(.kilobits(350))
        #expect(control.estimate == .kilobits(250))
        control.correct(.kilobits(900))
        #expect(control.estimate == .kilobits(760))
        control.correct(.kilobits(2000))
        #expect(control.estimate == before)
        control.beginOveruse()
        control.correct(.kilobits(3000))
        #expect(control.estimate == before)
    }

    @Test("There is one back-off per round trip, unless the acknowledged rate is below half")
    func pause() {
        var control = control(1000)
        control.update(.over, acknowledged: .kilobits(900), recent: nil, now: at(300))
        #expect(!control.canBackOff(acknowledged: .kilobits(700), now: at(390)))
        #expect(control.canBackOff(acknowledged: .kilobits(700), now: at(401)))
        #expect(control.canBackOff(acknowledged: .kilobits(300), now: at(310)))
    }
}

@Suite struct LinkCapacityTests {
    @Test("The capacity is an average with bounds of three deviations")
    func bounds() {
        var capacity = LinkCapacity()
        #expect(capacity.upperBound == .unlimited)
        for rate in [500.0, 510, 490, 505] { capacity.overused(acknowledged: .kilobits(rate)) }
        #expect(abs((capacity.estimate?.kilobits ?? 0) - 500) < 2)
        #expect(capacity.upperBound.kilobits > 530 && capacity.upperBound.kilobits < 560)
        #expect(capacity.lowerBound.kilobits > 440 && capacity.lowerBound.kilobits < 470)
        capacity.forget()
        #expect(capacity.lowerBound == .zero)
    }
}
