/// The clock of another machine, as seen from here: which NTP time it shows at a point of the local monotonic clock.
///
/// A report of the other end has the time at which it was sent. Half of the round trip later, it arrives. The report with
/// the shortest round trip of the last few is the most accurate, because queues delay the others (RFC 5905, section 10).
/// The error is half of the difference between the delays of the two directions, if these are constant.
public struct RemoteClock: Sendable, Equatable {
    private struct Sample: Equatable {
        /// The other clock showed `ntp` at `at`.
        var ntp: NTPTime
        var at: MonotonicTime
        var roundTrip: TimeInterval

        func time(at now: MonotonicTime) -> NTPTime { ntp.advanced(by: now - at) }
    }

    /// Crystals drift apart by less than a millisecond in so many seconds.
    private static let remembered = 8
    /// Beyond the round trips, a report that contradicts the others by more shows that the other clock was set.
    private static let tolerance = TimeInterval.milliseconds(20)

    private var samples: [Sample] = []
    private var best: Sample?

    public init() {}

    public var isKnown: Bool { best != nil }

    /// Adds a report that was sent at `ntp` of the other clock, and arrived at `arrival`.
    public mutating func add(_ ntp: NTPTime, arrival: MonotonicTime, roundTrip: TimeInterval) {
        let sample = Sample(ntp: ntp.advanced(by: roundTrip / 2), at: arrival, roundTrip: roundTrip)
        if let best {
            let difference = sample.ntp.interval(since: best.time(at: arrival))
            let possible = (sample.roundTrip + best.roundTrip) / 2 + Self.tolerance
            if max(difference, .zero - difference) > possible { samples = [] }
        }
        if samples.count == Self.remembered { samples.removeFirst() }
        samples.append(sample)
        // The newest of equals.
        best = samples.reversed().min { $0.roundTrip < $1.roundTrip }
    }

    /// The time that the other clock shows. Nil before the first report.
    public func time(at now: MonotonicTime) -> NTPTime? { best?.time(at: now) }
}
