package import MediaGraph
internal import PeerLoop
internal import RTP
package import RoomProtocol

/// The turns of publishing. A turn ends when the server has taken its tracks or the publication has failed. An offer includes the
/// answer to the one before, so only one is pending. One that restarts ICE belongs to no turn, and waits for that answer only.
struct PublishQueue {
    /// Prepared tracks whose offer waits.
    struct Postponed {
        let then: (Result<[PublishedStream], RoomError>) -> Void
        /// The next try, if the room has too many announcements. Nil while the server has not answered an offer that restarts ICE.
        var timer: LoopTimer?
    }

    /// The tracks that wait for their offer, and their session.
    var prepared: (tracks: [UpSession.Track], session: UpSession)?
    var isBusy = false
    /// Whether the server has not answered an offer yet.
    var isOffering = false
    /// The up session whose ICE restarts after that.
    var restarting: UInt64?
    /// Whether offers wait until the connection has joined again and the tracks are published.
    var isHeld = false
    /// Whether the room does not take the tracks again yet, because it has too many announcements.
    var isRepublishedLater = false
    /// How often in a row the room has not taken an offer yet.
    var refusals = 0
    var postponed: Postponed?
    var waiting: [(offers: [TrackOffer], then: (Result<[String], RoomError>) -> Void)] = []
    /// Tracks whose offer was on its way when the connection had to join again. They are offered again with the published ones.
    var repeated: (mids: Set<String>, then: (Result<[PublishedStream], RoomError>) -> Void)?
}

extension RoomConnection {
    /// Publishes tracks, whose packets are ready. Calls `then` with their streams.
    package func publish(
        _ offers: [TrackOffer], then: @escaping (Result<[PublishedStream], RoomError>) -> Void
    ) {
        preparePublishing(offers) { [weak self] result in
            switch result {
            case .success: self?.offerPrepared(then: then)
            case .failure(let error): then(.failure(error))
            }
        }
    }

    /// Waits until no offer is pending, adds the tracks, and calls `then` with the m-line ids for `send`. Packets that
    /// are sent before the server replies are counted and dropped.
    ///
    /// After a success, call `offerPrepared`. Until then, further tracks wait.
    package func preparePublishing(
        _ offers: [TrackOffer], then: @escaping (Result<[String], RoomError>) -> Void
    ) {
        guard state == .connected || state == .connecting, link != nil || absence != nil, !participant.isEmpty else {
            return then(.failure(Self.notPublishable))
        }
        guard !publishing.isBusy, !publishing.isHeld else { return publishing.waiting.append((offers, then)) }
        publishing.isBusy = true
        do throws(RoomError) {
            let up = try makeUpSession()
            let tracks = offers.map { up.addTrack($0) }
            publishing.prepared = (tracks, up)
            then(.success(tracks.map(\.sender.mid)))
        } catch {
            then(.failure(error))
            publishTurnEnds()
        }
    }

    /// Announces the prepared tracks to the server, and calls `then` with their streams. Tries again while the room has too many
    /// announcements. After a failure, the tracks are removed.
    package func offerPrepared(then: @escaping (Result<[PublishedStream], RoomError>) -> Void) {
        guard let (tracks, session) = publishing.prepared else {
            preconditionFailure("offerPrepared without preparePublishing")
        }
        guard up === session else {
            removePrepared()
            then(.failure(RoomError(.roomReleased, "The room was left while the local media started.")))
            return publishTurnEnds()
        }
        guard !publishing.isOffering else { return publishing.postponed = PublishQueue.Postponed(then: then) }
        let streams = tracks.map { announcement(of: $0) }
        offer(Publish(sdp: session.offer(), streams: streams)) { [weak self] result in
            guard let self else { return }
            if up === session, isTooEarly(result) { return postpone(then) }
            do throws(RoomError) {
                guard case .published(let body) = try result.get(), up === session else {
                    throw RoomError(
                        .publishReplyInvalid, "The server's reply to 'publish' has the wrong type. Check its version.")
                }
                try session.accept(body)
                let streams = tracks.compactMap { track in
                    track.stream.map { PublishedStream(id: $0, isVideo: track.isVideo) }
                }
                publishing.prepared = nil
                for track in tracks where track.stream != nil { tellChange(of: track) }
                then(.success(streams))
                reportMissingRecordings(of: tracks, body)
                refused(tracks.filter { $0.stream == nil }, in: session)
            } catch {
                guard error.code != .connectionLost || !isRejoining || state != .connected else {
                    return repeatPrepared(then)
                }
                removePrepared()
                then(.failure(error))
            }
            publishing.isBusy = false
        }
    }

