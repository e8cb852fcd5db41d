internal import CongestionControl
internal import MediaGraph
internal import PeerLoop
internal import RTP

// The rates of the tracks, and which of their layers are sent.
extension UpSession {
    /// Of video, in bits per second, so that it shows something.
    private static let leastRate = 5000
    private static let highestRate = 1_000_000_000
    /// For how long a session sends all frames, whatever the first probes say.
    private static let gateDelay = TimeInterval.seconds(1)
    /// The interval between requests for the keyframe with which a layer begins.
    private static let patience = TimeInterval.milliseconds(500)

    /// Tells the session what the tracks can use, and each track its share of the target. Limits of encoders end if they are
    /// not renewed.
    func shareRate() {
        let layers = tracks.map { $0.isLayered ? states(of: $0) : [] }
        let streams = zip(tracks, layers).map { track, layers in stream(of: track, layers) }
        tellDemand(streams.isEmpty ? nil : Int(RateShares.demand(of: streams)))
        let repairs = tracks.flatMap(\.encodings).reduce(0) { $0 + $1.repairRate.rate }
        let shares = target.map { RateShares.shares(of: Double($0), among: streams, repairs: repairs) }
        for (index, track) in tracks.enumerated() where !track.isVideo { limitAudio(track, to: shares?[index]) }
        // A track that is not accepted yet has encodings that may be refused.
        for (index, track) in tracks.enumerated() where track.isVideo && track.stream != nil {
            let limit = track.roomLimit.map { PathRate.ofMedia(Double($0)) }
            let share = shares?[index] ?? .infinity
            if let limit, limit < share {
                track.isLimitedByRoom = true
            } else if share < wish(of: track) {
                track.isLimitedByRoom = false
            }
            if track.isLayered {
                splitRate(shares?[index], among: layers[index], of: track)
            } else {
                limitEncoding(track, to: [shares?[index], limit].compactMap(\.self).min())
            }
        }
    }

    /// The rate of a track at its best, on the path.
    private func wish(of track: Track) -> Double {
        let source = track.offer.track
        return track.encodings.reduce(0) { sum, encoding in
            sum + PathRate.ofMedia(Double(source.encoderStatistics(of: encoding.layer)?.wishedBitsPerSecond ?? 0))
        }
    }

    private func limitAudio(_ track: Track, to share: Double?) {
        let source = track.offer.track
        guard let share, let wish = source.audioEncoderStatistics?.wishedBitsPerSecond, wish > 0 else { return }
        let isBlocked = target == 0
        let bitrate = track.audioShare.bitrate(within: isBlocked ? 0 : share, wish: wish, now: loop.now)
        // A room that nothing reaches any more must not limit the others.
        source.limitRate(bitsPerSecond: isBlocked ? 0 : bitrate)
    }

    private func stream(of track: Track, _ layers: [LayerShares.Layer]) -> RateShares.Stream {
        let encoder = track.offer.track.encoderStatistics(of: track.encodings.first?.layer ?? .full)
        let passes = encoder == nil && track.isVideo
        let used = track.encodings.reduce(0) { $0 + (passes ? $1.offeredRate : $1.pathRate).rate }
        var wished = encoder?.wishedBitsPerSecond ?? track.offer.track.audioEncoderStatistics?.wishedBitsPerSecond ?? 0
        if track.isLayered {
            wished = track.layerShares.demand(of: layers, most: track.roomLimit)
        } else {
            wished = min(wished, track.roomLimit ?? wished)
        }
        var stream = RateShares.Stream(
            isVideo: track.isVideo, used: used, wished: wished > 0 ? wished : nil,
            hasSent: track.framesSent > 0)
        if track.isVideo, track.watched?.isEmpty == true { stream.wished = 0 }
        return stream
    }

    // MARK: - One encoding

    private func limitEncoding(_ track: Track, to share: Double?) {
        guard let encoding = track.encodings.first else { return }
        let (source, layer) = (track.offer.track, encoding.layer)
        // Of the layers, the room took a lower one alone.
        if layer != .full { source.limitRate(bitsPerSecond: 0, of: .full, keepsSize: true) }
        guard track.watched?.isEmpty != true else {
            turn(encoding, of: track, on: false, .subscribers)
            return source.limitRate(bitsPerSecond: 0, of: layer, keepsSize: false)
        }
        let wasOff = !encoding.isOn
        turn(encoding, of: track, on: true)
        guard let share else {
            // A lower layer is encoded only if a room says that it wants it, and a limit of 0 lasts for a while.
            if layer != .full || wasOff {
                source.limitRate(bitsPerSecond: Self.highestRate, of: layer, keepsSize: false)
            }
            return
        }
        setGate(of: encoding, share)
        let media = target == 0 ? 0 : max(Self.leastRate, Int(PathRate.media(onPath: share)))
        source.limitRate(bitsPerSecond: media, of: layer, keepsSize: false)
    }

    private func setGate(of encoding: Encoding, _ share: Double) {
        if let securedAt, loop.now - securedAt >= Self.gateDelay { encoding.gate.setShare(share, now: loop.now) }
    }

    // MARK: - Layers

