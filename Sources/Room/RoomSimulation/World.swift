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
    private(set) lazy var server = SimulatedServer(seed: serverSeed, loops: serverLoops, in: self)
    private let serverSeed: UInt64
    private let serverLoops: Int
    private(set) var clients: [SimulatedClient] = []
    var random: RandomSource
    private var sourceCount: UInt32 = 0
    private var sources: [Int: VideoSource] = [:]
    private var events = EventHeap()
    let executor = SimulationExecutor()
    private(set) var isOver = false
    private var egress = EgressLedger()
    private var suspended: [Int: Suspension] = [:]
    private var suspensions = 0
    private var failures: [SimulationFailure] = []
    private(set) var trace = Trace()

    /// - Parameter seed: decides everything that is random.
    init(seed: UInt64, encryption: Simulation.Encryption, serverLoops: Int = 1) {
        self.seed = seed
        self.serverLoops = serverLoops
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
        events = EventHeap()
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
        events.insert(action, at: max(time, loop.now))
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
            if events.next <= loop.now { events.popFirst()?() } else { _ = loop.fireNextTimer() }
        }
        if let failure = failures.first { throw failure }
        loop.now = end
        return report()
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
        guard let number = Self.number(ofClientAt: address), clients.indices.contains(number) else { return }
        egress.note(datagram, to: address)
        clients[number].sendDown(datagram, to: address)
    }

    /// The number of the client with this address.
    static func number(ofClientAt address: TransportAddress) -> Int? {
        address.ipv4.map { Int($0 & 0xff_ffff) - 1 }
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

/// Actions by time, those of the same time in order.
struct EventHeap {
    private var heap: [(time: MonotonicTime, order: UInt64, action: () -> Void)] = []
    private var order: UInt64 = 0

    var next: MonotonicTime { heap.first?.time ?? .never }

    mutating func insert(_ action: @escaping () -> Void, at time: MonotonicTime) {
        order += 1
        heap.append((time, order, action))
        var child = heap.count - 1
        while child > 0, isBefore(child, (child - 1) / 2) {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    mutating func popFirst() -> (() -> Void)? {
        guard let first = heap.first else { return nil }
        let last = heap.removeLast()
        guard !heap.isEmpty else { return first.action }
        heap[0] = last
        var parent = 0
        while true {
            let children = [2 * parent + 1, 2 * parent + 2].filter { $0 < heap.count }
            guard let child = children.min(by: isBefore), isBefore(child, parent) else { return first.action }
            heap.swapAt(child, parent)
            parent = child
        }
    }

    private func isBefore(_ a: Int, _ b: Int) -> Bool {
        (heap[a].time, heap[a].order) < (heap[b].time, heap[b].order)
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
