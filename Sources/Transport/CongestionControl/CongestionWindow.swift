internal import RTP

/// The bytes that may be on their way, and the target while there are more: congestion-window pushback.
struct CongestionWindow: Sendable {
    /// The time beyond the round trip for which bytes may be on their way.
    static let queue = TimeInterval.milliseconds(350)
    static let minimumBytes = 3000.0
    static let smallestTarget = DataRate.kilobits(30)
    static let roundTrips = 32

    private var trips = Ring<TimeInterval>(capacity: Self.roundTrips + 1)
    private var shortest: TimeInterval?
    private var ratio = 1.0
    /// The ratio falls without a bound.
    private let isPlain: Bool

    init(isPlain: Bool = false) { self.isPlain = isPlain }

    /// - Parameter roundTrip: the longest one of a feedback
    mutating func add(roundTrip: TimeInterval) {
        trips.append(roundTrip)
        let removed = trips.count > Self.roundTrips ? trips.removeFirst() : nil
        guard let before = shortest, removed != before else {
            var least = roundTrip
            trips.forEach { least = min(least, $0) }
            return shortest = least
        }
        shortest = min(before, roundTrip)
    }

    /// The path is back after an outage, in which bytes were on their way without any report.
    mutating func returned() { ratio = 1 }

    /// Nil before the first round trip.
    func bytes(at rate: DataRate) -> Double? {
        shortest.map { max(Self.minimumBytes, rate.bytes(in: $0 + Self.queue)) }
    }

    /// The target while `inFlight` bytes are on their way. Called once for each feedback.
    mutating func lowered(_ target: DataRate, estimate: DataRate, inFlight: Double) -> DataRate {
        guard let bytes = bytes(at: estimate) else { return target }
        let fill = inFlight / bytes
        if fill > 1.5 {
            ratio *= 0.9
        } else if fill > 1 {
            ratio *= 0.95
        } else if fill < 0.1 {
            ratio = 1
        } else {
            ratio = min(1, ratio * 1.05)
        }
        let lowered = target * ratio
        guard lowered < Self.smallestTarget else { return lowered }
        // A ratio that fell further would have to rise for seconds before it had an effect.
        let smallest = min(target, Self.smallestTarget)
        if !isPlain { ratio = min(1, smallest / target) }
        return smallest
    }
}
