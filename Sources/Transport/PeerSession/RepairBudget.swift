import RTP

/// Bytes that repairs may take: a share of what is sent anyway, and a floor. A peer that asks for everything over and
/// over gets no more than this.
struct RepairBudget {
    /// Percent of the sending rate. Loss beyond it calls for a lower bitrate, not for more repairs.
    static let share = 30
    /// Bytes per second on top: 100 kbit/s, so that a quiet stream is repaired too.
    static let floor: Int64 = 12_500
    /// Most that is saved up: a keyframe's worth.
    static let capacity = 64 * 1024

    private var bytes = RepairBudget.capacity
    private var floorSince: MonotonicTime?

    mutating func sent(_ count: Int) {
        // In hundredths it would be exact; a byte more or less does not matter.
        bytes = min(Self.capacity, bytes + count * Self.share / 100)
    }

    /// Takes `count` bytes if they are there.
    mutating func take(_ count: Int, now: MonotonicTime) -> Bool {
        let elapsed = min(max(0, (now - (floorSince ?? now)).nanoseconds), 10_000_000_000)
        let earned = elapsed * Self.floor / 1_000_000_000
        if earned > 0 || floorSince == nil { floorSince = now }
        bytes = min(Self.capacity, bytes + Int(earned))
        guard bytes >= count else { return false }
        bytes -= count
        return true
    }
}
