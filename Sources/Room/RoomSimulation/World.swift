internal import ClientCore
internal import ICELite
internal import PeerLoop
internal import PeerSession
internal import RTP

/// The parts of a simulation: server, clients, links, time and what happens next. On one thread at a time.
final class World: @unchecked Sendable {
    // Sendable by hand: used by one thread at a time. Tasks of the application run on `executor`, which `run` drives.

    let seed: UInt64
    /// One for each thread of the server. Clients use the first.
    let loops: [SimulatedLoop]
    var loop: SimulatedLoop { loops[0] }
    let encryption: Simulation.Encryption
    private(set) lazy var server = SimulatedServer(
        seed: serverSeed, spreadsRooms: spreadsRooms, in: self)
    private let serverSeed: UInt64
    private let spreadsRooms: Bool
    private(set) var clients: [SimulatedClient] = []
    var random: RandomSource
    private var sourceCount: UInt32 = 0
    private var sources: [Int: VideoSource] = [:]
    private var cameras: [Int: LayeredCamera] = [:]
    private var microphones: [Int: AudioSource] = [:]
    private var events = EventQueue()
    private var idle: [Datagram] = []
    let executor = SimulationExecutor()
    private(set) var isOver = false
    private var check: BoundsCheck?
    /// The packets of each source that its link lost, repairs not counted.
    private var lostParts: [UInt32: Int] = [:]
    private var suspended: [Int: Suspension] = [:]
    private var suspensions = 0
    /// Events since the time last changed.
    private var steps = 0
    private var failures: [SimulationFailure] = []
    /// Nil unless a test reads it.
    var packetLog: PacketLog?
    /// Likewise, of audio.
    var audioLog: AudioLog?
    /// Likewise, of a recorded stream. Without it, the server refuses to record.
    var recordingLog: RecordingLog?
    /// Nil unless a run knows what each client wants.
    var deliveries: DeliveryCheck?
    private(set) var trace = Trace()

    /// - Parameters:
    ///   - seed: decides everything that is random.
    ///   - bounds: nil checks none.
    init(
        seed: UInt64, encryption: Simulation.Encryption, loops: Int = 1, spreadsRooms: Bool = false,
        bounds: RoomBounds? = nil
    ) {
        self.seed = seed
        self.spreadsRooms = spreadsRooms
        self.encryption = encryption
        var random = RandomSource(seed: seed)
        self.loops = (0..<loops).map { _ in SimulatedLoop(now: MonotonicTime(nanoseconds: 1_000_000_000_000)) }
        check = bounds.map { BoundsCheck($0) }
        serverSeed = random.next()
        self.random = random
        server.start()
        if bounds != nil { after(BoundsCheck.interval) { [unowned self] in checkBounds() } }
    }