    /// Sends an offer when no other is pending. Goes on with those that wait after `then` has handled the reply.
    func offer(_ publish: Publish, then: @escaping (Result<ServerMessage, RoomError>) -> Void) {
        publishing.isOffering = true
        request(.publish(publish)) { [weak self] result in
            self?.publishing.isOffering = false
            then(result)
            self?.continuePublishing()
        }
    }

    /// How long to wait before another offer to a room that has too many announcements.
    static let offerPause = TimeInterval.seconds(1)

    /// Whether the server may take the same offer later. Reports that once, when it has lasted for a second.
    func isTooEarly(_ result: Result<ServerMessage, RoomError>) -> Bool {
        guard case .failure(let error) = result, error.code == .tooManyRequests else {
            publishing.refusals = 0
            return false
        }
        publishing.refusals += 1
        if publishing.refusals == 2 {
            onEvent(
                .problem(
                    RoomError(
                        .tooManyRequests,
                        "The room does not take the media yet, because too many streams are published there. The client tries "
                            + "again each second.")))
        }
        return true
    }

    private func postpone(_ then: @escaping (Result<[PublishedStream], RoomError>) -> Void) {
        let timer = loop.schedule(after: Self.offerPause) { [weak self] in self?.offerPostponed() }
        publishing.postponed = PublishQueue.Postponed(then: then, timer: timer)
    }

    private func offerPostponed() {
        if let then = takePostponed() { offerPrepared(then: then) }
    }

    private func takePostponed() -> ((Result<[PublishedStream], RoomError>) -> Void)? {
        defer { publishing.postponed = nil }
        publishing.postponed?.timer?.disarm()
        return publishing.postponed?.then
    }

    /// Offers the prepared tracks together with the published ones when the client joins again.
    private func repeatPrepared(_ then: @escaping (Result<[PublishedStream], RoomError>) -> Void) {
        publishing.repeated = (Set(publishing.prepared?.tracks.map(\.sender.mid) ?? []), then)
        publishing.prepared = nil
    }

    /// The client joins again.
    func repeatPostponedOffer() {
        if let then = takePostponed() { repeatPrepared(then) }
    }

    func failPostponedOffer(_ error: RoomError) {
        guard let then = takePostponed() else { return }
        removePrepared()
        then(.failure(error))
    }

    /// A server that never records tells nothing of a recording. Others name the reason for one that they lack.
    func reportMissingRecordings(of tracks: [UpSession.Track], _ published: Published) {
        let mids = tracks.filter(\.offer.isRecorded).map(\.sender.mid)
        guard published.streams.contains(where: { mids.contains($0.mid) && $0.recording == nil }) else { return }
        onEvent(
            .problem(
                RoomError(
                    .recordingUnavailable,
                    "The server does not record: it has an earlier version. The streams go on without a recording.")))
    }

    /// The room has taken other tracks of the offer, but not these.
    func refused(_ tracks: [UpSession.Track], in session: UpSession) {
        session.remove(tracks)
        for track in tracks {
            let codec = track.sender.codec
            onEvent(
                .problem(
                    RoomError(
                        .publishRefused,
                        "The room does not take the \(codec.media.rawValue) as \(codec.rawValue). Unpublish the media, and "
                            + "publish it with another codec.")))
        }
    }

