import CongestionControl

/// A call, and the bands in which its values must be.
///
/// The rows and bands are libwebrtc's, as of July 2026: `goog_cc_network_control_unittest.cc`, and the bandwidth tests
/// of `test/peer_scenario`. The bands were written down before anything was tuned. A goal is narrower: its lower edge is
/// half-way to the link's rate, and its upper edge the link's rate plus 5 %.
struct Scenario: CustomStringConvertible, Sendable {
    struct Band: Sendable {
        var name: String
        var range: ClosedRange<Double>
        var goal: ClosedRange<Double>?
        /// The value is outside the band today.
        var isMissed: Bool
        /// The same for the mean over `unseenSeeds`.
        var isMeanMissed: Bool
        var value: @Sendable (CallSimulation) -> Double

        init(
            _ name: String, _ range: ClosedRange<Double>, goal: ClosedRange<Double>? = nil, isMissed: Bool = false,
            isMeanMissed: Bool = false, _ value: @escaping @Sendable (CallSimulation) -> Double
        ) {
            self.name = name
            self.range = range
            self.goal = goal
            self.isMissed = isMissed
            self.isMeanMissed = isMeanMissed
            self.value = value
        }
    }

    var name: String
    var seconds: Double
    var bands: [Band]
    var make: @Sendable () -> CallSimulation

    init(_ name: String, seconds: Double, _ bands: [Band], _ make: @escaping @Sendable () -> CallSimulation) {
        self.name = name
        self.seconds = seconds
        self.bands = bands
        self.make = make
    }

    var description: String { name }

    /// No constant was chosen after them. Rules were compared on 1 to 32, 100 to 115, 200 to 215 and 400 to 415.
    static let unseenSeeds: Range<UInt64> = 300..<316

    /// The values of the bands.
    /// - Parameters:
    ///   - seed: of the chance in the call, unless the scenario's own
    ///   - isPlain: without what libwebrtc does not have
    func values(seed: UInt64? = nil, isPlain: Bool = false) -> [Double] {
        let call = call(seed: seed, isPlain: isPlain)
        return bands.map { $0.value(call) }
    }

    func call(seed: UInt64? = nil, isPlain: Bool = false) -> CallSimulation {
        let call = make()
        if let seed { call.reseed(seed) }
        if isPlain { call.makePlain() }
        return call.run(until: seconds)
    }
}

private typealias Link = SimulatedLink.Settings
private typealias Band = Scenario.Band

/// A flow as libwebrtc's tests have it: from 300 kbit/s, up to what the camera can use.
func flow(start: Double = 300, maximum: Double = 5000) -> CallSimulation.Flow {
    var flow = CallSimulation.Flow()
    flow.settings = .init(start: .kilobits(start), maximum: .kilobits(maximum))
    flow.video = VideoSource(maximum: maximum)
    return flow
}

/// The same without audio.
func videoFlow(start: Double = 300, maximum: Double = 5000) -> CallSimulation.Flow {
    var flow = flow(start: start, maximum: maximum)
    flow.audio = nil
    return flow
}

/// A film of 2.5 Mbit/s at most, without sound.
private func filmFlow(scenes interval: Double, factor: Double = 8) -> CallSimulation.Flow {
    var flow = videoFlow(maximum: 2500)
    flow.video?.framesPerSecond = 25
    flow.video?.scenes = (interval, factor)
    return flow
}

func link(
    _ kilobits: Double, roundTrip: Double, _ flow: CallSimulation.Flow = flow(),
    _ change: (inout SimulatedLink.Settings) -> Void = { _ in }
) -> CallSimulation {
    var settings = Link(kilobits, delay: roundTrip / 2)
    change(&settings)
    return CallSimulation(forward: settings, flows: [flow])
}

private func lossyFeedback(_ flow: CallSimulation.Flow) -> CallSimulation {
    var back = Link(1000, delay: 25)
    back.loss = .bursts(0.2, length: 3)
    return CallSimulation(forward: Link(1000, delay: 25), back: back, flows: [flow])
}

