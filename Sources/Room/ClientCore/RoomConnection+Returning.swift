internal import PeerLoop
package import RTP
internal import RoomProtocol

/// A time without signalling, until the connection returns or gives up.
struct Absence {
    let began: MonotonicTime
    /// When media ceased to flow before that, or also when it began.
    let outageBegan: MonotonicTime
    /// The end of the connection if it gives up.
    var (reason, error): (Closing.Reason, RoomError)
    var attempts = 0
    /// Whether the server does not keep the participant, or a session has ended: only another `join` helps.
    var mustRejoin = false
    /// Whether the server closed a session. An administrator may have removed the participant then, which `resume` tells.
    var mayBeRemoved = false
    /// The request to resume.
    var request: Int?
    /// Whether another access token was requested, because the server refused the one before.
    var hasRenewedToken = false
    /// Ends the attempts.
    let end: LoopTimer
}

/// How a connection returned.
package struct Return: Sendable, Equatable {
    package enum Kind: Sendable, Equatable {
        /// The participation continued: nobody saw the client leave.
        case resumed
        /// The client joined again, as another participant.
        case rejoined(participant: String)

        /// The new id, if there is one.
        package var participant: String? {
            if case .rejoined(let participant) = self { participant } else { nil }
        }
    }

    package var kind: Kind
    /// Without signalling.
    package var duration: TimeInterval

    package var seconds: Double { duration.seconds }
}

/// The connection to the server is lost, and comes back: over another link, with the messages that either end lacks. If the
/// server no longer knows the participant, the client joins again.
extension RoomConnection {
    /// The first pause, at most. Each is random, so that the clients of a server that restarts do not all come at once.
    private static let firstPause = TimeInterval.milliseconds(500)
    /// A server that restarts is usually back soon, so the first half minute has an attempt each 1 to 2 s.
    private static let earlyPause = TimeInterval.seconds(2)
    private static let early = TimeInterval.seconds(30)
    private static let longestPause = TimeInterval.seconds(8)
    /// After a refused token. The server is there, so there is nothing else to wait for.
    private static let renewalPause = TimeInterval.milliseconds(250)
    /// For an attempt, however long media has not flowed.
    private static let leastTime = TimeInterval.seconds(3)
    /// A connection that lasted for this long begins with the first pause again.
    private static let trust = TimeInterval.seconds(10)

    var mayReturn: Bool { state == .connected && environment.openLink != nil && options.returnTimeout > .zero }

    /// The link is of no use any longer.
    ///
    /// - Parameter mustRejoin: whether the participation ends with it.
    func lost(_ reason: Closing.Reason, _ error: RoomError, mustRejoin: Bool = false) {
        guard mayReturn else { return end(reason, error) }
        // A link that is closed has left the room.
        if mustRejoin { link?.close() } else { link?.abandon() }
        link = nil
        signalling?.suspend()
        introduction = nil
        deadline?.disarm()
        for request in [absence?.request, joinRequest] { if let request { waiting[request] = nil } }
        joinRequest = nil
        if absence == nil {
            // An outage has one clock. At least one attempt is made.
            let outageBegan = mediaWatch.since == nil ? loop.now : min(mediaWatch.limitBegan, loop.now)
            let end = max(outageBegan + options.returnTimeout, loop.now + min(options.returnTimeout, Self.leastTime))
            let timer = loop.schedule(at: end) { [weak self] in self?.giveUp() }
            absence = Absence(began: loop.now, outageBegan: outageBegan, reason: reason, error: error, end: timer)
            if let returnedAt, loop.now - returnedAt >= Self.trust { pause = Self.firstPause }
        }
        absence?.reason = reason
        absence?.error = error
        absence?.request = nil
        if mustRejoin || isRejoining { absence?.mustRejoin = true }
        let isEarly = absence.map { loop.now - $0.began < Self.early } ?? true
        let most = isEarly ? Self.earlyPause : Self.longestPause
        var longest = min(pause, most)
        if refusedToken != nil, absence?.hasRenewedToken == false {
            absence?.hasRenewedToken = true
            longest = Self.renewalPause
        } else {
            pause = min(pause * 2, most)
        }
        let delay = TimeInterval(
            nanoseconds: .random(in: longest.nanoseconds / 2...longest.nanoseconds, using: &random))
        retry?.disarm()
        retry = loop.schedule(after: delay) { [weak self] in self?.attempt() }
    }

    private func giveUp() {
        guard let absence else { return }
        let seconds = Int((loop.now - absence.outageBegan).seconds.rounded())
        // A server that ended the room has told that itself.
        guard absence.reason == .disconnected else { return end(absence.reason, absence.error) }
        end(absence.reason, RoomError(absence.error.code, "\(absence.error.message) Gave up after \(seconds) s."))
    }