    /// Adds a client. It joins nothing by itself.
    ///
    /// - Parameters:
    ///   - name: for reports; unique.
    ///   - link: its way to the server.
    ///   - ahead: how much its wall clock is ahead of the right time.
    func client(_ name: String, link: Link, wallClock ahead: TimeInterval = .zero) -> SimulatedClient {
        let client = SimulatedClient(
            name, number: clients.count, link: link, wallClock: ahead, seed: random.next(), in: self)
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
        for loop in loops { loop.endTurn() }
        let waiting = suspended.sorted { $0.key < $1.key }
        for suspension in waiting { suspension.value.fail(CancellationError()) }
        // A task that goes on in spite of its errors is left behind.
        for _ in 0..<Self.mostRounds where !executor.runJobs() { break }
        events = EventQueue()
        for loop in loops {
            loop.forgetTimers()
            loop.endTurn()
        }
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
            let timer = loops.min { $0.nextTimer < $1.nextTimer } ?? loop
            let next = min(events.next, timer.nextTimer)
            guard next <= end else { break }
            advance(to: next)
            if events.next <= loop.now { happen(events.popFirst()) } else { _ = timer.fireNextTimer() }
        }
        if let failure = failures.first { throw failure }
        advance(to: end)
        return report()
    }

    private func advance(to time: MonotonicTime) {
        steps = time > loop.now ? 0 : steps + 1
        if steps > Self.mostRounds { failToWait() }
        for loop in loops { loop.now = max(loop.now, time) }
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
        case .server(let port):
            client(at: datagram.address)?.reached(bytes)
            packetLog?.passed(bytes, .server)
            server.process?.receive(bytes, at: port, from: datagram.address)
        case .client(let number): clients[number].receive(bytes, at: datagram.address)
        }
    }

    /// Runs jobs of applications and sends what the turn caused, until neither is left.
    private func finishTurn() {
        for _ in 0..<Self.mostRounds {
            for loop in loops { loop.endTurn() }
            if !executor.runJobs(), !loops.contains(where: \.hasMembers) { return }
        }
        failToWait()
    }

    private func failToWait() {
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
            bytes: clients.reduce(0) { $0 + $1.traffic.bytes },
            deepestQueue: clients.map(\.traffic.deepestQueue).max() ?? 0,
            viewers: clients.flatMap { $0.viewers.map(\.report) },
            listeners: clients.flatMap { $0.listeners.map(\.report) },
            keyframes: clients.reduce(0) { $0 + $1.keyframesSent },
            missingNumbers: clients.reduce(0) { $0 + $1.egress.missing }, extremes: check?.extremes ?? RoomExtremes())
    }

    /// Whether datagrams can be read on their way.
    var isReadable: Bool {
        if case .checked = encryption { true } else { false }
    }

    /// Compares all waits and the server's memory with the bounds, and plans the next time.
    private func checkBounds() {
        for client in clients {
            for viewer in client.viewers { checkBounds(of: viewer) }
        }
        if let memory = server.process?.memory, let problem = check?.memory(memory) { fail(problem) }
        after(BoundsCheck.interval) { [unowned self] in checkBounds() }
    }

    func checkBounds(of viewer: VideoViewer) {
        guard var check else { return }
        if let problem = viewer.exceededBound(&check) { fail(problem) }
        self.check = check
    }

    /// A packet of a source was lost on the way to the server.
    func lostPart(of source: UInt32) {
        lostParts[source, default: 0] += 1
        recordingLog?.lost += 1
    }

    /// A sentence about a client that misses numbers, which no loss of its publishers explains. Nil without one.
    ///
    /// - Parameter reordered: how many packets may be on their way at the end of a stream.
    func gap(reordered: Int) -> String? {
        guard isReadable else { return nil }
        for client in clients {
            let missing = client.egress.unexplained { (lostParts[$0] ?? 0) + reordered }
            if missing > 0 { return "The server left out \(missing) numbers of a stream to \(client.name)." }
        }
        return nil
    }

    // MARK: - For server and clients

    func note(_ bytes: Span<UInt8>, from place: Int) { trace.add(bytes, from: place, at: loop.now) }

    /// A session with a handshake and an encryption of the simulation.
    func makeSession(cname: String, name: UInt64, isServer: Bool = false) -> PeerSession {
        var configuration = PeerSessionConfiguration(cname: cname, seed: name, releasesHandshake: isServer)
        configuration.consent = configuration.consent + PeerRequest.standardPathTimeout
        if isServer { configuration.pacingBurst = PeerSessionConfiguration.serverPacingBurst }
        return PeerSession(
            dtls: Handshake(name: name), configuration: configuration, scratch: loop.sessionScratch
        ) { [unowned self] keys in
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
        client(at: address)?.sendDown(datagram, to: address)
    }

    private func client(at address: TransportAddress) -> SimulatedClient? {
        guard let ipv4 = address.ipv4, case let number = Int(ipv4 & 0xff_ffff) - 1, clients.indices.contains(number)
        else { return nil }
        return clients[number]
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

    func published(_ stream: Int, by source: VideoSource) {
        sources[stream] = source
        deliveries?.published(stream, by: [source.id])
    }

    func published(_ stream: Int, by camera: LayeredCamera) {
        cameras[stream] = camera
        deliveries?.published(stream, by: camera.sources)
    }

    /// The camera with simulcast that publishes a stream.
    func camera(of stream: Int) -> LayeredCamera? { cameras[stream] }

    func published(_ stream: Int, by source: AudioSource) {
        microphones[stream] = source
        deliveries?.published(stream, by: [source.id])
    }

    /// A stream goes on under another id.
    func republished(_ old: Int, as new: Int) {
        sources[new] = sources[old]
        microphones[new] = microphones[old]
    }

    /// The source that publishes an audio stream.
    func audioSource(of stream: Int) -> AudioSource? { microphones[stream] }

    /// The source that publishes a stream.
    func videoSource(of stream: Int) -> VideoSource? { sources[stream] }

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

extension World {
    /// A sentence about what the server keeps of a room that everyone has left. Nil if that is nothing.
    var remains: String? {
        guard let process = server.process else { return nil }
        let (rooms, packets) = (process.roomCounts.reduce(0, +), process.memory.held)
        guard process.participants + process.sessions + rooms + packets > 0 else { return nil }
        return
            "The server keeps \(rooms) rooms, \(process.participants) participants, \(process.sessions) sessions "
            + "and \(packets) bytes of packets of clients that have left."
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
