public import RTP

/// Estimates how much a path carries, and decides how fast to send and when to probe for more: Google congestion
/// control (draft-ietf-rmcat-gcc-02) with the refinements of libwebrtc. docs/congestion-control.md explains how.
///
/// Without clock, timers or packets. Its owner calls it for each packet and each feedback, and at `nextTimeout`. After the
/// histories have grown to the path's needs, a packet allocates nothing. One owner, one thread.
public final class CongestionController {
    public struct Settings: Sendable, Equatable {
        public var minimum: DataRate
        public var start: DataRate
        public var maximum: DataRate
        /// Without the differences from libwebrtc that docs/congestion-control.md lists, so that a simulation can compare.
        package var isPlain = false

        public init(
            minimum: DataRate = .kilobits(10), start: DataRate = .kilobits(300), maximum: DataRate = .kilobits(10_000)
        ) {
            self.minimum = minimum
            self.start = min(max(start, minimum), max(minimum, maximum))
            self.maximum = max(minimum, maximum)
        }
    }

    /// How to send from now on.
    public struct Control: Sendable, Equatable {
        /// For all streams together, with their headers and repairs.
        public var target: DataRate
        /// How fast the pacer sends packets that wait.
        public var pacing: DataRate
        /// How much the pacer sends at least, with padding.
        public var padding: DataRate
        /// So much is on its way without any report that only audio should be sent.
        public var isPaused: Bool
    }

    /// The pacing rate relative to the estimate, before and after the first feedback.
    static let firstPacing = 2.5
    static let pacing = 1.1
    /// In the first seconds, the delay-based estimate is trusted before there are observations of loss.
    static let startPhase = TimeInterval.seconds(2)
    /// A probe far below the acknowledged rate is not believed: the rate drops to this share of it at most.
    static let probeDrop = 0.85
    /// How often the controller runs without feedback.
    static let interval = TimeInterval.milliseconds(100)
    /// With this many windows on their way, feedback is missing.
    static let pausedWindows = 2.0
    /// Without a report of packets on their way for this long, beyond the round trip, the path was out.
    static let outage = TimeInterval.milliseconds(500)
    /// After this long without one, the path carried nothing for a moment. Only the losses of that moment do not count.
    static let pause = TimeInterval.milliseconds(300)
    /// With fewer packets sent meanwhile, chance lost them or their reports.
    static let outagePackets = 10
    /// The first probes are fewer packets. So many without a report, for as long as `FeedbackTimeout` waits, are media.
    static let unansweredPackets = 50
    /// The share of the rate to begin with after an outage, and the one to probe when the queue is empty.
    static let afterOutage = 0.5
    static let probeAfterOutage = 0.85
    static let rememberedProbes = 8

    @exclusivity(unchecked) public private(set) var settings: Settings
    @exclusivity(unchecked) public private(set) var path: PathDelay
    @exclusivity(unchecked) private var history = PacketHistory()
    @exclusivity(unchecked) private var acknowledged = AcknowledgedRate()
    @exclusivity(unchecked) private var delayBased: DelayBasedEstimate
    @exclusivity(unchecked) private var lossBased: LossBasedEstimate
    @exclusivity(unchecked) private var feedbackTimeout = FeedbackTimeout()
    @exclusivity(unchecked) private var planner: ProbePlanner { didSet { probeTimeout = planner.nextTimeout } }
    /// The planner's. Each packet asks for it.
    @exclusivity(unchecked) private var probeTimeout = MonotonicTime.never
    @exclusivity(unchecked) private var probeResults: ProbeResults
    @exclusivity(unchecked) private var application: ApplicationLimit
    @exclusivity(unchecked) private var window: CongestionWindow
    /// The newest probes, by which their results are judged.
    @exclusivity(unchecked) private var probes = Ring<ProbeCluster>(capacity: 16)
    /// The rate by delay and loss, within the limits of the settings.
    @exclusivity(unchecked) private var current: DataRate
    @exclusivity(unchecked) private var delayLimit = DataRate.unlimited
    @exclusivity(unchecked) private var receiverLimit = DataRate.unlimited
    @exclusivity(unchecked) private var pushedBack: DataRate
    @exclusivity(unchecked) private var firstFeedback: MonotonicTime?
    @exclusivity(unchecked) private var newestFeedback: MonotonicTime?
    @exclusivity(unchecked) private var sentSinceFeedback = 0
    /// The estimate after the newest feedback. Missing feedback lowers the estimate, and not this.
    @exclusivity(unchecked) private var rateAtFeedback: DataRate?
    /// The rate before the last outage, until a probe of it.
    @exclusivity(unchecked) private var rateBeforeOutage: DataRate?
    /// Losses of packets sent before say nothing about the path: it was out.
    @exclusivity(unchecked) private var lossFrom = MonotonicTime.zero
    @exclusivity(unchecked) private var nextTick = MonotonicTime.never
    @exclusivity(unchecked) private var results: [PacketResult] = []
    @exclusivity(unchecked) private var sorted: [PacketResult] = []

