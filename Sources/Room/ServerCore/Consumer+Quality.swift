internal import PeerLoop
internal import RTP
internal import RoomProtocol

/// The quality of a consumer's stream as its subscriber was told. It is told the time.
struct QualityReport {
    /// A change has to last for so long.
    static let settling = TimeInterval.seconds(1)
    /// A link is not measured before this.
    static let measuring = TimeInterval.seconds(5)
    /// Between two rates without another change.
    static let rateInterval = TimeInterval.seconds(5)
    /// Frames were left out this recently.
    static let memory = TimeInterval.seconds(3)

    private var begun: MonotonicTime
    private var told: StreamQuality
    private var toldAt = MonotonicTime.zero
    private var next: (quality: StreamQuality, since: MonotonicTime)?

    init(of stream: Int, now: MonotonicTime) {
        begun = now
        told = StreamQuality(stream: stream)
    }

    /// The subscriber asks for another size: what the link carries of it is to be measured.
    mutating func measureAgain(now: MonotonicTime) { begun = now }

    /// Whether the link is measured well enough to be a cause.
    func mayNameLink(now: MonotonicTime) -> Bool { now - begun >= Self.measuring }

    /// The message for the subscriber, if there is news.
    mutating func news(_ quality: StreamQuality, now: MonotonicTime) -> StreamQuality? {
        guard quality.isNews(after: told) else {
            next = nil
            let isOld = now - toldAt >= Self.rateInterval
            guard isOld, let rate = quality.bitsPerSecond, let old = told.bitsPerSecond, abs(rate - old) * 5 > old
            else { return nil }
            return tell(quality, now: now)
        }
        guard let since = next?.since, next?.quality.isNews(after: quality) == false else {
            next = (quality, now)
            return nil
        }
        guard now - since >= Self.settling else { return nil }
        return tell(quality, now: now)
    }

    private mutating func tell(_ quality: StreamQuality, now: MonotonicTime) -> StreamQuality {
        (told, toldAt, next) = (quality, now, nil)
        return quality
    }
}

extension StreamQuality {
    /// Whether more than the rate differs.
    fileprivate func isNews(after told: StreamQuality) -> Bool {
        (cause, reason, lacksFrames) != (told.cause, told.reason, told.lacksFrames)
            || cause != nil && (width, height, fullWidth) != (told.width, told.height, told.fullWidth)
    }
}

extension Consumer {
    /// News for the subscriber about the quality of the stream. Nil without any.
    ///
    /// - Parameter target: the rate of the link in bits per second. Nil before it is measured
    func qualityNews(target: Int?, now: MonotonicTime) -> StreamQuality? {
        guard let stream, let layer, stream.codec.media == .video, let quality = quality(stream, layer, target, now)
        else { return nil }
        return report?.news(quality, now: now)
    }

    private func quality(_ stream: PublishedStream, _ layer: StreamLayer, _ target: Int?, _ now: MonotonicTime)
        -> StreamQuality?
    {
        var quality = StreamQuality(stream: stream.info.id)
        // Once the link carries all again, nothing is left out any longer.
        let leavesOut = mayLeaveOut && lastLeftOut > .zero && now - lastLeftOut < QualityReport.memory
        if target == 0 || leavesOut {
            (quality.cause, quality.bitsPerSecond, quality.lacksFrames) = (.link, target, true)
        } else if stream.isSilent(now: now) {
            (quality.cause, quality.lacksFrames) = (.publisher, true)
        } else {
            quality.cause = cause(stream, layer)
            if quality.cause == .link {
                // Before the link is known, the cause is not known either.
                guard target != nil, report?.mayNameLink(now: now) == true else { return nil }
                quality.bitsPerSecond = target
            }
        }
        if quality.cause == .publisher { quality.reason = stream.info.reduction }
        guard quality.cause != nil, stream.hasLayers else { return quality }
        let (size, full) = (layer.knownSize, stream.layer(rank: stream.layers.count - 1).knownSize)
        (quality.width, quality.height) = (size?.width, size?.height)
        (quality.fullWidth, quality.fullHeight) = (full?.width, full?.height)
        return quality
    }

    private func cause(_ stream: PublishedStream, _ layer: StreamLayer) -> StreamQuality.Cause? {
        let isReduced = stream.info.reduction != nil
        guard stream.hasLayers else { return carried.part != nil ? .link : isReduced ? .publisher : nil }
        let rank = stream.rank(of: layer)
        let useful = stream.usefulRank(for: view)
        if rank < useful {
            let delivered = stream.deliveredRanks(for: view).last ?? 0
            return rank < delivered ? .link : .publisher
        }
        if rank < stream.layers.count - 1 { return .view }
        return carried.part != nil ? .link : isReduced ? .publisher : nil
    }
}
