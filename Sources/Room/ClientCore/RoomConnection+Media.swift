internal import PeerLoop
internal import RTP
internal import RoomProtocol

/// Whether media flows, and the search for another way if it does not.
extension RoomConnection {
    /// Whether the server has something to send: a video whose publisher has not fallen silent. An interruption lasts until the
    /// server is heard again, although publishers fall silent or leave meanwhile.
    var expectsMedia: Bool {
        guard !isAwaitingMedia else { return true }
        return subscriptions.values.contains { subscription in
            guard !subscription.view.isPaused else { return false }
            guard let limitation = subscription.limitation, case .publisher = limitation.cause else { return true }
            return !limitation.lacksFrames
        }
    }

    private var isAwaitingMedia: Bool { mediaWatch.since != nil && !mediaWatch.isOutgoing }

    /// Reports that media stops to flow, and that it flows again. Ends the connection if it does not in time.
    func watchMedia(now: MonotonicTime) {
        // One that the server has not answered yet has nothing to send.
        let up = up.flatMap { $0.isAnswered ? $0 : nil }
        // Sessions that have just begun are not heard yet.
        guard !isRejoining, let down, down.profile != nil, up.map({ $0.profile != nil || $0.tracks.isEmpty }) ?? true
        else { return }
        let sent = up.map { up in
            (
                report: up.peer.lastReport ?? up.lastReceived, frames: up.tracks.reduce(0) { $0 + $1.framesSent },
                heard: up.lastReceived
            )
        }
        let arrived = (at: down.lastReceived, isMedia: down.hasStopped)
        switch mediaWatch.update(up: sent, down: expectsMedia ? arrived : nil, now: now) {
        case .interrupted(let isOutgoing, let time)?:
            lostWay = (isOutgoing ? up?.peer.route : down.route).map { RoomStatistics.Path($0) }
            wasCutWithoutLink = absence != nil
            onEvent(.mediaInterrupted(interruption(isOutgoing, time)))
        case .restored(let time, let isOutgoing)?:
            note(time, isOutgoing, now)
            lossesCountFrom = now + Self.lateReports
            let way = (isOutgoing ? up?.peer.route : down.route).map { RoomStatistics.Path($0) }
            onEvent(.mediaRestored(seconds: time.seconds, way: way))
        case nil: break
        }
        guard let since = mediaWatch.since else {
            // A server without reports sends less and less, and then nothing.
            if let since = down.unheardSince(now: now) { restartInterrupted(since: since) }
            return
        }
        if wasCutWithoutLink, absence == nil, let returnedAt, now >= returnedAt + Self.restartTime {
            wasCutWithoutLink = false
            onEvent(.mediaInterrupted(interruption(mediaWatch.isOutgoing, now - since)))
        }
        // Signalling that is back gives media one more restart.
        let restart = (returnedAt ?? .zero) + restartInterval + Self.restartTime
        guard mayReturn, mediaWatch.isMissed, now >= max(mediaWatch.limitBegan + options.returnTimeout, restart) else {
            return restartInterrupted(since: since)
        }
        if absence == nil { end(.disconnected, mediaLost(since: since)) }
    }

    private func interruption(_ isOutgoing: Bool, _ time: TimeInterval) -> MediaInterruption {
        var interruption = MediaInterruption(isOutgoing: isOutgoing, seconds: time.seconds)
        interruption.way = lostWay
        interruption.isServerThere = isServerThere(since: loop.now + (.zero - time))
        for relay in servers.relays where !interruption.relays.contains(relay.place) {
            interruption.relays.append(relay.place)
        }
        interruption.isRelayed = servers.policy == .relay
        return interruption
    }

    /// For the messages of a restart and the first media on its way.
    private static let restartTime = TimeInterval.seconds(2)

    /// A cut ends media and signalling at slightly different times.
    private static let moment = TimeInterval.milliseconds(250)

    /// Whether the server has answered to a message since then, and lets this client restart ICE.
    private func isServerThere(since time: MonotonicTime) -> Bool {
        absence == nil && link != nil && resumeSecret != nil && signalling?.answered ?? .zero > time + Self.moment
    }

    /// Restarts ICE of both sessions again and again, as long as the server answers: it is there, so media needs another way.
    private func restartInterrupted(since: MonotonicTime) {
        guard isServerThere(since: since), state == .connected, loop.now >= nextRestart else { return }
        restartICE()
    }

    /// A server that is there answers to a ping each two seconds.
    private static let recently = TimeInterval.seconds(5)

    private func mediaLost(since: MonotonicTime) -> RoomError {
        let way = lostWay.map { " \($0)" } ?? ""
        let place = address.map { " \($0)" } ?? ""
        let what = mediaWatch.isOutgoing ? "reached the server\(place)" : "arrived from the server\(place)"
        let advice =
            if signalling?.answered ?? .zero <= max(since, loop.now + (.zero - Self.recently)) {
                "the server does not answer either. Check the network, and that the server runs."
            } else if lostWay?.relay == nil {
                "ICE restarts found no other way. Check whether a firewall blocks UDP, or use a TURN server."
            } else {
                "ICE restarts found no other way. Check that the TURN server runs, or use another one."
            }
        return RoomError(
            .mediaConnectionLost,
            "No media has \(what)\(way) for \(Int((loop.now - since).seconds.rounded())) s, and \(advice)")
    }

    private static let outageLimit = 100
    /// The packets that an outage has lost are reported within this time after it.
    private static let lateReports = TimeInterval.seconds(3)

    private func note(_ time: TimeInterval, _ isOutgoing: Bool, _ now: MonotonicTime) {
        let start = (now - connectStarted - time).seconds
        outages.append(.init(start: start, seconds: time.seconds, isOutgoing: isOutgoing))
        if outages.count > Self.outageLimit { outages.removeFirst() }
    }

    /// The media of another participation begins.
    func restartMediaWatch() {
        if let since = mediaWatch.since { note(loop.now - since, mediaWatch.isOutgoing, loop.now) }
        mediaWatch = MediaWatch()
    }
}

/// Media that does not flow between this client and the server.
package struct MediaInterruption: Sendable, Equatable {
    /// Whether it does not reach the server. Otherwise none arrives from it.
    package var isOutgoing: Bool
    /// For how long, until now.
    package var seconds: Double
    /// How it went. Nil if that is unknown.
    package var way: RoomStatistics.Path?
    /// Whether the server answers to messages meanwhile and allows ICE restarts. Then those look for another way.
    package var isServerThere = false
    /// The TURN servers that are tried, as `HOST:PORT`.
    package var relays: [String] = []
    /// Whether nothing else is tried.
    package var isRelayed = false

    package init(isOutgoing: Bool, seconds: Double) { (self.isOutgoing, self.seconds) = (isOutgoing, seconds) }
}
