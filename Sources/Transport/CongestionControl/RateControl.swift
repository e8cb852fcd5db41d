internal import RTP

/// The rate that follows the delay: it rises while no queue grows, and drops below the acknowledged rate when one does
/// (draft-ietf-rmcat-gcc-02, section 5.5).
struct RateControl: Sendable {
    static let backOff = 0.85
    /// The same while the capacity is known and the rate is near it. The queue is drained by `QueueDrain`.
    static let gentleBackOff = 0.93
    /// Below this share of the rate at the back-off before, another flow needs room, and the back-off is not gentle.
    static let sameShare = 0.94
    /// The same of the rate that a probe measured, which is less certain.
    static let probedShare = 0.8
    /// Subtracted from a rate after a back-off, so that the queue drains at low rates too.
    static let backOffMargin = DataRate.kilobits(5)
    /// The increase per second without a known capacity.
    static let growth = 1.08
    /// Below this share of a known capacity, the increase is the same.
    static let belowCapacity = 0.98
    /// The estimate exceeds the acknowledged rate by at most this factor and `lead`.
    static let maximumLead = 1.5
    static let lead = DataRate.kilobits(10)
    /// The time in which an overuse is detected, for the near-maximum increase: one packet per response time.
    static let detectionTime = TimeInterval.milliseconds(100)
    static let smallestIncrease = DataRate.kilobits(4)
    static let packetBytes = 1200.0
    static let frameInterval = TimeInterval(nanoseconds: 33_333_333)
    /// So long after a back-off and a round trip, all acknowledged packets were sent after it.
    static let confirmation = TimeInterval.seconds(2)
    /// An acknowledged rate beyond the estimate by this factor raises it to this share of that rate.
    static let confirmedExcess = 1.15
    static let confirmedShare = 0.95
    /// A back-off was too much if the rate that arrives later, while its queue lasts, would have left more by this factor.
    static let misjudgement = 1.3
    static let defaultRoundTrip = TimeInterval.milliseconds(200)

    private enum State { case hold, increase }

    private(set) var estimate: DataRate
    private(set) var capacity = LinkCapacity()
    var minimum: DataRate
    var roundTrip = Self.defaultRoundTrip
    private var state = State.hold
    private var changed: MonotonicTime?
    private var acknowledged: DataRate
    /// When it last backed off.
    private var backedOff: MonotonicTime?
    /// The acknowledged rate at the last back-off, or a part of the rate that a probe measured since.
    private var share: DataRate?
    /// The estimate at the first back-off of the overuse that lasts, and the share of the acknowledged rate that is left.
    private var overuse: (estimate: DataRate, share: Double)?
    private let gentleBackOff: Double
    private let isPlain: Bool

    /// - Parameter isPlain: no back-off is gentle, and growth is slow whenever the capacity is known
    init(start: DataRate, minimum: DataRate, isPlain: Bool = false) {
        gentleBackOff = isPlain ? Self.backOff : Self.gentleBackOff
        self.isPlain = isPlain
        estimate = max(start, minimum)
        acknowledged = start
        self.minimum = minimum
    }

    /// Replaces the estimate: a probe measured it.
    /// - Parameter capacity: the rate of the link, if the probe filled it
    mutating func set(_ rate: DataRate, capacity rateOfLink: DataRate? = nil, now: MonotonicTime) {
        if let rateOfLink {
            noteProbe(of: rateOfLink)
            share = rateOfLink * (Self.probedShare / Self.sameShare)
        }
        estimate = max(rate, minimum)
        changed = now
    }

    /// A probe filled the link, and changes the estimate no further. Less than the estimate is the share of a moment.
    mutating func setCapacity(_ rate: DataRate) {
        if rate > estimate { noteProbe(of: rate) }
    }

    private mutating func noteProbe(of capacityOfLink: DataRate) {
        if capacityOfLink < capacity.lowerBound || capacityOfLink > capacity.upperBound { capacity.forget() }
        capacity.probed(capacityOfLink)
    }

