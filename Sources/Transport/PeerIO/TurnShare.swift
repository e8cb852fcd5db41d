internal import RTP

/// The share of a turn that one kind of work has: a number of pieces, and no further piece once `time` has passed. The
/// first piece always runs. It is told the time.
struct TurnShare {
    /// A piece that takes longer, such as a packet for hundreds of subscribers, is the only one of its turn.
    static let time = TimeInterval.milliseconds(2)

    /// Pieces that ran.
    private(set) var used = 0
    private let pieces: Int
    private let end: MonotonicTime

    init(of pieces: Int, at now: MonotonicTime) {
        self.pieces = pieces
        end = now + Self.time
    }

    /// Counts a piece that ran. False when the rest has to wait for the next turn.
    @inline(__always)
    mutating func spend(at now: MonotonicTime) -> Bool {
        used += 1
        return used < pieces && now < end
    }
}

/// The most that any turn of a loop has done.
package struct TurnCounts: Sendable, Equatable {
    /// Pieces of work from other threads.
    package var work = 0
    /// Datagrams of one ICE agent or port.
    package var datagrams = 0
    package var timers = 0

    package init() {}

    /// The larger of each count.
    package func merged(with other: TurnCounts) -> TurnCounts {
        var merged = self
        merged.work = max(work, other.work)
        merged.datagrams = max(datagrams, other.datagrams)
        merged.timers = max(timers, other.timers)
        return merged
    }
}
