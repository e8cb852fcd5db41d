internal import CongestionControl
internal import MediaGraph
internal import PeerLoop
internal import PeerSession
internal import RTP
internal import RoomProtocol

extension UpSession.Encoding {
    /// The share of packets that were lost in the last seconds, 0...1.
    var recentLoss: Double {
        let (sent, lost) = (sentPackets.rate, max(0, lostPackets.rate))
        return sent > 0 ? min(1, lost / sent) : 0
    }
}

extension UpSession {
    /// The losses until now say nothing about those to come.
    func forgetLosses() {
        for encoding in tracks.flatMap(\.encodings) {
            encoding.sentPackets.forget()
            encoding.lostPackets.forget()
        }
    }

    func published() -> [RoomStatistics.Published] {
        tracks.compactMap { track in
            guard let stream = track.stream else { return nil }
            var entry = RoomStatistics.Published(streamId: stream, isVideo: track.isVideo)
            entry.codec = track.sender.codec.rawValue
            entry.framesSent = track.framesSent
            entry.framesNotSent = track.framesNotSent
            let source = track.offer.track
            // The best one that is sent stands for the video.
            let encoding = track.encodings.last(where: \.isOn) ?? track.encodings.last
            if !track.isVideo {
                if let encoder = source.audioEncoderStatistics { Self.describe(encoder, in: &entry) }
            } else if let layer = encoding?.layer, let encoder = source.encoderStatistics(of: layer) {
                Self.describe(encoder, track, in: &entry)
            } else if let encoding {
                entry.isEncoded = false
                entry.framesDroppedForRate = encoding.gate.dropped
                if let last = encoding.gate.lastDrop, loop.now - last < .seconds(2) {
                    entry.limitation = track.isLimitedByRoom ? .subscribers : .network
                }
                entry.width = source.videoFormat?.width ?? 0
                entry.height = source.videoFormat?.height ?? 0
            }
            for encoding in track.encodings {
                entry.bitsPerSecond += encoding.bitRate.rate
                entry.keyframesRequested += encoding.keyframesRequested
                guard let sender = peer.statistics(of: encoding.sender) else { continue }
                entry.packetsSent += sender.packets
                entry.packetsRetransmitted += sender.retransmittedPackets
                entry.packetsLost += sender.remoteLost
                entry.recentLoss = max(entry.recentLoss, encoding.recentLoss)
            }
            entry.framesSkippedPerSecond = encoding?.skipped.rate ?? 0
            if track.isLayered, let lowest = track.encodings.first?.layer,
                let encoder = source.encoderStatistics(of: lowest)
            {
                // The lowest one is always on, so its counters only grow.
                Self.count(encoder, in: &entry)
            }
            if track.isLayered { (entry.layers, entry.layeredQuality) = (layers(of: track), quality(of: track)) }
            if let cause = entry.layers.last(where: { !$0.isActive })?.limitation, entry.limitation == .none {
                entry.limitation = cause
            }
            return entry
        }
    }

    /// Audio follows the own link alone.
    private static func describe(
        _ encoder: MediaStatistics.AudioEncoder, in entry: inout RoomStatistics.Published
    ) {
        guard encoder.wishedBitsPerSecond > 0 else { return }
        entry.wishedBitsPerSecond = Double(encoder.wishedBitsPerSecond)
        entry.limitedBitsPerSecond = encoder.limitedBitsPerSecond.map(Double.init)
        if let limit = encoder.limitedBitsPerSecond, limit < encoder.wishedBitsPerSecond { entry.limitation = .network }
    }

    private static func describe(
        _ encoder: MediaStatistics.VideoEncoder, _ track: Track, in entry: inout RoomStatistics.Published
    ) {
        count(encoder, in: &entry)
        entry.width = encoder.width
        entry.height = encoder.height
        entry.framesPerSecond = encoder.framesPerSecond
        entry.encoderKeepsUp = encoder.encoderKeepsUp
        entry.wishedBitsPerSecond = encoder.wishedBitsPerSecond > 0 ? Double(encoder.wishedBitsPerSecond) : nil
        entry.limitedBitsPerSecond = encoder.limitedBitsPerSecond.map(Double.init)
        entry.limitation = limitation(of: encoder, track)
    }

    private static func count(_ encoder: MediaStatistics.VideoEncoder, in entry: inout RoomStatistics.Published) {
        entry.framesCaptured = encoder.captured
        entry.framesDroppedBeforeEncoder = encoder.droppedBeforeEncoder
        entry.framesDroppedForRate = encoder.droppedForRate
        entry.framesInFlight = encoder.inFlight
        entry.framesEncoded = encoder.encoded
    }

    static func limitation(of encoder: MediaStatistics.VideoEncoder, _ track: Track) -> QualityLimitation {
        let network = track.isLimitedByRoom ? QualityLimitation.subscribers : .network
        switch encoder.limitation {
        case .network, .subscribers: return network
        case .processor: return .processor
        case .none: break
        }
        if let limit = encoder.limitedBitsPerSecond, limit < encoder.wishedBitsPerSecond { return network }
        return encoder.encoderKeepsUp ? .none : .processor
    }

    /// The layers that the track has, the lowest first.
    func layers(of track: Track) -> [RoomStatistics.Published.Layer] {
        let source = track.offer.track
        let whole = source.encoderStatistics(of: .full)
        return track.encodings.map { encoding in
            var layer = RoomStatistics.Published.Layer(encoding.layer)
            layer.isActive = encoding.isOn
            layer.bitsPerSecond = encoding.bitRate.rate
            layer.framesSent = encoding.framesSent
            let encoder = source.encoderStatistics(of: encoding.layer)
            layer.framesEncoded = encoder?.encoded
            layer.wishedBitsPerSecond = encoder.flatMap {
                $0.wishedBitsPerSecond > 0 ? Double($0.wishedBitsPerSecond) : nil
            }
            layer.framesPerSecond = encoder?.framesPerSecond
            (layer.width, layer.height) = (encoder?.width ?? 0, encoder?.height ?? 0)
            if layer.width == 0 {
                // Before its first frame, and of video that passes through.
                layer.width = encoding.layer.scaled(source.videoFormat?.width ?? whole?.width ?? 0)
                layer.height = encoding.layer.scaled(source.videoFormat?.height ?? whole?.height ?? 0)
            }
            layer.limitation =
                switch encoding.cause {
                case .network: track.isLimitedByRoom ? .subscribers : .network
                case .processor, .subscribers: encoding.cause
                case .none: encoding.isOn ? encoder.map { Self.limitation(of: $0, track) } ?? .none : .none
                }
            return layer
        }
    }

    /// The layers of a track that are sent, and why others are not.
    func quality(of track: Track) -> VideoQuality {
        let layers = layers(of: track)
        let best = layers.last(where: \.isActive) ?? layers.last
        let off = layers.last { !$0.isActive }
        let limitation = off?.limitation ?? best?.limitation ?? .none
        let isUnwatched = track.encodings.contains { $0.layer.rid == off?.rid && $0.cause == .subscribers }
        var quality = VideoQuality(
            width: best?.width ?? 0, height: best?.height ?? 0, framesPerSecond: best?.framesPerSecond,
            limitation: limitation,
            limitedBitsPerSecond: isUnwatched ? nil : limitation == .subscribers ? track.roomLimit : target)
        if limitation == .network { quality.lostShare = track.encodings.map(\.recentLoss).max() }
        quality.layers = layers.map { VideoQuality.Layer(width: $0.width, height: $0.height, isActive: $0.isActive) }
        return quality
    }
}
