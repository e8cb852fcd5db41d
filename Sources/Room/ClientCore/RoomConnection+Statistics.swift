internal import PeerLoop
internal import PeerSession
internal import RTP
internal import RoomProtocol

extension RoomConnection {
    /// Current statistics, or the final ones after the end.
    package var statistics: RoomStatistics { finalStatistics ?? makeStatistics() }

    /// Called about twice a second.
    func sample() {
        guard state == .connected else { return }
        let now = loop.now
        down?.sample(now: now)
        up?.sample(now: now)
        tellReductions()
        sampling = loop.schedule(after: .milliseconds(500)) { [weak self] in self?.sample() }
    }

    /// Tells the server why videos are sent worse than they could be, for those that watch them.
    private func tellReductions() {
        guard let up, absence == nil, !isRejoining else { return }
        for video in up.published() where video.isVideo {
            guard let track = up.tracks.first(where: { $0.stream == video.streamId }) else { continue }
            let reason: StreamQuality.Reason? =
                switch video.limitation {
                case .network: .network
                case .processor: .processor
                case .none, .subscribers: nil
                }
            guard track.toldReduction != reason else { continue }
            track.toldReduction = reason
            send(.streamReduced(StreamReduced(stream: video.streamId, reason: reason)))
        }
    }

    func makeStatistics() -> RoomStatistics {
        var statistics = RoomStatistics()
        statistics.received = down?.received() ?? []
        for index in statistics.received.indices where !statistics.received[index].hasEnded {
            statistics.received[index].limitation = subscriptions[statistics.received[index].streamId]?.limitation
        }
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
