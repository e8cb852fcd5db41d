internal import MediaGraph
internal import PeerIO
internal import RTP
package import RoomProtocol

extension RoomEngine {
    /// Publishes a capture's tracks, and starts it if necessary. Waits for the source and the server only.
    package func publish(
        _ capture: LocalCapture, videoExtraValue: String = "", audioExtraValue: String = ""
    ) async throws(RoomError) -> [PublishedStream] {
        let publications = capture.tracks(try await capture.inspect()).map { track in
            Publication(track, extraValue: track.codec.media == .video ? videoExtraValue : audioExtraValue)
        }
        return try await publish(publications) { () async throws(RoomError) in try await capture.start() }
    }

    /// Publishes tracks. Announces them only after `start` returns, because others would see a video without frames.
    /// Rethrows the error of `start`.
    package func publish(
        _ publications: [Publication], start: @Sendable () async throws(RoomError) -> Void
    ) async throws(RoomError) -> [PublishedStream] {
        await waitForPublishTurn()
        defer { publishTurnEnds() }
        guard state == .connected || state == .connecting, pipe != nil, !participant.isEmpty else {
            throw RoomError(.roomReleased, "No room is connected. Join a room before you publish.")
        }
        let up = try makeUpSession()
        let tracks = publications.map { up.addTrack($0) }
        // Connect first, so that each frame is counted as sent or not sent.
        for track in tracks { connect(track) }
        do throws(RoomError) {
            try await start()
            guard self.up === up else {
                throw RoomError(.roomReleased, "The room was left while the local media started.")
            }
            return try await requestPublish(up, tracks)
        } catch {
            for track in tracks { track.publication.track.connect(nil) }
            up.remove(tracks)
            throw error
        }
    }

    private func requestPublish(
        _ up: UpSession, _ tracks: [UpSession.Track]
    ) async throws(RoomError) -> [PublishedStream] {
        let streams = tracks.map { Publish.Stream(mid: $0.sender.mid, extraValue: $0.publication.extraValue) }
        let answer = try await request(.publish(Publish(sdp: up.offer(), streams: streams)))
        guard case .published(let body) = answer, self.up === up else {
            throw RoomError(.publishRefused, "The server's reply to 'publish' has the wrong type. Check its version.")
        }
        try up.accept(body)
        return tracks.compactMap { track in
            track.stream.map { PublishedStream(id: $0, isVideo: track.isVideo) }
        }
    }

    private func makeUpSession() throws(RoomError) -> UpSession {
        if let up { return up }
        guard let address else {
            throw RoomError(
                .roomReleased,
                "No room is connected. Join a room before you publish.")
        }
        do throws(TransportError) {
            let session = try UpSession(
                loop: loop, server: address, configuration: peerConfiguration(.controlling, salt: 2))
            session.onEvent = { [weak self] event in self?.assumeIsolated { $0.handle(event) } }
            up = session
            return session
        } catch {
            throw RoomError(error, session: .up)
        }
    }

    private func connect(_ track: UpSession.Track) {
        let mid = track.sender.mid
        track.publication.track.connect { [weak self] batch in self?.post { $0.send(batch, mid: mid) } }
    }

    private func send(_ batch: RTPBatch, mid: String) {
        guard let up, let track = up.tracks.first(where: { $0.sender.mid == mid }) else { return }
        up.send(batch, on: track)
    }

    /// Waits until no offer is pending: an offer includes the answer to the one before.
    private func waitForPublishTurn() async {
        guard isPublishing else {
            isPublishing = true
            return
        }
        await withCheckedContinuation { publishQueue.append($0) }
    }

    private func publishTurnEnds() {
        if publishQueue.isEmpty { isPublishing = false } else { publishQueue.removeFirst().resume() }
    }
}
