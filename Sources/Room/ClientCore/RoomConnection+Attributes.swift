internal import PeerLoop
internal import RTP
package import RoomProtocol

/// The state and the attributes of this client's streams, which the server announces to the others.
extension RoomConnection {
    /// Changes the attributes of a published stream. They last until the stream ends, also when the connection joins again.
    /// A `.problem` reports a change that the server refuses, and the attribute returns to its former value. Does nothing if
    /// the stream has ended.
    ///
    /// - Parameter change: without a state, which the track has.
    package func setStream(_ id: Int, _ change: StreamChange) {
        do throws(RoomError) {
            try change.validate()
        } catch {
            return onEvent(.problem(error))
        }
        if let index = tracks.firstIndex(where: { $0.stream == id }) {
            return tracks[index].offer.attributes.apply(change)
        }
        guard let track = up?.track(of: id) else { return }
        track.apply(change)
        tellChange(of: track)
    }

    /// Tells the others that the state of a track has changed: now, or when it is published.
    package func stateChanged(mid: String) {
        if let track = up?.tracks.first(where: { $0.sender.mid == mid }) { tellChange(of: track) }
    }

    /// A track in a `publish`, which tells its attributes. A `setStream` tells that it is always on: the server may refuse that
    /// alone.
    func announcement(of track: UpSession.Track) -> Publish.Stream {
        var attributes = track.offer.attributes
        attributes.isAlwaysOn = false
        track.told = StreamChange(attributes, state: .live)
        return Publish.Stream(
            mid: track.sender.mid, attributes: attributes, record: track.offer.isRecorded ? true : nil)
    }

    /// One change at a time: the latest values are the last ones that the server gets. All that changed meanwhile is one
    /// change. If the server refuses that, each is tried alone.
    func tellChange(of track: UpSession.Track) {
        guard state == .connected || state == .connecting, let stream = track.stream, !track.isTelling,
            up?.tracks.contains(where: { $0 === track }) == true
        else { return }
        var change = track.untold
        if !knowsSetStream { change = stateAlone(of: change, track) }
        guard let first = change.fields.first else { return track.tellsSingly = false }
        if track.tellsSingly { change = first }
        track.isTelling = true
        let message: ClientMessage =
            if !knowsSetStream, let state = change.state {
                .setStreamState(SetStreamState(stream: stream, state: state))
            } else {
                .setStream(SetStream(stream: stream, change: change))
            }
        request(message) { [weak self] result in
            track.isTelling = false
            switch result {
            case .success: track.told.merge(change)
            case .failure(let error): self?.refused(change, of: track, error)
            }
            self?.tellChange(of: track)
        }
    }

    /// The part of a change that an older server takes. Reports the rest, which the track gives up.
    private func stateAlone(of change: StreamChange, _ track: UpSession.Track) -> StreamChange {
        var rest = change
        rest.state = nil
        track.giveUp(rest)
        // Others hear and see by themselves that a stream is muted.
        rest.isActive = nil
        if !rest.isEmpty {
            onEvent(
                .problem(
                    RoomError(
                        .streamChangeFailed,
                        "The server is of an earlier version, which cannot change a published stream. Update the server."
                    )))
        }
        return StreamChange(state: change.state)
    }

    private func refused(_ change: StreamChange, of track: UpSession.Track, _ error: RoomError) {
        // Otherwise the next session begins with the newest values.
        guard state == .connected || state == .connecting, up?.tracks.contains(where: { $0 === track }) == true else {
            return
        }
        // The server may take the change later, or has not got it.
        guard !error.isPassing else {
            track.isTelling = true
            loop.schedule(after: .seconds(1)) { [weak self] in
                track.isTelling = false
                self?.tellChange(of: track)
            }
            return
        }
        // Not even the state alone is told to a server that does not know that either.
        if error.code == .messageUnknown, knowsSetStream { return knowsSetStream = false }
        guard change.fields.count == 1 else { return track.tellsSingly = true }
        track.giveUp(change)
        // Without a state, others see the stand-in.
        if change.state == nil { onEvent(.problem(RoomError(.streamChangeRefused, "\(error)"))) }
    }
}

extension RoomError {
    /// Whether the same request may succeed later: the server has too many, or too many wait for it.
    fileprivate var isPassing: Bool {
        switch code {
        case .tooManyRequests, .outOfOrder, .connectionLost, .roomReleased, .signallingFull: true
        default: false
        }
    }
}
