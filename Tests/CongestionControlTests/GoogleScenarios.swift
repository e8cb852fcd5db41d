import CongestionControl

private typealias Band = Scenario.Band

extension Scenario {
    /// GoogCC's own tests.
    static let googleUnit: [Scenario] = [
        Scenario(
            "unit: 500, then 800, then 100 kbit/s at 100 ms each way", seconds: 95,
            [
                Band("target after 25 s", 350...550, goal: 425...525) { $0.target(at: 25) },
                Band("target 20 s after 800", 600...900, goal: 700...840) { $0.target(at: 45) },
                Band("target 50 s after 100", 65...115, goal: 82...105) { $0.target(at: 95) },
            ]
        ) {
            let call = link(500, roundTrip: 200, videoFlow(maximum: 1500))
            call.at(25) { $0.changeForward { $0.rates.append((25, 800)) } }
            call.at(45) {
                $0.changeForward {
                    $0.rates.append((45, 100))
                    $0.delay = 200
                }
                $0.changeBack { $0.delay = 200 }
            }
            return call
        },
        Scenario(
            "unit: a change of route from 200 to 800 kbit/s", seconds: 3.2,
            [
                Band("target after 2 s", 150...250, goal: 175...210) { $0.target(at: 1.9) },
                Band("target 50 ms after the change", 150...250, goal: 175...210) { $0.target(at: 2.1) },
                Band("best target within 1 s", 500...900, goal: 650...840) { call in
                    (0...10).map { call.target(at: 2.05 + Double($0) / 10) }.max() ?? 0
                },
            ]
        ) {
            let call = link(200, roundTrip: 100, videoFlow())
            call.at(2) {
                $0.changeForward { $0.rates.append((2, 800)) }
                $0.forgetQueue()
                $0.controller(0) { $0.routeChanged(now: $1) }
            }
            return call
        },
        Scenario(
            "unit: 2000 kbit/s, 10 % loss, 200 ms each way", seconds: 120,
            [Band("target after 120 s", 100...2100, goal: 1050...2100) { $0.target(at: 120) }]
        ) { link(2000, roundTrip: 400, videoFlow(maximum: 1500)) { $0.loss = .independent(0.1) } },
        Scenario(
            "unit: REMB falls to 250 kbit/s and rises", seconds: 21,
            [
                Band("target after 10 s", 1500...2600, goal: 1750...2100) { $0.target(at: 10) },
                Band("target 1 s after REMB of 250", 249...251) { $0.target(at: 11) },
                Band("target 10 s after it was lifted", 1500...2600, goal: 1750...2100) { $0.target(at: 21) },
            ]
        ) {
            let call = link(2000, roundTrip: 100, videoFlow(start: 1000))
            call.at(10) { $0.receiverEstimate(250) }
            call.at(11) { $0.receiverEstimate(10_000) }
            return call
        },
        Scenario(
            "unit: one TCP connection on 1000 kbit/s", seconds: 30,
            [Band("delivered over 10 s", 0...750, goal: 500...750) { $0.delivered(20, 30) }]
        ) {
            let call = link(1000, roundTrip: 50, videoFlow()) { $0.queue = 200 }
            call.at(10) { $0.startCrossTraffic(CrossTraffic(id: 1, stop: 30)) }
            return call
        },
    ]

    /// Route changes, losses and pauses of GoogCC's own tests.
    static let googleUnitEvents: [Scenario] = [
        Scenario(
            "unit: a change of route on 1000 kbit/s, from a rate above the start rate", seconds: 1,
            [
                Band("target after 0.5 s", 700...1300, goal: 850...1050) { $0.target(at: 0.45) },
                Band("target 50 ms after the change", 270...330) { $0.target(at: 0.55) },
            ]
        ) {
            let call = link(1000, roundTrip: 50, sampledFlow())
            call.at(0.5) { $0.controller(0) { $0.routeChanged(now: $1) } }
            return call
        },
        Scenario(
            "unit: a change of route on 200 kbit/s, from a rate below the start rate", seconds: 1,
            [
                Band("target after 0.5 s", 150...250, goal: 175...210) { $0.target(at: 0.45) },
                Band("target 100 ms after the change", 150...250, goal: 175...210) { $0.target(at: 0.6) },
            ]
        ) {
            let call = link(200, roundTrip: 20, sampledFlow())
            call.at(0.5) { $0.controller(0) { $0.routeChanged(now: $1) } }
            return call
        },
        Scenario(
            "unit: 2000 kbit/s, 20 % loss, 10 ms each way", seconds: 2.3,
            [
                Band("falls by 100 within 500 ms, from 0.25 s", 0...1) { call in
                    let targets = stride(from: 0.25, through: 2.25, by: 0.05).map { call.target(at: $0) }
                    return Double((0...targets.count - 10).map { falls(targets[$0..<($0 + 10)], by: 100) }.max() ?? 0)
                }
            ]
        ) {
            link(2000, roundTrip: 20, sampledFlow()) { $0.loss = .independent(0.2) }
        },
        Scenario(
            "unit: four TCP connections of 2 s, 20 s apart, on 1000 kbit/s with a queue of 25 packets", seconds: 98,
            [Band("delivered", 500...1000, goal: 750...1000) { $0.delivered(0, 98) }]
        ) {
            let call = link(1000, roundTrip: 200, videoFlow()) { $0.queuePackets = 25 }
            for index in 0..<4 {
                let start = 10 + 22 * Double(index)
                call.at(start) { $0.startCrossTraffic(CrossTraffic(id: index + 1, stop: start + 2)) }
            }
            return call
        },
        Scenario(
            "unit: 2000 kbit/s, video stops after 1 s", seconds: 5,
            [Band("estimate 4 s later", 1000...2300, goal: 1500...2100) { $0.estimate(at: 5) }]
        ) {
            var flow = videoFlow(start: 1000)
            flow.pause = 1..<5
            return link(2000, roundTrip: 200, flow)
        },
        Scenario(
            "unit: nothing delivered from 10 to 20 s, 1000 kbit/s", seconds: 13,
            [Band("target 3 s later", 0...40) { $0.isPaused(at: 13) ? 0 : $0.target(at: 13) }]
        ) {
            link(0, roundTrip: 200, videoFlow(maximum: 2000)) { $0.rates = [(0, 1000), (10, 0), (20, 1000)] }
        },
        Scenario(
            "unit: feedback that is five minutes late", seconds: 330,
            [
                Band("target 2 s after", 10...5000) { $0.target(at: 307) },
                Band("target 25 s after", 1000...5250) { $0.target(at: 330) },
            ]
        ) {
            var flow = videoFlow()
            flow.pause = 5..<304
            var back = SimulatedLink.Settings(rates: [(0, 20_000), (5, 0), (305, 20_000)], delay: 25)
            back.queue = 400_000
            return CallSimulation(forward: .init(5000, delay: 25), back: back, flows: [flow])
        },
    ]
}

/// Each 50 ms.
private func sampledFlow() -> CallSimulation.Flow {
    var flow = videoFlow()
    flow.sampling = 0.05
    return flow
}

/// How often a rate falls from the first one, or from a return to it, by more than a difference.
private func falls(_ rates: ArraySlice<Double>, by difference: Double) -> Int {
    guard let first = rates.first else { return 0 }
    var (count, isHigh) = (0, true)
    for rate in rates {
        if isHigh, rate < first - difference { (count, isHigh) = (count + 1, false) }
        if rate >= first { isHigh = true }
    }
    return count
}
