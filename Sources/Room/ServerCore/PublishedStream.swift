internal import PeerLoop
internal import RTP
internal import RoomProtocol

/// One published stream: its layers, and the limits of all its consumers. On the loop only.
final class PublishedStream {
    private(set) var info: StreamInfo
    let codec: Codec
    let participant: String
    /// In the order of the offer. At least one.
    let layers: [StreamLayer]
    /// The indexes of the layers, lowest quality first. One that is not measured yet has its place of the offer.
    private(set) var ranking: [Int]
    /// Its subscribers, whichever layer they follow.
    private var consumers: [Consumer] = []
    private let loop: Loop
    private let source: any StreamSource
    /// The rate of each layer before the publisher was told a limit, or a higher one since.
    private var freeRates: [Double]
    /// How much of it the best link carries, as the source was told.
    private var told = Carried.unknown
    private var reviewed = MonotonicTime.zero
    /// The consumers whose links carry all of it.
    private var freeConsumers = 0
    let isAudio: Bool
    /// Of audio, by the levels that its publisher claims.
    @exclusivity(unchecked) var loudness = Loudness()
    @exclusivity(unchecked) private var packetsWithoutLevel = 0
    /// Called for the first packet with a level of each interval of `loudness`.
    @exclusivity(unchecked) var onSound: (() -> Void)?
    /// Called when the packets of audio have no levels any longer, or have some again.
    var onLevels: (() -> Void)?
    /// Nil unless it is recorded.
    private var recording: StreamRecording?
    private lazy var limitTimer = loop.makeTimer { [weak self] in self?.reviewLimit() }

    /// - Parameter sources: one for each layer, the same one for spatial layers
    init(_ info: StreamInfo, codec: Codec, participant: String, loop: Loop, sources: [any StreamSource]) {
        self.info = info
        self.codec = codec
        isAudio = codec.media == .audio
        self.participant = participant
        self.loop = loop
        source = sources[0]
        layers = sources.enumerated().map { index, source in
            StreamLayer(index, of: info.id, codec: codec, loop: loop, source: source, isMeasured: sources.count > 1)
        }
        if info.isScalable { StreamLayer.join(layers) }
        ranking = Array(sources.indices)
        freeRates = sources.map { _ in 0 }
    }

    var memory: PacketMemory { layers.reduce(into: PacketMemory()) { $0 += $1.memory } }

    /// Whether subscribers choose among layers.
    var hasLayers: Bool { layers.count > 1 }

    /// The layer with so many lower ones.
    func layer(rank: Int) -> StreamLayer { layers[ranking[rank]] }

    func rank(of layer: StreamLayer) -> Int { ranking.firstIndex(of: layer.index) ?? 0 }

    func apply(_ change: StreamChange) { info.apply(change) }

    /// The reason that the publisher has told.
    var toldReduction: StreamQuality.Reason?

    func set(_ reduction: StreamQuality.Reason?) { info.reduction = reduction }

    /// Whether its publisher has sent packets, and sends none any longer.
    func isSilent(now: MonotonicTime) -> Bool {
        let rates = layers.compactMap { $0.rate.current(now: now) }
        return !rates.isEmpty && rates.allSatisfy { $0 == 0 }
    }

    /// The pipe to the part of the room that it comes from. Nil if its publisher is here.
    var pipe: Pipe? { (source as? PipeSource)?.pipe }

    /// After so many packets without one, a stream counts as one without levels: those of Opus that nobody encodes have none.
    private static let mostWithoutLevel = 100

    /// Notes the level of a packet of audio. Nil for one without.
    @inline(__always)
    func received(_ level: AudioLevel?) {
        guard let level else {
            packetsWithoutLevel += 1
            return packetsWithoutLevel == Self.mostWithoutLevel ? set(hasLevels: false) : ()
        }
        guard loudness.add(level) else { return }
        packetsWithoutLevel = 0
        if !info.hasLevels { set(hasLevels: true) }
        onSound?()
    }

