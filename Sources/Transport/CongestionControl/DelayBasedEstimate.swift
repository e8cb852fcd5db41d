internal import RTP

/// The estimate that follows the path's delay: groups of arrivals, their trend, and the rate control.
struct DelayBasedEstimate: Sendable {
    /// After a pause this long, the delays before it say nothing about those after it.
    static let pause = TimeInterval.seconds(2)

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

    init(start: DataRate, minimum: DataRate) { control = RateControl(start: start, minimum: minimum) }

    var estimate: DataRate { control.estimate }
    var usage: DelayTrend.Usage { trend.usage }

    mutating func setMinimum(_ rate: DataRate) { control.minimum = rate }
    mutating func setRoundTrip(_ time: TimeInterval) { control.roundTrip = time }

    /// This end stood still, and did not read the feedback that arrived.
    mutating func stalled(for time: TimeInterval) { newestFeedback = newestFeedback.map { $0 + time } }

    /// - Parameters:
    ///   - packets: those that arrived, in the order of arrivals
    ///   - probe: the result of a probe that this feedback completed
    mutating func add(
        _ packets: [PacketResult], acknowledged: DataRate?, probe: DataRate?, now: MonotonicTime
    ) -> Outcome {
        if let newestFeedback, now - newestFeedback > Self.pause {
            (groups, trend) = (ArrivalGroups(), DelayTrend())
        }
        newestFeedback = now
        var outcome = Outcome()
        for packet in packets {
            guard let arrival = packet.arrival else { continue }
            let before = trend.usage
            if let delta = groups.add(sent: packet.sent, arrival: arrival, now: now) {
                trend.add(delta, arrival: arrival)
            }
            if before == .under, trend.usage == .normal { outcome.hasRecovered = true }
        }
        update(acknowledged, probe, now, &outcome)
        return outcome
    }

    private mutating func update(
        _ acknowledged: DataRate?, _ probe: DataRate?, _ now: MonotonicTime, _ outcome: inout Outcome
    ) {
        if trend.usage == .over {
            outcome.hasRecovered = false
            if let acknowledged {
                guard control.canBackOff(acknowledged: acknowledged, now: now) else { return }
                control.update(.over, acknowledged: acknowledged, now: now)
            } else {
                // Nothing is measured yet: half of the estimate each 200 ms at most.
                guard control.canBackOff(acknowledged: control.estimate, now: now) else { return }
                control.set(control.estimate * 0.5, now: now)
            }
        } else if let probe {
            control.set(probe, now: now)
            outcome.isProbe = true
            outcome.hasRecovered = false
        } else {
            control.update(trend.usage, acknowledged: acknowledged, now: now)
        }
        outcome.estimate = control.estimate
    }
}
