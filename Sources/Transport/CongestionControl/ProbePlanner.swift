internal import RTP

/// Decides when to measure whether the link carries more, and at which rate.
struct ProbePlanner: Sendable {
    /// The first probes, relative to the start rate.
    static let first = [3.0, 6.0]
    /// The next probe relative to a result that confirms the one before: at least `confirmation` of its rate.
    static let further = 2.0
    static let confirmation = 0.7
    static let timeout = TimeInterval.seconds(1)
    /// While the application limits the rate, a probe of this times the estimate, at this interval.
    static let limitedScale = 2.0
    static let limitedInterval = TimeInterval.seconds(5)
    /// Before there is media, probes repeat each second for this long.
    static let idleTime = TimeInterval.seconds(5)
    /// While media uses the estimate and no queue grows, a probe of this times the estimate, at this interval. Its
    /// result counts only if it exceeds the estimate by `ProbeResults.explorationGain`. If it has `confirmation` of the
    /// difference, the next one follows immediately.
    static let explorationScale = 1.8
    static let explorationDuration = TimeInterval.milliseconds(50)
    /// The interval doubles after each exploration in vain, between these.
    static let explorationIntervals = TimeInterval.seconds(3)...TimeInterval.seconds(6)
    /// From the probe after an outage to the next exploration.
    static let firstExploration = TimeInterval.seconds(1)
    /// With a longer queue, exploration waits.
    static let explorationQueue = TimeInterval.milliseconds(30)
    static let duration = TimeInterval.milliseconds(15)
    static let burst = TimeInterval.milliseconds(2)
    /// After a drop below this share, a recovery within `dropTime` probes this share of the rate before it.
    static let drop = 0.66
    static let dropTime = TimeInterval.seconds(5)
    static let afterDrop = 0.85
    static let dropInterval = TimeInterval.seconds(5)
    static let uncertainty = 0.05
    /// A probe exceeds the wished rate by at most this factor.
    static let demandScale = 2.0
    /// Older probes that nothing took are not sent any longer.
    static let maximumPending = 4

    /// Why probes are not sent, or limited.
    enum Limit: Equatable {
        case none
        /// A queue grows or drains, packets are lost, or the round trip is very long.
        case congested
    }

    private enum State { case initial, waiting, complete }

    private var pending = Ring<ProbeCluster>(capacity: 4)
    private var state = State.initial
    private var maximum: DataRate
    private var demand: DataRate?
    private var estimate = DataRate.zero
    private var limit = Limit.none
    private var queue = TimeInterval.zero
    private var neededToGoOn = DataRate.unlimited
    /// The probe whose result it waits for is an exploration.
    private var isExploring = false
    private var probed: MonotonicTime?
    private var idleUntil = MonotonicTime.zero
    private var limitedSince: MonotonicTime?
    private var lastDrop: (rate: DataRate, at: MonotonicTime)?
    private var probedAfterDrop: MonotonicTime?
    private var explorationInterval = Self.explorationIntervals.lowerBound
    /// The estimate at the last exploration.
    private var exploredFrom: DataRate?
    private var nextID: UInt16 = 1
    /// No explorations; probes below the estimate too; and after a drop only while the application sends little.
    private let isPlain: Bool

    init(maximum: DataRate, isPlain: Bool = false) { (self.maximum, self.isPlain) = (maximum, isPlain) }

    /// Asked for each report and each packet that waits, so nothing here copies the planner.
    @inline(__always) var hasPending: Bool { !pending.isEmpty }

    mutating func takePending() -> ProbeCluster? { pending.removeFirst() }

    /// The path is ready: the first probes.
    mutating func begin(start: DataRate, now: MonotonicTime) {
        guard state == .initial else { return }
        estimate = start
        if demand == nil { idleUntil = now + Self.idleTime }
        request(Self.first.map { start * $0 }, goesOn: true, now)
    }

    /// The path changed. `begin` starts again.
    mutating func reset() {
        let kept = (maximum, demand, nextID)
        self = ProbePlanner(maximum: kept.0, isPlain: isPlain)
        (demand, nextID) = (kept.1, kept.2)
    }

    mutating func setMaximum(_ rate: DataRate, now: MonotonicTime) {
        let before = maximum
        maximum = rate
        if state == .complete, rate > max(before, estimate), estimate != .zero {
            request([rate], goesOn: false, now)
        }
    }

    /// The rate that all streams together can use changed. Nil before there is media.
    mutating func setDemand(_ rate: DataRate?, now: MonotonicTime) {
        let before = demand
        demand = rate
        guard let rate else { return }
        idleUntil = min(idleUntil, now)
        guard state == .complete, limitedSince != nil, rate != before, min(rate, maximum) > estimate else { return }
        let reach = estimate * Self.limitedScale
        var rates = [min(rate, reach)]
        if rate < reach { rates.append(min(rate * 2, reach)) }
        request(rates, goesOn: reach < rate * 2, now)
    }