    public init(_ settings: Settings) {
        self.settings = settings
        let isPlain = settings.isPlain
        path = PathDelay(followsSteps: !isPlain)
        window = CongestionWindow(isPlain: isPlain)
        probeResults = ProbeResults(isPlain: isPlain)
        delayBased = DelayBasedEstimate(start: settings.start, minimum: settings.minimum, isPlain: isPlain)
        lossBased = LossBasedEstimate(minimum: settings.minimum, maximum: settings.maximum, isPlain: isPlain)
        planner = ProbePlanner(maximum: settings.maximum, isPlain: isPlain)
        application = ApplicationLimit(estimate: settings.start)
        current = settings.start
        pushedBack = settings.start
    }
}

// The controller's decisions.
extension CongestionController {
    public var control: Control {
        Control(
            target: pushedBack, pacing: estimate * (firstFeedback == nil ? Self.firstPacing : Self.pacing),
            padding: lossBased.state == .increasing ? pushedBack : .zero, isPaused: isPaused)
    }

    /// Whether this end has sent media for seconds and got no report. Before the first round trip is known, the congestion
    /// window pauses nothing.
    public var isUnanswered: Bool {
        history.inFlight > 0 && sentSinceFeedback >= Self.unansweredPackets && feedbackTimeout.isExceeded
    }

    /// The estimated rate of the path.
    public var estimate: DataRate { max(settings.minimum, min(current, receiverLimit)) }

    /// The rate that arrives at the receiver. Nil until enough packets arrived.
    public var acknowledgedRate: DataRate? { acknowledged.rate }
    /// The weighted share of lost bytes in the last seconds.
    public var lossRatio: Double { lossBased.averageLoss }

    /// When to call `handleTimeout`. `.never` while nothing is on its way and no probe is planned.
    public var nextTimeout: MonotonicTime {
        min(probeTimeout, history.inFlight > 0 ? nextTick : .never)
    }

    private var isPaused: Bool {
        guard let bytes = window.bytes(at: estimate) else { return false }
        return Double(history.inFlight) > bytes * Self.pausedWindows
    }

    /// The next probe for the pacer, until nil. Call it after each call that takes the time.
    public func takeProbe() -> ProbeCluster? {
        guard planner.hasPending, let probe = planner.takePending() else { return nil }
        probes.append(probe)
        if probes.count > Self.rememberedProbes { probes.removeFirst() }
        return probe
    }
}

// The reports of its owner.
extension CongestionController {
    /// The path can carry packets: the first probes begin.
    public func begin(now: MonotonicTime) { planner.begin(start: estimate, now: now) }

    /// The number of the next packet, for its header extension.
    public var nextNumber: SequenceNumber { history.nextNumber }

    /// A packet with `nextNumber` is sent.
    /// - Parameter bytes: its length with the headers of UDP and IP
    public func sent(bytes: Int, probe: UInt16 = 0, now: MonotonicTime) {
        let isAlone = history.inFlight == 0
        if isAlone { nextTick = now + Self.interval }
        history.sent(bytes: bytes, probe: probe, now: now)
        sentSinceFeedback += 1
        application.sent(bytes: bytes, now: now)
        feedbackTimeout.sent(isAlone: isAlone, now: now)
    }

    /// How many sent packets `received` looks up for a feedback.
    public func lookups(for feedback: TransportFeedback) -> Int { history.known(by: feedback).count }

