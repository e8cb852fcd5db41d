internal import MediaGraph
internal import PeerIO
internal import RTP
package import RoomProtocol

extension RoomEngine {
    /// Publishes what the capture has; it is started if it is not running yet. Waits for nothing but the source and
    /// the server.
    package func publish(
        _ capture: LocalCapture, videoExtraValue: String = "", audioExtraValue: String = ""
    ) async throws(RoomError) -> [PublishedStream] {
        let contents = try await capture.inspect()
        await waitForPublishTurn()
        defer { publishTurnEnds() }
        guard state == .connected || state == .connecting, pipe != nil, !participant.isEmpty else {
            throw RoomError(.roomReleased, "There is no connection to a room to publish in.")
        }
        let up = try makeUpSession()
        var tracks: [UpSession.Track] = []
        if contents.hasVideo {
            let codec: Codec = capture.options.codec == .vp8 ? .vp8 : .h264
            tracks.append(up.addTrack(codec, of: capture, extraValue: videoExtraValue))
        }
        if contents.hasAudio { tracks.append(up.addTrack(.opus, of: capture, extraValue: audioExtraValue)) }
        do throws(RoomError) {
            // Only what runs is announced: others would see a video that never comes.
            try await capture.start()
            guard self.up === up else {
                throw RoomError(.roomReleased, "The room was left before the local media had started.")
            }
            connect(capture, to: tracks)
            return try await requestPublish(up, tracks)
        } catch {
            capture.connect(video: nil, audio: nil)
            up.removeTracks(of: capture)
            throw error
        }
    }

    private func requestPublish(
        _ up: UpSession, _ tracks: [UpSession.Track]
    ) async throws(RoomError) -> [PublishedStream] {
        let streams = tracks.map { Publish.Stream(mid: $0.sender.mid, extraValue: $0.extraValue) }
        let answer = try await request(.publish(Publish(sdp: up.offer(), streams: streams)))
        guard case .published(let body) = answer, self.up === up else {
            throw RoomError(.publishRefused, "The server answered 'publish' with something else.")
        }
        try up.accept(body)
        return tracks.compactMap { track in
            track.stream.map { PublishedStream(id: $0, isVideo: track.isVideo) }
        }
    }

    private func makeUpSession() throws(RoomError) -> UpSession {
        if let up { return up }
        guard let address else { throw RoomError(.roomReleased, "There is no connection to a room to publish in.") }
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

    private func connect(_ capture: LocalCapture, to tracks: [UpSession.Track]) {
        func output(isVideo: Bool) -> (@Sendable (RTPBatch) -> Void)? {
            guard let mid = tracks.first(where: { $0.isVideo == isVideo })?.sender.mid else { return nil }
            return { [weak self] batch in self?.post { $0.send(batch, mid: mid) } }
        }
        capture.connect(video: output(isVideo: true), audio: output(isVideo: false))
    }

    private func send(_ batch: RTPBatch, mid: String) {
        guard let up, let track = up.tracks.first(where: { $0.sender.mid == mid }) else { return }
        up.send(batch, on: track)
    }

    /// One offer at a time: the answer to the first is part of the second.
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
