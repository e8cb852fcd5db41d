internal import PeerLoop
internal import PeerSession
internal import RTP
internal import RoomProtocol

/// An event of the up or the down session.
enum SessionEvent: Sendable {
    case candidate(String)
    case candidatesEnded
    case secured
    /// Nothing arrives: the way to the server may have changed.
    case silent
    /// The way to the server has ended.
    case pathLost
    /// An assigned stream of a down session stopped. The session continues.
    case problem(RoomError)
    case ended(TransportError?)
}

extension RoomConnection {
    /// Drops all media in both directions and removes configured losses. For tests of cut networks.
    package func cutMedia(_ isCut: Bool) {
        down?.cut(isCut)
        up?.cut(isCut)
    }

    func answer(_ description: Description) {
        guard description.session == .down else { return }
        do throws(RoomError) {
            let offer = try DownSession.offer(in: description)
            if down == nil {
                do throws(TransportError) {
                    down = try makeDownSession(for: offer)
                } catch {
                    throw RoomError(error, creating: .down)
                }
            }
            guard let answer = try down?.answer(offer, revision: description.revision) else { return }
            send(.answer(answer))
            if answer.revision == 1, state == .connecting { onEvent(.connecting(percent: 66)) }
        } catch {
            refused(error)
        }
    }

    /// Without a first answer, no media can flow. A session that has one goes on with the receivers that it has.
    private func refused(_ error: RoomError) {
        guard let down, down.revision > 0 else { return end(.disconnected, error) }
        guard error.code == .downOfferUnusable else { return onEvent(.problem(error)) }
        onEvent(.problem(RoomError(.growthFailed, error.message)))
    }

    /// A malformed message, or the server's complaint about a message without a reply.
    func notUnderstood(_ error: RoomError) {
        switch error.code {
        case .offerInvalid: refused(error)
        case .answerRefused where down?.hasGrown == true: onEvent(.problem(RoomError(.growthRefused, error.message)))
        case .answerRefused: if down?.revision ?? 0 > 1 { onEvent(.problem(error)) } else { end(.disconnected, error) }
        default: onEvent(.problem(error))
        }
    }

    /// Passes a candidate of the server on to its session.
    func add(_ candidate: Candidate) {
        switch candidate.session {
        case .up: if let up { return up.addRemoteCandidate(candidate.candidate) }
        case .down: if let down { return down.addRemoteCandidate(candidate.candidate) }
        }
        // The session may be one of the program itself.
        guard onServerMessage == nil else { return }
        onEvent(
            .problem(
                RoomError(
                    .sessionReleased,
                    "The server sent a candidate for the \(candidate.session.rawValue) session, which does not exist. "
                        + "Check its version.")))
    }

    private func makeDownSession(for offer: SessionDescription) throws(TransportError) -> DownSession? {
        guard let address else { return nil }
        // The end that offers controls, unless it is lite (RFC 8445, section 6.1.1).
        let role: ICERole = offer.transport?.isLite == true ? .controlling : .controlled
        let session = try DownSession(
            server: address, peer: environment.makePeer(peerRequest(.down, role)), connectStarted: connectStarted,
            seed: random.next())
        session.onEvent = { [weak self] event in self?.handle(event, of: .down) }
        sessionsBegun.down += 1
        return session
    }

    /// The up session, made for the first track.
    func makeUpSession() throws(RoomError) -> UpSession {
        if let up { return up }
        guard let address else { throw Self.notPublishable }
        do throws(TransportError) {
            let request = peerRequest(.up, .controlling)
            let session = try UpSession(
                loop: loop, server: address, peer: environment.makePeer(request), cname: request.cname,
                environment: environment, seed: random.next())
            session.onEvent = { [weak self] event in self?.handle(event, of: .up) }
            up = session
            sessionsBegun.up += 1
            return session
        } catch {
            throw RoomError(error, creating: .up)
        }
    }

    /// The request for the peer of an up session that the caller runs itself.
    package func upRequest() -> PeerRequest { peerRequest(.up, .controlling) }

    private func peerRequest(_ session: SessionDirection, _ role: ICERole) -> PeerRequest {
        let salt: UInt64 = session == .down ? 1 : 2
        let impairment = options.impairment.map {
            Impairment(seed: $0.seed &+ salt, outgoingLoss: $0.outgoingLoss, incomingLoss: $0.incomingLoss)
        }
        var request = PeerRequest(
            session: session, role: role, cname: participant.isEmpty ? "client" : participant,
            server: remoteAddress, servers: servers, impairment: impairment, seed: random.next())
        if resumeSecret == nil { request.pathTimeout = .zero }
        return request
    }

    private func handle(_ event: SessionEvent, of session: SessionDirection) {
        switch event {
        case .candidate(let text): send(.candidate(Candidate(session: session, candidate: text)))
        case .candidatesEnded: send(.candidate(Candidate(session: session, candidate: "")))
        case .secured: if session == .down { secured() }
        case .silent, .pathLost: restartSilent()
        case .problem(let error): onEvent(.problem(error))
        case .ended(let error): sessionEnded(session, error)
        }
    }

