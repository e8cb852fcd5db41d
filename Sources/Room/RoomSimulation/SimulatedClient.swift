package import ClientCore
internal import ICELite
internal import MediaGraph
internal import PeerLoop
internal import PeerSession
public import RTP
package import RoomProtocol

/// A participant in the simulation: the product's client engine behind a link.
///
/// Call its methods on tasks of `Simulation.task`, and not after the simulation was released.
public final class SimulatedClient: @unchecked Sendable {
    // Sendable by hand: used on the simulation's thread only, as the class of the simulation itself.

    /// The name in reports and failures.
    public let name: String
    let number: Int
    let link: Link
    private let wallClockOffset: TimeInterval
    unowned let simulation: World
    private var random: RandomSource
    var up: Wire
    var down: Wire
    var signallingUp: SignallingWire
    var signallingDown: SignallingWire
    /// By port.
    private var paths: [UInt16: ClientPath] = [:]
    private var nextPort: UInt16 = 40_000
    var connection: RoomConnection?
    var server: ServerConnection?
    var connections = 0
    private var joining: Suspension?
    private var calls: [Suspension] = []
    private var waiters: [(until: (SimulatedClient) -> Bool, then: Suspension)] = []
    private var eventWaiters: [Suspension] = []
    private(set) var viewers: [VideoViewer] = []
    private(set) var listeners: [AudioListener] = []
    private(set) var sources: [VideoSource] = []
    private var microphones: [AudioSource] = []
    var camera: LayeredCamera?
    private(set) var keyframesSent = 0
    private(set) var losses = KeyframeLosses()
    /// By cuts alone, and by all faults.
    var cuts = Disturbance()
    var faults = Disturbance()
    var absences = Disturbance()
    /// The numbers that the server sent.
    private(set) var egress = EgressLedger()
    var isDead = false
    /// Names the server's sessions with this client.
    private var sessionNames: RandomSource
    /// The videos that this client has watched.
    private var seen: Set<Int> = []
    /// The audio streams that it has heard in this room. One of an earlier stay may be assigned again, and its packets may
    /// come before that message.
    private var heardHere: Set<Int> = []
    /// The streams that it has subscribed to and that are not assigned yet. Their packets may come before that message.
    private(set) var awaited: Set<Int> = []

    /// For how long it tries to return to a server that it has lost. Set it before it joins.
    public var returnTimeout = TimeInterval.seconds(120)
    /// The receivers that it asks for. Set them before it joins.
    package var receivers = ReceiverPool()
    /// Whether its client knows neither transport-wide feedback nor REMB, as some gateways. Set it before it joins.
    package var knowsReportsAlone = false
    /// How often it notes its statistics. Zero for never. Set it before it joins.
    package var statisticsInterval = TimeInterval.zero
    /// Its statistics at the interval, oldest first.
    package private(set) var statistics: [(at: MonotonicTime, figures: RoomStatistics)] = []
    /// The error of each later sign-in.
    var signInError: RoomError?
    /// How often it returned: as the same participant, and as another one.
    public private(set) var returns = (resumed: 0, rejoined: 0)
    /// Whether it has lost the server and tries to return.
    public private(set) var isReturning = false {
        didSet { absences.isOngoing = isReturning }
    }
    /// Why watched videos arrived worse than they could, one line for each change.
    public private(set) var qualities: [String] = []
    /// The texts of others.
    package private(set) var messages: [UserMessage] = []
    /// When media did not flow, one line for each change.
    public private(set) var interruptions: [String] = []
    /// Participants that it saw enter and leave, itself not included.
    public private(set) var presence = (entered: 0, left: 0)
    /// Whether it is in a room.
    public private(set) var isConnected = false
    /// Why the last room ended. Nil if this client left, and before.
    public private(set) var endError: String?
    /// The server's id of this client. Nil outside of a room.
    public var participant: String? { connection.flatMap { $0.participant.isEmpty ? nil : $0.participant } }
    /// The other participants' streams, each with the server's id of its participant.
    public private(set) var streams: [RemoteStream] = []

    /// A stream of another participant.
    public struct RemoteStream: Sendable, Equatable {
        /// The server's id of the stream.
        public var id: Int
        /// The server's id of the publisher.
        public var participant: String
        /// Whether the stream is video. Audio otherwise.
        public var isVideo: Bool
        /// Why the stream shows a stand-in for its source. Nil while it shows the source.
        public var waiting: String?
        package var attributes: StreamAttributes
    }

