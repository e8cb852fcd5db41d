internal import PeerLoop
public import RTP

/// A call whose links change all the time: rate, delay, jitter and loss, and cuts. The seed decides.
///
/// Now and then, all links are good again for a while. Then the call must be as good as at its beginning.
public struct ChangingCall: Sendable {
    /// The most that a call may need. It fails at the first bound that is exceeded.
    public struct Bounds: Sendable, Equatable {
        /// From the end of a cut until each viewer and listener has something new, on any of the links.
        public var resumption = TimeInterval.seconds(8)
        /// The same if the cut was longer than the client's connection lasts.
        public var longResumption = TimeInterval.seconds(12)
        /// With good links: from the capture of a frame, or of a packet of audio, until it is shown or heard.
        public var latency = TimeInterval.milliseconds(120)
        /// With good links: how much later video is than audio, or the reverse.
        public var skew = TimeInterval.milliseconds(45)
        /// With good links: the difference between the latency and what the viewer measures.
        public var latencyError = TimeInterval.milliseconds(30)
        /// With good links: the share of the video's rate that is sent and shown.
        public var rate = 0.95
        /// The packets in the server: a share of the most that its settings allow.
        public var memory = 0.05

        /// The bounds that the SDK's own tests use.
        public init() {}
    }

    /// The most of each value.
    public struct Outcome: Sendable, Equatable {
        /// How often links changed.
        public var changes = 0
        /// How often links were cut.
        public var cuts = 0
        /// How often the call was judged with good links.
        public var checks = 0
        /// As in `Bounds`.
        public var resumption = TimeInterval.zero
        /// As in `Bounds`.
        public var longResumption = TimeInterval.zero
        /// As in `Bounds`.
        public var latency = TimeInterval.zero
        /// As in `Bounds`.
        public var skew = TimeInterval.zero
        /// As in `Bounds`.
        public var latencyError = TimeInterval.zero
        /// The least share of the video's rate that was sent and shown, 0...1.
        public var lowestRate = 1.0
        /// As in `Bounds`.
        public var memory = 0.0
        /// The datagrams of the run.
        public var datagrams = 0
        /// How often a client resumed its participation.
        public var resumed = 0
        /// How often a client joined again.
        public var rejoined = 0
        /// A sum over all datagrams and their times. Equal for equal runs.
        public var digest: UInt64 = 0
    }

    /// 2 or more. The bounds hold for calls of two: with more, a link may carry less than all videos for long.
    public var clients = 2
    /// A round takes about 100 s.
    public var duration = TimeInterval.seconds(3600)
    /// The video that each client publishes.
    public var video = VideoFormat(packetsPerFrame: 3, packetsPerKeyframe: 8, payload: 1000, followsRate: true)
    /// The most that the call may need.
    public var bounds = Bounds()

    /// How long links change before they are good.
    static let turbulence = 60.0
    /// How long they are good before the call is judged, and while it is.
    static let recovery = TimeInterval.seconds(30)
    static let judged = TimeInterval.seconds(5)
    /// A client that hears nothing for this long looks for another way (docs/architecture.md, "Liveness").
    static let longCut = 8.0

    /// A call of two clients for an hour of virtual time.
    public init() {}

    /// Runs the call with a seed.
    ///
    /// - Throws: the first broken promise, with the seed.
    public func run(seed: UInt64) throws(SimulationFailure) -> Outcome {
        precondition(clients >= 2, "a call needs two clients")
        var roomBounds = RoomBounds()
        // Links may carry almost nothing, so only the end of each round judges waits.
        for bound in [\RoomBounds.firstFrame, \.freeze, \.keyframe] { roomBounds[keyPath: bound] = .seconds(86400) }
        roomBounds.memory = bounds.memory
        let simulation = World(seed: seed, encryption: .checked, bounds: roomBounds)
        defer { simulation.end() }
        let good = Link.Direction(delay: .milliseconds(15), rate: 20_000_000)
        let clients = (0..<clients).map {
            simulation.client("client \($0)", link: Link(up: good, down: good))
        }
        let script = CallScript(self, clients, in: simulation, seed: seed)
        for client in clients {
            simulation.task(client.name) { try await script.attend(client) }
        }
        simulation.task("links") { try await script.run() }
        let report = try simulation.run(for: duration)
        script.outcome.datagrams = report.datagrams
        script.outcome.digest = report.digest
        script.outcome.memory = report.extremes.memory
        for client in clients {
            script.outcome.resumed += client.returns.resumed
            script.outcome.rejoined += client.returns.rejoined
        }
        return script.outcome
    }
}

