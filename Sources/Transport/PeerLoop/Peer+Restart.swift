internal import PeerSession
package import RTP

/// ICE restarts, and changes of the path.
extension Peer {
    /// Begins an ICE restart: `local` has new credentials. Media stays on the present path until the other end has used the new
    /// ones, so `restart(with:)` has to follow. Does nothing before the peer is connected.
    package func restart() throws(TransportError) {
        loop.preconditionOnLoop()
        guard state == .started, isConnected, let path, let makePath else { return }
        touch()
        guard !path.restart() else {
            (description.iceUfrag, description.icePwd) = (path.ufrag, path.password)
            return
        }
        pathsMade += 1
        let number = pathsMade
        let next = try makePath(
            servers, { [unowned self] event in handle(event, of: number) }, { [unowned self] in receive($0) })
        if let successor { retired.append(successor) }
        (successor, successorNumber) = (next, number)
        (description.iceUfrag, description.icePwd) = (next.ufrag, next.password)
        (description.candidates, description.endOfCandidates) = ([], false)
        try next.gather()
    }

    /// Sets the other end's credentials and candidates of an ICE restart.
    package func restart(with remote: TransportDescription) throws(TransportError) {
        loop.preconditionOnLoop()
        guard state == .started, let path = successor ?? path else { return }
        guard Self.hasCredentials(remote), path.setRemote(ufrag: remote.iceUfrag, password: remote.icePwd) else {
            throw Self.refusal("the ICE agent refuses its credentials")
        }
        for candidate in remote.candidates { path.addRemoteCandidate(candidate) }
        if remote.endOfCandidates { path.remoteCandidatesEnded() }
        // The other end is there, and looks for another path.
        session.extendConsent(now: loop.now)
        if let lossTimer, lossTimer.deadline != .never { lossTimer.arm(at: loop.now + pathTimeout) }
        touch()
    }

    /// Whether the lengths are those of RFC 8839, section 5.4.
    static func hasCredentials(_ remote: TransportDescription) -> Bool {
        (4...256).contains(remote.iceUfrag.utf8.count) && (22...256).contains(remote.icePwd.utf8.count)
    }

    // MARK: - From the paths

    func handle(_ event: ICEEvent, of number: Int) {
        if successor != nil, number == successorNumber { return handleSuccessor(event) }
        guard number == pathNumber else { return }
        handle(event)
    }

    /// A path that fails to connect is left to `pathTimeout`.
    private func handleSuccessor(_ event: ICEEvent) {
        switch event {
        case .localCandidate, .gatheringDone: handle(event)
        case .connected:
            if let path { retired.append(path) }
            (path, pathNumber, successor) = (successor, successorNumber, nil)
            handle(.connected)
        case .failed, .impossible: break
        }
    }

    /// The peer was connected before.
    func reconnected() {
        let wasLost = (lossTimer?.deadline ?? .never) != .never
        lossTimer?.disarm()
        let present = currentAddresses
        guard present != addresses else {
            if wasLost { waiting.append(.connected) }
            return
        }
        addresses = present
        lastRoute = path?.route
        counters.routes += 1
        session.routeChanged(now: loop.now)
        waiting.append(.rerouted)
    }

    var currentAddresses: String? { path?.selectedPair.map { "\($0.local) \($0.remote)" } }
}
