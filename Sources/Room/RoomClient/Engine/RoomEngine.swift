package import ClientCore
package import PeerIO
package import PeerLoop
internal import RTP
package import RoomProtocol
internal import Synchronization

/// A `RoomConnection` on the process's one loop thread, with a WebSocket and UDP sockets.
///
/// An actor on that loop. It reports `RoomEvent`s in order there; `onEvent` has to return immediately. An engine
/// connects once.
package actor RoomEngine {
    package nonisolated let loop: EventLoop
    let connection: RoomConnection
    let sinks: SinkMaker
    /// Those that the loop has not heard of yet.
    nonisolated let soundWishes = Mutex(SoundRoom.Wishes())
    /// Why this engine can never connect.
    private let refusal: RoomError?
    private let opener: Opener
    /// How many signalling pipes were opened.
    private(set) var pipes = 0
    private var token: TokenSource?
    private(set) var addresses: AddressWatch?

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// - Parameter onEvent: called on the loop, in order.
    package init(options: RoomOptions = RoomOptions(), onEvent: @escaping @Sendable (RoomEvent) -> Void) {
        let loop = RoomLoop.shared
        let sinks = SinkMaker(loop: loop, report: onEvent)
        let opener = Opener()
        var choices = ConnectionOptions(
            receivers: options.receivers, connectDeadline: options.connectDeadline,
            servers: (try? options.servers.get()) ?? ICEServers(), impairment: options.impairment,
            returnTimeout: options.returnTimeout)
        choices.statisticsInterval = options.statisticsInterval
        let connection = RoomConnection(
            loop: loop, options: choices,
            environment: RoomEnvironment(
                seed: .random(in: UInt64.min...UInt64.max),
                makePeer: { request throws(TransportError) in try RoomLoop.makePeer(request) },
                wallClock: { WallClock.shared.time(at: $0) },
                sound: { participant, stream in options.sound(participant, stream).map { sinks.sinks(to: $0) } },
                captures: CaptureLedger.shared, openLink: { refused, then in opener.open(refused, then) }),
            onEvent: { event in
                sinks.note(event)
                onEvent(event)
                if case .ended = event {
                    sinks.close()
                    opener.engine?.assumeIsolated { $0.stopWatchingAddresses() }
                }
            })
        sinks.connection = connection
        self.loop = loop
        self.sinks = sinks
        refusal = if case .failure(let error) = options.servers { error } else { nil }
        self.opener = opener
        self.connection = connection
        ReceivingGraph.warmUp()
        opener.engine = self
    }

    /// An engine that is released while connected closes its connection without a farewell.
    isolated deinit {
        stopWatchingAddresses()
        connection.drop()
        sinks.close()
    }

    /// Runs `body` on the loop. Returns false if the loop refuses it.
    @discardableResult
    package nonisolated func post(_ action: @escaping @Sendable (isolated RoomEngine) -> Void) -> Bool {
        loop.execute { self.assumeIsolated(action) }
    }

    /// Runs `body` on the loop, however much waits there. For the few calls without which a room would neither begin nor end.
    nonisolated func postAlways(_ action: @escaping @Sendable (isolated RoomEngine) -> Void) {
        loop.executeAlways { self.assumeIsolated(action) }
    }

    // MARK: - Connecting

    /// Joins the room. `.connected` or `.ended` reports the result within about 10 s. Does nothing in an engine that
    /// has ended.
    package nonisolated func connect(to room: RoomName, with token: AccessToken) {
        connect(to: room) { (_) async throws(RoomError) in token }
    }

    /// Returns a token, another one than the refused one if possible.
    package typealias TokenSource = @Sendable (_ refused: String?) async throws(RoomError) -> AccessToken

    /// Joins with a token that is obtained first. The 10 s include that. Also called whenever the connection returns.
    package nonisolated func connect(to room: RoomName, token: @escaping TokenSource) {
        postAlways { engine in
            guard engine.connection.begin() else { return }
            if let refusal = engine.refusal { return engine.connection.fail(refusal) }
            engine.token = token
            engine.watchAddresses()
            Task { await engine.join(room, token) }
        }
    }

    private func join(_ room: RoomName, _ token: TokenSource) async {
        do throws(RoomError) {
            let token = try await token(nil)
            guard connection.signIn(to: token.address) else { return }
            connection.join(room, token: token.token, over: try await open(token))
        } catch {
            connection.fail(error)
        }
    }

    private func open(_ token: AccessToken) async throws(RoomError) -> SignallingLink {
        pipes += 1
        let number = pipes
        let pipe = try await SignallingPipe.open(to: token.address, trusting: token.trust) { [weak self] input in
            self?.post { engine in
                // Input of links that the connection has left, or never took, is ignored.
                if number == engine.connection.link?.number ?? engine.pipes { engine.connection.receive(input) }
            } ?? false
        }
        return SignallingLink(
            number: number, remoteAddress: pipe.remoteAddress, localAddress: pipe.localAddress, send: { pipe.send($0) },
            close: { pipe.close() }, abandon: { pipe.abandon() }, isOpen: { pipe.isOpen })
    }

    /// Until the connection ends: an address is often gone before the server is known to be lost.
    private func watchAddresses() {
        guard addresses == nil else { return }
        addresses = AddressWatch(on: loop) { [weak connection] in connection?.addressesChanged(to: $0) }
    }

    private func stopWatchingAddresses() {
        addresses?.close()
        addresses = nil
    }

    private func openAgain(_ refused: String?, for attempt: Int) async {
        guard let token else { return }
        do throws(RoomError) {
            let token = try await token(refused)
            let link = try await open(token)
            opener.finish(attempt, .success(OpenedLink(link: link, token: token.token, address: token.address)))
        } catch {
            opener.finish(attempt, .failure(error))
        }
    }

    /// Opens links for the engine's connection, which is made before the engine.
    private final class Opener {
        weak var engine: RoomEngine?
        private var attempts = 0
        /// Called with the link of the attempt. Several may run at a time, and end in any order.
        private var waiting: [Int: (Result<OpenedLink, RoomError>) -> Void] = [:]

        func open(_ refused: String?, _ then: @escaping (Result<OpenedLink, RoomError>) -> Void) {
            attempts += 1
            let attempt = attempts
            waiting[attempt] = then
            let isTaken = engine?.post { engine in _ = Task { await engine.openAgain(refused, for: attempt) } }
            if isTaken != true { finish(attempt, .failure(RoomEngine.overloaded)) }
        }

        func finish(_ attempt: Int, _ result: Result<OpenedLink, RoomError>) {
            waiting.removeValue(forKey: attempt)?(result)
        }
    }

    // MARK: - Leaving

    /// Leaves the room. `.ended` follows when the server confirms, or after a second. Does nothing after the end.
    package nonisolated func disconnect() {
        postAlways { $0.leave() }
    }

    func leave() {
        connection.leave()
        // The timer keeps the engine alive until the connection has ended.
        loop.schedule(after: SignallingDeadlines.leave) { withExtendedLifetime(self) {} }
    }

    // MARK: - Media

    /// Subscribes to a video stream and passes its frames to the fanout. Calls `then` on the loop.
    package nonisolated func subscribe(
        _ id: Int, view: StreamView = StreamView(), to fanout: FrameFanout,
        then: @escaping @Sendable (Result<Void, RoomError>) -> Void
    ) {
        subscribe(id, view: view, to: .frames(fanout), then: then)
    }

    /// Subscribes to a video stream, as decoded frames or packets. Calls `then` on the loop.
    package nonisolated func subscribe(
        _ id: Int, view: StreamView = StreamView(), to destination: StreamDestination,
        then: @escaping @Sendable (Result<Void, RoomError>) -> Void
    ) {
        let isTaken = post { engine in
            engine.connection.subscribe(id, view: view, to: engine.sinks.sinks(to: destination), then: then)
        }
        if !isTaken { then(.failure(Self.overloaded)) }
    }

    /// Sets the view by which the server chooses the layer of a subscribed video stream. Calls `then` on the loop.
    package nonisolated func setView(
        _ view: StreamView, of id: Int, then: @escaping @Sendable (Result<Void, RoomError>) -> Void
    ) {
        let isTaken = post { $0.connection.setView(view, of: id, then: then) }
        if !isTaken { then(.failure(Self.overloaded)) }
    }

    /// Ends a subscription. Calls `then` on the loop.
    package nonisolated func unsubscribe(_ id: Int, then: @escaping @Sendable (Result<Void, RoomError>) -> Void) {
        let isTaken = post { $0.connection.unsubscribe(id, then: then) }
        if !isTaken { then(.failure(Self.overloaded)) }
    }

    static let overloaded = RoomError(
        .roomReleased, "The process is overloaded: too many room requests wait. Send fewer requests at a time.")

    /// Requests a keyframe of a subscribed video stream.
    package nonisolated func requestKeyframe(of stream: Int) {
        post { $0.connection.requestKeyframe(of: stream) }
    }

    /// Drops all media in both directions and removes configured losses. For tests of cut networks.
    package nonisolated func cutMedia(_ isCut: Bool) {
        post { $0.connection.cutMedia(isCut) }
    }

    /// Current statistics, or the final ones after the end.
    package var statistics: RoomStatistics { connection.statistics }

    package var relays: [ICEServer] { connection.servers.relays }
}
