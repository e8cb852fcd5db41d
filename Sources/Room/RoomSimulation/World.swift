internal import ICELite
internal import PeerLoop
internal import PeerSession
internal import RTP

/// The parts of a simulation: server, clients, links, time and what happens next. On one thread at a time.
final class World: @unchecked Sendable {
    // Sendable by hand: used by one thread at a time. Tasks of the application run on `executor`, which `run` drives.

    let seed: UInt64
    let loop: SimulatedLoop
    let encryption: Simulation.Encryption
    private(set) lazy var server = SimulatedServer(seed: serverSeed, in: self)
    private let serverSeed: UInt64
    private(set) var clients: [SimulatedClient] = []
    var random: RandomSource
    private var sourceCount: UInt32 = 0
    private var sources: [Int: VideoSource] = [:]
    private var events = EventQueue()
    private var idle: [Datagram] = []
    let executor = SimulationExecutor()
    private(set) var isOver = false
    private var egress = EgressLedger()
    private var suspended: [Int: Suspension] = [:]
    private var suspensions = 0
    private var failures: [SimulationFailure] = []
    private(set) var trace = Trace()

    /// - Parameter seed: decides everything that is random.
    init(seed: UInt64, encryption: Simulation.Encryption) {
        self.seed = seed
        self.encryption = encryption
        var random = RandomSource(seed: seed)
        loop = SimulatedLoop(now: MonotonicTime(nanoseconds: 1_000_000_000_000))
        serverSeed = random.next()
        self.random = random
        server.start()
    }

    /// Adds a client. It joins nothing by itself.
    ///
    /// - Parameters:
    ///   - name: for reports; unique.
    ///   - link: its way to the server.
    func client(_ name: String, link: Link) -> SimulatedClient {
        let client = SimulatedClient(name, number: clients.count, link: link, seed: random.next(), in: self)
        clients.append(client)
        return client
    }

    func task(_ name: String, _ body: @escaping @Sendable () async throws -> Void) {
        Task(executorPreference: executor) {
            do {
                try await body()
            } catch  where self.isOver {
                // Its calls fail because the simulation has ended.
            } catch {
                self.fail("\(name): \(error)")
            }
        }
    }

    // MARK: - Suspended tasks

    /// Suspends the calling task until it is resumed. Throws `CancellationError` when the simulation ends.
    func suspend(_ start: (Suspension) -> Void) async throws {
        guard !isOver else { throw CancellationError() }
        try await withCheckedThrowingContinuation { continuation in
            suspensions += 1
            let suspension = Suspension(suspensions, continuation, in: self)
            suspended[suspension.number] = suspension
            start(suspension)
        }
    }

    func remove(_ suspension: Suspension) { suspended[suspension.number] = nil }

    /// Ends all clients, the server, and the tasks of applications, whose calls fail.
    func end() {
        guard !isOver else { return }
        isOver = true
        for client in clients { client.kill(closesConnection: false) }
        server.kill()
        loop.endTurn()
        let waiting = suspended.sorted { $0.key < $1.key }
        for suspension in waiting { suspension.value.fail(CancellationError()) }
        // A task that goes on in spite of its errors is left behind.
        for _ in 0..<Self.mostRounds where !executor.runJobs() { break }
        events = EventQueue()
        loop.forgetTimers()
        loop.endTurn()
    }

    // MARK: - Time

    /// The virtual time since the beginning.
    var time: TimeInterval { loop.now - loop.began }

    func sleep(for duration: TimeInterval) async throws {
        try await suspend { suspension in after(duration) { suspension.resume() } }
    }

    /// Runs a closure at a virtual time, after what is due before. Not in the past.
    func at(_ time: MonotonicTime, _ action: @escaping () -> Void) {
        events.insert(.action(action), at: max(time, loop.now))
    }

    func after(_ delay: TimeInterval, _ action: @escaping () -> Void) { at(loop.now + delay, action) }

    /// Advances the time by `duration`, with all that happens meanwhile.
    ///
    /// - Throws: the first failure: an invariant that was broken, or an error of an application.
    /// - Returns: what participants saw so far.
    @discardableResult
    func run(for duration: TimeInterval) throws(SimulationFailure) -> SimulationReport {
        let end = loop.now + duration
        while failures.isEmpty {
            finishTurn()
            let next = min(events.next, loop.nextTimer)
            guard next <= end else { break }
            loop.now = max(loop.now, next)
            if events.next <= loop.now { happen(events.popFirst()) } else { _ = loop.fireNextTimer() }
        }
        if let failure = failures.first { throw failure }
        loop.now = end
        return report()
    }

    private func happen(_ event: EventQueue.Event?) {
        switch event {
        case .action(let action): action()
        case .arrival(let datagram):
            datagram.read { arrive($0, datagram) }
            idle.append(datagram)
        case nil: break
        }
    }

    private func arrive(_ bytes: Span<UInt8>, _ datagram: Datagram) {
        switch datagram.receiver {
        case .server: server.receive(bytes, from: datagram.address)
        case .client(let number): clients[number].receive(bytes, at: datagram.address)
        }
    }

