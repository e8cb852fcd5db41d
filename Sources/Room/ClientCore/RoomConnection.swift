package import PeerLoop
internal import PeerSession
internal import RTP
package import RoomProtocol

/// One participant's connection to one room as a state machine: signalling, the down session with its receivers, and
/// the up session.
///
/// It has no socket, thread or clock: its `Loop` reports the time, and its `RoomEnvironment` makes the peers. All
/// members are used on the loop only, and `onEvent` reports there, in order. A connection connects once:
///
/// 1. `begin` starts the timeout of the connection.
/// 2. `signIn(to:)` names the server. Then open the signalling link, and pass its input to `receive`.
/// 3. `join` enters the room.
///
/// Two connections with the same seed, options and input send the same messages and media. Call `leave` or `drop`
/// before the last release.
package final class RoomConnection {
    enum State {
        case idle
        case connecting
        case connected
        case leaving
        case ended
    }

    let loop: Loop
    let options: ConnectionOptions
    let environment: RoomEnvironment
    let onEvent: (RoomEvent) -> Void

    var state = State.idle
    var random: RandomSource
    var address: ServerAddress?
    package internal(set) var link: SignallingLink? {
        didSet { remoteAddress = link?.remoteAddress ?? remoteAddress }
    }
    /// The literal address of the server, at the last link.
    private(set) var remoteAddress: String?
    var signalling: SignallingSession?
    private var timer: LoopTimer?
    var deadline: LoopTimer?
    var sampling: LoopTimer?
    var telling: LoopTimer?
    var waiting: [Int: (Result<ServerMessage, RoomError>) -> Void] = [:]
    var down: DownSession?
    var up: UpSession?
    /// How many sessions there were, the present ones included.
    var sessionsBegun = (up: 0, down: 0)
    var publishing = PublishQueue()
    var messages = MessageQueue()
    /// False for a server that has `setStreamState` at most.
    var knowsSetStream = true
    /// For sessions and ICE restarts that begin from now on.
    package private(set) var servers: ICEServers

    package internal(set) var participant = ""
    /// In order of arrival.
    var others: [ParticipantInfo] = []
    /// The audio streams in receivers, in order of assignment.
    var heard: [(mid: String, stream: AssignedStream)] = []
    var subscriptions: [Int: Subscription] = [:]
    var subscriptionsBegun = 0
    /// The most videos that the server lets this client receive. Nil if it does not tell.
    var maximumReceivers: Int?
    /// Those of the participation before.
    var reportedReceivers: Int?
    var connectStarted = MonotonicTime.zero
    /// When the client began to join, or to join again.
    var joinStarted = MonotonicTime.zero
    var connectedAt: MonotonicTime?
    var firstFrame: Double?
    var finalStatistics: RoomStatistics?
    /// Gets each message of the server that is not a response, before the connection handles it: for a program with an up
    /// session of its own.
    package var onServerMessage: ((ServerMessage) -> Void)?

    var room: RoomName?
    /// Nil if the server does not let this participant resume.
    var resumeSecret: String?
    var refusedToken: String?
    /// Nil while there is a link.
    var absence: Absence?
    var retry: LoopTimer?
    var restart: LoopTimer?
    var nextRestart = MonotonicTime.zero
    /// When the address of the link was found to be gone. Nil once another link is there.
    var movedAt: MonotonicTime?
    /// The machine's literal addresses when they changed last.
    var addressesBefore: Set<String> = []
    var pause = TimeInterval.milliseconds(500)
    var returnedAt: MonotonicTime?
    var mediaWatch = MediaWatch()
    /// Whether the interruption began without a link. Then it is told again if it goes on with one.
    var wasCutWithoutLink = false
    /// How media went before the last interruption.
    var lostWay: RoomStatistics.Path?
    var outages: [RoomStatistics.Outage] = []
    /// From when lost packets are not those of an outage.
    var lossesCountFrom = MonotonicTime.zero
    /// From another `join` until media can flow and the tracks are published, or wait until the room takes them.
    var (isRejoining, hasRejoined, hasRepublished) = (false, false, false)
    /// The request to join, until the server has replied or the link is lost.
    var joinRequest: Int?
    /// The participants that the server has announced since it accepted another `join`, until it has announced all.
    var introduction: [ParticipantInfo]?
    /// Those of the former participation, until they are published again.
    var tracks: [FormerTrack] = []
    /// Those to end as soon as they are published again, with their former ids.
    var endings: [Ending] = []

    /// Callable on any thread.
    ///
    /// - Parameter onEvent: called on the loop, in order, and returns immediately.
    package init(
        loop: Loop, options: ConnectionOptions = ConnectionOptions(), environment: RoomEnvironment,
        onEvent: @escaping (RoomEvent) -> Void
    ) {
        self.loop = loop
        self.options = options
        self.environment = environment
        self.onEvent = onEvent
        servers = options.servers
        random = RandomSource(seed: environment.seed)
    }

    // MARK: - Connecting

    /// Starts to connect. `.connected` or `.ended` follows before the deadline of the options. Returns false if the
    /// connection began or ended before.
    package func begin() -> Bool {
        guard state == .idle else { return false }
        state = .connecting
        (connectStarted, joinStarted) = (loop.now, loop.now)
        deadline = loop.schedule(after: options.connectDeadline) { [weak self] in self?.connectTimeout() }
        allowForRelays()
        return true
    }

    /// Names the server, to which the caller then opens a link. Returns false if the connection has ended meanwhile.
    package func signIn(to address: ServerAddress) -> Bool {
        guard state == .connecting else { return false }
        self.address = address
        signalling = SignallingSession(server: address.description, now: loop.now)
        timer = loop.makeTimer { [weak self] in self?.signallingTimeout() }
        return true
    }

    /// Joins the room over an open link, with an access token. Closes the link if the connection has ended meanwhile.
    package func join(_ room: RoomName, token: String, over link: SignallingLink) {
        guard state == .connecting || isRejoining, let address else { return link.close() }
        (self.link, self.room) = (link, room)
        signalling?.heard(now: loop.now)
        let join = Join(
            versions: Signalling.versions, token: token, room: room.text, receivers: options.receivers,
            resume: environment.openLink == nil || options.returnTimeout == .zero ? nil : true)
        joinRequest = request(.join(join)) { [weak self] result in
            self?.joinRequest = nil
            switch result {
            case .success(.joined(let joined)):
                guard !Signalling.versions.contains(joined.version) else { return }
                self?.end(
                    .disconnected,
                    RoomError(
                        .versionUnsupported,
                        "The server \(address) chose version \(joined.version) of the protocol, which this client does not "
                            + "have. Use the same release on both ends."))
            case .success:
                self?.end(
                    .disconnected,
                    RoomError(
                        .enterResponseInvalid,
                        "The reply of the server \(address) to 'join' has the wrong type. Check its version."))
            case .failure(let error):
                guard let self else { return }
                // A server that refuses now may accept later, when it has fewer participants, or with another token.
                guard isRejoining else { return end(.disconnected, error) }
                if error.code == .tokenInvalid { refusedToken = token }
                lost(.disconnected, error, mustRejoin: true)
            }
        }
    }

    /// Ends the connection, because the sign-in or the opening of the link failed.
    package func fail(_ error: RoomError) { end(.disconnected, error) }

    private func connectTimeout() {
        guard state == .connecting else { return }
        end(.disconnected, lateness)
    }

    /// The error for a connection that was not ready in time.
    var lateness: RoomError {
        guard let address else {
            return RoomError(
                .serverUnreachable, "The sign-in was not renewed in time. Check the server and the network.")
        }
        guard !participant.isEmpty else {
            return RoomError(
                .serverUnreachable,
                "The server \(address) accepts connections but did not reply to 'join' in time. Check that it is a room "
                    + "server and that it works.")
        }
        return RoomError(
            .mediaConnectionFailed,
            "The room on \(address) was joined, but no media connection was ready in time. "
                + (servers.policy == .relay
                    ? "Check that the TURN server \(servers.relayPlaces) runs and may reach the room server."
                    : "Allow UDP between this machine and the server."))
    }

    private func joined(_ joined: Joined) {
        knowsSetStream = true
        maximumReceivers = joined.receivers?.maximum
        resumeSecret = joined.resume?.secret
        if joined.resume != nil { signalling?.keep() }
        use(joined.iceServers ?? [])
        if isRejoining { return rejoined(joined) }
        participant = joined.participant
        others = joined.participants
        onEvent(.connecting(percent: 33))
    }

    /// Uses the servers that the room server names, if this end has none of its own. The credentials of former ones expire.
    private func use(_ list: [ICEServerInfo]) {
        guard options.servers.servers.isEmpty else { return }
        servers = ICEServers(
            list, namedByEndAt: link?.remoteAddress, policy: options.servers.policy,
            authorities: options.servers.authorities)
        for peer in [up?.peer, down?.peer] { peer?.servers = servers }
        allowForRelays()
    }

    func allowForRelays() {
        guard state == .connecting || isRejoining, servers.hasRelays else { return }
        deadline?.arm(at: joinStarted + options.connectDeadline + ConnectionOptions.allowanceForRelays)
    }

    func secured() {
        if isRejoining { return finishRejoining() }
        guard state == .connecting else { return }
        state = .connected
        deadline?.disarm()
        connectedAt = loop.now
        returnedAt = loop.now
        onEvent(.connecting(percent: 100))
        onEvent(.connected(participant: participant, others: others))
        for (_, stream) in heard { onEvent(.audioHeard(participant: stream.participant, stream: stream.id)) }
        reportEarlyMessages()
        reportFewerReceivers()
        sample()
        tellStatistics()
    }

    // MARK: - Leaving

    /// Leaves the room. `.ended` follows when the server confirms, or after a second. Until then the connection keeps
    /// itself alive. Does nothing after the end.
    package func leave() {
        switch state {
        case .idle: end(.disconnected, nil)
        case .connecting, .connected:
            guard link != nil else { return end(.disconnected, nil) }
            state = .leaving
            loop.schedule(after: SignallingDeadlines.leave) { self.end(.disconnected, nil) }
            request(.leave) { [weak self] _ in self?.end(.disconnected, nil) }
        case .leaving, .ended: break
        }
    }

    /// Closes everything without a farewell and without an event. Pending requests fail.
    package func drop() {
        guard state != .ended else { return }
        state = .ended
        signalling = nil
        failCalls(RoomError(.roomReleased, "The room was released."))
        close()
    }

    /// Everything that the application still waits for fails.
    private func failCalls(_ error: RoomError) {
        failWaitingOffers(error)
        failRequests(error)
        failWaitingMessages(error)
        failPostponedOffer(error)
        endRepetition(.failure(error))
        failEndings(error)
        failWaitingSubscriptions(error)
    }

    private func failRequests(_ error: RoomError) {
        let unanswered = waiting.sorted { $0.key < $1.key }
        waiting = [:]
        for request in unanswered { request.value(.failure(error)) }
    }

    private func failEndings(_ error: RoomError) {
        let unfinished = endings
        endings = []
        for ending in unfinished { ending.then(.failure(error)) }
    }

    /// Ends the connection. During `leave`, an error is the expected end and is not reported.
    func end(_ reason: Closing.Reason, _ error: RoomError?) {
        guard state != .ended else { return }
        let (reason, error) = state == .leaving ? (.disconnected, nil) : (reason, error)
        state = .ended
        // Pending requests fail with the cause.
        let verdict = error ?? RoomError(.roomReleased, "The room was left.")
        signalling?.end()
        failCalls(verdict)
        finalStatistics = makeStatistics()
        close()
        onEvent(.ended(reason, error))
    }

    private func close() {
        for timer in [timer, deadline, sampling, telling, retry, restart, absence?.end] { timer?.disarm() }
        absence = nil
        for track in tracks { track.offer.track.disconnect() }
        tracks = []
        up?.close()
        down?.close()
        up = nil
        down = nil
        link?.close()
        link = nil
    }

    // MARK: - Signalling

    static var rejoining: RoomError {
        RoomError(.connectionLost, "The client is joining the room again. Repeat the call.")
    }

    /// Whether the server has not accepted the other `join` yet. Other requests fail.
    var isBetweenJoins: Bool { isRejoining && !hasRejoined }

    /// The reply takes effect before any later message of the server. While the connection is lost, the request waits: it
    /// continues, or fails when the client joins again.
    ///
    /// Returns the number of the request. Nil if it failed at once.
    @discardableResult
    package func request(_ message: ClientMessage, then: @escaping (Result<ServerMessage, RoomError>) -> Void) -> Int? {
        do throws(RoomError) {
            guard signalling != nil, link != nil || absence != nil else {
                throw RoomError(.roomReleased, "No room is connected.")
            }
            guard !isBetweenJoins || message.isJoin else { throw Self.rejoining }
            guard let (id, text) = try signalling?.request(message, now: loop.now) else { return nil }
            waiting[id] = then
            if let text { link?.send(text) }
            armTimer()
            return id
        } catch {
            then(.failure(error))
            return nil
        }
    }

    package func send(_ message: ClientMessage) {
        do throws(RoomError) {
            if let text = try signalling?.post(Envelope(message)) { link?.send(text) }
        } catch {
            lost(.disconnected, error, mustRejoin: true)
        }
    }

    /// Handles input from the link, also before `join`.
    package func receive(_ input: SignallingInput) {
        switch input {
        case .text(let text): perform(signalling?.receive(text, now: loop.now) ?? [])
        case .heard: signalling?.heard(now: loop.now)
        case .closed(let error): perform(signalling?.closed(error) ?? [])
        }
        armTimer()
    }

    private func signallingTimeout() {
        signalling?.heardMedia(at: max(down?.lastReceived ?? .zero, up?.lastReceived ?? .zero))
        perform(signalling?.handleTimeout(now: loop.now) ?? [])
        armTimer()
    }

    func armTimer() {
        guard link != nil, let time = signalling?.nextTimeout else { return }
        timer?.arm(at: time)
    }

    func perform(_ outputs: [SignallingSession.Output]) {
        for output in outputs {
            switch output {
            case .send(let text): link?.send(text)
            case .answer(let id, let result):
                if case .success(.joined(let body)) = result { joined(body) }
                waiting.removeValue(forKey: id)?(result)
            case .message(let message): handle(message)
            case .notUnderstood(let error): notUnderstood(error)
            // A link that is lost already has its reason, such as the server's farewell.
            case .lost(let error): if link != nil { lost(.disconnected, error) }
            // The server may have a new process, or the network another way.
            case .ended(let error): lost(.disconnected, error, mustRejoin: true)
            }
        }
    }

    func handle(_ message: ServerMessage) {
        onServerMessage?(message)
        if case .participantEntered = message {} else { finishIntroduction() }
        switch message {
        case .offer(let description): answer(description)
        case .candidate(let candidate): add(candidate)
        case .participantEntered(let body):
            if introduction == nil { entered(body.participant) } else { introduction?.append(body.participant) }
        case .participantLeft(let body): left(body.participant)
        case .streamPublished(let body): published(body)
        case .streamUnpublished(let body): unpublished(body)
        case .streamChanged(let body): changed(body)
        case .receiverAssigned(let body): assigned(body)
        case .iceServers(let body): use(body.iceServers)
        case .streamLimit(let body): up?.setLimit(body.bitsPerSecond, layers: body.layers, of: body.stream)
        case .streamQuality(let body): qualityChanged(body)
        case .userMessage(let body): heard(body)
        case .closed(let closing):
            let error = RoomError(.init(wireName: closing.code), closing.message)
            // The link was too slow to join again. Another one may be faster.
            let isLate = absence != nil && error.code == .outOfOrder
            if closing.permitsReturn || isLate { lost(closing.reason, error) } else { end(closing.reason, error) }
        case .joined, .resumed, .ack, .published, .unpublished, .streamSet, .streamStateSet, .viewSet, .subscribed,
            .unsubscribed, .messageSent, .pong, .left, .error:
            break
        }
    }
}

extension ClientMessage {
    fileprivate var isJoin: Bool {
        if case .join = self { true } else { false }
    }
}

extension Closing {
    /// Whether the client may come back: the server stops, or lost sight of the client. It is not wanted otherwise.
    fileprivate var permitsReturn: Bool {
        switch reason {
        case .destroyed: code == RoomError.Code.roomReleased.name
        case .kicked: false
        case .disconnected:
            code == RoomError.Code.connectionLost.name || code == RoomError.Code.mediaConnectionFailed.name
        }
    }
}