    /// Ends the room when either session fails: half a connection is useless, and a new one takes a second.
    private func sessionEnded(_ direction: SessionDirection, _ error: TransportError?) {
        guard state == .connecting || state == .connected else { return }
        if let error { return sessionLost(RoomError(error, session: direction)) }
        // The server's close of a session may arrive before its message on the WebSocket, which has the reason.
        let lost = RoomError(
            .peerClosed, "The server ended the media connection because it stopped. Connect again when it runs.")
        let session = (direction == .down ? down?.id : up?.id)
        loop.schedule(after: SignallingDeadlines.leave) { [weak self] in
            guard let self, session == (direction == .down ? down?.id : up?.id) else { return }
            sessionLost(lost, isClosed: true)
        }
    }

    // MARK: - ICE restarts

    /// How long a session may take to find another way before it tries again. One through TURN servers takes longer.
    var restartInterval: TimeInterval { .seconds(servers.hasRelays ? 8 : 5) }
    /// Media that has been silent for longer when signalling returns probably needs another way.
    private static let doubt = TimeInterval.seconds(5)

    /// Restarts ICE of the sessions that hear nothing or have no path, now and again until they do. While there is no link, the return of
    /// signalling does that.
    ///
    /// - Parameter isReturn: whether signalling was lost for a while
    func restartSilent(isReturn: Bool = false) {
        guard state == .connected, absence == nil, link != nil, resumeSecret != nil else { return }
        let latest = max(loop.now + (.zero - Self.doubt), movedAt ?? .zero)
        func needsWay(_ isSilent: Bool, _ heard: MonotonicTime) -> Bool {
            isSilent || isReturn && heard > .zero && heard < latest
        }
        // A server without streams for this client sends no reports either. With video, the watch tells silence from a loss.
        let isExpecting = expectsMedia ? mediaWatch.since != nil : !heard.isEmpty
        let isDownSilent =
            down.map { $0.isPathLost || needsWay($0.isSilent && isExpecting, $0.lastReceived) } ?? false
        let isUpSilent = up.map { $0.isPathLost || needsWay($0.isSilent, $0.lastReceived) } ?? false
        guard isDownSilent || isUpSilent else { return }
        guard loop.now >= nextRestart else { return armRestart() }
        nextRestart = loop.now + restartInterval
        if isDownSilent { send(.restartICE(SessionReference(session: .down))) }
        if isUpSilent { restartUpSession() }
        armRestart()
    }

    /// Restarts ICE of both sessions, unless it was restarted in the last 5 s, or 8 s with TURN servers. Does nothing while the server
    /// is lost or does not let this client resume.
    package func restartICE() {
        guard state == .connected, absence == nil, link != nil, resumeSecret != nil, loop.now >= nextRestart else {
            return
        }
        nextRestart = loop.now + restartInterval
        if down != nil { send(.restartICE(SessionReference(session: .down))) }
        restartUpSession()
    }

    private func armRestart() {
        restart?.disarm()
        restart = loop.schedule(at: nextRestart) { [weak self] in self?.restartSilent() }
    }

    /// An offer includes the answer to the one before, so the restart waits for that. It announces nothing, so it does not wait until
    /// the room takes further streams: the server refuses the m-lines of tracks that are not announced yet, and takes them later.
    func restartUpSession() {
        guard let session = up, session.isAnswered, !publishing.isHeld else { return }
        guard !publishing.isOffering else { return publishing.restarting = session.id }
        do throws(TransportError) {
            offer(Publish(sdp: try session.restart(), streams: [])) { [weak self] result in
                guard let self, case .success(.published(let body)) = result, up === session else { return }
                try? session.accept(body)
            }
        } catch {
            onEvent(
                .problem(
                    RoomError(
                        .offerNotMade, "The offer that restarts ICE was not made: \(error.message)")))
        }
    }

    /// A participation needs its sessions. While there is no link, the next one joins again.
    ///
    /// - Parameter isClosed: whether the server closed the session
    private func sessionLost(_ error: RoomError, isClosed: Bool = false) {
        if absence == nil || isRejoining && link != nil {
            lost(.disconnected, error, mustRejoin: true)
        } else {
            absence?.mustRejoin = true
        }
        if isClosed { absence?.mayBeRemoved = true }
    }
}

extension RoomError {
    /// Media cannot flow to or from the server, because of a transport error.
    fileprivate init(_ error: TransportError, session: SessionDirection) {
        self.init(
            error, error.code == "transport.connection-lost" ? .mediaConnectionLost : .mediaConnectionFailed,
            "The media connection \(session == .up ? "to" : "from") the server failed: ")
    }

    fileprivate init(_ error: TransportError, creating session: SessionDirection) {
        self.init(
            error, .peerFailed, "The media connection \(session == .up ? "to" : "from") the server was not created: ")
    }

    private init(_ error: TransportError, _ code: Code, _ beginning: String) {
        guard !error.code.hasPrefix("turn.") else {
            self.init(.init(wireName: error.code), error.message)
            return
        }
        self.init(code, beginning + error.message.prefix(1).lowercased() + error.message.dropFirst())
    }
}