    /// Runs jobs of applications and sends what the turn caused, until neither is left.
    private func finishTurn() {
        for _ in 0..<Self.mostRounds {
            loop.endTurn()
            if !executor.runJobs(), !loop.hasMembers { return }
        }
        fail("An application does not wait: it had work \(Self.mostRounds) times at one point in time.")
    }

    private static let mostRounds = 100_000

    // MARK: - Failures and reports

    /// Ends the run.
    func fail(_ problem: String) {
        failures.append(SimulationFailure(seed: seed, time: time, problem: problem))
    }

    private func report() -> SimulationReport {
        SimulationReport(
            seed: seed, time: time, digest: trace.digest, datagrams: trace.count,
            viewers: clients.flatMap { $0.viewerReports() }, keyframes: clients.reduce(0) { $0 + $1.keyframesSent },
            missingNumbers: egress.missing)
    }

    // MARK: - For server and clients

    func note(_ bytes: Span<UInt8>, from place: Int) { trace.add(bytes, from: place, at: loop.now) }

    /// A session with a handshake and an encryption of the simulation.
    func makeSession(cname: String, name: UInt64) -> PeerSession {
        let configuration = PeerSessionConfiguration(cname: cname, seed: name)
        return PeerSession(dtls: Handshake(name: name), configuration: configuration) { [unowned self] keys in
            switch encryption {
            case .engine(let make): return try make(&keys)
            case .checked:
                let engine = try CheckedSRTP(keys: &keys)
                engine.onReuse = { [unowned self] in fail($0) }
                return engine
            }
        }
    }

    /// Sends a datagram of the server to the client with this address, which may have gone.
    func deliver(_ datagram: Span<UInt8>, toClientAt address: TransportAddress) {
        guard let ipv4 = address.ipv4, case let number = Int(ipv4 & 0xff_ffff) - 1, clients.indices.contains(number)
        else {
            return
        }
        egress.note(datagram, to: address)
        clients[number].sendDown(datagram, to: address)
    }

    /// Delivers a datagram at the times at which its copies arrive, not in the past.
    func deliver(
        _ bytes: Span<UInt8>, to receiver: Datagram.Receiver, at address: TransportAddress, _ arrivals: Wire.Arrivals
    ) {
        if let time = arrivals.first { deliver(bytes, to: receiver, at: address, time) }
        if let time = arrivals.second { deliver(bytes, to: receiver, at: address, time) }
    }

    private func deliver(
        _ bytes: Span<UInt8>, to receiver: Datagram.Receiver, at address: TransportAddress, _ time: MonotonicTime
    ) {
        let datagram = idle.popLast() ?? Datagram()
        datagram.fill(bytes, to: receiver, address)
        events.insert(.arrival(datagram), at: max(time, loop.now))
    }

    func nextSource() -> UInt32 {
        sourceCount += 1
        return sourceCount
    }

    func published(_ stream: Int, by source: VideoSource) { sources[stream] = source }

    func publisher(of stream: Int) -> String { sources[stream]?.description ?? "unknown" }

    /// The source that publishes a stream.
    func source(of stream: Int) -> UInt32? { sources[stream]?.id }

    /// A sentence about participants or sessions that the server keeps of clients that are gone. Nil without any.
    var leak: String? {
        let present = clients.filter(\.isConnected).count
        guard server.participants == present else {
            return "The server has \(server.participants) participants, and \(present) clients are connected."
        }
        guard server.sessions <= 2 * present else {
            return "The server has \(server.sessions) sessions for \(present) participants."
        }
        return nil
    }
}

/// The loop of server and clients, driven by `World.run`.
final class SimulatedLoop: Loop {
    let began: MonotonicTime

    override init(now: MonotonicTime) {
        began = now
        super.init(now: now)
    }
}

/// A sum over all datagrams with their times, to compare two runs.
struct Trace {
    private(set) var digest: UInt64 = 0xcbf2_9ce4_8422_2325
    private(set) var count = 0

    mutating func add(_ bytes: Span<UInt8>, from place: Int, at time: MonotonicTime) {
        count += 1
        mix(UInt64(bitPattern: Int64(place)))
        mix(time.nanoseconds)
        for index in bytes.indices { mix(UInt64(bytes[index])) }
    }

    private mutating func mix(_ value: UInt64) { digest = (digest ^ value) &* 0x0100_0000_01b3 }
}

/// A suspended task of an application.
final class Suspension {
    let number: Int
    private var continuation: CheckedContinuation<Void, any Error>?
    private unowned let world: World

    init(_ number: Int, _ continuation: CheckedContinuation<Void, any Error>, in world: World) {
        self.number = number
        self.continuation = continuation
        self.world = world
    }

    var isPending: Bool { continuation != nil }

    func resume() { take()?.resume() }

    func fail(_ error: any Error) { take()?.resume(throwing: error) }

    private func take() -> CheckedContinuation<Void, any Error>? {
        defer { continuation = nil }
        world.remove(self)
        return continuation
    }
}