    public func received(_ feedback: TransportFeedback, now: MonotonicTime) {
        results.removeAll(keepingCapacity: true)
        history.forget(now)
        history.received(feedback, into: &results)
        guard !results.isEmpty else { return }
        if firstFeedback == nil { firstFeedback = now }
        noteOutage(now: now)
        let hasTrip = path.add(results, now: now)
        feedbackTimeout.received(roundTrip: hasTrip ? path.newest : nil, now: now)
        if hasTrip, let trip = path.newest { delayBased.setRoundTrip(trip) }
        if let longest = path.longest { window.add(roundTrip: longest) }
        let arrived = sortedArrivals()
        for packet in arrived { acknowledged.add(packet) }
        let rate = acknowledged.measured()
        if let rate { lossBased.setAcknowledged(rate) }
        let probe = probeResult(of: arrived, rate)
        let outcome = delayBased.add(
            arrived, acknowledged: rate, recent: acknowledged.recentRate, probe: probe, queue: path.queue, now: now)
        if let estimate = outcome.estimate { setDelayBased(estimate, isProbe: outcome.isProbe) }
        if let oldest = results.first, oldest.sent < lossFrom { results.removeAll { $0.sent < lossFrom } }
        lossBased.add(results, delayBased: delayLimit, isApplicationLimited: application.since != nil)
        update(now: now)
        planner.setLimited(since: application.since)
        if outcome.estimate != nil { conclude(now: now) }
        if outcome.hasRecovered { planner.recovered(now: now) }
        returnAfterOutage(now: now)
        rateAtFeedback = estimate
    }

    /// REMB.
    public func received(_ estimate: ReceiverEstimate, now: MonotonicTime) {
        guard estimate.bitsPerSecond > 0 else { return endReceiverLimit(now: now) }
        limit(to: DataRate(bitsPerSecond: Double(estimate.bitsPerSecond)), now: now)
    }

    /// An estimate about what the receiver gets limits the rate from now on.
    public func limit(to rate: DataRate, now: MonotonicTime) {
        receiverLimit = rate
        // Without transport-wide feedback, nothing else lifts the rate.
        if firstFeedback == nil { current = min(max(current, rate), settings.maximum) }
        conclude(now: now)
    }

    /// No estimate about what the receiver gets limits the rate any longer.
    public func endReceiverLimit(now: MonotonicTime) {
        receiverLimit = .unlimited
        conclude(now: now)
    }

    /// Transport-wide feedback replaces an estimate by losses, which allows any rate as long as nothing is lost.
    public func beginFeedback(now: MonotonicTime) {
        if firstFeedback == nil { current = min(current, settings.start, receiverLimit) }
        endReceiverLimit(now: now)
    }

    /// This process stood still until now, and read no feedback meanwhile.
    public func stalled(for time: TimeInterval, now: MonotonicTime) {
        path.stalled(now: now)
        delayBased.stalled(for: time)
        feedbackTimeout.stalled(for: time)
        newestFeedback = newestFeedback.map { $0 + time }
    }

    /// The rate that all streams together can use. Nil before there is media: then probes go up to the maximum.
    public func setDemand(_ rate: DataRate?, now: MonotonicTime) { planner.setDemand(rate, now: now) }

    public func setLimits(minimum: DataRate, maximum: DataRate, now: MonotonicTime) {
        let limited = Settings(minimum: minimum, start: settings.start, maximum: maximum)
        (settings.minimum, settings.start, settings.maximum) = (limited.minimum, limited.start, limited.maximum)
        delayBased.setMinimum(minimum)
        lossBased.setLimits(minimum: minimum, maximum: settings.maximum)
        planner.setMaximum(settings.maximum, now: now)
        current = min(current, settings.maximum)
        conclude(now: now)
    }

    /// Packets take another way. The estimate starts again, at the acknowledged rate or the start rate if that is lower,
    /// and probes begin immediately.
    public func routeChanged(now: MonotonicTime) {
        history.routeChanged()
        let start = max(settings.minimum, min(settings.start, acknowledged.rate ?? estimate))
        delayBased = DelayBasedEstimate(start: start, minimum: settings.minimum, isPlain: settings.isPlain)
        lossBased = LossBasedEstimate(
            minimum: settings.minimum, maximum: settings.maximum, isPlain: settings.isPlain)
        acknowledged = AcknowledgedRate()
        feedbackTimeout = FeedbackTimeout()
        probeResults = ProbeResults(isPlain: settings.isPlain)
        window = CongestionWindow(isPlain: settings.isPlain)
        path = PathDelay(followsSteps: !settings.isPlain)
        (firstFeedback, newestFeedback, rateAtFeedback, rateBeforeOutage) = (nil, nil, nil, nil)
        sentSinceFeedback = 0
        (current, delayLimit) = (start, .unlimited)
        application.setEstimate(start)
        pushedBack = estimate
        planner.reset()
        begin(now: now)
    }

    public func handleTimeout(now: MonotonicTime) {
        guard nextTimeout <= now else { return }
        nextTick = now + Self.interval
        // Without reports, a pause would last until the next packet.
        history.forget(now)
        update(now: now)
        planner.setLimited(since: firstFeedback == nil ? nil : application.since)
        planner.handleTimeout(now: now)
        conclude(now: now)
    }
}

