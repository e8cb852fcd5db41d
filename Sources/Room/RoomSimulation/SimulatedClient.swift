internal import ClientCore
internal import ICELite
internal import MediaGraph
internal import PeerLoop
internal import PeerSession
internal import RTP
internal import RoomProtocol

/// A participant in the simulation: the product's client engine behind a link.
///
/// Call its methods on tasks of `Simulation.task`, and not after the simulation was released.
public final class SimulatedClient: @unchecked Sendable {
    // Sendable by hand: used on the simulation's thread only, as the class of the simulation itself.

    public let name: String
    let number: Int
    private let link: Link
    private unowned let simulation: World
    private var random: RandomSource
    private var up: Wire
    private var down: Wire
    private var pipeUp: Pipe
    private var pipeDown: Pipe
    private var paths: [TransportAddress: ClientPath] = [:]
    private var nextPort: UInt16 = 40_000
    private var connection: RoomConnection?
    private var server: ServerConnection?
    private var connections = 0
    private var joining: Suspension?
    private var calls: [Suspension] = []
    private var waiters: [(until: (SimulatedClient) -> Bool, then: Suspension)] = []
    private(set) var viewers: [VideoViewer] = []
    private(set) var sources: [VideoSource] = []
    private(set) var keyframesSent = 0
    private var isDead = false
    /// The streams that this client has watched.
    private var seen: Set<Int> = []

    /// Whether it is in a room.
    public private(set) var isConnected = false
    /// Why the last room ended. Nil if this client left, and before.
    public private(set) var endError: String?
    /// The other participants' streams: id, name of the client, whether it is video.
    public private(set) var streams: [RemoteStream] = []

    public struct RemoteStream: Sendable, Equatable {
        public var id: Int
        public var participant: String
        public var isVideo: Bool
    }

    init(_ name: String, number: Int, link: Link, seed: UInt64, in simulation: World) {
        self.name = name
        self.number = number
        self.link = link
        self.simulation = simulation
        var random = RandomSource(seed: seed)
        up = Wire(link.up, seed: random.next())
        down = Wire(link.down, seed: random.next())
        pipeUp = Pipe(delay: link.up.delay, seed: random.next())
        pipeDown = Pipe(delay: link.down.delay, seed: random.next())
        self.random = random
    }

    // MARK: - The room

    /// Joins a room. Returns when media can flow.
    public func join(_ room: String) async throws {
        guard connection == nil else { throw SimulatedClientError("\(name) is in a room already.") }
        isDead = false
        try await suspend { suspension in
            joining = suspension
            connect(to: room)
        }
    }

    private func connect(to room: String) {
        let environment = RoomEnvironment(
            seed: random.next(), makePeer: { [unowned self] request throws(TransportError) in try makePeer(request) },
            wallClock: { NTPTime(simulatedAt: $0) },
            sound: { [unowned self] participant, _ in { [unowned self] in viewer(of: $0, participant) } })
        let connection = RoomConnection(loop: simulation.loop, environment: environment) { [unowned self] in
            handle($0)
        }
        self.connection = connection
        _ = connection.begin()
        guard let address = try? ServerAddress(SimulatedServer.address.description), connection.signIn(to: address),
            let name = try? RoomName(room)
        else { return }
        // The handshake of TCP and WebSocket takes two round trips.
        let handshake = (pipeUp.delay + pipeDown.delay) * 2
        simulation.after(handshake) { [weak self, weak connection] in
            guard let self, let connection, self.connection === connection else { return }
            guard let server = simulation.server.connect(self) else {
                return connection.fail(RoomError(.serverUnreachable, "The simulated server does not run."))
            }
            self.server = server
            let number = server.number
            connection.join(
                name, token: "simulated",
                over: SignallingLink(
                    remoteAddress: SimulatedServer.address.host,
                    send: { [unowned self] text in deliverUp(.text(text), of: number) },
                    close: { [unowned self] in deliverUp(.closed, of: number) }))
        }
    }

    private func makePeer(_ request: PeerRequest) throws(TransportError) -> Peer {
        let session = simulation.makeSession(cname: request.cname, name: random.next())
        nextPort = nextPort == .max ? 40_000 : nextPort + 1
        let address = TransportAddress(ipv4: 0x0a00_0000 | UInt32(number + 1), port: nextPort)
        let seed = random.next()
        return try Peer(loop: simulation.loop, session: session, connectTimeout: request.connectTimeout) {
            events, datagrams in
            let path = ClientPath(
                loop: simulation.loop, address: address, seed: seed,
                send: { [unowned self] datagram, _ in sendUp(datagram, from: address) }, events: events,
                datagrams: datagrams)
            paths[address] = path
            return path
        }
    }

    /// Leaves the room. Returns when it has.
    public func leave() async throws {
        guard let connection else { return }
        connection.leave()
        try await wait { $0.connection == nil }
    }

