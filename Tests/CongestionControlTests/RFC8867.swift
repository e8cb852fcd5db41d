import CongestionControl

private typealias Band = Scenario.Band

/// The numbers of RFC 8867: 50 ms each way, jitter up to 30 ms, and a queue of 300 ms that drops its newest packet.
private func path(_ rates: [(from: Double, kilobits: Double)], delay: Double = 50, queue: Double = 300)
    -> SimulatedLink.Settings
{
    var settings = SimulatedLink.Settings(rates: rates, delay: delay)
    settings.queue = queue
    settings.jitter = 5
    return settings
}

private func flow(from start: Double, to stop: Double = .infinity) -> CallSimulation.Flow {
    var flow = flow()
    (flow.start, flow.media, flow.stop) = (start, start, stop)
    return flow
}

/// RFC 8867, with the goals of this project. They were written down before the first run.
extension Scenario {
    static let single: [Scenario] = [
        Scenario(
            "RFC 8867 5.1: 1, 2.5, 0.6, 1 Mbit/s", seconds: 100,
            [
                Band("use of the link", 0.84...1, goal: 0.9...1) { $0.use(0, 100) },
                Band("queue, 95th percentile", 0...50, goal: 0...40) { $0.queue(0.95, 0, 100) },
            ]
        ) {
            CallSimulation(forward: path([(0, 1000), (40, 2500), (60, 600), (80, 1000)]), flows: [flow()])
        },
        Scenario(
            "RFC 8867 5.3: both ways, 2, 1, 0.5, 2 Mbit/s forward; 2, 0.8, 2 Mbit/s back", seconds: 100,
            [
                Band("use of the link forward", 0.82...1, goal: 0.9...1) { $0.use(0, 100) },
                Band("use of the link back", 0.82...1, goal: 0.9...1) { $0.use(0, 100, backward: true) },
                Band("queue forward, 95th percentile", 0...45, goal: 0...40) { $0.queue(0.95, 0, 100) },
                Band("queue back, 95th percentile", 0...45, goal: 0...40) { $0.queue(0.95, 0, 100, backward: true) },
            ]
        ) {
            var other = flow()
            other.isBackward = true
            return CallSimulation(
                forward: path([(0, 2000), (20, 1000), (40, 500), (60, 2000)]),
                back: path([(0, 2000), (35, 800), (70, 2000)]), flows: [flow(), other])
        },
    ]

    /// - Parameter isLong: as long as the RFC has them. Otherwise, the one with five flows ends after 120 s.
    static func several(isLong: Bool) -> [Scenario] { sharing + [fiveFlows(until: isLong ? 300 : 120)] }

    private static func fiveFlows(until end: Double) -> Scenario {
        Scenario(
            "RFC 8867 5.5: five flows, 10 to 150 ms each way, 4 Mbit/s", seconds: end,
            [
                Band("Jain's index from 60 s", 0.88...1, goal: 0.95...1) { $0.fairness(60, end) },
                Band("least share of a flow from 60 s, of a fifth", 0.45...1, goal: 0.5...1) { call in
                    (0..<5).map { call.delivered(60, end, flow: $0) / 800 }.min() ?? 0
                },
                Band("use of the link from 60 s", 0.88...1, goal: 0.9...1) { $0.use(60, end) },
                Band("queue from 60 s, 95th percentile", 0...95, goal: 0...40) { $0.queue(0.95, 60, 300) },
            ]
        ) {
            let delays = [10.0, 25, 50, 100, 150]
            let flows = delays.enumerated().map { index, delay in
                var flow = flow(from: Double(index) * 10)
                flow.extraDelay = delay - delays[0]
                return flow
            }
            return CallSimulation(forward: path([(0, 4000)], delay: delays[0]), flows: flows)
        }
    }