    private func attempt() {
        retry = nil
        guard state == .connected, let attempts = absence?.attempts, let error = absence?.error, link == nil else {
            return
        }
        let attempt = attempts + 1
        absence?.attempts = attempt
        onEvent(.reconnecting(attempt: attempt, error))
        environment.openLink?(refusedToken) { [weak self] result in
            guard let self, state == .connected, absence?.attempts == attempt, link == nil else {
                if case .success(let opened) = result { opened.link.close() }
                return
            }
            switch result {
            case .success(let opened) where !opened.link.isOpen():
                let error = RoomError(
                    .connectionLost,
                    "The server \(opened.address) closed the connection as soon as it was open: it stops, or its proxy does not "
                        + "reach it. Connect again when it runs.")
                lost(absence?.reason ?? .disconnected, error)
            case .success(let opened):
                (address, refusedToken) = (opened.address, nil)
                returned(over: opened.link, token: opened.token)
            // The server has another secret now. Further attempts would only use up those of all clients at this address.
            case .failure(let error) where error.code == .serviceInvalid: end(.disconnected, error)
            case .failure(let error): lost(absence?.reason ?? .disconnected, error)
            }
        }
    }

    private func returned(over link: SignallingLink, token: String) {
        self.link = link
        guard let absence, !absence.mustRejoin || absence.mayBeRemoved, let secret = resumeSecret else {
            return rejoin(token)
        }
        guard
            let (id, text) = signalling?.resume(
                token: token, participant: participant, secret: secret, now: loop.now)
        else { return }
        self.absence?.request = id
        waiting[id] = { [weak self] in self?.answered($0, token: token) }
        link.send(text)
        armTimer()
    }

    private func answered(_ result: Result<ServerMessage, RoomError>, token: String) {
        absence?.request = nil
        do throws(RoomError) {
            guard case .resumed(let body) = try result.get() else {
                throw RoomError(.enterResponseInvalid, "The server's reply to 'resume' has the wrong type.")
            }
            // A session has ended meanwhile.
            if let absence, absence.mustRejoin {
                signalling?.abandonResumption()
                self.absence?.mayBeRemoved = false
                return lost(absence.reason, absence.error, mustRejoin: true)
            }
            resumeSecret = body.secret
            for text in try signalling?.resumed(body, now: loop.now) ?? [] { link?.send(text) }
            finishReturn(.resumed)
        } catch {
            signalling?.abandonResumption()
            guard state == .connected else { return }
            if error.code == .notResumable { return rejoin(token) }
            if error.code == .tokenInvalid { refusedToken = token }
            lost(.disconnected, error)
        }
    }

    func finishReturn(_ kind: Return.Kind) {
        guard let absence else { return }
        absence.end.disarm()
        self.absence = nil
        returnedAt = loop.now
        onEvent(.reconnected(Return(kind: kind, duration: loop.now - absence.began)))
        nextRestart = loop.now
        restartSilent(isReturn: kind == .resumed)
        movedAt = nil
    }

    /// This machine has these literal addresses from now on. A link whose address is gone is lost, and a client without a link
    /// tries at once if there are further ones: it may have a network again.
    package func addressesChanged(to addresses: Set<String>) {
        guard state == .connected else { return }
        let more = addresses.subtracting(addressesBefore).contains { !$0.hasPrefix("fe80") }
        addressesBefore = addresses
        if link == nil {
            // An attempt that is on its way may wait for the former network, and counts no longer.
            guard more else { return }
            retry?.disarm()
            attempt()
        } else if let local = link?.localAddress, !addresses.contains(local) {
            movedAt = loop.now
            lost(.disconnected, RoomError(.connectionLost, "This machine no longer has the address \(local)."))
        }
    }

    // MARK: - Joining again

    /// Joins as another participant, publishes the same tracks, and subscribes to the same streams as far as they last.
    private func rejoin(_ token: String) {
        guard let room, let link else { return }
        absence?.mustRejoin = true
        absence?.mayBeRemoved = false
        (isRejoining, hasRejoined, hasRepublished) = (true, false, false)
        (publishing.isHeld, publishing.isRepublishedLater, publishing.refusals) = (true, false, 0)
        let former = up
        up = nil
        perform(signalling?.beginAnew(now: loop.now) ?? [])
        // They name participants who may have other ids now.
        failWaitingMessages(Self.rejoining)
        guard state == .connected, self.link != nil else { return }
        repeatPostponedOffer()
        if let former { tracks = former.surrender(keeping: publishing.repeated?.mids ?? []) }
        let ended = Set(endings.flatMap(\.streams))
        for track in tracks where track.stream.map(ended.contains) ?? false { track.offer.track.disconnect() }
        tracks.removeAll { $0.stream.map(ended.contains) ?? false }
        finishEndings([:])
        down?.close()
        down = nil
        for (mid, _) in heard { unheard(mid) }
        deadline?.disarm()
        joinStarted = loop.now
        deadline = loop.schedule(after: options.connectDeadline) { [weak self] in
            guard let self, isRejoining else { return }
            lost(.disconnected, lateness, mustRejoin: true)
        }
        allowForRelays()
        join(room, token: token, over: link)
    }

