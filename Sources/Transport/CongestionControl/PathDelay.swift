public import RTP

/// The round trip and the queue of a path, measured by feedback, without the time in which this process stood still.
///
/// A feedback that waited for us says nothing about the path: its round trip spans the stall, and is not used.
public struct PathDelay: Sendable {
    /// The queue is the delay beyond the least of the last 30 to 60 s, so that clocks may drift.
    static let window = TimeInterval.seconds(30)
    /// After so long without a report, clocks may have drifted by more than a queue's length, so the least delays before
    /// are void.
    static let longPause = TimeInterval.seconds(60)
    /// A delay that stays the same is that of the path, and no queue: packets take another way. The least delays of this
    /// many periods are compared.
    static let period = TimeInterval.seconds(1)
    static let periods = 5
    /// They differ by this at most. The queue of a link that is used to the full changes by more.
    static let steadiness = TimeInterval.milliseconds(3)
    /// A smaller change of the delay has no effect before the window ends.
    static let smallestChange = TimeInterval.milliseconds(20)
    /// Of a period.
    static let neededPackets = 10
    /// For so long after an outage, packets have probably taken another way, and periods are shorter. There are more of them,
    /// because a queue that other senders keep full is steady for a second, too.
    static let returning = TimeInterval.seconds(3)
    static let returningPeriod = TimeInterval.milliseconds(250)
    static let returningPeriods = 8
    static let neededReturningPackets = 5

    /// The round trip without the receiver's wait for its report.
    public private(set) var roundTrip = RoundTripEstimate()
    /// The newest one of these.
    public private(set) var newest: TimeInterval?
    /// The time that packets wait in queues on their way. The least one of the last feedback, so that jitter counts little.
    public private(set) var queue = TimeInterval.zero
    /// The part of the queue that the rate of sending does not explain: the link carries less than the estimate, or packets
    /// of others wait too.
    private(set) var foreignQueue = TimeInterval.zero
    /// The longest round trip of the last feedback, with the receiver's wait.
    private(set) var longest: TimeInterval?

    /// Packets wait again and again for a moment.
    var stopsOften: Bool { stops.areKnown }

    private var own = OwnQueue()
    private var stops = PathStops()
    /// Of the last 30 to 60 s, on two clocks.
    private(set) var leastDelay: TimeInterval?
    private var nextLeastDelay: TimeInterval?
    private var windowEnd: MonotonicTime?
    /// When the newest delay was measured.
    private var measuredAt: MonotonicTime?
    private var stallEnd: MonotonicTime?
    /// When the last outage ended, until `returning` has passed.
    private var returnedAt: MonotonicTime?
    /// The least delays of the last periods, and of the present one.
    private var steps: [TimeInterval] = []
    private var step: (least: TimeInterval, packets: Int, end: MonotonicTime)?
    private let followsSteps: Bool

    /// - Parameter followsSteps: takes a delay that has been steady for 5 s as that of the path
    public init(followsSteps: Bool = true) { self.followsSteps = followsSteps }

    /// This process stood still until `now`.
    public mutating func stalled(now: MonotonicTime) { stallEnd = now }

    /// Packets arrive again after an outage.
    mutating func returned(now: MonotonicTime) {
        returnedAt = now
        own.clear()
        stops = PathStops()
        forgetSteps()
    }

    /// The estimate with which packets are sent from now on.
    mutating func note(_ estimate: DataRate, now: MonotonicTime) { own.note(estimate, now: now) }

    private mutating func forgetSteps() {
        steps.removeAll(keepingCapacity: true)
        step = nil
    }

    /// Adds the packets of a feedback. Returns whether it measured the round trip.
    @discardableResult
    public mutating func add(_ packets: [PacketResult], now: MonotonicTime) -> Bool {
        var last: MonotonicTime?
        for packet in packets { last = max(last ?? .zero, packet.arrival ?? .zero) }
        guard let last, last > .zero else { return false }
        var (longest, shortest) = (TimeInterval?.none, TimeInterval?.none)
        var delay: TimeInterval?
        var foreignDelay = TimeInterval(nanoseconds: .max)
        for packet in packets {
            let ownWait = packet.wasMissing ? .zero : own.add(packet)
            guard let arrival = packet.arrival else { continue }
            let oneWay = arrival - packet.sent
            delay = min(delay ?? oneWay, oneWay)
            foreignDelay = min(foreignDelay, oneWay - ownWait)
            // A packet sent after the stall cannot have been acknowledged before its end.
            if let stallEnd, packet.sent < stallEnd { continue }
            let trip = now - packet.sent
            longest = max(longest ?? trip, trip)
            let path = trip - (last - arrival)
            shortest = min(shortest ?? path, path)
        }
        if let delay {
            noteDelay(delay, now)
            if followsSteps { noteStep(delay, packets.count, now) }
            queue = max(.zero, delay - (leastDelay ?? delay))
            foreignQueue = max(.zero, foreignDelay - (leastDelay ?? delay))
            // Large frames fill the queue of a narrow link again and again, too.
            stops.add(foreignQueue, now: now)
        }
        self.longest = longest
        guard let shortest, shortest >= .zero else { return false }
        stallEnd = nil
        newest = shortest
        roundTrip.add(shortest)
        return true
    }

    /// Takes a steady delay as that of the path.
    private mutating func noteStep(_ delay: TimeInterval, _ packets: Int, _ now: MonotonicTime) {
        if let returnedAt, now - returnedAt >= Self.returning {
            self.returnedAt = nil
            forgetSteps()
        }
        let isReturning = returnedAt != nil
        let periods = isReturning ? Self.returningPeriods : Self.periods
        guard var current = step, now < current.end else {
            if let step, step.packets >= (isReturning ? Self.neededReturningPackets : Self.neededPackets) {
                steps.append(step.least)
                if steps.count > periods { steps.removeFirst() }
            } else {
                steps.removeAll(keepingCapacity: true)
            }
            step = (delay, packets, now + (isReturning ? Self.returningPeriod : Self.period))
            guard steps.count == periods, let least = steps.min(), let most = steps.max(),
                most - least <= Self.steadiness, let leastDelay,
                least > leastDelay + Self.smallestChange
            else { return }
            (self.leastDelay, nextLeastDelay) = (least, min(least, delay))
            return
        }
        current.least = min(current.least, delay)
        current.packets += packets
        step = current
    }

    private mutating func noteDelay(_ delay: TimeInterval, _ now: MonotonicTime) {
        defer { measuredAt = now }
        if let measuredAt, now - measuredAt >= Self.longPause {
            (leastDelay, nextLeastDelay, windowEnd) = (nil, nil, nil)
            forgetSteps()
        }
        leastDelay = min(leastDelay ?? delay, delay)
        nextLeastDelay = min(nextLeastDelay ?? delay, delay)
        guard let end = windowEnd, now < end else {
            if windowEnd != nil { (leastDelay, nextLeastDelay) = (nextLeastDelay, delay) }
            windowEnd = now + Self.window
            return
        }
    }
}
