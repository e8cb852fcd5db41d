internal import MediaGraph
internal import RTP

/// Splits a video's share of the rate among its layers, and decides which of them are off: the lowest first up to its wish, and
/// a further one only if the rest is enough for half of its wish.
///
/// A value that is told the time. Rates are bits of media per second. Waits and margins are those with which the size of a
/// single encoding follows network and processor (`VideoAdaptation`).
struct LayerShares {
    /// One layer that the video has.
    struct Layer {
        var layer: VideoLayer
        /// The rate that its encoder has without a limit. 0 before that is known.
        var wish: Int
        /// Whether a viewer watches it.
        var isWatched = true
        /// Whether its encoder is too slow, and the share of the time that encoding takes.
        var isOverloaded = false
        var load = 0.0
    }

    enum Verdict: Equatable {
        /// With this rate at most; nil without a limit.
        case on(Int?)
        case off(QualityLimitation)
    }

    /// A further layer needs this share of its wish.
    static let leastShare = 0.5
    static let margin = 1.3
    private static let lapse = TimeInterval.seconds(2)
    private static let relapse = TimeInterval.seconds(30)
    /// After nothing could be sent, the estimate of the network needs so long until it is true again.
    private static let recovery = TimeInterval.seconds(6)
    /// A layer that was off after that is on again this soon, for half a minute.
    private static let homecoming = TimeInterval.seconds(1)
    /// The share of the time that the next layer may be expected to need.
    private static let expectedLoad = 0.75

    private struct Restriction {
        /// The highest layer.
        var highest = VideoLayer.full
        let shortest: TimeInterval
        let longest: TimeInterval
        /// How long conditions must be better before the next layer is on. Zero until a layer has been switched off.
        var patience = TimeInterval.zero
        var raised: MonotonicTime?
        /// Since when conditions are worse and better.
        var lack: MonotonicTime?
        var surplus: MonotonicTime?

        init(_ shortest: TimeInterval, _ longest: TimeInterval) { (self.shortest, self.longest) = (shortest, longest) }

        mutating func fall(to layer: VideoLayer, now: MonotonicTime) {
            let isRelapse = raised.map { now - $0 < LayerShares.relapse } ?? false
            patience = isRelapse ? max(shortest, min(patience * 2, longest)) : shortest
            (highest, lack, surplus) = (layer, nil, nil)
        }

        mutating func rise(to layer: VideoLayer, now: MonotonicTime) {
            (highest, raised, lack, surplus) = (layer, now, nil, nil)
        }
    }

    private var network = Restriction(.seconds(5), .seconds(40))
    private var processor = Restriction(.seconds(10), .seconds(160))
    private var hasBegun = false
    /// Whether nothing can be sent, when that ended last, and the highest layer before.
    private var isBlocked = false
    private var unblocked: (at: MonotonicTime, highest: VideoLayer)?

    /// The verdicts, in the order of the layers.
    ///
    /// - Parameters:
    ///   - layers: the lowest first.
    ///   - share: of the video. Nil while nothing limits it.
    ///   - most: of each layer by itself, because a viewer gets one of them. Nil without such a limit.
    mutating func split(_ share: Int?, most: Int? = nil, among layers: [Layer], now: MonotonicTime) -> [Verdict] {
        let watched = layers.filter(\.isWatched)
        followProcessor(watched, now: now)
        let able = able(watched)
        followNetwork(share, most, able, now: now)
        var left = share.map(Double.init)
        return layers.map { one in
            guard one.isWatched else { return .off(.subscribers) }
            let isLowest = one.layer == watched.first?.layer
            if !isLowest, one.layer > processor.highest { return .off(.processor) }
            if !isLowest, one.layer > network.highest { return .off(.network) }
            guard let room = left else { return .on(most) }
            let isHighest = one.layer == able.last { $0.layer <= network.highest }?.layer
            // The last one gets what is left, so that the path stays in use and its estimate true.
            let own = min(isHighest ? room : min(room, Double(one.wish)), most.map(Double.init) ?? room)
            left = max(0, room - own)
            return .on(Int(own))
        }
    }

