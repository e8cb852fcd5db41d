internal import PeerLoop
internal import PeerSession
internal import RTP
internal import RoomProtocol

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

    private func makeDownSession(for offer: SessionDescription) throws(TransportError) -> DownSession? {
        guard let address else { return nil }
        // The end that offers controls, unless it is lite (RFC 8445, section 6.1.1).
        let role: ICERole = offer.transport?.isLite == true ? .controlling : .controlled
        let session = try DownSession(
            server: address, peer: environment.makePeer(peerRequest(.down, role)), connectStarted: connectStarted,
            seed: random.next())
        session.onEvent = { [weak self] event in self?.handle(event) }
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
            session.onEvent = { [weak self] event in self?.handle(event) }
            up = session
            return session
        } catch {
            throw RoomError(error, session: .up)
        }
    }

    /// The request for the peer of an up session that the caller runs itself.
    package func upRequest() -> PeerRequest { peerRequest(.up, .controlling) }

    private func peerRequest(_ session: SessionDirection, _ role: ICERole) -> PeerRequest {
        let salt: UInt64 = session == .down ? 1 : 2
        let impairment = options.impairment.map {
            Impairment(seed: $0.seed &+ salt, outgoingLoss: $0.outgoingLoss, incomingLoss: $0.incomingLoss)
        }
        return PeerRequest(
            session: session, role: role, cname: participant.isEmpty ? "client" : participant,
            server: link?.remoteAddress, servers: servers, impairment: impairment, seed: random.next())
    }

    private func handle(_ event: DownSession.Event) {
        switch event {
        case .candidate(let text): send(.candidate(Candidate(session: .down, candidate: text)))
        case .candidatesEnded: send(.candidate(Candidate(session: .down, candidate: "")))
        case .secured: secured()
        case .problem(let error): onEvent(.problem(error))
        case .ended(let error): sessionEnded(.down, error)
        }
    }

    private func handle(_ event: UpSession.Event) {
        switch event {
        case .candidate(let text): send(.candidate(Candidate(session: .up, candidate: text)))
        case .candidatesEnded: send(.candidate(Candidate(session: .up, candidate: "")))
        case .secured: break
        case .ended(let error): sessionEnded(.up, error)
        }
    }

    /// Ends the room when either session fails: half a connection is useless, and a new one takes a second.
    private func sessionEnded(_ direction: SessionDirection, _ error: TransportError?) {
        guard state == .connecting || state == .connected else { return }
        if let error { return end(.disconnected, RoomError(error, session: direction)) }
        // The server's close of a session may arrive before its message on the WebSocket, which has the reason.
        let lost = RoomError(
            .connectionLost,
            "The server ended the \(direction.rawValue) session because it stopped. Connect again when it runs.")
        loop.schedule(after: SignallingDeadlines.leave) { [weak self] in self?.end(.disconnected, lost) }
    }
}

extension RoomError {
    /// Media cannot flow to or from the server, because of a transport error.
    fileprivate init(_ error: TransportError, session: SessionDirection) {
        guard !error.code.hasPrefix("turn.") else {
            self.init(.init(wireName: error.code), error.message)
            return
        }
        self.init(
            error.code == "transport.connection-lost" ? .connectionLost : .mediaConnectionFailed,
            "The \(session.rawValue) session with the server failed: "
                + error.message.prefix(1).lowercased() + error.message.dropFirst())
    }
}