/// Changes the links of a call, and judges it.
private final class CallScript: @unchecked Sendable {
    // Sendable by hand: used on the simulation's thread only.

    private let call: ChangingCall
    private let clients: [SimulatedClient]
    private unowned let simulation: World
    private var random: RandomSource
    var outcome = ChangingCall.Outcome()

    init(_ call: ChangingCall, _ clients: [SimulatedClient], in simulation: World, seed: UInt64) {
        self.call = call
        self.clients = clients
        self.simulation = simulation
        random = RandomSource(seed: seed ^ 0xca11)
    }

    /// The application of a client. It joins again if its room ends.
    func attend(_ client: SimulatedClient) async throws {
        while true {
            do {
                try await client.join("call")
                try await client.publishAudio()
                try await client.publish(call.video)
                while client.isConnected {
                    let watching = Set(client.watched)
                    guard let next = client.streams.first(where: { $0.isVideo && !watching.contains($0.id) }) else {
                        try await client.waitForEvent()
                        continue
                    }
                    try? await client.subscribe(to: next.id)
                }
            } catch {
                // A cut ended it.
            }
            try await simulation.sleep(for: .milliseconds(500))
        }
    }

    func run() async throws {
        try await simulation.sleep(for: .seconds(10))
        while true {
            let end = simulation.time.seconds + ChangingCall.turbulence
            while simulation.time.seconds < end { try await disturb() }
            for client in clients { client.heal() }
            try await simulation.sleep(for: ChangingCall.recovery)
            try await judge()
        }
    }

    // MARK: - Links

    private func uniform(_ range: ClosedRange<Double>) -> Double { Double.random(in: range, using: &random) }

    /// A number whose factors of two are equally likely.
    private func logarithmic(_ range: ClosedRange<Int>) -> Int {
        var (low, high) = (Double(range.lowerBound), Double(range.upperBound))
        while high > low * 2 {
            if Bool.random(using: &random) { low = min(low * 2, high / 2) } else { high = max(high / 2, low * 2) }
        }
        return Int(uniform(low...high))
    }

    private func direction() -> Link.Direction {
        var direction = Link.Direction(
            delay: .milliseconds(Int64(logarithmic(5...150))), rate: logarithmic(300_000...10_000_000))
        direction.jitter = .milliseconds(Int64(uniform(0...10)))
        direction.loss = Int.random(in: 0..<3, using: &random) == 0 ? uniform(0...0.02) : 0
        direction.burst = Bool.random(using: &random) ? 0.3 : 0
        return direction
    }

    private func disturb() async throws {
        let client = clients[Int.random(in: 0..<clients.count, using: &random)]
        guard Int.random(in: 0..<10, using: &random) < 4 else {
            outcome.changes += 1
            client.setLink(Link(up: direction(), down: direction()))
            return try await sleep(uniform(0.5...10))
        }
        outcome.cuts += 1
        switch Int.random(in: 0..<3, using: &random) {
        case 0: client.cut(towardsServer: Bool.random(using: &random))
        default: client.cut()
        }
        let length = Int.random(in: 0..<8, using: &random) == 0 ? uniform(8...20) : uniform(0.1...6)
        try await sleep(length)
        client.reconnect()
        try await resume(client, after: length)
    }

    private func sleep(_ seconds: Double) async throws {
        try await simulation.sleep(for: .milliseconds(Int64(seconds * 1000)))
    }

    // MARK: - Judgement

    /// One sentence about a viewer or a listener that has got nothing since a time, or is missing.
    private func stale(since: MonotonicTime) -> String? {
        for other in clients {
            let viewers = other.viewers.filter { !$0.isEnded }
            let listeners = other.listeners.filter { !$0.isEnded }
            guard viewers.count == clients.count - 1 else { return "\(other.name) watches \(viewers.count) videos." }
            guard listeners.count == clients.count - 1 else { return "\(other.name) hears \(listeners.count) streams." }
            for viewer in viewers where viewer.lastShown ?? .zero <= since { return viewer.description }
            for listener in listeners where listener.lastHeard ?? .zero <= since {
                return "\(other.name) hears nothing of stream \(listener.stream)."
            }
        }
        return nil
    }

