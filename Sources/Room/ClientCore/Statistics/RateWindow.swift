package import RTP

/// The rate of a growing counter over about two seconds unless another time is given, from two samples a second.
package struct RateWindow {
    private static let capacity = 8
    private let length: TimeInterval
    private var samples: [(time: MonotonicTime, count: Int)] = []

    package init(over length: TimeInterval = .seconds(2)) { self.length = length }

    package mutating func sample(_ count: Int, now: MonotonicTime) {
        samples.append((now, count))
        if samples.count > Self.capacity || samples.count > 2 && now - samples[1].time >= length {
            samples.removeFirst()
        }
    }

    /// The rate begins again with the next sample.
    package mutating func forget() { samples.removeAll(keepingCapacity: true) }

    /// Nil before two samples.
    package var measured: Double? { samples.count > 1 ? rate : nil }

    /// Per second. 0 before two samples.
    package var rate: Double {
        guard let first = samples.first, let last = samples.last, last.time > first.time else { return 0 }
        return Double(last.count - first.count) / (last.time - first.time).seconds
    }
}
