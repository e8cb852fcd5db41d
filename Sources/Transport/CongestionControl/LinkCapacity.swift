/// The link's capacity as the rates show at which its queue grew, with a variance. Unknown until the first of them, and
/// after a rate far from them.
struct LinkCapacity: Sendable {
    static let weight = 0.05
    static let probeWeight = 0.5
    /// The variance relative to the capacity in kbit/s: 14 to 35 kbit/s at 500 kbit/s.
    static let deviations = 0.4...2.5

    private(set) var estimate: DataRate?
    private var deviation = 0.4

    /// Three standard deviations above and below.
    var upperBound: DataRate { estimate.map { $0 + .kilobits(3 * standardDeviation($0)) } ?? .unlimited }
    var lowerBound: DataRate { estimate.map { max(.zero, $0 - .kilobits(3 * standardDeviation($0))) } ?? .zero }

    mutating func forget() { estimate = nil }

    /// A probe filled the link.
    mutating func probed(_ rate: DataRate) { add(rate, weight: Self.probeWeight) }

    /// The queue grew while the receiver acknowledged this rate.
    mutating func overused(acknowledged rate: DataRate) { add(rate, weight: Self.weight) }

    private mutating func add(_ rate: DataRate, weight: Double) {
        let before = estimate ?? rate
        let after = before * (1 - weight) + rate * weight
        estimate = after
        let error = after.kilobits - rate.kilobits
        let sample = error * error / max(after.kilobits, 1)
        deviation = (1 - weight) * deviation + weight * sample
        deviation = min(max(deviation, Self.deviations.lowerBound), Self.deviations.upperBound)
    }

    private func standardDeviation(_ rate: DataRate) -> Double { (deviation * rate.kilobits).squareRoot() }
}
