internal import CongestionControl
internal import RTP

/// Keeps one subscriber's video within its share of the link: omits whole frames, up to the next keyframe.
struct Thinning {
    /// Keyframes of a stream are larger for everyone, so a subscriber that misses frames asks for few.
    private static let requestInterval = TimeInterval.seconds(2)

    private var gate = FrameGate()
    /// The timestamp of the newest frame.
    private var frame: RTPTimestamp?
    /// The frames that were omitted last: from the first timestamp on, and before the second one, once frames pass again.
    private var omitted: (from: RTPTimestamp, before: RTPTimestamp?)?

    /// - Parameter isAlone: whether nobody else receives the stream
    init(isAlone: Bool) {
        if !isAlone { gate.requestInterval = Self.requestInterval }
    }

    var hasShare: Bool { gate.hasShare }

    /// Frames pass as far as a path of this rate carries them. Nil: all pass, from the next keyframe on.
    mutating func setShare(_ bitsPerSecond: Double?, now: MonotonicTime) {
        if let bitsPerSecond { gate.setShare(bitsPerSecond, now: now) } else { gate.removeShare() }
    }

    /// Whether to send a packet.
    ///
    /// - Parameters:
    ///   - bytes: its length with all headers
    ///   - isStart: whether a keyframe begins with it
    mutating func verdict(
        bytes: Int, timestamp: RTPTimestamp, isNewest: Bool, isStart: Bool, now: MonotonicTime
    ) -> FrameGate.Verdict {
        guard isNewest, timestamp != frame else {
            guard !wasOmitted(timestamp) else { return .drop(asks: false) }
            gate.add(bytes: bytes)
            return .pass
        }
        frame = timestamp
        let wasOmitting = gate.isClosed
        let verdict = gate.admit(bytes: bytes, isKeyframe: isStart, now: now)
        if gate.isClosed, !wasOmitting { omitted = (timestamp, nil) }
        if !gate.isClosed, wasOmitting { omitted?.before = timestamp }
        return verdict
    }

    private func wasOmitted(_ timestamp: RTPTimestamp) -> Bool {
        guard let omitted, timestamp.distance(from: omitted.from) >= 0 else { return false }
        return omitted.before.map { timestamp.distance(from: $0) < 0 } ?? true
    }
}
