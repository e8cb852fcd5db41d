internal import RTP

/// Lowers the target while more bytes are on their way than the path should hold: congestion-window pushback.
struct CongestionWindow: Sendable {
    /// The time beyond the round trip for which bytes may be on their way.
    static let queue = TimeInterval.milliseconds(350)
    static let minimumBytes = 3000.0
    static let smallestTarget = DataRate.kilobits(30)
    static let roundTrips = 32

    /// In bytes. Nil before the first round trip.
    private(set) var bytes: Double?
    private var trips = Ring<TimeInterval>(capacity: Self.roundTrips + 1)
    private var ratio = 1.0

    /// - Parameter roundTrip: the longest one of a feedback
    mutating func add(roundTrip: TimeInterval, target: DataRate) {
        trips.append(roundTrip)
        if trips.count > Self.roundTrips { trips.removeFirst() }
        var shortest = roundTrip
        for index in 0..<trips.count { shortest = min(shortest, trips[index]) }
        let wished = target.bytes(in: shortest + Self.queue)
        bytes = max(Self.minimumBytes, bytes.map { (wished + $0) / 2 } ?? wished)
    }

    /// The target while `inFlight` bytes are on their way. Called once for each feedback.
    mutating func lowered(_ target: DataRate, inFlight: Double) -> DataRate {
        guard let bytes else { return target }
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
        return lowered < Self.smallestTarget ? min(target, Self.smallestTarget) : lowered
    }
}
