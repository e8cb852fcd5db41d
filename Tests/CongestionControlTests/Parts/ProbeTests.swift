import RTP
import Testing

@testable import CongestionControl

@Suite struct ProbeResultsTests {
    private func cluster(_ rate: Double, explored: Double? = nil) -> ProbeCluster {
        ProbeCluster(
            id: 7, rate: .kilobits(rate), duration: milliseconds(15), interval: milliseconds(2), requested: at(0),
            explored: explored.map { .kilobits($0) })
    }

    /// Ten packets of 1000 bytes at 4 Mbit/s, of which some arrive, at a rate in kbit/s.
    private func result(
        _ cluster: ProbeCluster, arriving rate: Double, lost: Set<Int> = []
    ) -> ProbeResults.Result? {
        var results = ProbeResults()
        var result: ProbeResults.Result?
        for index in 0..<10 where !lost.contains(index) {
            let packet = packet(
                index, sent: Double(index) * 2, arrival: 50 + Double(index) * 8000 / rate, bytes: 1000, probe: 7)
            result = results.add(packet, of: cluster) ?? result
        }
        return result
    }

    @Test("A probe that the link carries gives its rate")
    func free() {
        let found = result(cluster(4000), arriving: 4000)
        #expect(found?.rate.kilobits.rounded() == 4000)
        #expect(found?.capacity == nil)
    }

    @Test("A probe that fills the link gives 95 % of the rate of its arrivals")
    func full() {
        let found = result(cluster(4000), arriving: 2000)
        #expect(abs((found?.rate.kilobits ?? 0) - 1900) < 1)
        #expect(abs((found?.capacity?.kilobits ?? 0) - 2000) < 1)
    }

    @Test("A large first packet and small ones after it do not look like a full link")
    func mixedSizes() {
        var results = ProbeResults()
        let probe = cluster(400)
        var result: ProbeResults.Result?
        for index in 0..<6 {
            let packet = packet(
                index, sent: index == 0 ? 0 : 12 + Double(index) * 2, arrival: index == 0 ? 61 : 64 + Double(index) * 2,
                bytes: index == 0 ? 700 : 100, probe: 7)
            result = results.add(packet, of: probe) ?? result
        }
        #expect(result != nil && result?.capacity == nil)
    }

    @Test(arguments: [0, 5, 7, 9])
    func `a packet that others overtook changes no result`(_ late: Int) {
        var results = ProbeResults()
        let probe = cluster(4000)
        // Others follow the probe, so that its last packet can be overtaken too.
        var packets = (0..<16).map { index in
            packet(
                index, sent: Double(index) * 2, arrival: 50 + Double(index) * 4 + (index == late ? 21 : 0), bytes: 1000,
                probe: index < 10 ? 7 : 0)
        }
        packets.sort { ($0.arrival ?? .zero) < ($1.arrival ?? .zero) }
        var result: ProbeResults.Result?
        for packet in packets { result = results.add(packet, of: packet.probe == 0 ? nil : probe) ?? result }
        #expect(abs((result?.capacity?.kilobits ?? 0) - 2000) < 1)
    }

    @Test("A probe of which too little arrives, or that arrives impossibly fast, gives nothing")
    func unusable() {
        #expect(result(cluster(5300), arriving: 4000, lost: [1, 2, 3]) == nil)
        #expect(result(cluster(4000), arriving: 9000) == nil)
    }

    @Test("An exploration counts if it shows clearly more than the estimate")
    func exploration() {
        #expect(result(cluster(4000, explored: 2000), arriving: 4000) != nil)
        #expect(result(cluster(4000, explored: 3800), arriving: 4000) == nil)
        // It filled the link: other traffic may have made room. The rate of the link is known.
        let full = result(cluster(4000, explored: 2000), arriving: 2500)
        #expect(full?.isCapacityAlone == true)
        #expect(abs((full?.capacity?.kilobits ?? 0) - 2500) < 1)
        #expect(result(cluster(4000, explored: 1000), arriving: 2500)?.isCapacityAlone == false)
    }
}

@Suite struct ProbePlannerTests {
    private func begun(maximum: Double = 10_000) -> ProbePlanner {
        var planner = ProbePlanner(maximum: .kilobits(maximum))
        planner.setDemand(.kilobits(5000), now: at(0))
        planner.begin(start: .kilobits(300), now: at(0))
        return planner
    }