    /// Ends the client's process, without a farewell.
    ///
    /// - Parameter closesConnection: whether the system tells the server, as it does unless the machine itself stops.
    public func kill(closesConnection: Bool = true) {
        for source in sources { source.end() }
        sources = []
        endViewers()
        if closesConnection, let server { deliverUp(.closed, of: server.number) }
        isDead = true
        connection?.drop()
        connection = nil
        server = nil
        isConnected = false
        streams = []
        joining = nil
        waiters = []
        for call in calls { call.fail(SimulatedClientError("\(name) was killed.")) }
        calls = []
    }

    /// Publishes a video. Returns the id of its stream.
    @discardableResult
    public func publish(_ video: VideoFormat = VideoFormat()) async throws -> Int {
        guard let connection else { throw SimulatedClientError("\(name) is in no room.") }
        let source = VideoSource(video, of: self, in: simulation)
        var (stream, mid) = (0, "")
        try await suspend { suspension in
            connection.preparePublishing([TrackOffer(source)]) { result in
                guard case .success(let mids) = result else { return suspension.finish(result.map { _ in }) }
                mid = mids[0]
                connection.offerPrepared { result in
                    stream = (try? result.get())?.first?.id ?? 0
                    suspension.finish(result.map { _ in })
                }
            }
        }
        source.begin(stream: stream, on: connection, mid: mid)
        sources.append(source)
        return stream
    }

    /// Ends a video that this client publishes, and stays in the room.
    public func unpublish(_ stream: Int) async throws {
        guard let connection else { throw SimulatedClientError("\(name) is in no room.") }
        sources.removeAll { $0.stream == stream }
        try await suspend { suspension in
            connection.unpublish([stream]) { result in
                suspension.finish(result)
            }
        }
    }

    /// Subscribes to a video of another participant.
    public func subscribe(to stream: Int) async throws {
        guard let connection else { throw SimulatedClientError("\(name) is in no room.") }
        let requested = simulation.loop.now
        try await suspend { suspension in
            connection.subscribe(
                stream, to: { [unowned self] incoming in viewer(of: incoming, incoming.participant, since: requested) }
            ) { result in
                suspension.finish(result)
            }
        }
    }

    public func unsubscribe(from stream: Int) async throws {
        guard let connection else { throw SimulatedClientError("\(name) is in no room.") }
        try await suspend { suspension in
            connection.unsubscribe(stream) { result in
                suspension.finish(result)
            }
        }
    }

    /// Waits until a condition holds. It is checked after each event of the room and each frame.
    public func wait(until condition: @escaping @Sendable (SimulatedClient) -> Bool) async throws {
        if condition(self) { return }
        try await suspend { waiters.append((condition, $0)) }
    }

    /// The streams that it is subscribed to.
    public var watched: [Int] { viewers.filter { !$0.isEnded }.map(\.stream) }

    /// A sentence for each watched video that has shown no frame for `VideoViewer.longestWait`.
    var frozen: [String] {
        viewers.filter { !$0.isEnded && ($0.lastShown ?? .zero) + VideoViewer.longestWait < simulation.loop.now }.map(
            \.description)
    }

    /// The number of frames that the viewer of a stream has shown.
    public func framesShown(of stream: Int) -> Int {
        viewers.filter { $0.stream == stream }.reduce(0) { $0 + $1.shown }
    }

    /// Suspends a call of the application, which fails if the client is killed.
    private func suspend(_ start: (Suspension) -> Void) async throws {
        try await simulation.suspend { suspension in
            calls.removeAll { !$0.isPending }
            calls.append(suspension)
            start(suspension)
        }
    }

    // MARK: - Faults

    /// Cuts the link, media and signalling, or mends it.
    public func cut(_ isCut: Bool) {
        up.isCut = isCut
        down.isCut = isCut
        if isCut {
            pipeUp.cutSince = pipeUp.cutSince ?? simulation.loop.now
            pipeDown.cutSince = pipeDown.cutSince ?? simulation.loop.now
        } else {
            resume(&pipeUp)
            resume(&pipeDown)
        }
    }

    private func resume(_ pipe: inout Pipe) {
        guard pipe.cutSince != nil else { return }
        let (time, deliveries) = pipe.resume(now: simulation.loop.now)
        for delivery in deliveries { simulation.at(time, delivery) }
    }

    /// Changes the link from now on.
    public func setLink(_ link: Link) {
        up.model = link.up
        down.model = link.down
        pipeUp.delay = link.up.delay
        pipeDown.delay = link.down.delay
    }

    /// Sets the loss of both directions, 0...1.
    public func setLoss(_ loss: Double) {
        up.model.loss = loss
        down.model.loss = loss
    }

    /// Ends all faults of the link: it is as it was made.
    public func heal() {
        cut(false)
        setLink(link)
    }

    /// Restarts the encoders: a keyframe follows, with other timestamps, as after a crash of the camera.
    public func restartSources() { for source in sources { source.restart() } }