    /// The server accepted another `join`.
    func rejoined(_ joined: Joined) {
        participant = joined.participant
        introduction = joined.participants
        onEvent(.joinedAgain(participant: participant))
    }

    /// The server has announced all participants, in `joined` and in messages after it. Those who are missing have left.
    func finishIntroduction() {
        guard let present = introduction else { return }
        introduction = nil
        hasRejoined = true
        removeOthers(without: present)
        // A server that has restarted may give a former id to another stream, which is subscribed on its own.
        let wanted = subscriptions.keys.sorted()
        addOthers(present)
        for stream in wanted { subscribeAgain(stream) }
        publishAgain()
    }

    private func publishAgain() {
        let former = tracks
        guard !former.isEmpty else { return republished() }
        do throws(RoomError) {
            let session = try makeUpSession()
            let adopted = former.map { session.addTrack($0.offer, adopting: $0) }
            tracks = []
            publishAgain(former, adopted, session)
        } catch {
            for track in former { track.offer.track.disconnect() }
            tracks = []
            publishNothing(error)
        }
    }

    /// Requests it again while the room has too many announcements, as when a server has restarted. The room goes on meanwhile.
    private func publishAgain(_ former: [FormerTrack], _ adopted: [UpSession.Track], _ session: UpSession) {
        let streams = adopted.map { announcement(of: $0) }
        request(.publish(Publish(sdp: session.offer(), streams: streams))) { [weak self] result in
            guard let self else { return }
            guard up === session, isTooEarly(result) else {
                return publishedAgain(result, former, adopted, session)
            }
            publishing.isRepublishedLater = true
            finishRejoining()
            loop.schedule(after: Self.offerPause) { [weak self] in
                guard let self, state == .connected, up === session else { return }
                publishAgain(former, adopted, session)
            }
        }
    }

    /// The tracks could not be published again, and have ended.
    private func publishNothing(_ error: RoomError) {
        onEvent(.republished(participant: participant, [:]))
        finishEndings([:])
        endRepetition(.failure(error))
        onEvent(.problem(error))
        republished()
    }

    private func publishedAgain(
        _ result: Result<ServerMessage, RoomError>, _ former: [FormerTrack], _ adopted: [UpSession.Track],
        _ session: UpSession
    ) {
        do throws(RoomError) {
            guard case .published(let body) = try result.get(), up === session else {
                throw RoomError(.publishReplyInvalid, "The server's reply to 'publish' has the wrong type.")
            }
            try session.accept(body)
            var streams: [Int: Int] = [:]
            for (old, new) in zip(former, adopted) {
                if let old = old.stream, let new = new.stream { streams[old] = new }
            }
            onEvent(.republished(participant: participant, streams))
            let repeated = adopted.filter { publishing.repeated?.mids.contains($0.sender.mid) ?? false }
            endRepetition(
                .success(
                    repeated.compactMap { track in track.stream.map { PublishedStream(id: $0, isVideo: track.isVideo) }
                    }))
            for track in adopted where track.stream != nil { tellChange(of: track) }
            reportMissingRecordings(of: adopted, body)
            refused(adopted.filter { $0.stream == nil }, in: session)
            finishEndings(streams)
        } catch {
            guard state == .connected else { return }
            // The connection is lost again, and the next one begins with the same tracks.
            if error.code == .connectionLost, isRejoining { return }
            session.remove(adopted)
            return publishNothing(error)
        }
        republished()
    }

    /// Completes the publication that was on its way when the connection was lost, if there was one.
    func endRepetition(_ result: Result<[PublishedStream], RoomError>) {
        let repeated = publishing.repeated
        publishing.repeated = nil
        repeated?.then(result)
    }

    private func republished() {
        hasRepublished = true
        finishRejoining()
        endHold()
    }

    /// Ends joining again when media can flow and the tracks are published, or have to wait.
    func finishRejoining() {
        guard state == .connected, isRejoining, hasRejoined, hasRepublished || publishing.isRepublishedLater,
            down?.profile != nil
        else { return }
        (isRejoining, hasRejoined) = (false, false)
        deadline?.disarm()
        restartMediaWatch()
        finishReturn(.rejoined(participant: participant))
        // It may be another server.
        reportFewerReceivers()
        endHold()
    }

    /// Lets the offers go on that wait until the connection has joined again with its tracks.
    private func endHold() {
        guard state == .connected, publishing.isHeld, !isRejoining, hasRepublished else { return }
        (publishing.isHeld, publishing.isRepublishedLater) = (false, false)
        publishTurnEnds()
    }
}

/// Streams to end, by the ids that the application knows.
struct Ending {
    let streams: [Int]
    let then: (Result<Void, RoomError>) -> Void
}

/// A published track whose session has ended.
struct FormerTrack {
    let mid: String
    var offer: TrackOffer
    /// The id that the application knows. Nil if the server had not replied.
    let stream: Int?
}
