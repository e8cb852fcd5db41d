/// Detects missing packets of one stream and schedules the requests for them (RFC 4585, section 6.2.1).
///
/// A gap may be mere reordering until `reorderTime` has passed or `reorderPackets` later packets have arrived. Then the
/// packet is requested immediately, and again every round trip, but not more often than `minimumInterval`, until it is
/// given up.
public struct NackGenerator: Sendable {
    public struct Limits: Sendable {
        public var reorderPackets = 3
        public var reorderTime = TimeInterval.milliseconds(10)
        public var minimumInterval = TimeInterval.milliseconds(20)
        /// A live stream has moved on by then.
        public var giveUpAfter = TimeInterval.seconds(1)
        public var maximumTries = 10
        /// If more packets are missing, all are given up.
        public var maximumMissing = 500

        public init() {}
    }

    /// The meaning of an arrived packet.
    public enum Arrival: Sendable, Equatable {
        case inOrder
        /// It was missing, and was requested `tries` times, first at `firstAsked`.
        case recovered(tries: Int, firstAsked: MonotonicTime)
        /// It opened a gap, or was not missing.
        case other
    }

    @usableFromInline
    struct Missing: Sendable {
        var number: Int
        var since: MonotonicTime
        var tries = 0
        var firstAsked = MonotonicTime.zero
        var askedAt = MonotonicTime.zero
    }

    public var limits: Limits
    /// Ascending.
    @usableFromInline var missing: [Missing] = []
    private var highest: Int?
    /// The number of the first packet.
    private var lowest: Int?
    /// Total number of packets given up.
    public private(set) var abandoned = 0
    @usableFromInline var abandonedBefore = 0

    public init(limits: Limits = Limits()) {
        self.limits = limits
        missing.reserveCapacity(limits.maximumMissing)
    }

    public var missingCount: Int { missing.count }

    /// Starts over, for a restarted stream.
    public mutating func reset() {
        abandoned += missing.count
        abandonedBefore = abandoned
        missing.removeAll(keepingCapacity: true)
        highest = nil
        lowest = nil
    }

    /// Stops requesting packets before this number.
    public mutating func forget(before number: Int) {
        missing.removeAll { $0.number < number }
        if let highest { self.highest = max(highest, number - 1) }
    }

    /// Sets the number with which a stream begins, so that its first packets are requested even if others came first.
    public mutating func begin(at number: Int, now: MonotonicTime) {
        guard let lowest else {
            highest = number - 1
            lowest = number
            return
        }
        guard number < lowest, missing.count + lowest - number <= limits.maximumMissing else { return }
        self.lowest = number
        missing.insert(contentsOf: (number..<lowest).map { Missing(number: $0, since: now) }, at: 0)
    }

    /// Records the extended sequence number of a new packet.
    public mutating func receive(_ number: Int, now: MonotonicTime) -> Arrival {
        guard let highest else {
            self.highest = number
            lowest = number
            return .inOrder
        }
        if number == highest + 1 {
            self.highest = number
            return .inOrder
        }
        if number > highest {
            self.highest = number
            open(gap: (highest + 1)..<number, now: now)
            return .other
        }
        guard let index = position(of: number) else { return .other }
        let found = missing.remove(at: index)
        return .recovered(tries: found.tries, firstAsked: found.firstAsked)
    }

    private mutating func open(gap: Range<Int>, now: MonotonicTime) {
        if missing.count + gap.count > limits.maximumMissing {
            abandoned += missing.count + gap.count
            missing.removeAll(keepingCapacity: true)
            return
        }
        for number in gap { missing.append(Missing(number: number, since: now)) }
    }

    private func position(of number: Int) -> Int? {
        var low = 0
        var high = missing.count
        while low < high {
            let middle = (low + high) / 2
            if missing[middle].number < number { low = middle + 1 } else { high = middle }
        }
        return low < missing.count && missing[low].number == number ? low : nil
    }

    private func due(_ entry: Missing, _ interval: TimeInterval) -> MonotonicTime {
        if entry.tries > 0 { return entry.askedAt + interval }
        let isPassed = (highest ?? 0) >= entry.number + limits.reorderPackets
        return isPassed ? entry.since : entry.since + limits.reorderTime
    }

    /// When `collect` is due next.
    // Inlinable, so that a stream that misses nothing, which is asked after each packet, is not copied for the call.
    @inlinable
    public func nextTimeout(roundTrip: TimeInterval) -> MonotonicTime {
        if abandoned != abandonedBefore { return .zero }
        return missing.isEmpty ? .never : firstDue(roundTrip: roundTrip)
    }

    @usableFromInline
    func firstDue(roundTrip: TimeInterval) -> MonotonicTime {
        let interval = max(roundTrip, limits.minimumInterval)
        var next = MonotonicTime.never
        for entry in missing { next = min(next, due(entry, interval)) }
        return next
    }

    /// Appends the numbers to request now, ascending. Gives up those requested too often or for too long. Returns false
    /// if any were given up since the last call, so that the stream has a permanent gap.
    public mutating func collect(
        into lost: inout [SequenceNumber], now: MonotonicTime, roundTrip: TimeInterval
    ) -> Bool {
        let interval = max(roundTrip, limits.minimumInterval)
        let limits = limits
        let before = missing.count
        missing.removeAll { entry in
            now - entry.since >= limits.giveUpAfter
                || (entry.tries >= limits.maximumTries && now >= entry.askedAt + interval)
        }
        abandoned += before - missing.count
        for index in missing.indices where due(missing[index], interval) <= now {
            if missing[index].tries == 0 { missing[index].firstAsked = now }
            missing[index].tries += 1
            missing[index].askedAt = now
            lost.append(SequenceNumber(UInt16(truncatingIfNeeded: missing[index].number)))
        }
        defer { abandonedBefore = abandoned }
        return abandoned == abandonedBefore
    }
}
