import RTP
import TestSupport
import Testing

@testable import CongestionControl

@Suite struct ArrivalGroupsTests {
    private func deltas(_ packets: [(sent: Double, arrival: Double)]) -> [ArrivalGroups.Delta] {
        var groups = ArrivalGroups()
        return packets.compactMap { groups.add(sent: at($0.sent), arrival: at($0.arrival), now: at($0.arrival + 50)) }
    }

    @Test("Packets sent within 5 ms are one group, whose last packets are compared")
    func groups() {
        let found = deltas([(0, 100), (4, 107), (10, 120), (30, 150), (50, 190)])
        #expect(found.map(\.sent) == [milliseconds(6), milliseconds(20)])
        #expect(found.map(\.arrival) == [milliseconds(13), milliseconds(30)])
    }

    @Test("Packets that arrive in a burst, faster than they were sent, are one group")
    func burst() {
        let found = deltas([(0, 100), (20, 200), (40, 201), (60, 202), (80, 203), (200, 320), (300, 420)])
        #expect(found.map(\.sent) == [milliseconds(80), milliseconds(120)])
        #expect(found.map(\.arrival) == [milliseconds(103), milliseconds(117)])
    }

    @Test("A receiver's clock that is set starts the comparison again")
    func clock() {
        #expect(deltas([(0, 100), (20, 120), (40, 140), (60, 160)]).count == 2)
        var groups = ArrivalGroups()
        var found = 0
        for index in 0..<20 {
            let jump: Double = index >= 10 ? 5000 : 0
            let time = Double(index) * 20
            if groups.add(sent: at(time), arrival: at(time + jump), now: at(time + 60)) != nil { found += 1 }
        }
        // Two groups begin the comparison, twice, and the jump itself says nothing.
        #expect(found == 20 - 2 - 3)
    }
}

@Suite struct DelayTrendTests {
    private func trend(_ count: Int, _ delay: (Int) -> Double) -> DelayTrend {
        var trend = DelayTrend()
        for index in 1...count {
            let change = delay(index) - delay(index - 1)
            trend.add(
                .init(sent: milliseconds(20), arrival: milliseconds(20 + change)),
                arrival: at(Double(index) * 20 + delay(index)))
        }
        return trend
    }

    @Test("A constant delay is normal, a growing one is overuse, a shrinking one underuse")
    func usage() {
        #expect(trend(60) { _ in 30 }.usage == .normal)
        #expect(trend(60) { 2 * Double($0) }.usage == .over)
        #expect(trend(60) { $0 < 30 ? 200 : 200 - 4 * Double($0 - 30) }.usage == .under)
    }

    @Test("Overuse takes two groups and 10 ms, so that one late group is none")
    func single() {
        var worst = DelayTrend.Usage.normal
        for last in 30...60 where trend(last, { $0 == 30 ? 12 : 0 }).usage == .over { worst = .over }
        #expect(worst == .normal)
    }

    @Test("The threshold follows the slope: it falls without one, and rises with one above it")
    func threshold() {
        #expect(trend(400) { _ in 0 }.threshold == DelayTrend.thresholds.lowerBound)
        #expect(trend(400) { 1.7 * Double($0) }.threshold > DelayTrend.initialThreshold + 3)
    }
}

@Suite struct DelayBasedEstimateTests {
    @Test("A queue that grows lowers the estimate, and one that was halved does not, whatever older delays show")
    func draining() {
        /// The estimate while delays grow, and after further feedback with these queues.
        func estimates(_ queues: [Double]) -> (first: Double, last: Double) {
            var estimate = DelayBasedEstimate(start: .kilobits(1000), minimum: .kilobits(10))
            estimate.setRoundTrip(milliseconds(50))
            func add(_ number: Int, _ queue: Double, _ recent: Double) {
                let sent = Double(number) * 20
                _ = estimate.add(
                    [packet(number, sent: sent, arrival: sent + 40 + Double(number) * 4)], acknowledged: .kilobits(900),
                    recent: .kilobits(recent), probe: nil, queue: milliseconds(queue), now: at(sent + 100))
            }
            for number in 0..<50 { add(number, Double(number) * 4, 900) }
            let first = estimate.estimate.kilobits
            for (index, queue) in queues.enumerated() { add(index * 10 + 50, queue, 300) }
            return (first, estimate.estimate.kilobits)
        }
        let growing = estimates([200, 180, 160])
        #expect(growing.first < 900 && growing.last < 300)
        let draining = estimates([95, 45, 20])
        #expect(draining.last >= draining.first)
    }
}