    private static let sharing: [Scenario] = [
        Scenario(
            "RFC 8867 5.2: two flows, 4, 2, 3.5, 1, 2 Mbit/s", seconds: 125,
            [
                Band("use of the link", 0.84...1, goal: 0.9...1) { $0.use(0, 125) },
                Band("queue, 95th percentile", 0...50, goal: 0...40) { $0.queue(0.95, 0, 125) },
            ]
        ) {
            CallSimulation(
                forward: path([(0, 4000), (25, 2000), (50, 3500), (75, 1000), (100, 2000)]),
                flows: [flow(), flow()])
        },
        Scenario(
            "RFC 8867 5.4: three flows, 3.5 Mbit/s", seconds: 120,
            [
                Band("Jain's index from 60 s", 0.95...1, goal: 0.95...1, isMeanMissed: true) { $0.fairness(60, 120) },
                Band("use of the link from 60 s", 0.9...1, goal: 0.9...1) { $0.use(60, 120) },
                Band("queue from 60 s, 95th percentile", 0...80, goal: 0...40) { $0.queue(0.95, 60, 120) },
            ]
        ) {
            CallSimulation(forward: path([(0, 3500)]), flows: [0, 20, 40].map { flow(from: $0) })
        },
        longTCP(queue: 300, least: 180),
        longTCP(queue: 1000, least: 80),
        Scenario(
            "RFC 8867 5.7: two flows and ten short TCP flows, 2 Mbit/s", seconds: 300,
            [
                Band("use of the link by media", 0.42...1, goal: 0.7...1) { $0.use(10, 299) },
                Band("Jain's index of media", 0.93...1, goal: 0.95...1) { $0.fairness(10, 299) },
                Band("queue, 95th percentile", 0...160, goal: 0...40) { $0.queue(0.95, 10, 299) },
                Band("seconds of a TCP transfer, median", 0...0.6, goal: 0...1) { $0.transferTime(0.5) },
                Band("seconds of a TCP transfer, 95th percentile", 0...1, goal: 0...2) { $0.transferTime(0.95) },
            ]
        ) {
            let call = CallSimulation(forward: path([(0, 2000)]), flows: [flow(from: 5), flow(from: 5)])
            // Files of web pages, as in RFC 8868. Two of ten connections begin with one.
            for index in 0..<10 {
                let transfers = TCPConnection.Transfers(sizes: 30_000...50_000, pause: 10, pausesFirst: index >= 2)
                call.add(TCPConnection(transfers: transfers, stop: 299), at: 0)
            }
            return call
        },
        Scenario(
            "RFC 8867 5.8: three flows, the first pauses from 40 to 60 s, 3.5 Mbit/s", seconds: 120,
            [
                Band("Jain's index from 70 s", 0.93...1, goal: 0.95...1) { $0.fairness(70, 120) },
                // On seed 1; the mean of others is inside.
                Band("delivered by the first from 65 to 70 s", 900...2000, goal: 930...1225, isMissed: true) {
                    $0.delivered(65, 70)
                },
                Band("use of the link from 45 to 60 s", 0.78...1, goal: 0.9...1) { $0.use(45, 60) },
                Band("use of the link from 70 s", 0.88...1, goal: 0.9...1) { $0.use(70, 120) },
                Band("queue, 95th percentile", 0...55, goal: 0...40) { $0.queue(0.95, 0, 120) },
            ]
        ) {
            var first = flow()
            first.pause = 40..<60
            return CallSimulation(forward: path([(0, 3500)]), flows: [first, flow(), flow()])
        },
    ]

    /// The TCP connection is there before media.
    private static func longTCP(queue: Double, least: Double) -> Scenario {
        Scenario(
            "RFC 8867 5.6: a flow and a long TCP flow, 2 Mbit/s, a queue of \(Int(queue)) ms", seconds: 120,
            [
                // A tenth of the link: neither starves.
                Band("delivered by media from 30 s", least...2000, goal: 200...1800) { $0.delivered(30, 119) },
                Band("delivered by TCP from 30 s", 200...2000, goal: 200...1800) { $0.deliveredByTCP(30, 119) },
            ]
        ) {
            let call = CallSimulation(forward: path([(0, 2000)], queue: queue), flows: [flow(from: 5, to: 119)])
            call.add(TCPConnection(stop: 119), at: 0)
            return call
        }
    }
}