    /// The rate that a video can use: that of the layers that are on, and of the next one.
    ///
    /// - Parameter most: as for `split`.
    func demand(of layers: [Layer], most: Int? = nil) -> Int {
        let able = able(layers.filter(\.isWatched))
        let on = able.filter { $0.layer <= network.highest || $0.layer == able.first?.layer }
        let next = able.first { one in !on.contains { $0.layer == one.layer } }
        let most = most ?? .max
        // The viewers' links carry too little of the next one.
        let more = next.map { Double(most) < Double($0.wish) * Self.leastShare ? 0 : min($0.wish, most) }
        return on.reduce(more ?? 0) { $0 + min($1.wish, most) }
    }

    /// Those for which the processor is fast enough.
    private func able(_ watched: [Layer]) -> [Layer] {
        watched.filter { $0.layer <= processor.highest || $0.layer == watched.first?.layer }
    }

    // MARK: - Network

    /// The highest layer for which a share is enough.
    private func highest(for share: Double, _ most: Double, of layers: [Layer], margin: Double = 1) -> VideoLayer? {
        var (left, found) = (share, layers.first?.layer)
        for (index, one) in layers.enumerated() {
            if index > 0 {
                guard min(left, most) >= Double(one.wish) * Self.leastShare * margin, one.wish > 0 else { break }
                found = one.layer
            }
            left -= min(Double(one.wish), most)
        }
        return found
    }

    private mutating func followNetwork(_ share: Int?, _ most: Int?, _ layers: [Layer], now: MonotonicTime) {
        guard share != nil || most != nil || network.highest < .full, layers.contains(where: { $0.wish > 0 }) else {
            return
        }
        let (share, most) = (share.map(Double.init) ?? .infinity, most.map(Double.init) ?? .infinity)
        // While nothing can be sent, nothing is known about the time after.
        guard share > 0 else {
            isBlocked = hasBegun
            return (network.lack, network.surplus) = (nil, nil)
        }
        if isBlocked {
            let former = unblocked.map { now - $0.at < Self.relapse ? $0.highest : network.highest } ?? network.highest
            (isBlocked, unblocked) = (false, (now, max(former, network.highest)))
        }
        if let unblocked, now - unblocked.at >= Self.relapse { self.unblocked = nil }
        guard let wanted = highest(for: share, most, of: layers) else { return }
        guard hasBegun else {
            hasBegun = true
            return network.highest = wanted
        }
        let present = layers.last { $0.layer <= network.highest }?.layer ?? layers[0].layer
        if wanted < present {
            network.surplus = nil
            let since = network.lack ?? now
            network.lack = since
            if let unblocked, now - unblocked.at < Self.recovery { return }
            if now - since >= Self.lapse { network.fall(to: wanted, now: now) }
            return
        }
        network.lack = nil
        let isPatient = network.patience > .zero
        guard let next = layers.first(where: { $0.layer > present })?.layer,
            let better = highest(for: share, most, of: layers, margin: isPatient ? Self.margin : 1), better >= next
        else { return network.surplus = nil }
        let since = network.surplus ?? now
        network.surplus = since
        // One after the other: what the network carries is known only as far as it is used.
        let isReturn = unblocked.map { next <= $0.highest } ?? false
        if now - since >= (isReturn ? Self.homecoming : network.patience) { network.rise(to: next, now: now) }
    }

    // MARK: - Processor

    private mutating func followProcessor(_ layers: [Layer], now: MonotonicTime) {
        guard let lowest = layers.first?.layer else { return }
        // The lowest one is on, also if it was not watched when a layer below it was the highest.
        let (highest, carried) = (max(processor.highest, lowest), max(network.highest, lowest))
        let on = layers.filter { $0.layer <= min(carried, highest) }
        guard let present = on.last else { return }
        if on.contains(where: \.isOverloaded) {
            processor.surplus = nil
            // The lowest layer lowers its own size.
            guard on.count > 1 else { return }
            let since = processor.lack ?? now
            processor.lack = since
            guard now - since >= Self.lapse else { return }
            return processor.fall(to: on[on.count - 2].layer, now: now)
        }
        processor.lack = nil
        guard processor.highest < .full,
            let next = layers.first(where: { $0.layer > highest })?.layer,
            present.load * Double(present.layer.pixels(of: next)) < Self.expectedLoad
        else { return processor.surplus = nil }
        let since = processor.surplus ?? now
        processor.surplus = since
        if now - since >= processor.patience { processor.rise(to: next, now: now) }
    }
}

extension VideoLayer {
    /// How many times as many pixels a higher layer has.
    fileprivate func pixels(of higher: VideoLayer) -> Int {
        let ratio = divisor / higher.divisor
        return ratio * ratio
    }
}
