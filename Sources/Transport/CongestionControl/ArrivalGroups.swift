internal import RTP

/// Groups packets that were sent within 5 ms of each other, and compares when groups were sent and when they arrived
/// (draft-ietf-rmcat-gcc-02, sections 5.2 and 5.3).
///
/// Packets that arrive in a burst, faster than they were sent, belong to one group too: a queue on their way released
/// them together, for example a Wi-Fi driver or a receiver that stood still.
struct ArrivalGroups: Sendable {
    /// How much later than the group before a group was sent, and how much later it arrived.
    struct Delta: Equatable {
        var sent: TimeInterval
        var arrival: TimeInterval
    }

    static let span = TimeInterval.milliseconds(5)
    /// Packets of a burst arrive at most this far apart.
    static let burstGap = TimeInterval.milliseconds(5)
    static let longestBurst = TimeInterval.milliseconds(100)
    /// A receiver's clock that moved further than ours was set, and says nothing about the network.
    static let clockJump = TimeInterval.seconds(3)
    /// After this many groups in the wrong order, the comparison starts again.
    static let toleratedReordering = 3

    private struct Group {
        var firstSent: MonotonicTime
        var lastSent: MonotonicTime
        var firstArrival: MonotonicTime
        var lastArrival: MonotonicTime
        /// When the feedback about its last packet was read.
        var reported: MonotonicTime
    }

    private var current: Group?
    private var previous: Group?
    private var reordered = 0

    /// Adds a packet. Returns a delta when it completes a group.
    mutating func add(sent: MonotonicTime, arrival: MonotonicTime, now: MonotonicTime) -> Delta? {
        guard var group = current else {
            current = Group(
                firstSent: sent, lastSent: sent, firstArrival: arrival, lastArrival: arrival, reported: now)
            return nil
        }
        guard sent >= group.firstSent else { return nil }
        guard !isBurst(group, sent, arrival), sent - group.firstSent > Self.span else {
            group.lastSent = max(group.lastSent, sent)
            group.lastArrival = arrival
            group.reported = now
            current = group
            return nil
        }
        var delta: Delta?
        if let previous {
            guard let compared = compare(group, previous) else { return nil }
            delta = compared
        }
        previous = group
        current = Group(firstSent: sent, lastSent: sent, firstArrival: arrival, lastArrival: arrival, reported: now)
        return delta
    }

    /// Nil if the two say nothing about the network.
    private mutating func compare(_ group: Group, _ previous: Group) -> Delta? {
        let arrival = group.lastArrival - previous.lastArrival
        guard arrival - (group.reported - previous.reported) < Self.clockJump else {
            self = ArrivalGroups()
            return nil
        }
        guard arrival >= .zero else {
            reordered += 1
            if reordered >= Self.toleratedReordering { self = ArrivalGroups() }
            return nil
        }
        reordered = 0
        return Delta(sent: group.lastSent - previous.lastSent, arrival: arrival)
    }

    private func isBurst(_ group: Group, _ sent: MonotonicTime, _ arrival: MonotonicTime) -> Bool {
        let sentLater = sent - group.lastSent
        let arrivedLater = arrival - group.lastArrival
        if sentLater == .zero { return true }
        return arrivedLater < sentLater && arrivedLater <= Self.burstGap
            && arrival - group.firstArrival < Self.longestBurst
    }
}
