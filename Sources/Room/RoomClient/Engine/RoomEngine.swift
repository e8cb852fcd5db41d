internal import PeerIO
internal import RTP
package import RoomProtocol

/// One participant's connection to one room: signalling, the down session with its receivers, and the up session.
///
/// An actor on the process's one loop thread. It reports `RoomEvent`s in order on that thread; `onEvent` has to return
/// immediately. An engine connects once.
package actor RoomEngine {
    enum State {
        case idle
        case connecting
        case connected
        case leaving
        case ended
    }

    struct Remote {
        var streams: [StreamInfo]
    }

    let loop: EventLoop
    let options: RoomOptions
    let onEvent: @Sendable (RoomEvent) -> Void

    var state = State.idle
    var address: ServerAddress?
    var pipe: SignallingPipe?
    var signalling: SignallingSession?
    var timer: LoopTimer?
    var sampling: LoopTimer?
    var waiting: [Int: (Result<ServerMessage, RoomError>) -> Void] = [:]
    var down: DownSession?
    var up: UpSession?
    var publishQueue: [CheckedContinuation<Void, Never>] = []
    var isPublishing = false

    var participant = ""
    /// In order of arrival.
    var others: [ParticipantInfo] = []
    var heard: [String: AssignedStream] = [:]
    var subscriptions: [Int: StreamDestination] = [:]
    var connectStarted = MonotonicTime.zero
    var connectedAt: MonotonicTime?
    var firstFrame: Double?

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// - Parameter onEvent: called on the loop, in order.
    package init(options: RoomOptions = RoomOptions(), onEvent: @escaping @Sendable (RoomEvent) -> Void) {
        loop = RoomLoop.shared
        self.options = options
        self.onEvent = onEvent
        ReceivingGraph.warmUp()
    }

    /// An engine that is released while connected closes its connection without a farewell.
    isolated deinit {
        up?.close()
        down?.close()
        pipe?.close()
    }

    /// Runs `body` on the loop. Returns false if the loop refuses it.
    @discardableResult
    nonisolated func post(_ action: @escaping @Sendable (isolated RoomEngine) -> Void) -> Bool {
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
            guard engine.state == .idle else { return }
            engine.state = .connecting
            engine.connectStarted = engine.loop.now
            engine.loop.schedule(after: engine.options.connectDeadline) { [weak engine] in
                engine?.assumeIsolated { $0.connectTimeout() }
            }
            Task { await engine.join(room, token) }
        }
    }

    func join(_ room: RoomName, _ token: () async throws(RoomError) -> AccessToken) async {
        do throws(RoomError) {
            let token = try await token()
            guard state == .connecting else { return }
            address = token.address
            signalling = SignallingSession(server: token.address.description, now: loop.now)
            timer = loop.makeTimer { [weak self] in self?.assumeIsolated { $0.signallingTimeout() } }
            let pipe = try await SignallingPipe.open(to: token.address) { [weak self] event in
                self?.post { $0.handle(event) } ?? false
            }
            guard state == .connecting else { return pipe.close() }
            self.pipe = pipe
            signalling?.heard(now: loop.now)
            let join = Join(token: token.token, room: room.text, receivers: options.receivers)
            let answer = try await request(.join(join))
            guard case .joined = answer else {
                throw RoomError(
                    .enterResponseInvalid,
                    "The reply of the server \(token.address) to 'join' has the wrong type. Check its version.")
            }
        } catch {
            end(.disconnected, error)
        }
    }

    func connectTimeout() {
        guard state == .connecting else { return }
        end(.disconnected, lateness)
    }

    /// The error for a connection that was not ready in time.
    private var lateness: RoomError {
        guard let address else {
            return RoomError(
                .serverUnreachable, "The sign-in was not renewed in time. Check the server and the network.")
        }
        guard !participant.isEmpty else {
            return RoomError(
                .serverUnreachable,
                "The server \(address) accepts connections but did not reply to 'join' in time. Check that it is a "
                    + "connectlive server and that it works.")
        }
        return RoomError(
            .mediaConnectionFailed,
            "The room on \(address) was joined, but no media connection was ready in time. Allow UDP between this "
                + "machine and the server.")
    }

    func joined(_ joined: Joined) {
        participant = joined.participant
        others = joined.participants
        onEvent(.connecting(percent: 33))
    }

    func secured() {
        guard state == .connecting else { return }
        state = .connected
        connectedAt = loop.now
        onEvent(.connecting(percent: 100))
        onEvent(.connected(participant: participant, others: others))
        for stream in heard.values { onEvent(.audioHeard(participant: stream.participant, stream: stream.id)) }
        sample()
    }

    // MARK: - Leaving

    /// Leaves the room. `.ended` follows when the server confirms, or after a second. Does nothing after the end.
    package nonisolated func disconnect() {
        post { $0.leave() }
    }

    func leave() {
        switch state {
        case .idle: end(.disconnected, nil)
        case .connecting, .connected:
            guard pipe != nil else { return end(.disconnected, nil) }
            state = .leaving
            // The timer keeps the engine alive until everything is closed.
            loop.schedule(after: SignallingDeadlines.leave) { self.assumeIsolated { $0.end(.disconnected, nil) } }
            request(.leave) { [weak self] _ in self?.assumeIsolated { $0.end(.disconnected, nil) } }
        case .leaving, .ended: break
        }
    }

    /// Ends the engine. During `leave`, an error is the expected end and is not reported.
    func end(_ reason: Closing.Reason, _ error: RoomError?) {
        guard state != .ended else { return }
        let (reason, error) = state == .leaving ? (.disconnected, nil) : (reason, error)
        state = .ended
        timer?.disarm()
        sampling?.disarm()
        // Pending requests fail with the cause.
        let verdict = error ?? RoomError(.roomReleased, "The room was left.")
        _ = signalling?.end(verdict)
        let unanswered = waiting.sorted { $0.key < $1.key }
        waiting = [:]
        for request in unanswered { request.value(.failure(verdict)) }
        finalStatistics = makeStatistics()
        up?.close()
        down?.close()
        up = nil
        down = nil
        pipe?.close()
        pipe = nil
        onEvent(.ended(reason, error))
    }

    var finalStatistics: RoomStatistics?

    // MARK: - Signalling

    func request(_ message: ClientMessage) async throws(RoomError) -> ServerMessage {
        let result = await withCheckedContinuation { continuation in
            request(message) { continuation.resume(returning: $0) }
        }
        return try result.get()
    }

    /// The reply takes effect before any later message of the server.
    func request(_ message: ClientMessage, then: @escaping (Result<ServerMessage, RoomError>) -> Void) {
        do throws(RoomError) {
            guard signalling != nil, let pipe else {
                throw RoomError(.roomReleased, "No room is connected.")
            }
            guard let (id, text) = try signalling?.request(message, now: loop.now) else { return }
            waiting[id] = then
            pipe.send(text)
            armTimer()
        } catch {
            then(.failure(error))
        }
    }

    func send(_ message: ClientMessage) {
        pipe?.send(Envelope(message).json())
    }

    func handle(_ event: SignallingPipe.Event) {
        switch event {
        case .text(let text): perform(signalling?.receive(text, now: loop.now) ?? [])
        case .heard: signalling?.heard(now: loop.now)
        case .closed(let error): perform(signalling?.closed(error) ?? [])
        }
        armTimer()
    }

    func signallingTimeout() {
        signalling?.heardMedia(at: max(down?.lastReceived ?? .zero, up?.lastReceived ?? .zero))
        perform(signalling?.handleTimeout(now: loop.now) ?? [])
        armTimer()
    }

    func armTimer() {
        guard pipe != nil, let time = signalling?.nextTimeout else { return }
        timer?.arm(at: time)
    }

    func perform(_ outputs: [SignallingSession.Output]) {
        for output in outputs {
            switch output {
            case .send(let text): pipe?.send(text)
            case .answer(let id, let result):
                if case .success(.joined(let body)) = result { joined(body) }
                waiting.removeValue(forKey: id)?(result)
            case .message(let message): handle(message)
            case .notUnderstood(let error): onEvent(.problem(error))
            case .ended(let error): end(.disconnected, error)
            }
        }
    }

    func handle(_ message: ServerMessage) {
        switch message {
        case .offer(let description): answer(description)
        case .candidate(let candidate):
            switch candidate.session {
            case .up: up?.addRemoteCandidate(candidate.candidate)
            case .down: down?.addRemoteCandidate(candidate.candidate)
            }
        case .participantEntered(let body): entered(body.participant)
        case .participantLeft(let body): left(body.participant)
        case .streamPublished(let body): published(body)
        case .receiverAssigned(let body): assigned(body)
        case .closed(let closing):
            end(closing.reason, RoomError(.init(wireName: closing.code), closing.message))
        case .joined, .published, .subscribed, .unsubscribed, .pong, .left, .error: break
        }
    }

    // MARK: - The room

    func entered(_ info: ParticipantInfo) {
        guard info.id != participant, !others.contains(where: { $0.id == info.id }) else { return }
        others.append(info)
        if state == .connected { onEvent(.participantEntered(info)) }
    }

    func left(_ id: String) {
        guard let index = others.firstIndex(where: { $0.id == id }) else { return }
        let info = others.remove(at: index)
        for stream in info.streams {
            subscriptions[stream.id] = nil
            down?.release(stream: stream.id)
        }
        for (mid, stream) in heard where stream.participant == id { unheard(mid) }
        if state == .connected { onEvent(.participantLeft(info)) }
    }

    func published(_ body: StreamPublished) {
        guard let index = others.firstIndex(where: { $0.id == body.participant }),
            !others[index].streams.contains(where: { $0.id == body.stream.id })
        else { return }
        others[index].streams.append(body.stream)
        if state == .connected { onEvent(.streamPublished(participant: body.participant, body.stream)) }
    }

    func stream(_ id: Int) -> (participant: String, info: StreamInfo)? {
        for other in others {
            if let info = other.streams.first(where: { $0.id == id }) { return (other.id, info) }
        }
        return nil
    }

    func assigned(_ body: ReceiverAssigned) {
        guard body.media == .audio else { return assignedVideo(body) }
        guard let id = body.stream, let participant = body.participant, let address else { return unheard(body.mid) }
        guard heard[body.mid]?.id != id else { return }
        unheard(body.mid)
        guard let destination = options.sound(participant, id) else { return }
        let stream = AssignedStream(
            id: id, participant: participant, codec: .opus, key: .init(server: address, stream: id),
            destination: destination)
        guard assign(stream, to: body.mid, from: body.firstSequenceNumber) else { return }
        heard[body.mid] = stream
        if state == .connected { onEvent(.audioHeard(participant: participant, stream: id)) }
    }

    func unheard(_ mid: String) {
        guard let stream = heard.removeValue(forKey: mid) else { return }
        _ = down?.release(mid: mid)
        if state == .connected { onEvent(.audioUnheard(participant: stream.participant, stream: stream.id)) }
    }

    /// The server moves or ends a subscription.
    func assignedVideo(_ body: ReceiverAssigned) {
        guard let id = body.stream else {
            _ = down?.release(mid: body.mid)
            return
        }
        guard subscriptions[id] != nil else { return }
        _ = assignVideo(id, to: body.mid, from: body.firstSequenceNumber)
    }

    func assignVideo(_ id: Int, to mid: String, from first: UInt16?) -> Bool {
        guard let address, let (participant, info) = stream(id), let codec = Codec(rawValue: info.codec),
            let destination = subscriptions[id]
        else { return false }
        let stream = AssignedStream(
            id: id, participant: participant, codec: codec, key: .init(server: address, stream: id),
            destination: destination)
        return assign(stream, to: mid, from: first)
    }

    /// `first` is the stream's first sequence number on its receiver. Older servers do not send it.
    func assign(_ stream: AssignedStream, to mid: String, from first: UInt16?) -> Bool {
        let first = first.map { SequenceNumber($0) }
        return down?.assign(stream, to: mid, from: first) { [weak self] notice in
            self?.post { $0.handle(notice) }
        } ?? false
    }

    func handle(_ notice: ReceiverNotice) {
        if let error = down?.handle(notice) { onEvent(.problem(error)) }
    }

    /// Drops all media in both directions and removes configured losses. For tests of cut networks.
    package nonisolated func cutMedia(_ isCut: Bool) {
        post { engine in
            engine.down?.cut(isCut)
            engine.up?.cut(isCut)
        }
    }

    // MARK: - Sessions

    func peerConfiguration(
        _ role: ICERole, salt: UInt64
    ) throws(TransportError) -> PeerConfiguration {
        let impairment = options.impairment.map {
            Impairment(seed: $0.seed &+ salt, outgoingLoss: $0.outgoingLoss, incomingLoss: $0.incomingLoss)
        }
        return try RoomLoop.peerConfiguration(
            role: role, cname: participant.isEmpty ? "client" : participant,
            scope: .reaching(pipe?.remoteAddress), impairment: impairment)
    }

    func answer(_ description: Description) {
        guard description.session == .down else { return }
        do throws(RoomError) {
            let offer = try DownSession.offer(in: description)
            if down == nil {
                do throws(TransportError) {
                    down = try makeDownSession(for: offer)
                } catch {
                    throw RoomError(error, session: .down)
                }
            }
            guard let answer = try down?.answer(offer, revision: description.revision) else { return }
            send(.answer(answer))
            if answer.revision == 1 { onEvent(.connecting(percent: 66)) }
        } catch {
            end(.disconnected, error)
        }
    }

    func makeDownSession(for offer: SessionDescription) throws(TransportError) -> DownSession {
        // The end that offers controls, unless it is lite (RFC 8445, section 6.1.1).
        let role: ICERole = offer.transport?.isLite == true ? .controlling : .controlled
        let session = try DownSession(
            loop: loop, configuration: peerConfiguration(role, salt: 1), connectStarted: connectStarted)
        session.onEvent = { [weak self] event in self?.assumeIsolated { $0.handle(event) } }
        return session
    }

    func handle(_ event: DownSession.Event) {
        switch event {
        case .candidate(let text): send(.candidate(Candidate(session: .down, candidate: text)))
        case .candidatesEnded: send(.candidate(Candidate(session: .down, candidate: "")))
        case .secured: secured()
        case .problem(let error): onEvent(.problem(error))
        case .ended(let error): sessionEnded(.down, error)
        }
    }

    func handle(_ event: UpSession.Event) {
        switch event {
        case .candidate(let text): send(.candidate(Candidate(session: .up, candidate: text)))
        case .candidatesEnded: send(.candidate(Candidate(session: .up, candidate: "")))
        case .secured: break
        case .ended(let error): sessionEnded(.up, error)
        }
    }

    /// Ends the room when either session fails: half a connection is useless, and a new one takes a second.
    func sessionEnded(_ direction: SessionDirection, _ error: TransportError?) {
        guard state == .connecting || state == .connected else { return }
        if let error { return end(.disconnected, RoomError(error, session: direction)) }
        // The server's close of a session may arrive before its message on the WebSocket, which has the reason.
        let lost = RoomError(
            .connectionLost,
            "The server ended the \(direction.rawValue) session because it stopped. Connect again when it runs.")
        loop.schedule(after: SignallingDeadlines.leave) { [weak self] in
            self?.assumeIsolated { $0.end(.disconnected, lost) }
        }
    }
}