    /// Whether a back-off is due again. One per round trip, unless the acknowledged rate is below half of the estimate.
    func canBackOff(acknowledged: DataRate, now: MonotonicTime) -> Bool {
        let pause = min(max(roundTrip, .milliseconds(10)), .milliseconds(200))
        guard let changed, now - changed < pause else { return true }
        return acknowledged < estimate * 0.5
    }

    /// - Parameter recent: the acknowledged rate of the last quarter of a second
    mutating func update(
        _ usage: DelayTrend.Usage, acknowledged sample: DataRate?, recent: DataRate?, now: MonotonicTime
    ) {
        if let sample { acknowledged = sample }
        switch usage {
        case .over:
            backOff(to: recent ?? acknowledged, now: now)
        case .under:
            state = .hold
        case .normal:
            if state == .hold {
                changed = now
                state = .increase
            }
            increase(now: now)
        }
    }

    private mutating func increase(now: MonotonicTime) {
        if acknowledged > capacity.upperBound { capacity.forget() }
        let elapsed = now - (changed ?? now)
        changed = now
        let limit = acknowledged * Self.maximumLead + Self.lead
        guard estimate < limit else { return }
        let step: DataRate
        if isFarBelowCapacity {
            step = max(estimate * (power(Self.growth, min(elapsed.seconds, 1)) - 1), .kilobits(1))
        } else {
            step = nearMaximumIncrease * elapsed.seconds
        }
        estimate = max(min(estimate + step, limit), minimum)
    }

    private var isFarBelowCapacity: Bool {
        capacity.estimate == nil || (!isPlain && estimate < capacity.lowerBound * Self.belowCapacity)
    }

    /// There is no queue, although this much arrives: the path carries it. Video that does not follow the estimate exceeds
    /// it.
    mutating func confirm(now: MonotonicTime) {
        if let backedOff, now - backedOff < Self.confirmation + roundTrip { return }
        if acknowledged > estimate * Self.confirmedExcess { estimate = acknowledged * Self.confirmedShare }
    }

    /// Per second.
    var nearMaximumIncrease: DataRate {
        let frame = estimate.bytes(in: Self.frameInterval)
        let packet = frame / max(1, (frame / Self.packetBytes).rounded(.up))
        return max(Self.smallestIncrease, DataRate(bytes: packet, in: (roundTrip + Self.detectionTime) * 2))
    }

    /// An overuse begins. Its first back-off is not corrected by the rates before.
    mutating func beginOveruse() { overuse = nil }

    /// While the queue of an overuse lasts, packets arrive as fast as the link carries them. If that is much more than the
    /// back-off believed, because packets of others had displaced ours for a moment, the estimate rises accordingly. Smaller
    /// differences are chance: without a limit, flows that share a link would correct each other.
    /// - Parameter recent: the acknowledged rate of the last quarter of a second
    mutating func correct(_ recent: DataRate) {
        guard let overuse else { return }
        let raised = min(Self.lowered(recent, to: overuse.share), overuse.estimate)
        guard raised > estimate * Self.misjudgement else { return }
        estimate = raised
        share = recent
        if recent > capacity.upperBound { capacity.forget() }
        capacity.overused(acknowledged: recent)
    }

    private static func lowered(_ rate: DataRate, to share: Double) -> DataRate {
        let lowered = rate * share
        return lowered > backOffMargin ? lowered - backOffMargin : lowered
    }

    private mutating func backOff(to acknowledged: DataRate, now: MonotonicTime) {
        let isNear = share.map { acknowledged >= $0 * Self.sameShare } ?? false
        share = acknowledged
        let left = isNear ? gentleBackOff : Self.backOff
        if overuse == nil { overuse = (estimate, left) }
        var lowered = Self.lowered(acknowledged, to: left)
        if lowered > estimate, let known = capacity.estimate { lowered = known * gentleBackOff }
        estimate = max(min(estimate, lowered), minimum)
        if acknowledged < capacity.lowerBound { capacity.forget() }
        capacity.overused(acknowledged: acknowledged)
        state = .hold
        changed = now
        backedOff = now
    }
}
