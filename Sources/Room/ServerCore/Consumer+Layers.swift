internal import PeerLoop
internal import RTP
internal import RoomProtocol

/// The choice among the layers of a consumer's stream.
extension Consumer {
    /// The rates that the stream needs of the link.
    func linkWish(unknown: Double) -> LinkShares.Video {
        guard let stream else { return LinkShares.Video(rates: [unknown]) }
        guard stream.hasLayers else { return LinkShares.Video(rates: [stream.wish() ?? unknown]) }
        let ranks = stream.deliveredRanks(for: view)
        return LinkShares.Video(
            rates: ranks.map { stream.expectedRate(rank: $0, unknown: unknown) },
            isElastic: ranks.last == stream.layers.count - 1 && stream.isFor(self), priority: view.priority ?? 1,
            current: place(among: ranks))
    }

    /// The place of the layer that it follows among these, or of the next lower one.
    private func place(among ranks: [Int]) -> Int { ranks.lastIndex { $0 <= wantedRank } ?? 0 }

    /// The layer that it follows, or will follow.
    var wantedRank: Int {
        guard let stream, let layer = next ?? layer else { return 0 }
        return stream.rank(of: layer)
    }

    /// Follows the layer for which the link has room, and leaves frames out if there is none.
    func choose(_ fitting: LinkShares.Choice, among wish: LinkShares.Video, isCongested: Bool, now: MonotonicTime) {
        guard let stream, !isPaused else { return }
        let isTried = choice.triesLowest(isCongested: isCongested, now: now) && stream.hasLayers
        // The publisher has to know before the layer begins that the link carries a part of it.
        let isElastic = fitting.rank > 0 && fitting.share != nil
        let isLimited = isElastic || isCongested || carried.part != nil && !isTried
        setCarried(isLimited ? fitting.share.map { .part($0) } ?? .all : .all)
        guard stream.hasLayers else { return thin(to: carried.part, now: now) }
        let ranks = stream.deliveredRanks(for: view)
        let place = choice.rank(
            from: place(among: ranks), fitting: fitting.rank, highest: ranks.count - 1, isCongested: isCongested,
            now: now)
        follow(stream.layer(rank: ranks[place]))
        // The layer that it leaves goes on until the keyframe of a lower one. If frames are left out by then, no others
        // of that layer follow.
        guard let next, !next.isSpatial, isCongested || isPausing, isLower(next) else {
            return thin(to: carried.part, now: now)
        }
        thin(to: fitting.share ?? wish.rates[place] * LinkShares.headroom, now: now)
    }

    /// Whether a layer ranks below the one that it forwards.
    func isLower(_ other: StreamLayer) -> Bool {
        guard let stream, let layer else { return false }
        return stream.rank(of: other) < stream.rank(of: layer)
    }

    /// The client lacks frames. If it is about to get a lower layer, the keyframe of that one mends its video, too.
    func keyframeRequested() {
        if let next, isLower(next) { next.requestKeyframe() } else { layer?.requestKeyframe() }
    }

    /// Whether it would see more with this layer than with those below it.
    func canUse(_ layer: StreamLayer) -> Bool {
        stream.map { !isPaused && $0.rank(of: layer) <= $0.usefulRank(for: view) } ?? false
    }

    /// Follows another layer if the view does not need the present one, or the publisher does not deliver it: the next
    /// lower one, if there is one.
    func keepLayer() {
        guard let stream, stream.hasLayers else { return }
        let ranks = stream.deliveredRanks(for: view)
        follow(stream.layer(rank: ranks[place(among: ranks)]))
    }
}