    private func rates(_ planner: inout ProbePlanner) -> [Double] {
        var rates: [Double] = []
        while let probe = planner.takePending() { rates.append(probe.rate.kilobits) }
        return rates
    }

    private func estimate(
        _ planner: inout ProbePlanner, _ kilobits: Double, _ time: Double, limit: ProbePlanner.Limit = .none,
        queue: Double = 0
    ) {
        planner.setEstimate(.kilobits(kilobits), limit: limit, queue: milliseconds(queue), now: at(time))
    }

    @Test("The first probes are at 3 and 6 times the start rate, and go on while results confirm them")
    func exponential() {
        var planner = begun()
        #expect(rates(&planner) == [900, 1800])
        estimate(&planner, 1250, 100)
        #expect(rates(&planner).isEmpty)
        estimate(&planner, 1800, 150)
        #expect(rates(&planner) == [3600])
        estimate(&planner, 2400, 250)
        #expect(rates(&planner).isEmpty)
    }

    @Test("Probes go up to the maximum, and to twice the demand")
    func limits() {
        var planner = begun(maximum: 1000)
        #expect(rates(&planner) == [900, 1000])
        planner = ProbePlanner(maximum: .kilobits(10_000))
        planner.setDemand(.kilobits(300), now: at(0))
        planner.begin(start: .kilobits(300), now: at(0))
        #expect(rates(&planner) == [600])
    }

    @Test func `no probe is sent that would measure less than is known`() {
        var planner = begun()
        #expect(rates(&planner) == [900, 1800])
        // Twice the demand is less than the estimate.
        planner.setDemand(.kilobits(500), now: at(50))
        estimate(&planner, 1790, 100)
        #expect(rates(&planner).isEmpty)
        // The demand that rises is probed.
        planner.setLimited(since: at(200))
        planner.setDemand(.kilobits(2100), now: at(300))
        #expect(rates(&planner) == [2100, 3580])
    }

    @Test func `a probe that did not fill the link lowers no estimate`() {
        var estimate = DelayBasedEstimate(start: .kilobits(1800), minimum: .kilobits(10))
        func add(_ probe: ProbeResults.Result, _ time: Double) -> DataRate? {
            estimate.add([], acknowledged: nil, recent: nil, probe: probe, queue: .zero, now: at(time)).estimate
        }
        #expect(add(.init(rate: .kilobits(900), capacity: nil), 100) == .kilobits(1800))
        #expect(add(.init(rate: .kilobits(900), capacity: .kilobits(950)), 200) == .kilobits(900))
        #expect(add(.init(rate: .kilobits(1200), capacity: nil), 300) == .kilobits(1200))
    }

    @Test("Before there is media, probes repeat each second, for 5 s")
    func idle() {
        var planner = ProbePlanner(maximum: .kilobits(10_000))
        planner.begin(start: .kilobits(300), now: at(0))
        #expect(rates(&planner) == [900, 1800])
        estimate(&planner, 500, 100)
        var times: [MonotonicTime] = []
        while planner.nextTimeout <= at(20_000) {
            let now = planner.nextTimeout
            planner.handleTimeout(now: now)
            if !rates(&planner).isEmpty { times.append(now) }
        }
        #expect(times == [at(1000), at(2000), at(3000), at(4000)])
    }

    @Test("While the application limits the rate, a probe of twice the estimate follows each 5 s")
    func limited() {
        var planner = begun()
        _ = rates(&planner)
        estimate(&planner, 800, 100)
        planner.setLimited(since: at(500))
        planner.handleTimeout(now: at(1000))
        #expect(rates(&planner).isEmpty)
        #expect(planner.nextTimeout == at(5500))
        planner.handleTimeout(now: at(5500))
        #expect(rates(&planner) == [1600])
    }

    @Test("While media uses the estimate, an exploration follows after 3 s, later each 6 s, but not into a queue")
    func exploration() {
        var planner = begun()
        _ = rates(&planner)
        estimate(&planner, 800, 100)
        planner.handleTimeout(now: at(1000))
        planner.handleTimeout(now: at(3000))
        let probe = planner.takePending()
        #expect(probe?.rate == .kilobits(1440))
        #expect(probe?.explored == .kilobits(800))
        planner.handleTimeout(now: at(4000))
        estimate(&planner, 820, 4100)
        #expect(planner.nextTimeout == at(6000))
        estimate(&planner, 820, 4200, queue: 50)
        #expect(planner.nextTimeout == .never)
        estimate(&planner, 820, 4300)
        planner.handleTimeout(now: at(6000))
        #expect(rates(&planner) == [1476])
        planner.handleTimeout(now: at(7000))
        #expect(planner.nextTimeout == at(12_000))
    }

