internal import PeerLoop
internal import RTP
internal import RoomProtocol

/// The choice among the layers of a consumer's stream.
extension Consumer {
    /// The rates that the stream needs of the link.
    func linkWish(unknown: Double) -> LinkShares.Video {
        guard let stream else { return LinkShares.Video(rates: [unknown]) }
        guard stream.hasLayers else { return LinkShares.Video(rates: [stream.wish() ?? unknown]) }
        let highest = stream.highestRank(for: view)
        let rates = (0...highest).map { stream.expectedRate(rank: stream.deliveredRank($0), unknown: unknown) }
        return LinkShares.Video(
            rates: rates, isElastic: highest == stream.layers.count - 1 && stream.isFor(self),
            priority: view.priority ?? 1, current: min(wantedRank, highest))
    }

    /// The layer that it follows, or will follow.
    var wantedRank: Int {
        guard let stream, let layer = next ?? layer else { return 0 }
        return stream.rank(of: layer)
    }

    /// Follows the layer for which the link has room, and leaves frames out if there is none.
    func choose(_ fitting: LinkShares.Choice, among wish: LinkShares.Video, isCongested: Bool, now: MonotonicTime) {
        guard let stream else { return }
        let isTried = choice.triesLowest(isCongested: isCongested, now: now) && stream.hasLayers
        // The publisher has to know before the layer begins that the link carries a part of it.
        let isElastic = fitting.rank > 0 && fitting.share != nil
        let isLimited = isElastic || isCongested || carried.part != nil && !isTried
        setCarried(isLimited ? fitting.share.map { .part($0) } ?? .all : .all, now: now)
        guard stream.hasLayers else { return }
        let rank = choice.rank(
            from: wantedRank, fitting: fitting.rank, highest: wish.rates.count - 1, isCongested: isCongested, now: now)
        follow(stream.layer(rank: stream.deliveredRank(rank)))
        // The layer that it leaves goes on until the keyframe of a lower one.
        if let layer, let next, isCongested, stream.rank(of: next) < stream.rank(of: layer) {
            leaveFramesOut(beyond: fitting.share ?? wish.rates[rank] * LinkShares.headroom, now: now)
        }
    }

    /// Whether it would see more with this layer than with those below it.
    func canUse(_ layer: StreamLayer) -> Bool {
        stream.map { $0.rank(of: layer) <= $0.usefulRank(for: view) } ?? false
    }

    /// Follows a lower layer if the view, or the publisher, needs it.
    func keepLayer(atMost highest: Int) {
        guard let stream, stream.hasLayers else { return }
        let isLost = wantedRank < highest && stream.deliveredRank(wantedRank) != wantedRank
        guard wantedRank > highest || isLost else { return }
        follow(stream.layer(rank: stream.deliveredRank(min(wantedRank, highest))))
    }
}