    /// Waits until media flows again, and fails if that takes too long.
    private func resume(_ client: SimulatedClient, after length: Double) async throws {
        let began = simulation.loop.now
        let isLong = length > ChangingCall.longCut
        let bound = isLong ? call.bounds.longResumption : call.bounds.resumption
        while let stale = stale(since: began) {
            try await simulation.sleep(for: .milliseconds(20))
            guard simulation.loop.now - began <= bound else {
                return simulation.fail(
                    "\(bound.milliseconds) ms after a cut of \(client.name) for \(Int(length * 1000)) ms, media does not flow: \(stale); "
                        + clients.map(\.linkDescription).joined(separator: "; "))
            }
        }
        let wait = simulation.loop.now - began
        if isLong {
            outcome.longResumption = max(outcome.longResumption, wait)
        } else {
            outcome.resumption = max(outcome.resumption, wait)
        }
    }

    /// All links have been good for a while.
    private func judge() async throws {
        if let stale = stale(since: simulation.loop.now + (.zero - .seconds(1))) {
            return simulation.fail("Media does not flow on good links: \(stale)")
        }
        if let leak = simulation.leak { return simulation.fail(leak) }
        let viewers = clients.flatMap { $0.viewers.filter { !$0.isEnded } }
        let listeners = clients.flatMap { $0.listeners.filter { !$0.isEnded } }
        let before = (viewers.map(\.shownPackets), listeners.map(\.count))
        try await simulation.sleep(for: ChangingCall.judged)
        outcome.checks += 1
        let seconds = ChangingCall.judged.seconds
        for (viewer, shown) in zip(viewers, before.0) {
            let wanted = Double(call.video.framesPerSecond * call.video.packetsPerFrame) * seconds
            let share = Double(viewer.shownPackets - shown) / wanted
            outcome.lowestRate = min(outcome.lowestRate, share)
            if share < call.bounds.rate {
                simulation.fail("\(Int(share * 100)) % of the rate is shown: \(viewer.description)")
            }
        }
        for (listener, count) in zip(listeners, before.1) where Double(listener.count - count) < 49 * seconds {
            simulation.fail("\(listener.count - count) packets of audio stream \(listener.stream) in \(seconds) s.")
        }
        for client in clients { judgeLatency(client) }
    }

    private func judgeLatency(_ client: SimulatedClient) {
        let video = client.viewers.filter { !$0.isEnded }.compactMap(\.latency)
        let audio = client.listeners.filter { !$0.isEnded }.compactMap(\.latency)
        guard video.count == clients.count - 1, audio.count == clients.count - 1 else {
            return simulation.fail("\(client.name) knows no latency.")
        }
        func check(_ value: TimeInterval, _ bound: TimeInterval, _ name: String, _ most: inout TimeInterval) {
            most = max(most, value)
            if value > bound {
                simulation.fail("\(client.name): the \(name) is \(value.milliseconds) ms on good links.")
            }
        }
        for latency in video.map(\.actual) + audio { check(latency, call.bounds.latency, "latency", &outcome.latency) }
        for (picture, sound) in video.flatMap({ picture in audio.map { (picture, $0) } }) {
            let skew = picture.actual - sound
            check(max(skew, .zero - skew), call.bounds.skew, "skew of audio and video", &outcome.skew)
        }
        for latency in video {
            guard let measured = latency.measured?.time else { continue }
            let error = measured - latency.actual
            check(max(error, .zero - error), call.bounds.latencyError, "error of the latency", &outcome.latencyError)
        }
    }
}

extension SimulatedClient {
    /// For failures.
    fileprivate var linkDescription: String {
        func words(_ direction: Link.Direction) -> String {
            "\((direction.rate ?? 0) / 1000) kbit/s, \(direction.delay.milliseconds) ms, jitter \(direction.jitter.milliseconds) ms, "
                + "\(Int(direction.loss * 1000)) per mille lost"
        }
        return "\(name): up \(words(up.model)), down \(words(down.model))"
    }
}
