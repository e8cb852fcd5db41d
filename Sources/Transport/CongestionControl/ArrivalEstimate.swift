public import RTP

/// The rate that the path towards this end carries, by the arrivals of packets. For a peer that gets an estimate (REMB) in place of reports
/// about transport-wide numbers.
///
/// With the times of sending in the packets, it follows the delay as the sender of other sessions does. Without them, it
/// follows losses alone. It allocates nothing for a packet once it runs.
public struct ArrivalEstimate: Sendable {
    /// Arrivals of this time are judged together.
    static let period = TimeInterval.milliseconds(100)
    /// The first estimate is the rate of so long.
    static let settling = TimeInterval.seconds(1)
    /// Between two estimates that are told, unless it falls below this share of the last one.
    static let interval = TimeInterval.milliseconds(500)
    static let fall = 0.97
    /// By losses, as draft-ietf-rmcat-gcc-02, section 6 has it: above the first share the estimate falls, below the second one
    /// it rises.
    static let congestedLoss = 0.1
    static let harmlessLoss = 0.02
    static let growth = 1.08

    private let minimum: DataRate
    private var delayBased: DelayBasedEstimate?
    private var acknowledged = AcknowledgedRate()
    private var path = PathDelay()
    private var clock: SendTimeClock?
    private var arrivals: [PacketResult] = []
    private var count = 0
    private var (begun, judged) = (MonotonicTime?.none, MonotonicTime.zero)
    private var lossLimit = DataRate.unlimited
    private var told: (rate: DataRate, at: MonotonicTime)?
    private var stallEnd = MonotonicTime.zero

    public init() { minimum = CongestionController.Settings().minimum }

    /// A packet has arrived.
    ///
    /// - Parameters:
    ///   - bytes: its length with the headers of UDP and IP
    ///   - sent: nil if it does not carry it
    /// - Returns: the estimate, if the peer should be told now
    public mutating func received(bytes: Int, sent: AbsoluteSendTime?, at now: MonotonicTime) -> DataRate? {
        guard let time = time(of: sent, at: now) else { return nil }
        // It waited for this process, and not in a queue of the path.
        guard sent == nil || time + (path.leastDelay ?? .zero) >= stallEnd else { return nil }
        if begun == nil { (begun, judged) = (now, now) }
        arrivals.append(PacketResult(number: count, bytes: bytes, sent: time, arrival: now))
        count += 1
        guard now - judged >= Self.period else { return nil }
        judge(now: now)
        return news(now: now)
    }

    /// This process stood still until `now`. Packets that came before that count for nothing.
    public mutating func stalled(now: MonotonicTime) { stallEnd = now }

    /// The share of packets that did not arrive, from a receiver report.
    public mutating func reported(loss: Double) {
        guard let estimate else { return }
        if loss > Self.congestedLoss {
            lossLimit = max(minimum, min(lossLimit, estimate) * (1 - loss / 2))
        } else if loss < Self.harmlessLoss, lossLimit.isLimited {
            lossLimit = lossLimit * Self.growth
            if let delayBased, lossLimit > delayBased.estimate { lossLimit = .unlimited }
        }
    }

    private var estimate: DataRate? { delayBased.map { min($0.estimate, lossLimit) } }

    /// Lower while a queue drains, which may last without growing.
    private var drained: DataRate? {
        estimate.map {
            max(
                minimum,
                QueueDrain.lowered($0, queue: path.queue, foreign: path.foreignQueue, sinceFirst: nil))
        }
    }

    /// The time of sending by this end's clock, without the least delay. Nil for a packet without it, while others have it.
    private mutating func time(of sent: AbsoluteSendTime?, at now: MonotonicTime) -> MonotonicTime? {
        guard let sent else {
            guard let clock else { return now }
            guard clock.isOver(at: now) else { return nil }
            self.clock = nil
            startAgain()
            return now
        }
        if let time = clock?.advance(to: sent, at: now) { return time }
        // Of another clock, or after a long pause: the delays before say nothing about those from now on.
        if clock != nil || begun != nil { startAgain() }
        clock = SendTimeClock(first: sent, at: now)
        return now
    }

    private mutating func startAgain() {
        delayBased = delayBased.map { DelayBasedEstimate(start: $0.estimate, minimum: minimum) }
        (acknowledged, path) = (AcknowledgedRate(), PathDelay())
        arrivals.removeAll(keepingCapacity: true)
    }

    private mutating func judge(now: MonotonicTime) {
        defer { arrivals.removeAll(keepingCapacity: true) }
        judged = now
        path.add(arrivals, now: now)
        for packet in arrivals { acknowledged.add(packet) }
        let rate = acknowledged.measured()
        if delayBased == nil, let rate, let begun, now - begun >= Self.settling {
            delayBased = DelayBasedEstimate(start: rate, minimum: minimum)
        }
        let recent = acknowledged
        _ = delayBased?.add(
            arrivals, acknowledged: rate, recent: recent.recentRate, probe: nil, queue: path.queue, now: now)
        if let estimate { path.note(estimate, now: now) }
    }

    private mutating func news(now: MonotonicTime) -> DataRate? {
        guard let estimate = drained else { return nil }
        if let told, now - told.at < Self.interval, estimate > told.rate * Self.fall { return nil }
        told = (estimate, now)
        return estimate
    }
}

/// Unwraps times of sending, on a clock that agrees with this end's at the first one.
struct SendTimeClock {
    /// A time further from the arrival than this is of another clock. Half of what the values can tell apart.
    static let reach = TimeInterval.seconds(16)

    private var last: AbsoluteSendTime
    private var arrived: MonotonicTime
    private var ticks: Int64 = 0
    private let origin: MonotonicTime

    init(first: AbsoluteSendTime, at now: MonotonicTime) {
        (last, arrived, origin) = (first, now, now)
    }

    /// Whether no time has arrived for so long that the next one begins another clock.
    func isOver(at now: MonotonicTime) -> Bool { now - arrived >= Self.reach }

    /// Nil if the time is not of this clock.
    mutating func advance(to time: AbsoluteSendTime, at now: MonotonicTime) -> MonotonicTime? {
        guard !isOver(at: now) else { return nil }
        let ticks = ticks + Int64(time.ticks(since: last))
        // Whole seconds apart, because the product of a day would not fit.
        let (seconds, rest) = (ticks >> 18, ticks & 0x3ffff)
        let interval = TimeInterval(nanoseconds: seconds * 1_000_000_000 + ((rest * 1_000_000_000) >> 18))
        let ahead = origin + interval - now
        guard max(ahead, .zero - ahead) < Self.reach else { return nil }
        (last, arrived, self.ticks) = (time, now, ticks)
        return origin + interval
    }
}
