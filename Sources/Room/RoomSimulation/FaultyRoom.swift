public import RTP
internal import RoomProtocol

/// A room whose clients come and go, publish, subscribe, and suffer: cuts, loss, kills, restarts. The seed decides.
///
/// Faults end some time before the end. Then every client must be in the room and see every video that it subscribed to.
public struct FaultyRoom: Sendable {
    /// 2 or more.
    public var clients = 12
    /// How many faults there are.
    public var faults = 6
    /// The video that each client publishes.
    public var video = VideoFormat(packetsPerKeyframe: 3)
    /// The links to choose from.
    public var links = [Link.wired, .wifi, .cellular]
    /// Of all, faults included. At least 12 seconds more than `recovery`.
    public var duration = TimeInterval.seconds(60)
    /// The time without faults at the end. The server keeps a client that was killed for 30 s, and the last kill is 9 s before it.
    public var recovery = TimeInterval.seconds(24)
    /// The most videos that a client watches. 20 or less, the server's limit.
    public var watched = 9
    /// How many of the clients publish audio too.
    public var audio = 0
    /// The longest waits, and the most memory.
    public var bounds = RoomBounds()
    /// The loops of the server over which the room spreads, 1 or more.
    public var loops = 1

    /// A room of 12 clients for a minute of virtual time.
    public init() {}

    /// Runs the room with a seed.
    ///
    /// - Throws: the first broken promise.
    public func run(
        seed: UInt64, encryption: Simulation.Encryption = .checked
    ) throws(SimulationFailure) -> SimulationReport {
        precondition(
            clients >= 2 && faults >= 0 && loops >= 1 && !links.isEmpty && duration >= recovery + .seconds(12),
            "a room needs two clients, a loop, a link, and 12 s before its recovery")
        let simulation = World(
            seed: seed, encryption: encryption, loops: loops, spreadsRooms: true, bounds: bounds)
        defer { simulation.end() }
        var random = RandomSource(seed: seed ^ 0x5eed)
        let clients = (0..<clients).map { number in
            simulation.client("client \(number)", link: links[Int.random(in: 0..<links.count, using: &random)])
        }
        for client in clients { start(client, in: simulation, after: pause(upTo: 3, &random)) }
        let end = duration - recovery
        for _ in 0..<faults { plan(clients, in: simulation, before: end, &random) }
        simulation.after(end) {
            for client in clients { client.heal() }
            simulation.server.start()
        }
        let report = try simulation.run(for: duration)
        if let problem = problem(of: clients, simulation) {
            throw SimulationFailure(seed: seed, time: simulation.time, problem: problem)
        }
        return report
    }

    private func pause(upTo seconds: Int64, _ random: inout RandomSource) -> TimeInterval {
        .milliseconds(Int64.random(in: 0...(seconds * 1000), using: &random))
    }

    /// The application of a client: it joins, publishes, watches, and joins again when the room ends.
    private func start(_ client: SimulatedClient, in simulation: World, after delay: TimeInterval) {
        simulation.task(client.name) {
            try await simulation.sleep(for: delay)
            while true {
                do {
                    try await client.join("room")
                    if client.number < audio { try await client.publishAudio() }
                    try await client.publish(video)
                    try await watch(client, in: simulation)
                } catch {
                    // A fault ended it.
                }
                try await simulation.sleep(for: .milliseconds(500))
            }
        }
    }

    /// Subscribes to videos until the room ends.
    private func watch(_ client: SimulatedClient, in simulation: World) async throws {
        while client.isConnected {
            let watching = Set(client.watched)
            let wanted = client.streams.first { $0.isVideo && !watching.contains($0.id) }
            if let next = wanted, watching.count < watched {
                do {
                    try await client.subscribe(to: next.id)
                } catch {
                    try await simulation.sleep(for: .milliseconds(100))
                }
            } else {
                try await client.waitForEvent()
            }
        }
    }

    /// Plans one fault before a time.
    private func plan(
        _ clients: [SimulatedClient], in simulation: World, before end: TimeInterval, _ random: inout RandomSource
    ) {
        let client = clients[Int.random(in: 0..<clients.count, using: &random)]
        let begin = TimeInterval.milliseconds(
            Int64.random(in: 3000...max(3001, end.nanoseconds / 1_000_000 - 9000), using: &random))
        let length = TimeInterval.milliseconds(Int64.random(in: 100...8000, using: &random))
        switch Int.random(in: 0..<7, using: &random) {
        case 0:
            simulation.after(begin) { client.cut() }
            simulation.after(begin + length) { client.reconnect() }
        case 1:
            let loss = Double.random(in: 0.02...0.2, using: &random)
            simulation.after(begin) { client.setLoss(loss) }
            simulation.after(begin + length) { client.heal() }
        case 2: simulation.after(begin) { client.kill() }
        case 3: simulation.after(begin) { client.kill(closesConnection: false) }
        case 4: simulation.after(begin) { client.restartSources() }
        // A later fault may kill the client meanwhile.
        case 5: simulation.after(begin) { simulation.task("leave") { try? await client.leave() } }
        default:
            simulation.after(begin) { simulation.server.kill() }
            simulation.after(begin + length) { simulation.server.start() }
        }
    }

    /// The first promise that does not hold at the end.
    private func problem(of clients: [SimulatedClient], _ simulation: World) -> String? {
        for client in clients {
            guard client.isConnected else { return "\(client.name) is in no room: \(client.endError ?? "no error")." }
            let others = clients.filter { $0 !== client }
            let published = others.count + others.count { $0.number < audio }
            guard client.streams.count == published else {
                return "\(client.name) knows \(client.streams.count) streams of \(published)."
            }
            let slots = min(DownDescription.audioSlots, others.count { $0.number < audio })
            guard client.heard.count == slots else {
                return "\(client.name) hears \(client.heard.count) streams in \(slots) slots."
            }
            guard client.watched.count == min(watched, clients.count - 1) else {
                return "\(client.name) watches \(client.watched.count) videos."
            }
            if let frozen = client.frozen(for: bounds.lastFrame) {
                return "A viewer is behind the bound 'lastFrame' of \(bounds.lastFrame.milliseconds) ms: \(frozen)"
            }
        }
        return simulation.leak ?? simulation.gap(reordered: video.packetsPerKeyframe)
    }
}
