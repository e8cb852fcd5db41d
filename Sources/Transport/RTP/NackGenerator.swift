/// How long the path takes for a request and its response.
public struct RepairTiming: Sendable, Equatable {
    public var roundTrip: TimeInterval
    /// A response is seldom later than this after its request.
    public var response: TimeInterval

    public init(roundTrip: TimeInterval, response: TimeInterval) {
        self.roundTrip = roundTrip
        self.response = max(response, roundTrip)
    }

    /// Before a measurement: suits a regional path and a call.
    public static let unknown = RepairTiming(roundTrip: .milliseconds(30), response: .milliseconds(30))
}

/// Detects missing packets of one stream and schedules the requests for them (RFC 4585, section 6.2.1).
///
/// A gap may be mere reordering until `reorderTime` has passed or `reorderPackets` later packets have arrived. Then the
/// packet is requested immediately, and again if there is no response after a round trip. Few packets need a third
/// request, so that and later ones follow after a third of a round trip: a duplicate costs less than a packet that is
/// too late. If a request at its usual time had no response in time for the playout, it leaves earlier, even if the
/// response to the one before may still come. When `playoutDelay` has passed, the packet is given up.
public struct NackGenerator: Sendable {
    private static let reorderPackets = 3
    private static let reorderTime = TimeInterval.milliseconds(10)
    private static let minimumInterval = TimeInterval.milliseconds(20)
    /// The gap between two packets that may be due to the path. The rest is a pause of the stream.
    private static let longestGap = TimeInterval.milliseconds(100)
    private static let maximumTries = 16
    /// Before the round trip is measured.
    private static let maximumBlindTries = 4
    /// If more packets are missing, all are given up.
    static let maximumMissing = 500

    /// The meaning of an arrived packet.
    public enum Arrival: Sendable, Equatable {
        case inOrder
        /// It was missing, and was requested `tries` times, first at `firstAsked`.
        case recovered(tries: Int, firstAsked: MonotonicTime)
        /// As `recovered`, but it was given up before, and requested within `RepairBounds.longestWait`. Tells how distant
        /// the peer is.
        case givenUp(tries: Int, firstAsked: MonotonicTime)
        /// It opened a gap, or was not missing.
        case other
    }

    @usableFromInline
    struct Missing: Sendable {
        var number: Int
        var since: MonotonicTime
        /// When it is due for playout, at the latest.
        var deadline: MonotonicTime
        var tries = 0
        var firstAsked = MonotonicTime.zero
        var askedAt = MonotonicTime.zero
    }

    /// Ascending.
    @usableFromInline var missing: [Missing] = []
    /// The latest packets that were requested and given up, oldest first.
    private var givenUp: [Missing] = []
    private static let rememberedGivenUp = 16
    private var highest: Int?
    /// When the packet with the highest number arrived.
    private var highestAt = MonotonicTime.zero
    /// The number of the first packet.
    private var lowest: Int?
    /// Total number of packets given up.
    public private(set) var abandoned = 0
    @usableFromInline var abandonedBefore = 0

    public init() {
        missing.reserveCapacity(Self.maximumMissing)
    }

    public var missingCount: Int { missing.count }

    /// Starts over, for a restarted stream.
    public mutating func reset() {
        abandoned += missing.count
        abandonedBefore = abandoned
        missing.removeAll(keepingCapacity: true)
        givenUp.removeAll(keepingCapacity: true)
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
        guard number < lowest, missing.count + lowest - number <= Self.maximumMissing else { return }
        self.lowest = number
        let deadline = now + RepairBounds.playoutDelay
        missing.insert(
            contentsOf: (number..<lowest).map { Missing(number: $0, since: now, deadline: deadline) }, at: 0)
    }

    /// Records the extended sequence number of a new packet.
    public mutating func receive(_ number: Int, now: MonotonicTime) -> Arrival {
        guard let highest else {
            self.highest = number
            lowest = number
            highestAt = now
            return .inOrder
        }
        if number > highest {
            let before = highestAt
            self.highest = number
            highestAt = now
            if number == highest + 1 { return .inOrder }
            open(gap: (highest + 1)..<number, after: before, now: now)
            return .other
        }
        guard let index = position(of: number) else {
            guard let place = givenUp.firstIndex(where: { $0.number == number }) else { return .other }
            let late = givenUp.remove(at: place)
            // Senders repeat packets as padding, too. Such a repeat may come much later.
            guard now - late.firstAsked <= RepairBounds.longestWait else { return .other }
            return .givenUp(tries: late.tries, firstAsked: late.firstAsked)
        }
        let found = missing.remove(at: index)
        return .recovered(tries: found.tries, firstAsked: found.firstAsked)
    }