    func set(hasLevels: Bool) {
        guard info.hasLevels != hasLevels else { return }
        info.hasLevels = hasLevels
        onLevels?()
    }

    // MARK: - Recording

    var isRecorded: Bool { recording != nil }

    /// Records it from now on.
    ///
    /// - Parameter clock: shared by the streams of its participant.
    func record(to sink: any RecordingSink, clock: CaptureClock) {
        recording = StreamRecording(self, to: sink, clock: clock, loop: loop)
        for layer in layers where layer.isAwaited { layer.requestKeyframe() }
    }

    /// The recording has failed. Returns false without one.
    func stopRecording() -> Bool {
        defer { recording = nil }
        recording?.end(hasFailed: true)
        return recording != nil
    }

    // MARK: - Rates

    /// The rate on the path that a layer would have without limits, in bits per second. Nil before that is known.
    func wish(rank: Int = 0) -> Double? {
        let layer = layer(rank: rank)
        guard let current = layer.rate.current(now: loop.now) else { return nil }
        return told.part == nil ? current : max(current, freeRates[layer.index])
    }

    /// The rate on the path that a layer has, or will have, in bits per second. A guess before it is measured: a layer of
    /// twice the width and height needs about three and a half times the rate.
    func expectedRate(rank: Int, unknown: Double) -> Double {
        if rank == 0, let wish = wish(), wish > 0 { return wish }
        if rank > 0, told.part != nil, freeRates[ranking[rank]] > 0 { return freeRates[ranking[rank]] }
        if let known = layer(rank: rank).knownRate {
            // One bad measurement of a layer that has ended must not keep everyone from it.
            guard rank > 0, layer(rank: rank).isOutdated else { return known }
            return min(known, Self.step * expectedRate(rank: rank - 1, unknown: unknown))
        }
        var (rate, distance) = (unknown, layers.count - 1 - rank)
        for other in layers.indices.reversed() {
            if let known = layer(rank: other).knownRate, abs(other - rank) < abs(distance) || rate == unknown {
                (rate, distance) = (known, other - rank)
            }
        }
        for _ in 0..<abs(distance) { rate *= distance > 0 ? 1 / Self.step : Self.step }
        return rate
    }

    private static let step = 3.5

    /// The layers that a view can use, of those that the publisher delivers, lowest first. At least one: if none of them
    /// is delivered, the lowest one that is.
    func deliveredRanks(for view: StreamView) -> [Int] {
        let delivered = layers.indices.filter { !layer(rank: $0).delivery.isSilent }
        let useful = usefulRank(for: view)
        let usable = delivered.filter { $0 <= useful }
        return usable.isEmpty ? [delivered.first ?? 0] : usable
    }

    /// The highest layer that a view can use.
    func usefulRank(for view: StreamView) -> Int {
        guard hasLayers else { return 0 }
        let top = layers.count - 1
        var highest =
            switch view.profile {
            case .low: 0
            case .mid: layers.count / 2
            case .high, nil: top
            }
        for rank in 0..<highest {
            guard let size = expectedSize(rank: rank), view.isCovered(by: size) else { continue }
            highest = rank
            break
        }
        return highest
    }

    /// The size of a layer. A guess before its first keyframe: each has twice the width and height of the one below.
    private func expectedSize(rank: Int) -> FrameSize? {
        for other in layers.indices {
            // The nearest one, and of two the lower one.
            for near in Set([rank - other, rank + other]).sorted() where layers.indices.contains(near) {
                guard let size = layer(rank: near).knownSize else { continue }
                let steps = rank - near
                return FrameSize(
                    width: steps < 0 ? size.width >> -steps : size.width << steps,
                    height: steps < 0 ? size.height >> -steps : size.height << steps)
            }
        }
        return nil
    }

    /// The rate on the path that it will have for another consumer. Nil before that is known.
    var expectedRate: Double? { wish().flatMap { $0 > 0 ? $0 : nil } ?? layer(rank: 0).rate.latest }

    // MARK: - Consumers

    var hasConsumers: Bool { !consumers.isEmpty }

