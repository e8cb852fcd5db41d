internal import RTP

/// How many audio streams a subscriber hears as the estimates of its link change. A pacer never holds audio, so streams that the
/// link does not carry would make all of them late.
///
/// The number falls at once, and rises by one. The one that the link did not carry waits longer each time that it fails again
/// soon. It is told the time.
struct SlotChoice {
    /// How long a link must have been without congestion before one more stream.
    private static let pause = TimeInterval.seconds(5)
    private static let longestPause = TimeInterval.seconds(40)
    /// One more stream that fails this soon makes the next attempt wait twice as long.
    private static let relapse = TimeInterval.seconds(30)
    /// For so long, a queue shows that one more stream was too much. Later, it has to last.
    private static let trial = TimeInterval.seconds(5)
    /// The estimate before one more stream, relative to the rate with that stream.
    private static let margin = 1.1

    private(set) var slots = SpeakerRanking.heard
    private var pause = Self.pause
    /// The number that the link did not carry.
    private var failed: Int?
    private var raised: MonotonicTime?
    private var calmSince: MonotonicTime?

    /// Follows an estimate of the link.
    ///
    /// - Parameters:
    ///   - sounds: the rates of the streams that are heard
    ///   - isProbed: whether padding measures the link. Otherwise, only one more stream shows that it carries more.
    ///   - isQueueing: whether there is a queue now, however short it lasts
    mutating func follow(
        _ target: Double, _ sounds: [Double], isProbed: Bool, isCongested: Bool, isQueueing: Bool, now: MonotonicTime
    ) {
        guard let largest = sounds.max(), largest > 0 else { return }
        let isTrial = raised.map { now - $0 < Self.trial } ?? false
        guard !isCongested, !(isTrial && isQueueing) else {
            calmSince = nil
            let fitting = Self.fitting(target, sounds)
            return fall(to: isTrial ? min(sounds.count - 1, fitting) : fitting, sounds.count, now)
        }
        let next = slots + 1
        guard next <= SpeakerRanking.heard, !isQueueing,
            !isProbed || target >= need(next, sounds)
        else { return calmSince = nil }
        let since = calmSince ?? now
        calmSince = since
        guard now - since >= (failed.map { next >= $0 } ?? false ? pause : Self.pause) else { return }
        (slots, raised, calmSince) = (next, now, nil)
        if let failed, next >= failed { self.failed = nil }
    }

    private mutating func fall(to fitting: Int, _ heard: Int, _ now: MonotonicTime) {
        let next = max(1, fitting)
        guard next < min(slots, heard) else { return }
        let isRelapse = raised.map { now - $0 < Self.relapse } ?? false
        pause = isRelapse ? min(pause + pause, Self.longestPause) : Self.pause
        (slots, failed, raised) = (next, min(slots, heard), nil)
    }

    /// The rate beyond that of the streams for which the link has to be measured before one more.
    func further(_ sounds: [Double]) -> Double {
        guard slots < SpeakerRanking.heard, !sounds.isEmpty else { return 0 }
        return max(0, need(slots + 1, sounds) - sounds.reduce(0, +))
    }

    /// Of the present streams, and others as large as the largest.
    private func need(_ slots: Int, _ sounds: [Double]) -> Double {
        let further = Double(max(0, slots - sounds.count)) * (sounds.max() ?? 0)
        return (sounds.reduce(0, +) + further) * Self.margin
    }

    /// How many of the streams a rate carries, whichever they are.
    private static func fitting(_ rate: Double, _ sounds: [Double]) -> Int {
        var rest = rate
        return sounds.sorted(by: >).prefix { sound in
            rest -= sound
            return rest >= 0
        }.count
    }
}