    private mutating func open(gap: Range<Int>, after last: MonotonicTime, now: MonotonicTime) {
        if missing.count + gap.count > Self.maximumMissing {
            abandoned += missing.count + gap.count
            missing.removeAll(keepingCapacity: true)
            return
        }
        // The packets may have been due right after the last one.
        let deadline = max(last, now + (.zero - Self.longestGap)) + RepairBounds.playoutDelay
        for number in gap { missing.append(Missing(number: number, since: now, deadline: deadline)) }
    }

    private mutating func remember(_ entry: Missing) {
        if givenUp.count == Self.rememberedGivenUp { givenUp.removeFirst() }
        givenUp.append(entry)
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

    /// When to give the packet up. The response to the first request counts even if it is late: a forwarded packet may be in
    /// time for another receiver, and a keyframe costs more.
    ///
    /// - Parameter response: the latest time of it.
    private static func end(of entry: Missing, _ response: TimeInterval) -> MonotonicTime {
        max(entry.deadline, entry.since + response)
    }

    /// When to request the packet. `.never` if no response would be in time.
    private func due(_ entry: Missing, _ timing: RepairTiming) -> MonotonicTime {
        guard entry.tries > 0 else {
            // One request costs little, even if the measured round trip leaves no time for it.
            let isPassed = (highest ?? 0) >= entry.number + Self.reorderPackets
            return isPassed ? entry.since : entry.since + Self.reorderTime
        }
        // Without a measured round trip, many requests may be on their way to a distant peer.
        let most = timing == .unknown ? Self.maximumBlindTries : Self.maximumTries
        guard entry.tries < most else { return .never }
        let isFirst = entry.tries == 1
        let usual = isFirst ? timing.response : timing.roundTrip / 3
        let shortest = isFirst ? timing.roundTrip / 2 : timing.roundTrip / 8
        let last = entry.deadline + (.zero - timing.response)
        let next = entry.askedAt + max(usual, Self.minimumInterval)
        if next <= last { return next }
        let early = entry.askedAt + max(shortest, Self.minimumInterval)
        return early <= last ? early : .never
    }

    /// When `collect` is due next.
    // Inlinable, so that a stream that misses nothing, which is asked after each packet, is not copied for the call.
    @inlinable
    public func nextTimeout(_ timing: RepairTiming) -> MonotonicTime {
        if abandoned != abandonedBefore { return .zero }
        return missing.isEmpty ? .never : firstDue(timing)
    }

    @usableFromInline
    func firstDue(_ timing: RepairTiming) -> MonotonicTime {
        var next = MonotonicTime.never
        let response = min(timing.response + Self.longestGap, RepairBounds.longestAge)
        for entry in missing { next = min(next, min(due(entry, timing), Self.end(of: entry, response))) }
        return next
    }

    /// Appends the numbers to request now, ascending. Gives up those whose deadline has passed. Returns false if any were
    /// given up since the last call, so that the stream has a permanent gap.
    public mutating func collect(
        into lost: inout [SequenceNumber], now: MonotonicTime, _ timing: RepairTiming
    ) -> Bool {
        let before = missing.count
        let response = min(timing.response + Self.longestGap, RepairBounds.longestAge)
        for entry in missing where entry.tries > 0 && now >= Self.end(of: entry, response) { remember(entry) }
        missing.removeAll { now >= Self.end(of: $0, response) }
        abandoned += before - missing.count
        for index in missing.indices where due(missing[index], timing) <= now {
            if missing[index].tries == 0 { missing[index].firstAsked = now }
            missing[index].tries += 1
            missing[index].askedAt = now
            lost.append(SequenceNumber(UInt16(truncatingIfNeeded: missing[index].number)))
        }
        defer { abandonedBefore = abandoned }
        return abandoned == abandonedBefore
    }
}

/// The times within which a lost packet is worth its repair.
public enum RepairBounds {
    /// The longest time that a receiver delays the playout of media, so that repairs are in time.
    public static let playoutDelay = TimeInterval.milliseconds(400)
    /// A sender repeats no packets older than this. They would be too late for this project's receivers; browsers wait a
    /// little longer.
    public static let longestAge = TimeInterval.seconds(1)
    /// A response comes no later than this after the first request: a packet of the longest age, delayed a little.
    static let longestWait = longestAge + TimeInterval.milliseconds(500)
}
