internal import RTP

/// How many audio streams a subscriber hears as the estimates of its link change, and which ones are too large for it. A pacer
/// never holds audio, so streams that the link does not carry would make all of them late.
///
/// The number falls at once, and rises by one. The one that the link did not carry waits longer each time that it fails again
/// soon. A stream that is too large comes back after all others. It is told the time.
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
    /// No link is too narrow for a stream of this rate: Opus at 64 kbit/s, with some variation.
    private static let usual = 120_000.0

    private(set) var slots = SpeakerRanking.heard
    private var pause = Self.pause
    /// The number that the link did not carry.
    private var failed: Int?
    private var raised: MonotonicTime?
    private var calmSince: MonotonicTime?
    /// Streams beyond this rate are left out, because the link did not carry one of them. And the rate of the largest of those.
    private var limit: (rate: Double, largest: Double)?

    /// Whether the link carries a stream of this rate, at least without others.
    func carries(_ rate: Double) -> Bool { limit.map { rate <= $0.rate } ?? true }

    /// Follows an estimate of the link.
    ///
    /// - Parameters:
    ///   - sounds: the rates of the streams that are heard
    ///   - isProbed: whether padding measures the link. Otherwise, only one more stream shows that it carries more.
    ///   - isQueueing: whether there is a queue now, however short it lasts
    /// - Returns: whether the subscriber may have to hear others from now on
    @discardableResult
    mutating func follow(
        _ target: Double, _ sounds: [Double], isProbed: Bool, isCongested: Bool, isQueueing: Bool, now: MonotonicTime
    ) -> Bool {
        guard let largest = sounds.max(), largest > 0 else { return false }
        let isTrial = raised.map { now - $0 < Self.trial } ?? false
        guard isCongested || isTrial && isQueueing else {
            return rise(target, sounds, isProbed: isProbed, isQueueing: isQueueing, now)
        }
        calmSince = nil
        let before = slots
        let most = max(target, Self.usual)
        if largest > most { limit = (most, max(largest, limit?.largest ?? 0)) }
        let fitting = Self.fitting(target, sounds.filter { $0 <= most })
        fall(to: isTrial ? min(sounds.count - 1, fitting) : fitting, sounds.count, now)
        return slots != before || largest > most
    }

    private mutating func rise(
        _ target: Double, _ sounds: [Double], isProbed: Bool, isQueueing: Bool, _ now: MonotonicTime
    ) -> Bool {
        guard !isQueueing, let need = nextNeed(sounds), !isProbed || target >= need else {
            calmSince = nil
            return false
        }
        let since = calmSince ?? now
        calmSince = since
        let next = slots + 1
        let hasFailed = next > SpeakerRanking.heard || failed.map { next >= $0 } ?? false
        guard now - since >= (hasFailed ? pause : Self.pause) else { return false }
        (raised, calmSince) = (now, nil)
        guard next <= SpeakerRanking.heard else {
            limit = nil
            return true
        }
        slots = next
        if let failed, next >= failed { self.failed = nil }
        return true
    }

    private mutating func fall(to fitting: Int, _ heard: Int, _ now: MonotonicTime) {
        let next = max(1, fitting)
        guard next < min(slots, heard) else { return }
        let isRelapse = raised.map { now - $0 < Self.relapse } ?? false
        pause = isRelapse ? min(pause + pause, Self.longestPause) : Self.pause
        (slots, failed, raised) = (next, min(slots, heard), nil)
    }

    /// The rate beyond that of the streams for which the link has to be measured before more are heard.
    func further(_ sounds: [Double]) -> Double {
        guard !sounds.isEmpty, let need = nextNeed(sounds) else { return 0 }
        return max(0, need - sounds.reduce(0, +))
    }

    /// The rate for one more stream, or with all slots for the largest one that is left out. Nil if all are heard.
    private func nextNeed(_ sounds: [Double]) -> Double? {
        if slots < SpeakerRanking.heard { return need(slots + 1, sounds) }
        return limit.map { (sounds.reduce(0, +) + $0.largest) * Self.margin }
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