extension Scenario {
    /// The rows of the tests between peers.
    static let peers: [Scenario] = [
        Scenario(
            "600 kbit/s, round trip 100 ms", seconds: 10,
            [Band("target at 10 s", 450...700, goal: 525...630) { $0.target(at: 10) }]
        ) { link(600, roundTrip: 100) },
        Scenario(
            "600 kbit/s, round trip 20 ms", seconds: 30,
            [
                Band("lowest from 2 s", 300...700, goal: 450...630) { $0.lowest(2, 30) },
                Band("highest from 2 s", 300...700, goal: 450...630) { $0.highest(2, 30) },
            ]
        ) { link(600, roundTrip: 20) },
        Scenario(
            "1500 kbit/s, round trip 30 ms", seconds: 10,
            [
                Band("lowest from 2 s", 800...1900, goal: 1150...1575) { $0.lowest(2, 10) },
                Band("highest from 2 s", 800...1900, goal: 1150...1575) { $0.highest(2, 10) },
            ]
        ) { link(1500, roundTrip: 30) },
        Scenario(
            "2000 kbit/s, round trip 50 ms", seconds: 30,
            [
                Band("target at 30 s", 1000...2600, goal: 1500...2100) { $0.target(at: 30) },
                Band("lowest from 5 s", 1200...2300, goal: 1600...2100) { $0.lowest(5, 30) },
                Band("highest from 5 s", 1200...2300, goal: 1600...2100) { $0.highest(5, 30) },
            ]
        ) { link(2000, roundTrip: 50) },
        Scenario(
            "500 kbit/s, 5000 after 5 s", seconds: 10,
            [
                Band("target at 5 s", 200...600, goal: 350...525) { $0.target(at: 5) },
                Band("target at 9 s", 1200...5000, goal: 3100...5000) { $0.target(at: 9) },
            ]
        ) { link(0, roundTrip: 50) { $0.rates = [(0, 500), (5, 5000)] } },
        Scenario(
            "500 kbit/s, 3000 after 3 s", seconds: 20,
            [
                Band("target at 3 s", 300...650, goal: 400...525) { $0.target(at: 3) },
                Band("highest until 20 s", 1000...3150, goal: 2000...3150) { $0.highest(4, 20) },
            ]
        ) { link(0, roundTrip: 100) { $0.rates = [(0, 500), (3, 3000)] } },
        Scenario(
            "probes without media, 3000 kbit/s", seconds: 2,
            [
                Band("estimate after 0.5 s", 0...3150, goal: 2400...3150) { $0.estimate(at: 0.5) },
                Band("estimate after 2 s", 2500...3150, goal: 2750...3150) { $0.estimate(at: 2) },
            ]
        ) {
            var silent = flow()
            silent.media = 100
            return link(3000, roundTrip: 50, silent)
        },
        Scenario(
            "probes without media, 500 kbit/s", seconds: 2,
            [
                Band("estimate after 0.5 s", 0...550, goal: 400...525) { $0.estimate(at: 0.5) },
                Band("estimate after 2 s", 400...550, goal: 450...525) { $0.estimate(at: 2) },
            ]
        ) {
            var silent = flow()
            silent.media = 100
            return link(500, roundTrip: 50, silent)
        },
        Scenario(
            "250 kbit/s both ways", seconds: 20,
            [
                Band("lowest from 5 s", 150...300, goal: 200...262) { $0.lowest(5, 20) },
                Band("highest from 5 s", 150...300, goal: 200...262) { $0.highest(5, 20) },
                Band("longest round trip from 5 s", 0...250) { call in
                    call.records[0].samples.filter { $0.time > 5 }.map(\.roundTrip).max() ?? 0
                },
            ]
        ) {
            CallSimulation(forward: Link(250, delay: 25), back: Link(250, delay: 25), flows: [flow()])
        },
        Scenario(
            "1000 kbit/s, 70 ms more delay after 10 s", seconds: 45,
            [
                Band("best within 35 s", 600...1200, goal: 800...1050) { $0.highest(11, 45) },
                Band("target at 45 s", 600...1200, goal: 800...1050) { $0.target(at: 45) },
            ]
        ) {
            let call = link(1000, roundTrip: 50)
            call.at(10) { $0.changeForward { $0.delay += 70 } }
            return call
        },
        Scenario(
            "no feedback from 3 to 6 s, 600 kbit/s", seconds: 12,
            [
                Band("video packets from 4.5 to 6 s", 0...0) { $0.sent(.video, 4.5, 6) },
                Band("audio packets from 4.5 to 6 s", 70...80) { $0.sent(.audio, 4.5, 6) },
                Band("target at 12 s", 200...800, goal: 400...630) { $0.target(at: 12) },
            ]
        ) {
            let call = link(600, roundTrip: 100)
            call.at(3) { $0.changeBack { $0.loss = .independent(1) } }
            call.at(6) { $0.changeBack { $0.loss = .none } }
            return call
        },
        Scenario(
            "screen that changes each 5 s, 2000 kbit/s", seconds: 20,
            [
                Band("lowest from 2 s", 1200...2600, goal: 1600...2100) { $0.lowest(2, 20) },
                Band("highest from 2 s", 1200...2600, goal: 1600...2100) { $0.highest(2, 20) },
            ]
        ) {
            var screen = flow()
            screen.video = VideoSource(screenChangesEvery: 5)
            return link(2000, roundTrip: 50, screen)
        },
        Scenario(
            "screen, 4000 kbit/s for 4 s, nothing for 500 ms, and so on", seconds: 20,
            [
                Band("lowest from 2 s", 500...4300, goal: 2250...4200) { $0.lowest(2, 20) },
                Band("highest from 2 s", 500...4300, goal: 2250...4200) { $0.highest(2, 20) },
            ]
        ) {
            var screen = flow()
            screen.video = VideoSource(screenChangesEvery: 5)
            return link(0, roundTrip: 50, screen) {
                $0.rates = (0..<5).flatMap { [(Double($0) * 4.5, 4000), (Double($0) * 4.5 + 4, 0)] }
            }
        },
        Scenario(
            "1000 kbit/s, 10 % random loss", seconds: 20,
            [
                Band("lowest from 2 s", 200...1100, goal: 600...1050) { $0.lowest(2, 20) },
                Band("highest from 2 s", 200...1100, goal: 600...1050) { $0.highest(2, 20) },
            ]
        ) { link(1000, roundTrip: 50) { $0.loss = .independent(0.1) } },
        Scenario(
            "1000 kbit/s, a queue of 3 packets", seconds: 20,
            [
                Band("lowest from 2 s", 200...1100, goal: 600...1050) { $0.lowest(2, 20) },
                Band("highest from 2 s", 200...1100, goal: 600...1050) { $0.highest(2, 20) },
            ]
        ) { link(1000, roundTrip: 50) { $0.queuePackets = 3 } },
        // This row and the next one are ours, with the bands of the rows that lose single packets, or none.
        Scenario(
            "1000 kbit/s, 10 % loss in bursts of 5", seconds: 20,
            [
                Band("lowest from 2 s", 200...1100, goal: 600...1050) { $0.lowest(2, 20) },
                Band("highest from 2 s", 200...1100, goal: 600...1050) { $0.highest(2, 20) },
            ]
        ) { link(1000, roundTrip: 50) { $0.loss = .bursts(0.1, length: 5) } },
        Scenario(
            "2000 kbit/s, 5 % of packets 20 ms late, overtaken by others", seconds: 30,
            [
                Band("target at 30 s", 1000...2600, goal: 1500...2100) { $0.target(at: 30) },
                Band("lowest from 5 s", 1200...2300, goal: 1600...2100) { $0.lowest(5, 30) },
                Band("highest from 5 s", 1200...2300, goal: 1600...2100) { $0.highest(5, 30) },
            ]
        ) { link(2000, roundTrip: 50) { $0.late = (0.05, 20) } },
        Scenario(
            "1000 kbit/s, feedback with 20 % loss in bursts", seconds: 20,
            [
                Band("lowest from 2 s", 300...1100, goal: 650...1050) { $0.lowest(2, 20) },
                Band("highest from 2 s", 300...1100, goal: 650...1050) { $0.highest(2, 20) },
            ]
        ) { lossyFeedback(flow()) },
        Scenario(
            "1000 kbit/s, feedback with 20 % loss in bursts, video alone", seconds: 20,
            [
                Band("lowest from 2 s", 50...1100, goal: 525...1050) { $0.lowest(2, 20) },
                Band("highest from 2 s", 50...1100, goal: 525...1050) { $0.highest(2, 20) },
            ]
        ) { lossyFeedback(videoFlow()) },
        Scenario(
            "5000 kbit/s policed to 256", seconds: 20,
            [
                Band("lowest from 2 s", 50...1100, goal: 153...269) { $0.lowest(2, 20) },
                Band("highest from 2 s", 50...1100, goal: 153...269) { $0.highest(2, 20) },
            ]
        ) { link(5000, roundTrip: 50) { $0.policer = (256, 16384) } },
        Scenario(
            "2 MB of TCP on 5000 kbit/s", seconds: 25,
            [Band("best within 10 s after", 1500...5250, goal: 3250...5250) { $0.highest(12, 25) }]
        ) {
            let call = link(5000, roundTrip: 50)
            call.at(8) { $0.startCrossTraffic(CrossTraffic(id: 1, stop: 60, bytes: 2_000_000)) }
            return call
        },
        Scenario(
            "4000 kbit/s, delays that vary by 10 ms", seconds: 30,
            [
                Band("lowest from 2 s", 700...4100, goal: 2350...4100) { $0.lowest(2, 30) },
                Band("highest from 2 s", 700...4100, goal: 2350...4100, isMissed: true) { $0.highest(2, 30) },
            ]
        ) { link(4000, roundTrip: 50) { $0.jitter = 10 } },
        Scenario(
            "3000 kbit/s, 1 % random loss", seconds: 10,
            [Band("lowest from 2 s", 1000...3150, goal: 2000...3150) { $0.lowest(2, 10) }]
        ) { link(3000, roundTrip: 80) { $0.loss = .independent(0.01) } },
        Scenario(
            "5000 kbit/s for 200 ms, nothing for 100 ms, and so on", seconds: 20,
            [
                Band("lowest from 2 s", 1200...5000, goal: 2267...3500) { $0.lowest(2, 20) },
                Band("highest from 2 s", 1200...5000, goal: 2267...3500) { $0.highest(2, 20) },
            ]
        ) {
            link(0, roundTrip: 50) {
                $0.rates = (0..<67).flatMap { [(Double($0) * 0.3, 5000), (Double($0) * 0.3 + 0.2, 0)] }
            }
        },
    ]
}

