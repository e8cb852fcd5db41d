internal import MediaGraph
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
        watchMedia(now: now)
        if now < lossesCountFrom {
            down?.forgetLosses()
            up?.forgetLosses()
        }
        sampling = loop.schedule(after: .milliseconds(500)) { [weak self] in self?.sample() }
    }

    /// How many samples in a row show that the network or the processor is too slow.
    private static let (networkPolls, processorPolls) = (4, 12)

    /// Tells the server why videos are sent worse than they could be, for those that watch them.
    private func tellReductions() {
        guard let up, absence == nil, !isRejoining, mediaWatch.since == nil else { return }
        for video in up.published() where video.isVideo {
            guard let track = up.tracks.first(where: { $0.stream == video.streamId }) else { continue }
            let reason = reduction(of: video, told: track.toldReduction)
            guard track.toldReduction != reason else {
                track.reductionPolls = 0
                continue
            }
            track.reductionPolls += 1
            // One frame that came too late shows no slow processor, and the first probes know little about the network.
            let polls =
                switch reason {
                case .processor: Self.processorPolls
                case .network, .loss: Self.networkPolls
                case .connection, nil: 1
                }
            guard track.reductionPolls >= polls else { continue }
            (track.toldReduction, track.reductionPolls) = (reason, 0)
            send(.streamReduced(StreamReduced(stream: video.streamId, reason: reason)))
        }
    }

    private func reduction(
        of video: RoomStatistics.Published, told: StreamQuality.Reason?
    ) -> StreamQuality.Reason? {
        switch video.limitation {
        case .network:
            // The cause stays as long as few packets are lost.
            let least = told == .loss ? VideoQuality.leastLoss / 2 : VideoQuality.leastLoss
            return video.recentLoss >= least ? .loss : .network
        case .processor: return .processor
        case .none, .subscribers: return nil
        }
    }

    /// The rate that the link from the server carries, as the server says while it is less than the streams need.
    private func linkLimit(of received: [RoomStatistics.Received]) -> Double? {
        received.compactMap { stream in
            guard case .link(let rate?) = stream.limitation?.cause else { return nil }
            return Double(rate)
        }.max()
    }

    /// Reports the statistics at the interval of the options, from now on.
    func tellStatistics() {
        guard options.statisticsInterval > .zero else { return }
        telling?.disarm()
        telling = loop.schedule(after: options.statisticsInterval) { [weak self] in
            guard let self, state == .connected else { return }
            onEvent(.statistics(makeStatistics()))
            tellStatistics()
        }
    }

    func makeStatistics() -> RoomStatistics {
        var statistics = RoomStatistics()
        let figures = down?.figures() ?? []
        statistics.received = down?.received(figures) ?? []
        for index in statistics.received.indices where !statistics.received[index].hasEnded {
            statistics.received[index].limitation = subscriptions[statistics.received[index].streamId]?.limitation
        }
        statistics.published = up?.published() ?? []
        statistics.lostSeconds = absence.map { (loop.now - $0.began).seconds }
        statistics.isServerLost = absence.map { !$0.error.code.isOfMediaConnection } ?? false
        statistics.outages = outages
        statistics.interruptedSeconds = mediaWatch.since.map { (loop.now - $0).seconds }
        // The sessions know theirs after some reports.
        statistics.roundTripMilliseconds =
            (up?.roundTrip ?? down?.roundTrip ?? signalling?.roundTrip)?.milliseconds
        let sending = up?.peer.statistics.session.sending
        statistics.sendingBitsPerSecond = sending.map { Double($0.targetBitsPerSecond) }
        statistics.sendingQueueMilliseconds = sending?.queue.milliseconds
        statistics.messagesIgnored = signalling?.ignoredMessages ?? 0
        statistics.path = (up?.peer.route ?? down?.route).map { RoomStatistics.Path($0) }
        let time = environment.wallClock(loop.now).unixSeconds
        statistics.time = time
        statistics.up = up?.statistics(
            index: sessionsBegun.up - 1, participant: participant, time: time, wallClock: environment.wallClock)
        statistics.down = down?.statistics(
            figures, index: sessionsBegun.down - 1, time: time, wallClock: environment.wallClock)
        statistics.down?.transport.incomingBitsPerSecond = linkLimit(of: statistics.received)
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
    init(_ route: MediaRoute) {
        self.init(
            local: Candidate(rawValue: route.local.rawValue) ?? .host,
            remote: Candidate(rawValue: route.remote.rawValue) ?? .host, transport: route.transport.rawValue,
            relay: route.relay)
    }
}
