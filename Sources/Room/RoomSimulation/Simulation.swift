internal import PeerLoop
public import PeerSession
public import RTP

/// A room server, its clients, their links and their applications, in one thread on virtual time from one seed.
///
/// Rooms, sessions, repair, ICE-lite and the client's engine are those of the product. Sockets, signalling connections,
/// DTLS, the client's ICE agent and codecs are stand-ins: see `docs/simulation.md`. The same seed gives the same
/// datagrams, bit for bit.
///
///     let simulation = Simulation(seed: 7)
///     let ada = simulation.client("ada"), grace = simulation.client("grace", link: .cellular)
///     simulation.task {
///         try await ada.join("kitchen")
///         let video = try await ada.publish()
///         try await grace.join("kitchen")
///         try await grace.subscribe(to: video)
///     }
///     let report = try simulation.run(for: .seconds(60))
///
/// Everything happens on the thread that calls `run`. A simulation is not for several threads at once.
public final class Simulation: Sendable {
    /// How packets are encrypted.
    public enum Encryption: Sendable {
        /// Checks keys, rollover, replays and that no index is used twice, without cryptography.
        case checked
        /// With an engine of the caller.
        case engine(@Sendable (inout SRTPKeys) throws -> SRTPEngine)
    }

    let world: World

    /// A server without rooms, on virtual time.
    ///
    /// - Parameters:
    ///   - seed: decides everything that is random.
    ///   - loops: the threads of the server, 1 or more. All run in turns on this thread.
    ///   - spreadsRooms: whether each room is on all loops: a client is on the next loop after that of the client added
    ///     before it. Otherwise a room is on the loop that had the fewest participants.
    public init(seed: UInt64, encryption: Encryption = .checked, loops: Int = 1, spreadsRooms: Bool = false) {
        world = World(seed: seed, encryption: encryption, loops: max(1, loops), spreadsRooms: spreadsRooms)
    }

    deinit { world.end() }

    /// Adds a client. It joins nothing by itself.
    ///
    /// - Parameters:
    ///   - name: for reports; unique.
    ///   - link: its way to the server.
    ///   - wallClock: how much its wall clock is ahead of the right time.
    public func client(_ name: String, link: Link = .wired, wallClock: TimeInterval = .zero) -> SimulatedClient {
        world.client(name, link: link, wallClock: wallClock)
    }

    /// Runs an application on the simulator's executor, from the next turn on. An error that it throws is a failure of the
    /// simulation. `async let` and task groups stay on the executor; `Task { }` and `@MainActor` do not, and are not
    /// allowed.
    public func task(_ name: String = "application", _ body: @escaping @Sendable () async throws -> Void) {
        world.task(name, body)
    }

    /// The virtual time since the beginning.
    public var time: TimeInterval { world.time }

    /// Suspends the calling task for virtual time. Throws `CancellationError` when the simulation ends.
    public func sleep(for duration: TimeInterval) async throws { try await world.sleep(for: duration) }

    /// Runs a closure after virtual time has passed, such as one that causes a fault.
    public func after(_ delay: TimeInterval, _ action: @escaping () -> Void) { world.after(delay, action) }

    /// Advances the time by `duration`, with all that happens meanwhile.
    ///
    /// - Throws: the first failure: a promise that was broken, or an error of an application.
    /// - Returns: the frames that participants saw so far.
    @discardableResult
    public func run(for duration: TimeInterval) throws(SimulationFailure) -> SimulationReport {
        try world.run(for: duration)
    }

    /// Notes each packet of a video from now on. Without simulcast, and for one viewer.
    package func logPackets() -> PacketLog {
        let log = PacketLog()
        world.packetLog = log
        return log
    }

    /// Notes each packet of an audio from now on, for one listener.
    ///
    /// - Parameters:
    ///   - stream: nil for the only one
    ///   - listener: nil for the only one
    package func logAudio(of stream: Int? = nil, to listener: SimulatedClient? = nil) -> AudioLog {
        let log = AudioLog(of: stream.flatMap { world.audioSource(of: $0)?.id }, to: listener?.name)
        world.audioLog = log
        return log
    }

    /// Notes each packet that the server records from now on, of one stream. Without it, the server refuses to record.
    package func logRecording() -> RecordingLog {
        let log = RecordingLog()
        world.recordingLog = log
        return log
    }

    /// The virtual time as the loops have it.
    package var now: MonotonicTime { world.loop.now }

    /// Ends all clients, the server, and the tasks of applications, whose calls throw. Also happens when the simulation is
    /// released; call it if a task that does not end holds the simulation.
    public func end() { world.end() }

    /// Ends the server's process. `startServer` starts another.
    public func killServer() { world.server.kill() }

    /// Starts the server. Does nothing while it runs.
    public func startServer() { world.server.start() }
}