    /// Whether nobody but this consumer has the stream, so that the publisher follows its link.
    func isFor(_ consumer: Consumer) -> Bool {
        source.isPublisher && consumers.count == 1 && consumers[0] === consumer
            && layers.allSatisfy { $0.pipes.isEmpty }
    }

    func add(_ pipe: Pipe, layer: Int) { layers[layer].add(pipe) }

    func remove(_ pipe: Pipe, layer: Int) {
        layers[layer].remove(pipe)
        reviewLimit()
    }

    func add(_ consumer: Consumer) {
        consumer.streamPlace = consumers.count
        consumers.append(consumer)
    }

    /// Takes constant time, because hundreds of consumers are removed when a stream ends.
    func remove(_ consumer: Consumer) {
        let place = consumer.streamPlace
        guard consumers.indices.contains(place), consumers[place] === consumer else { return }
        let last = consumers.removeLast()
        if last !== consumer {
            consumers[place] = last
            last.streamPlace = place
        }
        if consumer.carried == .all { freeConsumers -= 1 }
        if consumer.carried != .unknown { reviewLimit() }
    }

    // MARK: - Limits

    /// Between two limits. A subscriber must not be able to flood a publisher.
    private static let limitInterval = TimeInterval.milliseconds(100)
    /// A publisher's video remains recognizable.
    private static let leastLimit = 150_000.0

    /// The link of a consumer carries more or less of the stream.
    func carriedChanged(from before: Carried, to after: Carried) {
        freeConsumers += (after == .all ? 1 : 0) - (before == .all ? 1 : 0)
        reviewLimit()
    }

    /// Tells the source what the best link carries, if that has changed. Newcomers count once their links are measured.
    func reviewLimit() {
        let now = loop.now
        guard now - reviewed >= Self.limitInterval else { return limitTimer.arm(at: reviewed + Self.limitInterval) }
        reviewed = now
        var best = freeConsumers > 0 ? Carried.all : .unknown
        if best != .all {
            for consumer in consumers { best = best.joined(with: consumer.carried) }
            for layer in layers {
                for pipe in layer.pipes { best = best.joined(with: pipe.carried(of: info.id)) }
            }
        }
        if let rate = best.part { best = .part(max(rate, Self.leastLimit)) }
        if let new = best.part, let old = told.part, abs(new - old) * 20 < old { return }
        guard best != told else { return }
        for rank in layers.indices {
            let index = ranking[rank]
            let current = layers[index].rate.current(now: now) ?? 0
            let free = rank > 0 && current == 0 ? expectedRate(rank: rank, unknown: 0) : current
            freeRates[index] = told.part == nil ? free : max(freeRates[index], current)
        }
        told = best
        source.limit(to: told, watched: toldLayers)
    }

    // MARK: - Layers

    /// Between two checks of the layers.
    private static let layerInterval = TimeInterval.milliseconds(200)
    /// A publisher stops a layer that nobody has watched for so long, because it begins again with a keyframe.
    private static let unwatchedTime = TimeInterval.seconds(2)
    /// The layers that the publisher sends, as it was told. Nil before.
    private var toldLayers: [Int]?
    private lazy var layerTimer = loop.makeTimer { [weak self] in self?.reviewLayers() }

    /// Looks at the layers from now on: which ones are delivered and watched, and what their order is. Does nothing without
    /// simulcast.
    func begin() {
        if hasLayers { layerTimer.arm(at: loop.now + Self.layerInterval) }
    }

    private func reviewLayers() {
        layerTimer.arm(at: loop.now + Self.layerInterval)
        rankLayers()
        reviewDelivery()
        tellWatchedLayers()
        recording?.review()
        // The other parts choose among all layers, also those that they do not get.
        for pipe in layers.flatMap(\.pipes) {
            for layer in layers {
                pipe.tell(measurement(of: layer), of: StreamLayerID(stream: info.id, layer: layer.index))
            }
        }
    }