    // MARK: - Network

    func nextConnection() -> Int {
        connections += 1
        return connections
    }

    private func sendUp(_ datagram: Span<UInt8>, from address: TransportAddress) {
        guard !isDead else { return }
        simulation.note(datagram, from: number)
        let bytes = datagram.indices.map { datagram[$0] }
        for time in up.arrivals(of: bytes.count, now: simulation.loop.now) {
            simulation.at(time) { [unowned simulation] in simulation.server.receive(bytes.span, from: address) }
        }
    }

    func sendDown(_ datagram: Span<UInt8>, to address: TransportAddress) {
        simulation.note(datagram, from: -1 - number)
        let bytes = datagram.indices.map { datagram[$0] }
        for time in down.arrivals(of: bytes.count, now: simulation.loop.now) {
            simulation.at(time) { [weak self] in
                guard let self, !isDead else { return }
                paths[address]?.receive(bytes.span)
            }
        }
    }

    private func deliverUp(_ input: PipeInput, of number: Int) {
        guard !isDead, let server, server.number == number else { return }
        let delivery = { server.receive(input) }
        guard let time = pipeUp.arrival(now: simulation.loop.now) else { return pipeUp.hold(delivery) }
        simulation.at(time, delivery)
    }

    func deliverDown(_ input: PipeInput, of number: Int) {
        let delivery: () -> Void = { [weak self] in
            guard let self, !isDead, let connection, server?.number == number else { return }
            switch input {
            case .text(let text): connection.receive(.text(text))
            case .ping:
                connection.receive(.heard)
                deliverUp(.ping, of: number)
            case .closed: connection.receive(.closed(nil))
            }
        }
        guard let time = pipeDown.arrival(now: simulation.loop.now) else { return pipeDown.hold(delivery) }
        simulation.at(time, delivery)
    }

    // MARK: - Events

    private func handle(_ event: RoomEvent) {
        switch event {
        case .connecting, .audioHeard, .audioUnheard: break
        case .connected(_, let others):
            isConnected = true
            endError = nil
            streams = others.flatMap { other in other.streams.map { RemoteStream($0, of: other.id) } }
            joining?.resume()
            joining = nil
        case .participantEntered(let info): streams += info.streams.map { RemoteStream($0, of: info.id) }
        case .participantLeft(let info): streams.removeAll { $0.participant == info.id }
        case .streamPublished(let participant, let info): streams.append(RemoteStream(info, of: participant))
        case .streamUnpublished(_, let info): streams.removeAll { $0.id == info.id }
        case .problem(let error): simulation.fail("\(name) got the error '\(error.message)'.")
        case .ended(_, let error): ended(error)
        }
        notify()
    }

    private func ended(_ error: RoomError?) {
        isConnected = false
        endError = error?.message
        for source in sources { source.end() }
        sources = []
        endViewers()
        streams = []
        // The engine reports its end from inside a call.
        simulation.after(.zero) { [weak self] in self?.notify() }
        connection = nil
        joining?.fail(SimulatedClientError(error?.message ?? "The room ended."))
        joining = nil
    }

    private func endViewers() { for viewer in viewers { viewer.end() } }

    private func viewer(
        of stream: IncomingStream, _ participant: String, since: MonotonicTime? = nil
    ) -> any IncomingSink {
        let viewer = VideoViewer(
            stream.id, name: name, since: since ?? simulation.loop.now, earlier: seen, in: simulation,
            requestKeyframe: { [weak self] in self?.connection?.requestKeyframe(of: stream.id) },
            shown: { [weak self] in self?.notify() })
        seen.insert(stream.id)
        viewers.append(viewer)
        return viewer
    }

    func countKeyframe() { keyframesSent += 1 }

    func viewerReports() -> [SimulationReport.Viewer] { viewers.map(\.report) }

    private func notify() {
        guard !waiters.isEmpty else { return }
        let ready = waiters.filter { $0.until(self) }
        waiters.removeAll { $0.until(self) }
        for waiter in ready { waiter.then.resume() }
    }
}

/// An error of an application's call.
public struct SimulatedClientError: Error, CustomStringConvertible {
    public let description: String

    init(_ description: String) { self.description = description }
}

extension Suspension {
    fileprivate func finish(_ result: Result<Void, RoomError>) {
        switch result {
        case .success: resume()
        case .failure(let error): fail(SimulatedClientError(error.message))
        }
    }
}

extension SimulatedClient.RemoteStream {
    init(_ info: StreamInfo, of participant: String) {
        self.init(id: info.id, participant: participant, isVideo: info.media == .video)
    }
}

extension NTPTime {
    /// The wall clock of all clients: the loop's time, from an arbitrary day on.
    fileprivate init(simulatedAt time: MonotonicTime) {
        self.init(unixNanoseconds: 1_700_000_000_000_000_000 + time.nanoseconds)
    }
}
