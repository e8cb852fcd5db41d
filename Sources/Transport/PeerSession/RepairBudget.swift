import RTP

/// The bytes available for repairs: a share of the sending rate, and a minimum. A peer that requests everything
/// repeatedly gets no more than this.
struct RepairBudget {
    /// Percent of the sending rate. More loss calls for a lower bitrate, not for more repairs.
    static let share = 30
    /// Additional bytes per second: 100 kbit/s, so that a quiet stream is repaired too.
    static let floor: Int64 = 12_500
    /// The most bytes that accumulate: about one keyframe.
    static let capacity = 64 * 1024

    private var bytes = RepairBudget.capacity
    private var floorSince: MonotonicTime?

    mutating func sent(_ count: Int) {
        // Rounding loses less than a byte, which does not matter.
        bytes = min(Self.capacity, bytes + count * Self.share / 100)
    }

    /// Uses `count` bytes if they are available.
    ///
    /// - Parameter isSpare: whether half of the capacity has to remain for others
    mutating func take(_ count: Int, isSpare: Bool = false, now: MonotonicTime) -> Bool {
        let elapsed = min(max(0, (now - (floorSince ?? now)).nanoseconds), 10_000_000_000)
        let earned = elapsed * Self.floor / 1_000_000_000
        if earned > 0 || floorSince == nil { floorSince = now }
        bytes = min(Self.capacity, bytes + Int(earned))
        guard bytes >= count + (isSpare ? Self.capacity / 2 : 0) else { return false }
        bytes -= count
        return true
    }
}
