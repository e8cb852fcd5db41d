internal import ClientCore
internal import PeerLoop
internal import RTP

/// Faults of a client's network.
extension SimulatedClient {
    /// Cuts the link: media and signalling stop.
    public func cut() {
        up.isCut = true
        down.isCut = true
        cuts.isOngoing = true
        signallingUp.cutSince = signallingUp.cutSince ?? simulation.loop.now
        signallingDown.cutSince = signallingDown.cutSince ?? simulation.loop.now
    }

    /// Ends a cut. Signalling continues later than media, as TCP does.
    public func reconnect() {
        up.isCut = false
        down.isCut = false
        cuts.isOngoing = false
        resume(&signallingUp)
        resume(&signallingDown)
    }

    private func resume(_ pipe: inout SignallingWire) {
        guard pipe.cutSince != nil else { return }
        let (time, deliveries) = pipe.resume(now: simulation.loop.now)
        cuts.note(time)
        for delivery in deliveries { simulation.at(time, delivery) }
    }

    /// Breaks the signalling connection, as a proxy that restarts does. Media goes on.
    ///
    /// - Parameter serverLearns: false leaves the server's end half-open, as after a change of the network.
    public func dropSignalling(serverLearns: Bool = true) {
        guard let broken = server else { return }
        server = nil
        simulation.after(.zero) { [weak self] in
            if serverLearns { broken.receive(.broken) }
            self?.connection?.receive(.closed(nil))
        }
    }

    /// Stops media alone, in both directions. Signalling goes on. `reconnect()` ends it.
    public func cutMedia() {
        up.isCut = true
        down.isCut = true
        cuts.isOngoing = true
    }

    /// Stops signalling alone, in both directions. Media goes on.
    public func cutSignalling() {
        cuts.isOngoing = true
        signallingUp.cutSince = signallingUp.cutSince ?? simulation.loop.now
        signallingDown.cutSince = signallingDown.cutSince ?? simulation.loop.now
    }

    /// Cuts one direction: media and signalling towards the server, or from it. `reconnect()` ends it.
    public func cut(towardsServer: Bool) {
        cuts.isOngoing = true
        if towardsServer {
            up.isCut = true
            signallingUp.cutSince = signallingUp.cutSince ?? simulation.loop.now
        } else {
            down.isCut = true
            signallingDown.cutSince = signallingDown.cutSince ?? simulation.loop.now
        }
    }

    /// Moves to another network: its sockets and its signalling connection are of no use any longer, without a word to either end.
    ///
    /// - Parameter isNoticed: whether the client sees that its address has changed.
    public func changeNetwork(isNoticed: Bool = false) {
        faults.note(simulation.loop.now)
        cuts.note(simulation.loop.now)
        networks = (networks + 1) % 8
        server = nil
        if isNoticed { connection?.addressesChanged(to: [network]) }
    }

    /// The address translator before it forgets its ports: the server sees another address from now on.
    public func changeTranslation() {
        faults.note(simulation.loop.now)
        cuts.note(simulation.loop.now)
        translations = (translations + 1) % 8
    }

    /// Changes the link from now on.
    public func setLink(_ link: Link) {
        faults.isOngoing = true
        use(link)
    }

    private func use(_ link: Link) {
        up.model = link.up
        down.model = link.down
        signallingUp.delay = link.up.delay
        signallingDown.delay = link.down.delay
    }

    /// Sets the loss of both directions, 0...1.
    public func setLoss(_ loss: Double) {
        faults.isOngoing = true
        up.model.loss = loss
        down.model.loss = loss
    }

    /// Ends all faults of the link: it is as it was made.
    public func heal() {
        reconnect()
        if faults.isOngoing { faults.note(simulation.loop.now) }
        faults.isOngoing = false
        use(link)
    }

    /// The end of its last cut, and of the last time without the server that followed. `.never` during one.
    var lastCut: MonotonicTime { max(cuts.last, absences.last) }
    /// The end of its last fault, cuts and the end of its process included. `.never` during one.
    var lastFault: MonotonicTime { max(lastCut, faults.last) }

    /// Restarts the encoders: a keyframe follows, with other timestamps, as after a crash of the camera.
    public func restartSources() {
        faults.note(simulation.loop.now)
        for source in sources { source.restart() }
    }
}