    mutating func setLimited(since: MonotonicTime?) { limitedSince = since }

    /// The estimate changed, perhaps by the result of a probe.
    mutating func setEstimate(_ rate: DataRate, limit: Limit, queue: TimeInterval, now: MonotonicTime) {
        self.limit = limit
        self.queue = queue
        if rate < estimate * Self.drop { lastDrop = (estimate, now) }
        estimate = rate
        guard state == .waiting, rate > neededToGoOn else { return }
        if isExploring { explore(now: now) } else { request([rate * Self.further], goesOn: true, now) }
    }

    /// A queue drained after an overuse. A rate far below the one before was perhaps too careful.
    mutating func recovered(now: MonotonicTime) {
        guard state == .complete, let lastDrop, now - lastDrop.at < Self.dropTime, !isPlain || limitedSince != nil
        else { return }
        let rate = lastDrop.rate * Self.afterDrop
        guard rate * (1 - Self.uncertainty) > estimate,
            probedAfterDrop.map({ now - $0 > Self.dropInterval }) ?? true
        else { return }
        probedAfterDrop = now
        request([rate], goesOn: false, now)
    }

    @inline(__always) var nextTimeout: MonotonicTime {
        guard let probed else { return .never }
        switch state {
        case .initial: return .never
        case .waiting: return probed + Self.timeout
        case .complete:
            let idle = idleUntil > probed + Self.timeout ? probed + Self.timeout : .never
            let limited = limitedTime(after: probed) ?? .never
            let exploring = mayExplore ? probed + explorationInterval : .never
            return min(idle, limited, exploring)
        }
    }

    mutating func handleTimeout(now: MonotonicTime) {
        guard nextTimeout <= now, let probed else { return }
        if state == .waiting { complete() }
        guard state == .complete, estimate > .zero else { return }
        if idleUntil > now, now >= probed + Self.timeout {
            request([estimate * Self.first[0]], goesOn: true, now)
        } else if let time = limitedTime(after: probed), now >= time {
            request([estimate * Self.limitedScale], goesOn: true, now)
        } else if mayExplore, now >= probed + explorationInterval {
            chooseInterval()
            explore(now: now)
        }
    }

    /// When to measure whether the link carries more than a limited application needs. Nil if that is known.
    @inline(__always)
    private func limitedTime(after probed: MonotonicTime) -> MonotonicTime? {
        guard let limitedSince, estimate < largest else { return nil }
        return max(limitedSince, probed) + Self.limitedInterval
    }

    /// Explorations in vain become rarer.
    private mutating func chooseInterval() {
        if let exploredFrom, estimate < exploredFrom * ProbeResults.explorationGain {
            explorationInterval = min(explorationInterval * 2, Self.explorationIntervals.upperBound)
        } else {
            explorationInterval = Self.explorationIntervals.lowerBound
        }
        exploredFrom = estimate
    }

    /// Measures whether the link carries much more than the estimate.
    private mutating func explore(now: MonotonicTime) {
        request([estimate * Self.explorationScale], goesOn: true, explored: estimate, now)
    }

    /// The path is back after an outage. Probes a rate that it carried before, if that exceeds the estimate, and soon
    /// explores whether it carries more. The probe does not go on: a short one of twice the rate measures too little.
    mutating func returned(_ rate: DataRate, now: MonotonicTime) {
        (explorationInterval, exploredFrom) = (Self.firstExploration, nil)
        guard rate > estimate else { return }
        request([rate], goesOn: false, now)
    }

    @inline(__always) private var mayExplore: Bool {
        !isPlain && limitedSince == nil && limit == .none && demand != nil && estimate < largest
            && queue < Self.explorationQueue
    }

    @inline(__always) private var largest: DataRate { min(maximum, demand.map { $0 * Self.demandScale } ?? maximum) }

    private mutating func complete() {
        state = .complete
        neededToGoOn = .unlimited
    }

    private mutating func request(
        _ rates: [DataRate], goesOn: Bool, explored: DataRate? = nil, _ now: MonotonicTime
    ) {
        probed = now
        guard limit == .none else { return complete() }
        var goesOn = goesOn
        var last = DataRate.zero
        for rate in rates where last < largest {
            if rate >= largest { goesOn = false }
            last = min(rate, largest)
            // It would measure less than is known already.
            guard isPlain || last > estimate else { continue }
            if pending.count == Self.maximumPending { pending.removeFirst() }
            pending.append(
                ProbeCluster(
                    id: nextID, rate: last, duration: explored == nil ? Self.duration : Self.explorationDuration,
                    interval: Self.burst, requested: now,
                    explored: explored))
            nextID = nextID == .max ? 1 : nextID + 1
        }
        guard goesOn else { return complete() }
        state = .waiting
        isExploring = explored != nil
        let known = explored ?? .zero
        neededToGoOn = known + (last - known) * Self.confirmation
    }
}