extension CongestionController {
    /// The packets that arrived, in the order of their arrivals. Mostly, all have arrived, in this order.
    private func sortedArrivals() -> [PacketResult] {
        var before = MonotonicTime.zero
        let isSorted = results.allSatisfy { packet in
            guard let arrival = packet.arrival, arrival >= before else { return false }
            before = arrival
            return true
        }
        guard !isSorted else { return results }
        sorted.removeAll(keepingCapacity: true)
        for packet in results where packet.arrival != nil { sorted.append(packet) }
        sorted.sort { ($0.arrival ?? .zero, $0.number) < ($1.arrival ?? .zero, $1.number) }
        return sorted
    }

    /// The result of a probe among the packets that arrived.
    private func probeResult(of arrived: [PacketResult], _ acknowledged: DataRate?) -> ProbeResults.Result? {
        var result: ProbeResults.Result?
        for packet in arrived {
            if packet.probe == 0 {
                probeResults.note(packet)
            } else {
                result = probeResults.add(packet, of: probe(packet.probe)) ?? result
            }
        }
        if let found = result, found.isCapacityAlone {
            if let capacity = found.capacity { delayBased.setCapacity(capacity) }
            return nil
        }
        if let rate = result?.rate, let acknowledged {
            result?.rate = max(rate, min(delayBased.estimate, acknowledged * Self.probeDrop))
        }
        return result
    }

    /// The delays and losses of an outage say nothing about the path after it. So the estimate starts again, at half the
    /// rate.
    private func noteOutage(now: MonotonicTime) {
        defer { (newestFeedback, sentSinceFeedback) = (now, 0) }
        guard !settings.isPlain, let newestFeedback, let oldest = results.first?.sent else { return }
        let silence = now - max(newestFeedback, oldest)
        guard silence > Self.pause + (path.newest ?? .zero), sentSinceFeedback >= Self.outagePackets else { return }
        lossFrom = now
        guard silence > Self.outage + (path.newest ?? .zero) else { return }
        let before = estimate
        let start = max(settings.minimum, before * Self.afterOutage)
        delayBased = DelayBasedEstimate(start: start, minimum: settings.minimum)
        lossBased = LossBasedEstimate(minimum: settings.minimum, maximum: settings.maximum)
        acknowledged = AcknowledgedRate()
        path.returned(now: now)
        window.returned()
        (current, delayLimit) = (start, start)
        rateBeforeOutage = max(before, rateBeforeOutage ?? before, rateAtFeedback ?? before)
    }

    private func returnAfterOutage(now: MonotonicTime) {
        guard let before = rateBeforeOutage, path.queue < ProbePlanner.explorationQueue else { return }
        rateBeforeOutage = nil
        planner.returned(before * Self.probeAfterOutage, now: now)
    }

    private func probe(_ id: UInt16) -> ProbeCluster? {
        guard id != 0 else { return nil }
        for index in 0..<probes.count where probes[index].id == id { return probes[index] }
        return nil
    }

    private func setDelayBased(_ estimate: DataRate, isProbe: Bool) {
        if isProbe { current = min(max(estimate, settings.minimum), settings.maximum) }
        delayLimit = estimate
        current = limited(current)
    }

    private func limited(_ rate: DataRate) -> DataRate {
        max(settings.minimum, min(rate, delayLimit, settings.maximum))
    }

    private func update(now: MonotonicTime) {
        if feedbackTimeout.isExceeded {
            current = limited(feedbackTimeout.lowered(current, now: now))
        } else if let rate = lossBased.estimate {
            current = limited(rate)
        } else if let firstFeedback, now - firstFeedback < Self.startPhase, delayLimit.isLimited {
            current = limited(max(current, delayLimit))
        } else {
            current = limited(current)
        }
    }

    private func conclude(now: MonotonicTime) {
        application.setEstimate(estimate)
        let isCongested =
            delayBased.usage != .normal || lossBased.state != .unlimited || feedbackTimeout.isExceeded
            || (path.stopsOften && !settings.isPlain)
        planner.setEstimate(estimate, limit: isCongested ? .congested : .none, queue: path.queue, now: now)
        path.note(estimate, now: now)
        let drained =
            settings.isPlain
            ? estimate
            : QueueDrain.lowered(
                estimate, queue: path.queue, foreign: path.foreignQueue,
                sinceFirst: firstFeedback.map { now - $0 })
        pushedBack = max(
            settings.minimum, window.lowered(drained, estimate: estimate, inFlight: Double(history.inFlight)))
    }
}