    init(_ name: String, number: Int, link: Link, wallClock ahead: TimeInterval, seed: UInt64, in simulation: World) {
        self.name = name
        wallClockOffset = ahead
        self.number = number
        self.link = link
        self.simulation = simulation
        var random = RandomSource(seed: seed)
        up = Wire(link.up, seed: random.next())
        down = Wire(link.down, seed: random.next())
        signallingUp = SignallingWire(delay: link.up.delay, seed: random.next())
        signallingDown = SignallingWire(delay: link.down.delay, seed: random.next())
        sessionNames = RandomSource(seed: random.next())
        self.random = random
    }

    // MARK: - The room

    /// Joins a room. Returns when media can flow.
    ///
    /// - Throws: if the client is in a room already, or the server refuses.
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
            wallClock: { [unowned self] in wallClock(at: $0) },
            sound: { [unowned self] _, _ in { [unowned self] in listener(of: $0) } },
            openLink: { [unowned self] _, then in openLink(then) })
        var options = ConnectionOptions(receivers: receivers, returnTimeout: returnTimeout)
        options.statisticsInterval = statisticsInterval
        let connection = RoomConnection(loop: simulation.loop, options: options, environment: environment) {
            [unowned self] in handle($0)
        }
        self.connection = connection
        // The last words of the server that it has left are not for this connection.
        server = nil
        _ = connection.begin()
        guard let address = try? ServerAddress(SimulatedServer.address(of: 0).description),
            connection.signIn(to: address),
            let name = try? RoomName(room)
        else { return }
        // The handshake of TCP and WebSocket takes two round trips.
        let handshake = (signallingUp.delay + signallingDown.delay) * 2
        simulation.after(handshake) { [weak self, weak connection] in
            guard let self, let connection, self.connection === connection else { return }
            guard let server = simulation.server.process?.connect(self) else {
                return connection.fail(RoomError(.serverUnreachable, "The simulated server does not run."))
            }
            connection.join(name, token: "simulated", over: link(to: server))
        }
    }

    /// Of its network, which may change.
    private var ownAddress: UInt32 { 0x0a00_0000 + networks << 24 | UInt32(number + 1) }
    var networks: UInt32 = 0
    /// The name of the network that the client is in, as its address.
    var network: String { "network \(networks)" }
    /// As the server sees it, behind an address translator.
    private var seenAddress: UInt32 { ownAddress + translations << 28 }
    var translations: UInt32 = 0

    var isCut: Bool { up.isCut || down.isCut }

    /// Its wall clock, which nothing sets by that of another client.
    func wallClock(at time: MonotonicTime) -> NTPTime { NTPTime(simulatedAt: time).advanced(by: wallClockOffset) }

    func makePeer(_ request: PeerRequest) throws(TransportError) -> Peer {
        let session = simulation.makeSession(cname: request.cname, name: random.next())
        return try Peer(
            loop: simulation.loop, session: session, connectTimeout: request.connectTimeout,
            pathTimeout: request.pathTimeout
        ) { [unowned self] _, events, datagrams in
            nextPort = nextPort == .max ? 40_000 : nextPort + 1
            let address = TransportAddress(ipv4: ownAddress, port: nextPort)
            let seed = random.next()
            let path = ClientPath(
                loop: simulation.loop, address: address, seed: seed,
                send: { [unowned self] datagram, to in sendUp(datagram, from: address, to: to.port) }, events: events,
                datagrams: datagrams)
            paths[address.port] = path
            return path
        }
    }

    /// Leaves the room. Returns when it has.
    ///
    /// - Throws: if the simulation ends meanwhile.
    public func leave() async throws {
        guard let connection else { return }
        connection.leave()
        try await wait { $0.connection == nil }
    }

    /// Ends the client's process, without a farewell.
    ///
    /// - Parameter closesConnection: whether the system tells the server, as it does unless the machine itself stops.
    public func kill(closesConnection: Bool = true) {
        faults.note(simulation.loop.now)
        endMedia()
        if closesConnection, let server { deliverUp(.broken, of: server.number) }
        isDead = true
        connection?.drop()
        connection = nil
        server = nil
        (isConnected, isReturning) = (false, false)
        streams = []
        joining = nil
        waiters = []
        eventWaiters = []
        for call in calls { call.fail(SimulatedClientError("\(name) was killed.")) }
        calls = []
    }

    /// Publishes a video. Returns the id of its stream.
    ///
    /// - Throws: if the client is in no room, or the server refuses.
    @discardableResult
    public func publish(_ video: VideoFormat = VideoFormat()) async throws -> Int {
        try await publish(video, isRecorded: false)
    }

    /// - Parameter isRecorded: whether the server is to record it.
    @discardableResult
    package func publish(_ video: VideoFormat = VideoFormat(), isRecorded: Bool) async throws -> Int {
        guard let connection else { throw SimulatedClientError("\(name) is in no room.") }
        let source = VideoSource(video, of: self, in: simulation)
        let (stream, mid) = try await publish(TrackOffer(source, isRecorded: isRecorded), on: connection)
        source.begin(stream: stream, on: connection, mid: mid)
        sources.append(source)
        return stream
    }

    /// Returns the stream of a track, and its m-line.
    private func publish(_ offer: TrackOffer, on connection: RoomConnection) async throws -> (Int, mid: String) {
        var (stream, mid) = (0, "")
        try await suspend { suspension in
            connection.preparePublishing([offer]) { result in
                guard case .success(let mids) = result else { return suspension.finish(result.map { _ in }) }
                mid = mids[0]
                connection.offerPrepared { result in
                    stream = (try? result.get())?.first?.id ?? 0
                    suspension.finish(result.map { _ in })
                }
            }
        }
        return (stream, mid)
    }

    /// Publishes audio, a packet every 20 ms. Returns the id of its stream. The server assigns it to the clients that have
    /// a free slot.
    ///
    /// - Throws: if the client is in no room, or the server refuses.
    @discardableResult
    public func publishAudio() async throws -> Int {
        try await publishAudio(payload: AudioSource.usualPayload)
    }

    /// - Parameters:
    ///   - payload: bytes of a packet
    ///   - followsRate: whether packets become smaller when the client's link has no room for them, as an encoder does it
    ///   - isRecorded: whether the server is to record it
    ///   - loudness: the level that packets claim at a time, in negated dBov. Nil for packets without one.
    @discardableResult
    package func publishAudio(
        _ attributes: StreamAttributes = StreamAttributes(), payload: Int = AudioSource.usualPayload,
        followsRate: Bool = false, isRecorded: Bool = false, loudness: ((MonotonicTime) -> UInt8?)? = nil
    ) async throws -> Int {
        guard let connection else { throw SimulatedClientError("\(name) is in no room.") }
        let source = AudioSource(in: simulation, payload: payload, followsRate: followsRate)
        source.loudness = loudness
        let (stream, mid) = try await publish(TrackOffer(source, attributes, isRecorded: isRecorded), on: connection)
        simulation.published(stream, by: source)
        source.begin(on: connection, mid: mid)
        microphones.append(source)
        return stream
    }

    /// Ends a stream that this client publishes, and stays in the room.
    ///
    /// - Throws: if the client is in no room, or does not publish the stream.
    public func unpublish(_ stream: Int) async throws {
        guard let connection else { throw SimulatedClientError("\(name) is in no room.") }
        sources.removeAll { $0.stream == stream }
        try await suspend { suspension in
            connection.unpublish([stream]) { result in
                suspension.finish(result)
            }
        }
    }

    /// Tells the others that a published video waits for its source, with a reason, or shows it again (nil).
    public func setWaiting(_ reason: String?, _ stream: Int) {
        guard let source = sources.first(where: { $0.stream == stream }) else { return }
        source.streamState = reason.map { .waiting($0) } ?? .live
        connection?.stateChanged(mid: source.mid)
    }

    /// Subscribes to a video of another participant.
    ///
    /// - Throws: if the client is in no room, or the server refuses.
    public func subscribe(to stream: Int) async throws { try await subscribe(to: stream, StreamView()) }

    package func subscribe(to stream: Int, _ view: StreamView) async throws {
        guard let connection else { throw SimulatedClientError("\(name) is in no room.") }
        let requested = simulation.loop.now
        awaited.insert(stream)
        defer { awaited.remove(stream) }
        try await suspend { suspension in
            connection.subscribe(
                stream, view: view, to: { [unowned self] incoming in viewer(of: incoming, since: requested) }
            ) { result in
                suspension.finish(result)
            }
        }
    }

    /// Ends the subscription of a video. Throws if the client is in no room, or the server refuses.
    public func unsubscribe(from stream: Int) async throws {
        guard let connection else { throw SimulatedClientError("\(name) is in no room.") }
        try await suspend { suspension in
            connection.unsubscribe(stream) { result in
                suspension.finish(result)
            }
        }
    }

    /// Waits until a condition holds. It is checked after each event of the room and each frame.
    ///
    /// - Throws: if the client is killed, or the simulation ends meanwhile.
    public func wait(until condition: @escaping @Sendable (SimulatedClient) -> Bool) async throws {
        if condition(self) { return }
        try await suspend { waiters.append((condition, $0)) }
    }

    /// Waits for the next event of the room. Returns at once if the room has ended.
    func waitForEvent() async throws {
        if isConnected { try await suspend { eventWaiters.append($0) } }
    }

    /// The streams that it is subscribed to.
    public var watched: [Int] { viewers.filter { !$0.isEnded }.map(\.stream) }

    /// A sentence about a watched video that has shown no frame for this long. Nil without one.
    func frozen(for wait: TimeInterval) -> String? {
        viewers.first { !$0.isEnded && ($0.lastShown ?? .zero) + wait < simulation.loop.now }?.description
    }

    /// The audio streams that the server has assigned to it now.
    public var heard: [Int] { listeners.filter { !$0.isEnded }.map(\.stream) }

    /// The number of frames that the viewer of a stream has shown.
    public func framesShown(of stream: Int) -> Int {
        viewers.filter { $0.stream == stream }.reduce(0) { $0 + $1.shown }
    }

    /// Suspends a call of the application, which fails if the client is killed.
    func suspend(_ start: (Suspension) -> Void) async throws {
        try await simulation.suspend { suspension in
            calls.removeAll { !$0.isPending }
            calls.append(suspension)
            start(suspension)
        }
    }

    // MARK: - Network

    func nextConnection() -> Int {
        connections += 1
        return connections
    }

    /// A random number for a session of the server with this client.
    func nextSession() -> UInt64 { sessionNames.next() }

    /// The longest round trip of a datagram that is not lost.
    var longestRoundTrip: TimeInterval { Link(up: up.model, down: down.model).longestRoundTrip }

    /// Bytes of all datagrams in both directions, and the most that waited for the link's rate.
    var traffic: (bytes: Int, deepestQueue: Int) {
        (up.bytes + down.bytes, max(up.deepestQueue, down.deepestQueue))
    }

    private func sendUp(_ datagram: Span<UInt8>, from address: TransportAddress, to port: UInt16) {
        // A socket at an address of the former network is of no use.
        guard !isDead, address.ipv4 == ownAddress else { return }
        let address = TransportAddress(ipv4: seenAddress, port: address.port)
        simulation.note(datagram, from: number)
        simulation.packetLog?.passed(datagram, .publisherLink)
        let arrivals = up.arrivals(of: datagram.count, now: simulation.loop.now)
        if arrivals.first == nil { lost(Contents(of: datagram), isUp: true) }
        simulation.deliver(datagram, to: .server(port: port), at: address, arrivals)
    }

    func sendDown(_ datagram: Span<UInt8>, to address: TransportAddress) {
        simulation.note(datagram, from: -1 - number)
        let contents = Contents(of: datagram)
        egress.note(contents)
        if let problem = simulation.deliveries?.problem(with: contents, for: self, now: simulation.loop.now) {
            simulation.fail(problem)
        }
        simulation.packetLog?.passed(datagram, .viewerLink)
        let arrivals = down.arrivals(of: datagram.count, now: simulation.loop.now)
        simulation.audioLog?.passed(
            datagram, to: name, isLost: arrivals.first == nil, at: simulation.loop.now)
        if arrivals.first == nil { lost(contents, isUp: false) }
        simulation.deliver(datagram, to: .client(number), at: address, arrivals)
    }

    private func lost(_ contents: Contents, isUp: Bool) {
        losses.add(contents, at: simulation.loop.now)
        guard isUp, case .media(let media) = contents, !media.isRepair, let source = media.source else { return }
        simulation.lostPart(of: source)
    }

    /// A datagram of this client reaches the server.
    func reached(_ datagram: Span<UInt8>) {
        guard sources.contains(where: { $0.flowsSince == nil }), case .media = Contents(of: datagram) else { return }
        for source in sources { source.flow(now: simulation.loop.now) }
    }

    func receive(_ datagram: Span<UInt8>, at address: TransportAddress) {
        guard !isDead, address.ipv4 == seenAddress, let path = paths[address.port], path.address.ipv4 == ownAddress
        else { return }
        path.receive(datagram)
    }

    func deliverUp(_ input: SignallingInput, of number: Int) {
        guard !isDead, let server, server.number == number else { return }
        let delivery = { server.receive(input) }
        guard let time = signallingUp.arrival(now: simulation.loop.now) else { return signallingUp.hold(delivery) }
        simulation.at(time, delivery)
    }

    func deliverDown(_ input: SignallingInput, of number: Int) {
        let delivery: () -> Void = { [weak self] in
            guard let self, !isDead, let connection, server?.number == number else { return }
            switch input {
            case .text(let text): connection.receive(.text(knowsReportsAlone ? Self.withoutPathFeedback(text) : text))
            case .ping:
                connection.receive(.heard)
                deliverUp(.ping, of: number)
            case .closed, .broken: connection.receive(.closed(nil))
            }
        }
        guard let time = signallingDown.arrival(now: simulation.loop.now) else { return signallingDown.hold(delivery) }
        simulation.at(time, delivery)
    }

    // MARK: - Events

    private func handle(_ event: RoomEvent) {
        switch event {
        case .connecting, .joinedAgain, .audioHeard, .audioUnheard, .loudspeaker: break
        case .statistics(let figures): return statistics.append((simulation.loop.now, figures))
        case .userMessage(let message): messages.append(message)
        case .qualityChanged(_, let stream, let limitation):
            // The application has nothing to do then.
            return qualities.append("\(stream): " + (limitation.map { "\($0)" } ?? "all"))
        case .connected(_, let others):
            isConnected = true
            endError = nil
            streams = others.flatMap { other in other.streams.map { RemoteStream($0, of: other.id) } }
            joining?.resume()
            joining = nil
        // The application has nothing to do then.
        case .mediaInterrupted(let interruption):
            return interruptions.append("\(interruption.isOutgoing ? "up" : "down") interrupted")
        case .mediaRestored(let seconds, _): return interruptions.append("restored after \(Int(seconds.rounded())) s")
        case .reconnecting: isReturning = true
        case .reconnected(let back):
            isReturning = false
            absences.note(simulation.loop.now)
            if case .resumed = back.kind { returns.resumed += 1 } else { returns.rejoined += 1 }
        case .republished(_, let streams): republished(streams)
        case .participantEntered(let info):
            presence.entered += 1
            streams += info.streams.map { RemoteStream($0, of: info.id) }
        case .participantLeft(let info):
            presence.left += 1
            streams.removeAll { $0.participant == info.id }
        case .streamPublished(let participant, let info): streams.append(RemoteStream(info, of: participant))
        case .streamUnpublished(_, let info): streams.removeAll { $0.id == info.id }
        case .streamChanged(let participant, let info, _):
            for index in streams.indices where streams[index].id == info.id {
                streams[index] = RemoteStream(info, of: participant)
            }
        case .problem(let error), .subscriptionEnded(_, _, let error):
            simulation.fail("\(name) got the error '\(error.message)'.")
        case .ended(_, let error): ended(error)
        }
        notify()
        for waiter in eventWaiters { waiter.resume() }
        eventWaiters = []
    }

    private func republished(_ streams: [Int: Int]) {
        for (old, new) in streams.sorted(by: { $0.key < $1.key }) {
            simulation.republished(old, as: new)
            for source in sources where source.stream == old { source.renumber(new) }
        }
    }

    private func ended(_ error: RoomError?) {
        isConnected = false
        isReturning = false
        endError = error?.message
        endMedia()
        streams = []
        // The engine reports its end from inside a call.
        simulation.after(.zero) { [weak self] in self?.notify() }
        connection = nil
        joining?.fail(SimulatedClientError(error?.message ?? "The room ended."))
        joining = nil
    }

    private func endMedia() {
        for source in sources { source.end() }
        for microphone in microphones { microphone.end() }
        camera?.end()
        for viewer in viewers { viewer.end() }
        for listener in listeners { listener.end() }
        sources = []
        microphones = []
        heardHere = []
    }

    private func listener(of stream: IncomingStream) -> any IncomingSink {
        let listener = AudioListener(stream.id, of: self, earlier: heardHere, in: simulation)
        heardHere.insert(stream.id)
        listeners.append(listener)
        return listener
    }

    private func viewer(of stream: IncomingStream, since: MonotonicTime) -> any IncomingSink {
        let viewer = VideoViewer(
            stream.id, of: self, since: since, earlier: seen, in: simulation,
            requestKeyframe: { [weak self] in self?.connection?.requestKeyframe(of: stream.id) },
            shown: { [weak self] in self?.notify() })
        seen.insert(stream.id)
        viewers.append(viewer)
        return viewer
    }

    func countKeyframe() { keyframesSent += 1 }

    private func notify() {
        guard !waiters.isEmpty else { return }
        let ready = waiters.filter { $0.until(self) }
        waiters.removeAll { $0.until(self) }
        for waiter in ready { waiter.then.resume() }
    }
}
