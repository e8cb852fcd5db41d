internal import RTP

/// The estimate that follows the path's delay: groups of arrivals, their trend, and the rate control.
struct DelayBasedEstimate: Sendable {
    /// After a pause this long, the delays before it say nothing about those after it.
    static let pause = TimeInterval.seconds(2)
    /// With a shorter queue, its growth only ends the increase.
    static let harmlessQueue = TimeInterval.milliseconds(15)
    /// For this long after a probe raised the estimate, a queue up to `probeQueue` is the probe's own, and the
    /// acknowledged rate is not the link's, because media does not use the new estimate yet.
    static let afterProbe = TimeInterval.milliseconds(300)
    static let probeQueue = TimeInterval.milliseconds(40)
    /// Nothing was sent while a queue longer than this drained to a third or less.
    static let drainedQueue = TimeInterval.milliseconds(250)
    /// A queue that is shorter than this share of the one at the feedback before drains, whatever the trend of older delays
    /// shows.
    static let drainingShare = 0.5

    struct Outcome: Equatable {
        /// The estimate, if this feedback could change it.
        var estimate: DataRate?
        var isProbe = false
        /// A queue drained, and its delay is normal again.
        var hasRecovered = false
    }

    private(set) var control: RateControl
    private var groups = ArrivalGroups()
    private var trend = DelayTrend()
    private var newestFeedback: MonotonicTime?
    /// When a probe raised the estimate.
    private var raised: MonotonicTime?
    /// At the feedback before.
    private var lastQueue = TimeInterval.zero
    private var isDraining = false
    /// Whether the feedback before showed an overuse.
    private var wasOverused = false
    private let isPlain: Bool

    /// - Parameter isPlain: without what libwebrtc does not have
    init(start: DataRate, minimum: DataRate, isPlain: Bool = false) {
        control = RateControl(start: start, minimum: minimum, isPlain: isPlain)
        self.isPlain = isPlain
    }

    var estimate: DataRate { control.estimate }
    var usage: DelayTrend.Usage { trend.usage }

    mutating func setMinimum(_ rate: DataRate) { control.minimum = rate }
    /// A probe filled the link, and changes the estimate no further.
    mutating func setCapacity(_ rate: DataRate) { control.setCapacity(rate) }
    mutating func setRoundTrip(_ time: TimeInterval) { control.roundTrip = time }

    /// This end stood still, and did not read the feedback that arrived.
    mutating func stalled(for time: TimeInterval) { newestFeedback = newestFeedback.map { $0 + time } }

    /// - Parameters:
    ///   - packets: those that arrived, in the order of arrivals
    ///   - recent: the acknowledged rate of the last quarter of a second
    ///   - probe: the result of a probe that this feedback completed
    ///   - queue: the time that packets wait in queues of the path
    mutating func add(
        _ packets: [PacketResult], acknowledged: DataRate?, recent: @autoclosure () -> DataRate?,
        probe: ProbeResults.Result?, queue: TimeInterval, now: MonotonicTime
    ) -> Outcome {
        if let newestFeedback, now - newestFeedback > Self.pause {
            (groups, trend) = (ArrivalGroups(), DelayTrend())
        }
        newestFeedback = now
        // A line through the delays before would show a queue that grows or drains, for 20 groups.
        if !isPlain, lastQueue > Self.drainedQueue, queue.seconds < lastQueue.seconds / 3 {
            (groups, trend) = (ArrivalGroups(), DelayTrend())
        }
        isDraining = queue.seconds < lastQueue.seconds * Self.drainingShare
        lastQueue = queue
        var outcome = Outcome()
        for packet in packets {
            guard let arrival = packet.arrival else { continue }
            let before = trend.usage
            if let delta = groups.add(sent: packet.sent, arrival: arrival, now: now) {
                trend.add(delta, arrival: arrival)
            }
            if before == .under, trend.usage == .normal { outcome.hasRecovered = true }
        }
        update(acknowledged, recent, probe, queue, now, &outcome)
        return outcome
    }

    private mutating func update(
        _ acknowledged: DataRate?, _ recent: () -> DataRate?, _ probe: ProbeResults.Result?, _ queue: TimeInterval,
        _ now: MonotonicTime, _ outcome: inout Outcome
    ) {
        let isAfterProbe = raised.map { now - $0 < Self.afterProbe } ?? false
        let isHarmless = queue < (isAfterProbe ? Self.probeQueue : Self.harmlessQueue) || isDraining
        let isOverused = trend.usage == .over && (isPlain || !isHarmless)
        defer { wasOverused = isOverused }
        if isOverused {
            outcome.hasRecovered = false
            if !wasOverused { control.beginOveruse() }
            if let recent = isPlain ? acknowledged : recent() {
                if !isPlain { control.correct(recent) }
                if control.canBackOff(acknowledged: recent, now: now) {
                    control.update(.over, acknowledged: acknowledged, recent: recent, now: now)
                }
            } else {
                // Nothing is measured yet: half of the estimate each 200 ms at most.
                guard control.canBackOff(acknowledged: control.estimate, now: now) else { return }
                control.set(control.estimate * 0.5, now: now)
            }
        } else if trend.usage == .over, probe == nil {
            control.update(.under, acknowledged: acknowledged, recent: nil, now: now)
        } else if let probe {
            if probe.rate > control.estimate { raised = now }
            // A probe that did not fill the link shows that it carries that much, and not that it carries no more.
            let rate = probe.capacity == nil && !isPlain ? max(probe.rate, control.estimate) : probe.rate
            control.set(rate, capacity: probe.capacity, now: now)
            outcome.isProbe = true
            outcome.hasRecovered = false
        } else {
            control.update(trend.usage, acknowledged: acknowledged, recent: nil, now: now)
            if !isPlain, trend.usage == .normal, queue < Self.harmlessQueue { control.confirm(now: now) }
        }
        outcome.estimate = control.estimate
    }
}
