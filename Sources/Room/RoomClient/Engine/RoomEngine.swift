package import ClientCore
internal import PeerIO
internal import PeerLoop
internal import RTP
package import RoomProtocol

/// A `RoomConnection` on the process's one loop thread, with a WebSocket and UDP sockets.
///
/// An actor on that loop. It reports `RoomEvent`s in order there; `onEvent` has to return immediately. An engine
/// connects once.
package actor RoomEngine {
    let loop: EventLoop
    let connection: RoomConnection
    private let sinks: SinkMaker
    /// Why this engine can never connect.
    private let refusal: RoomError?

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// - Parameter onEvent: called on the loop, in order.
    package init(options: RoomOptions = RoomOptions(), onEvent: @escaping @Sendable (RoomEvent) -> Void) {
        let loop = RoomLoop.shared
        let sinks = SinkMaker(loop: loop, report: onEvent)
        let connection = RoomConnection(
            loop: loop,
            options: ConnectionOptions(
                receivers: options.receivers, connectDeadline: options.connectDeadline,
                servers: (try? options.servers.get()) ?? ICEServers(), impairment: options.impairment),
            environment: RoomEnvironment(
                seed: .random(in: UInt64.min...UInt64.max),
                makePeer: { request throws(TransportError) in try RoomLoop.makePeer(request) },
                wallClock: { WallClock.shared.time(at: $0) },
                sound: { participant, stream in options.sound(participant, stream).map { sinks.sinks(to: $0) } },
                captures: CaptureLedger.shared),
            onEvent: onEvent)
        sinks.connection = connection
        self.loop = loop
        self.sinks = sinks
        refusal = if case .failure(let error) = options.servers { error } else { nil }
        self.connection = connection
        ReceivingGraph.warmUp()
    }

    /// An engine that is released while connected closes its connection without a farewell.
    isolated deinit {
        connection.drop()
    }

    /// Runs `body` on the loop. Returns false if the loop refuses it.
    @discardableResult
    package nonisolated func post(_ action: @escaping @Sendable (isolated RoomEngine) -> Void) -> Bool {
        loop.execute { self.assumeIsolated(action) }
    }

    // MARK: - Connecting

    /// Joins the room. `.connected` or `.ended` reports the result within about 10 s. Does nothing in an engine that
    /// has ended.
    package nonisolated func connect(to room: RoomName, with token: AccessToken) {
        connect(to: room) { () async throws(RoomError) in token }
    }

    /// Joins with a token that is obtained first. The 10 s include that.
    package nonisolated func connect(
        to room: RoomName, token: @escaping @Sendable () async throws(RoomError) -> AccessToken
    ) {
        post { engine in
            guard engine.connection.begin() else { return }
            if let refusal = engine.refusal { return engine.connection.fail(refusal) }
            Task { await engine.join(room, token) }
        }
    }

    private func join(_ room: RoomName, _ token: () async throws(RoomError) -> AccessToken) async {
        do throws(RoomError) {
            let token = try await token()
            guard connection.signIn(to: token.address) else { return }
            let pipe = try await SignallingPipe.open(to: token.address) { [weak self] input in
                self?.post { $0.connection.receive(input) } ?? false
            }
            let link = SignallingLink(
                remoteAddress: pipe.remoteAddress, send: { pipe.send($0) }, close: { pipe.close() })
            connection.join(room, token: token.token, over: link)
        } catch {
            connection.fail(error)
        }
    }

    // MARK: - Leaving

    /// Leaves the room. `.ended` follows when the server confirms, or after a second. Does nothing after the end.
    package nonisolated func disconnect() {
        post { $0.leave() }
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
}
