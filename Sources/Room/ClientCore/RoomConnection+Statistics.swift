internal import PeerLoop
internal import PeerSession
internal import RTP

extension RoomConnection {
    /// Current statistics, or the final ones after the end.
    package var statistics: RoomStatistics { finalStatistics ?? makeStatistics() }

    /// Called about twice a second.
    func sample() {
        guard state == .connected else { return }
        let now = loop.now
        down?.sample(now: now)
        up?.sample(now: now)
        sampling = loop.schedule(after: .milliseconds(500)) { [weak self] in self?.sample() }
    }

    func makeStatistics() -> RoomStatistics {
        var statistics = RoomStatistics()
        statistics.received = down?.received() ?? []
        statistics.published = up?.published() ?? []
        // The sessions know theirs after some reports.
        statistics.roundTripMilliseconds =
            (up?.roundTrip ?? down?.roundTrip ?? signalling?.roundTrip)?.milliseconds
        let sending = up?.peer.statistics.session.sending
        statistics.sendingBitsPerSecond = sending.map { Double($0.targetBitsPerSecond) }
        statistics.sendingQueueMilliseconds = sending?.queue.milliseconds
        statistics.messagesIgnored = signalling?.ignoredMessages ?? 0
        statistics.path = (up?.peer.route ?? down?.route).map { RoomStatistics.Path($0) }
        statistics.srtpProfile = (down?.profile ?? up?.profile)?.rawValue
        statistics.connectMilliseconds = connectedAt.map { ($0 - connectStarted).milliseconds }
        if let first = statistics.received.compactMap(\.firstFrameMilliseconds).min() {
            firstFrame = min(first, firstFrame ?? first)
        }
        statistics.firstFrameMilliseconds = firstFrame
        return statistics
    }
}

extension RoomStatistics.Path {
    fileprivate init(_ route: MediaRoute) {
        self.init(
            local: Candidate(rawValue: route.local.rawValue) ?? .host,
            remote: Candidate(rawValue: route.remote.rawValue) ?? .host, transport: route.transport.rawValue,
            relay: route.relay)
    }
}