    /// The layers that the track has at present.
    private func states(of track: Track) -> [LayerShares.Layer] {
        let source = track.offer.track
        let there = source.layers.count > 1 ? source.layers : [.full]
        let encodings = track.encodings.filter { there.contains($0.layer) }
        var watched = track.watched
        // Those who watch a layer that there is no longer get the lowest one, until the server knows.
        if let named = watched, !named.isEmpty, !encodings.contains(where: { named.contains($0.layer) }) {
            watched = Set(encodings.prefix(1).map(\.layer))
        }
        return encodings.map { encoding in
            let isWatched = watched?.contains(encoding.layer) ?? true
            guard let encoder = source.encoderStatistics(of: encoding.layer) else {
                // It cannot be sent with fewer bits than it has.
                let used = PathRate.media(onPath: max(encoding.offeredRate.rate, RateShares.leastPassing))
                return LayerShares.Layer(
                    layer: encoding.layer, wish: Int(used / LayerShares.leastShare), isWatched: isWatched)
            }
            return LayerShares.Layer(
                layer: encoding.layer, wish: encoder.wishedBitsPerSecond, isWatched: isWatched,
                isOverloaded: encoder.isOverloaded, load: encoder.load)
        }
    }

    private func splitRate(_ share: Double?, among layers: [LayerShares.Layer], of track: Track) {
        // Nothing is sent yet, so nothing need be encoded for it.
        guard profile != nil else { return }
        let more = max(0, track.encodings.count(where: \.isOn) - 1)
        let media = share.map {
            target == 0 ? 0 : max(Self.leastRate, Int(PathRate.media(onPath: $0 - PathRate.ofMedia(0) * Double(more))))
        }
        let verdicts = track.layerShares.split(media, most: track.roomLimit, among: layers, now: loop.now)
        let isSeveral = verdicts.count { if case .on = $0 { true } else { false } } > 1
        for encoding in track.encodings {
            let place = layers.firstIndex { $0.layer == encoding.layer }
            switch place.map({ verdicts[$0] }) {
            case .on(let limit):
                turn(encoding, of: track, on: true)
                if let limit { setGate(of: encoding, PathRate.ofMedia(Double(limit))) }
                track.offer.track.limitRate(
                    bitsPerSecond: limit ?? Self.highestRate, of: encoding.layer, keepsSize: isSeveral)
            case .off(let cause):
                turn(encoding, of: track, on: false, cause)
                track.offer.track.limitRate(bitsPerSecond: 0, of: encoding.layer, keepsSize: true)
            case nil:
                // The graph has this layer no longer.
                turn(encoding, of: track, on: false)
                track.offer.track.endLimit(of: encoding.layer)
            }
        }
        tellLayers(of: track)
    }

    private func turn(_ encoding: Encoding, of track: Track, on isOn: Bool, _ cause: QualityLimitation = .none) {
        encoding.cause = cause
        guard isOn != encoding.isOn else { return }
        encoding.isOn = isOn
        guard isOn else { return }
        (encoding.needsKeyframe, encoding.asked) = (true, loop.now)
        requestKeyframe(of: encoding, on: track)
    }

    private func tellLayers(of track: Track) {
        let on = track.encodings.filter(\.isOn).map(\.layer)
        guard on != track.toldLayers else { return }
        let isFirst = track.toldLayers == nil
        track.toldLayers = on
        if !isFirst || on.count < track.encodings.count { track.offer.track.layersChanged(quality(of: track)) }
    }

    /// Sets how much of a stream the best link of a subscriber carries, in bits per second of media. It gets one layer, so this
    /// is for each of them by itself. Nil if one carries all of it.
    ///
    /// - Parameter layers: the layers that somebody watches. Nil for all; without any, nothing is sent.
    func setLimit(_ bitsPerSecond: Int?, layers: [String]? = nil, of stream: Int) {
        guard let track = tracks.first(where: { $0.stream == stream }) else { return }
        track.roomLimit = bitsPerSecond.map { max(Self.leastRate, min($0, Self.highestRate)) }
        track.watched = watched(layers)
        shareRate()
    }

    /// Unknown layers are ignored. A list of nothing else says nothing.
    private func watched(_ rids: [String]?) -> Set<VideoLayer>? {
        guard let rids else { return nil }
        let known = Set(rids.compactMap { VideoLayer(rid: $0) })
        return known.isEmpty && !rids.isEmpty ? nil : known
    }

    // MARK: - Frames

    /// Whether to send a frame. One of a layer that is off is not sent, and one that nothing here encodes only if the path has
    /// room for it.
    func isDue(_ batch: RTPBatch, of encoding: Encoding, on track: Track) -> Bool {
        guard track.isVideo else { return true }
        let bytes = batch.bytes.count + batch.count * PathRate.packetOverhead
        let encoder = track.offer.track.encoderStatistics(of: encoding.layer)
        let isEncoded = encoder != nil
        if !isEncoded { encoding.offeredBits += bytes * 8 }
        guard encoding.isOn else { return false }
        if target == 0, encoder?.isResting == false {
            // The encoder goes on for a recording, although the path carries nothing.
            (encoding.needsKeyframe, encoding.asked) = (true, loop.now)
            return false
        }
        if encoding.needsKeyframe {
            guard batch.isKeyframe else {
                if loop.now - encoding.asked >= Self.patience {
                    encoding.asked = loop.now
                    requestKeyframe(of: encoding, on: track)
                }
                return false
            }
            encoding.needsKeyframe = false
        }
        guard !isEncoded else { return true }
        switch encoding.gate.admit(bytes: bytes, isKeyframe: batch.isKeyframe, now: loop.now) {
        case .pass: return true
        case .drop(let asks):
            if asks { requestKeyframe(of: encoding, on: track) }
            return false
        }
    }
}