@Suite struct PathDelayTests {
    @Test("The round trip excludes the receiver's wait for its report")
    func roundTrip() {
        var path = PathDelay()
        path.add([packet(0, sent: 0, arrival: 40), packet(1, sent: 50, arrival: 90)], now: at(180))
        // 180 - 50 for the last packet.
        #expect(path.newest == milliseconds(130))
        path.add([packet(2, sent: 100, arrival: 140), packet(3, sent: 150, arrival: 190)], now: at(230))
        #expect(path.newest == milliseconds(80))
    }

    @Test("The queue is the delay beyond the least one, and jitter within a feedback counts little")
    func queue() {
        var path = PathDelay()
        path.add([packet(0, sent: 0, arrival: 40)], now: at(60))
        path.add([packet(1, sent: 20, arrival: 95), packet(2, sent: 40, arrival: 130)], now: at(150))
        #expect(path.queue == milliseconds(35))
        path.add([packet(3, sent: 200, arrival: 240)], now: at(260))
        #expect(path.queue == .zero)
    }

    @Test("A large frame makes a queue of its own, and a slow link one that its rate of sending does not explain")
    func ownQueue() {
        /// Ten packets at once, of which each takes so many milliseconds. 10 ms at the estimate.
        func path(_ spacing: Double) -> PathDelay {
            var path = PathDelay()
            path.note(.kilobits(960), now: at(0))
            path.add([packet(0, sent: 0, arrival: 40)], now: at(60))
            let frame = (0..<10).map { packet($0 + 1, sent: 100, arrival: 140 + spacing * Double($0)) }
            path.add(Array(frame.prefix(5)), now: at(250))
            path.add(Array(frame.suffix(5)), now: at(350))
            return path
        }
        #expect(path(10).queue == milliseconds(50))
        #expect(path(10).foreignQueue == .zero)
        #expect(path(25).foreignQueue == milliseconds(75))
    }

    @Test("The computed queue of this end is bounded, and an outage clears it")
    func boundedOwnQueue() {
        /// The part of a queue of 3400 ms that is not this end's, after ten seconds with twice the estimate.
        func foreign(afterOutage: Bool) -> TimeInterval {
            var path = PathDelay()
            path.note(.kilobits(960), now: at(0))
            path.add([packet(0, sent: 0, arrival: 40)], now: at(60))
            for number in 1...2000 {
                let sent = Double(number) * 5
                path.add([packet(number, sent: sent, arrival: sent + 40)], now: at(sent + 60))
            }
            if afterOutage { path.returned(now: at(10_005)) }
            path.add([packet(2001, sent: 10_005, arrival: 13_445)], now: at(13_500))
            return path.foreignQueue
        }
        #expect(foreign(afterOutage: false) == milliseconds(400))
        #expect(foreign(afterOutage: true) == milliseconds(3400))
    }

    @Test
    func `a queue that fills and drains within 200 ms three times shows a path that stops often, for a second`() {
        func path(period: Double) -> PathDelay {
            var path = PathDelay()
            for number in 0..<8 {
                let sent = Double(number) * period / 2
                let queue = number % 2 == 0 ? 0.0 : 100
                path.add([packet(number, sent: sent, arrival: sent + 20 + queue)], now: at(sent + 40 + queue))
            }
            return path
        }
        #expect(!path(period: 400).stopsOften)
        var often = path(period: 200)
        #expect(often.stopsOften)
        often.add([packet(8, sent: 2000, arrival: 2020)], now: at(2040))
        #expect(!often.stopsOften)
    }

    @Test("A new least delay counts after half a minute to a minute")
    func window() {
        var path = PathDelay()
        for second in 0..<90 {
            let start = Double(second) * 1000
            path.add([packet(second, sent: start, arrival: start + (second < 10 ? 20 : 90))], now: at(start + 100))
        }
        #expect(path.queue == .zero)
    }

    @Test func `clocks that drift apart in a pause of two hours make no queue`() {
        var path = PathDelay()
        path.add([packet(0, sent: 0, arrival: 40)], now: at(80))
        let pause: Double = 7_200_000
        path.add([packet(1, sent: pause, arrival: pause + 400)], now: at(pause + 80))
        #expect(path.queue == .zero)
        path.add([packet(2, sent: pause + 100, arrival: pause + 570)], now: at(pause + 250))
        #expect(path.queue == milliseconds(70))
    }

    @Test("A feedback that waited while this process stood still does not measure the round trip")
    func stall() {
        var path = PathDelay()
        path.add([packet(0, sent: 0, arrival: 40)], now: at(80))
        path.stalled(now: at(1100))
        let late = path.add([packet(1, sent: 50, arrival: 90)], now: at(1100))
        #expect(!late)
        #expect(path.newest == milliseconds(80))
        let next = path.add([packet(2, sent: 1110, arrival: 1150)], now: at(1200))
        #expect(next)
        #expect(path.newest == milliseconds(90))
    }
}