/// Links of this project's own.
extension Scenario {
    /// Two seconds without delivery, and a phone's links.
    static let outages: [Scenario] = [
        Scenario(
            "2000 kbit/s, nothing delivered from 10 to 12 s", seconds: 18,
            [
                Band("target before", 1200...2300) { $0.target(at: 10) },
                Band("target 3 s after", 1500...2300, goal: 1800...2300) { $0.target(at: 15) },
                Band("delivered from 15 to 18 s", 1500...2000, goal: 1800...2000) { $0.delivered(15, 18) },
            ]
        ) {
            link(0, roundTrip: 50) {
                $0.rates = [(0, 2000), (10, 0), (12, 2000)]
                $0.queue = 600
            }
        }
    ]

    /// A film, whose scenes begin with large frames.
    static let films: [Scenario] = [
        Scenario(
            "film, 2000, then 500 kbit/s, a queue of 1 s", seconds: 30,
            [
                Band("lowest estimate from 16 s", 250...1000, goal: 375...525) { call in
                    stride(from: 16, through: 30, by: 0.5).map { call.estimate(at: $0) }.min() ?? 0
                },
                Band("estimate after 13 s of 500", 350...550, goal: 425...525) { $0.estimate(at: 28) },
                Band("use from 17 to 30 s", 0.7...1) { $0.use(17, 30) },
                Band("queue from 17 s, 95th percentile", 0...190) { $0.queue(0.95, 17, 30) },
            ]
        ) {
            link(0, roundTrip: 100, filmFlow(scenes: 2.55)) {
                $0.rates = [(0, 2000), (15, 500)]
                $0.queue = 4000
            }
        },
        Scenario(
            "film, 600 kbit/s, round trip 100 ms", seconds: 30,
            [
                Band("lowest target from 5 s", 300...700, goal: 450...630) { $0.lowest(5, 30) },
                Band("target at 10 s", 450...700, goal: 525...630) { $0.target(at: 10) },
                Band("use", 0.8...1) { $0.use(2, 30) },
                Band("queue, 95th percentile", 0...180) { $0.queue(0.95, 2, 30) },
            ]
        ) { link(600, roundTrip: 100, filmFlow(scenes: 2.45)) },
        Scenario(
            "film that skips frames, 600 kbit/s, 15 kB of others at 9.7 s", seconds: 30,
            [
                Band("mean target from 10 to 13 s", 350...630) { call in
                    stride(from: 10, to: 13, by: 0.1).map { call.target(at: $0) / 30 }.reduce(0, +)
                },
                Band("use", 0.75...1) { $0.use(2, 30) },
                Band("queue, 95th percentile", 0...180) { $0.queue(0.95, 2, 30) },
            ]
        ) {
            var film = filmFlow(scenes: 2.45)
            film.video?.skipsFrames = true
            let call = link(600, roundTrip: 100, film) { $0.queue = 300 }
            // As a signalling message over TCP comes.
            for index in 0..<5 { call.at(9.7 + Double(index) * 0.0065) { $0.sendOthers(bytes: 3140) } }
            return call
        },
    ]

    static func cellular(
        _ link: CellularLink, seed: UInt64, seconds: Double = 60, maximum: Double = 10_000
    ) -> Scenario {
        Scenario(
            "\(link.name), seed \(seed)", seconds: seconds,
            [
                Band("use of the link up to 10 Mbit/s", 0.2...1, goal: 0.85...1) { $0.use(0, seconds, most: 10_000) },
                Band("the same by audio and video alone", 0.2...1) {
                    $0.use(0, seconds, most: 10_000) * (1 - $0.paddingShare(0, seconds))
                },
                Band("queue, 95th percentile", 0...2000) { $0.queue(0.95, 0, seconds) },
                Band("freezes a minute", 0...60) { Double($0.freezes(0, seconds).count) * 60 / seconds },
                Band("frozen seconds a minute", 0...30) {
                    $0.freezes(0, seconds).reduce(0, +) * 60 / seconds
                },
            ]
        ) {
            CallSimulation(
                forward: link.settings(seconds: seconds, seed: seed), flows: [flow(maximum: maximum)], seed: seed)
        }
    }
}