    /// Ends some of this client's streams, and stops sending them immediately. Calls `then` when the server has replied.
    package func unpublish(_ streams: [Int], then: @escaping (Result<Void, RoomError>) -> Void) {
        if state == .connected, endBeforeRepublishing(streams, then) { return }
        // They have ended when the connection joined again.
        if state == .connected, streams.isEmpty { return then(.success(())) }
        guard state == .connected, let up else { return then(.failure(Self.notPublishable)) }
        var tracks: [UpSession.Track] = []
        for id in streams {
            guard let track = up.track(of: id), track.stream != nil else {
                return then(.failure(RoomError(.noSuchStream, "This client does not publish stream \(id).")))
            }
            if !tracks.contains(where: { $0 === track }) { tracks.append(track) }
        }
        let request = request(.unpublish(StreamReferences(streams: tracks.compactMap(\.stream)))) {
            [weak self] result in
            then(self?.settled(result) ?? result.map { _ in })
        }
        if request != nil { up.remove(tracks) }
    }

    /// The result of a request that needs no repetition when this client joins again: it ends something, which has ended then,
    /// too, or sets something that the client sets again itself.
    func settled(_ result: Result<ServerMessage, RoomError>) -> Result<Void, RoomError> {
        if case .failure(let error) = result, error.code == .connectionLost, isRejoining { return .success(()) }
        return result.map { _ in }
    }

    /// Ends streams of the former participation that are not published again yet. Returns false if not all of them are.
    private func endBeforeRepublishing(_ streams: [Int], _ then: @escaping (Result<Void, RoomError>) -> Void) -> Bool {
        func isMeant(_ id: Int?) -> Bool { id.map(streams.contains) ?? false }
        let former = tracks.filter { isMeant($0.stream) }
        if !former.isEmpty, former.count == streams.count {
            for track in former { track.offer.track.disconnect() }
            tracks.removeAll { isMeant($0.stream) }
            then(.success(()))
            return true
        }
        let adopted = up?.tracks.filter { $0.stream == nil && isMeant($0.former) } ?? []
        guard !adopted.isEmpty, adopted.count == streams.count else { return false }
        endings.append(Ending(streams: streams, then: then))
        return true
    }

    /// Ends the streams that were to end when they are published again.
    ///
    /// - Parameter present: their new ids, by the former ones
    func finishEndings(_ present: [Int: Int]) {
        let all = endings
        endings = []
        for ending in all {
            let streams = ending.streams.compactMap { present[$0] }
            if streams.isEmpty { ending.then(.success(())) } else { unpublish(streams, then: ending.then) }
        }
    }

    private func removePrepared() {
        guard let (tracks, session) = publishing.prepared else { return }
        publishing.prepared = nil
        session.remove(tracks)
    }

    /// Sends the packets of one encoded frame on the m-line of a published track.
    package func send(_ batch: RTPBatch, mid: String) {
        guard let up, let track = up.tracks.first(where: { $0.sender.mid == mid }) else { return }
        up.send(batch, on: track)
    }

    func publishTurnEnds() {
        publishing.isBusy = false
        continuePublishing()
    }

    /// Sends an offer that has waited: first a restart of ICE, then the tracks of this turn, then those of the next one.
    private func continuePublishing() {
        guard !publishing.isOffering else { return }
        let isRestarting = publishing.restarting != nil && publishing.restarting == up?.id
        publishing.restarting = nil
        // While there is no link, the return of signalling does that.
        if isRestarting, state == .connected, absence == nil, link != nil { restartUpSession() }
        guard !publishing.isOffering, !publishing.isHeld else { return }
        if state == .connected, let postponed = publishing.postponed, postponed.timer == nil { return offerPostponed() }
        guard !publishing.isBusy, !publishing.waiting.isEmpty else { return }
        let (offers, then) = publishing.waiting.removeFirst()
        preparePublishing(offers, then: then)
    }

    /// Refuses the offers that wait for their turn, because the connection has ended.
    func failWaitingOffers(_ error: RoomError) {
        let waiting = publishing.waiting
        publishing.waiting = []
        for offers in waiting { offers.then(.failure(error)) }
    }

    static var notPublishable: RoomError {
        RoomError(.roomReleased, "No room is connected. Join a room before you publish.")
    }
}