    private func measurement(of layer: StreamLayer) -> LayerMeasurement {
        var measured = layer.measurement
        let rank = rank(of: layer)
        if let rate = measured.rate, rank > 0 { measured.rate = expectedRate(rank: rank, unknown: rate) }
        return measured
    }

    /// Puts the layers in the order of their sizes, and of their rates if they have one size. The order of the offer does
    /// not count any longer. Rates have to differ clearly to change an order, because they vary with the scene.
    private func rankLayers() {
        // Spatial layers have the order of their indexes.
        guard !info.isScalable else { return }
        let measured = layers.map { (area: $0.knownSize?.area ?? 0, rate: $0.knownRate ?? 0) }
        let sizes = Set(measured.map(\.area))
        if sizes.contains(0) {
            guard sizes.count == 1, measured.allSatisfy({ $0.rate > 0 }) else { return }
        }
        func isLower(_ one: Int, _ other: Int) -> Bool {
            let (one, other) = (measured[one], measured[other])
            return one.area == other.area ? one.rate * Self.clearly < other.rate : one.area < other.area
        }
        for end in ranking.indices {
            var place = end
            while place > 0, isLower(ranking[place], ranking[place - 1]) {
                ranking.swapAt(place, place - 1)
                place -= 1
            }
        }
    }

    private static let clearly = 1.25

    /// Adds its layers to those of other streams, by rank.
    func count(into all: inout [ServerStatistics.Layer]) {
        while all.count < layers.count { all.append(ServerStatistics.Layer()) }
        for rank in layers.indices {
            let layer = layer(rank: rank)
            let isDelivered = loop.now - layer.lastPacket < LayerDelivery.silence && layer.lastPacket > .zero
            all[rank].streams += 1
            all[rank].delivered += isDelivered ? 1 : 0
            all[rank].watched += layer.consumers.isEmpty && layer.pipes.isEmpty ? 0 : 1
            all[rank].subscribers += layer.consumers.count
            all[rank].bitsPerSecond += isDelivered ? Int(layer.knownRate ?? 0) : 0
        }
    }

    private func reviewDelivery() {
        let now = loop.now
        let newest = layers.map(\.lastPacket).max() ?? .zero
        for layer in layers {
            layer.delivery.update(
                isWanted: toldLayers?.contains(layer.index) ?? true, last: layer.lastPacket, others: newest, now: now)
        }
        // Consumers of a layer that has ended go on with another one at once.
        for consumer in consumers { consumer.keepLayer() }
    }

    /// Tells the publisher at once which layers it has to send, and later which ones it does not. The lowest one goes on,
    /// so that newcomers see something soon.
    private func tellWatchedLayers() {
        // Spatial layers come together.
        guard !info.isScalable else { return }
        let now = loop.now
        // The views of other parts of the room are not known here.
        let hasPipes = layers.contains { !$0.pipes.isEmpty }
        let watched = layers.indices.filter { index in
            let layer = layers[index]
            if layer.isWatched || index == ranking[0] || layer.isMeasuring { layer.lastWatched = now }
            let isUsable = hasPipes || recording != nil || consumers.contains { $0.canUse(layer) }
            let isAwaited = layer.delivery.isSilent && isUsable
            return isAwaited || now - layer.lastWatched < Self.unwatchedTime
        }
        guard watched != toldLayers ?? Array(layers.indices) else { return }
        toldLayers = watched
        source.limit(to: told, watched: watched)
    }

    /// Ends its timers, and the way to other parts of the room. The owner calls this when the stream ends.
    func end() {
        recording?.end()
        recording = nil
        limitTimer.disarm()
        layerTimer.disarm()
        for pipe in layers.flatMap(\.pipes) { pipe.ended(self) }
        for layer in layers { layer.end() }
    }
}

extension StreamView {
    /// Whether a layer of this size shows all that the view can show. Encoders round sizes down a little.
    func isCovered(by size: FrameSize) -> Bool {
        guard width != nil || height != nil else { return false }
        return (width ?? 0) * 20 <= size.width * 21 && (height ?? 0) * 20 <= size.height * 21
    }
}