    @Test
    func `an exploration that succeeds is followed by one of the new estimate`() {
        var planner = begun()
        _ = rates(&planner)
        estimate(&planner, 800, 100)
        planner.handleTimeout(now: at(1000))
        planner.handleTimeout(now: at(3000))
        _ = rates(&planner)
        // 70 % of the difference to 1440 are 448.
        estimate(&planner, 1240, 3100)
        #expect(rates(&planner).isEmpty)
        estimate(&planner, 1250, 3200)
        let further = planner.takePending()
        #expect(further?.rate == .kilobits(2250))
        #expect(further?.explored == .kilobits(1250))
        #expect(further?.duration == milliseconds(50))
    }

    @Test("No probe is sent while the path is congested")
    func congested() {
        var planner = begun()
        _ = rates(&planner)
        estimate(&planner, 1900, 100, limit: .congested)
        #expect(rates(&planner).isEmpty)
        planner.setLimited(since: at(100))
        planner.handleTimeout(now: at(1100))
        planner.handleTimeout(now: at(6000))
        #expect(rates(&planner).isEmpty)
    }

    @Test("A recovery after a large drop probes 85 % of the rate before it, at most each 5 s")
    func drop() {
        var planner = begun()
        _ = rates(&planner)
        estimate(&planner, 1000, 100)
        planner.handleTimeout(now: at(1000))
        estimate(&planner, 400, 1500)
        planner.recovered(now: at(2500))
        #expect(rates(&planner) == [850])
        planner.recovered(now: at(2600))
        #expect(rates(&planner).isEmpty)
    }
}

@Suite struct ApplicationLimitTests {
    @Test("Sending a third of the estimate is limited by the application, sending most of it is not")
    func limit() {
        var application = ApplicationLimit(estimate: .kilobits(1000))
        func send(_ kilobits: Double, from start: Int, to end: Int) {
            for time in stride(from: start, to: end, by: 10) {
                application.sent(bytes: Int(kilobits * 1.25), now: at(Double(time)))
            }
        }
        send(900, from: 0, to: 1000)
        #expect(application.since == nil)
        send(300, from: 1000, to: 3000)
        #expect(application.since != nil)
        send(900, from: 3000, to: 4000)
        #expect(application.since == nil)
    }
}

@Suite struct TargetTests {
    @Test("More bytes on their way than the window lower the target, step by step, down to 30 kbit/s")
    func window() {
        var window = CongestionWindow()
        #expect(window.bytes(at: .kilobits(1000)) == nil)
        window.add(roundTrip: milliseconds(150))
        window.add(roundTrip: milliseconds(500))
        #expect(window.bytes(at: .kilobits(1000)) == 62_500)
        let rate = DataRate.kilobits(1000)
        func lowered(_ inFlight: Double) -> Double {
            window.lowered(rate, estimate: rate, inFlight: inFlight).kilobits.rounded()
        }
        #expect([70_000.0, 100_000, 30_000, 1000].map(lowered) == [950, 855, 898, 1000])
        for _ in 0..<100 { _ = lowered(200_000) }
        #expect(lowered(200_000) == 30)
    }

    @Test("A queue lowers the target so that it drains, and never below half, or four fifths at first")
    func drain() {
        let rate = DataRate.kilobits(1000)
        func lowered(_ queue: Double, foreign: Double, age: Double = 500) -> Double {
            QueueDrain.lowered(
                rate, queue: milliseconds(queue), foreign: milliseconds(foreign), sinceFirst: milliseconds(age)
            ).kilobits.rounded()
        }
        #expect([30.0, 130, 2000].map { lowered($0, foreign: $0) } == [1000, 800, 500])
        // The first probes left the queue.
        #expect(lowered(2000, foreign: 2000, age: 400) == 800)
        // The queue of a large frame of our own.
        #expect(lowered(230, foreign: 0) == 900)
        #expect(lowered(230, foreign: 100) == 750)
    }
}
