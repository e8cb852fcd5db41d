package import MediaAuthoring

/// The capture times that a program states for its frames, as times of the monotonic clock. Receives the time.
///
/// Programs that read this clock keep their times. Those of another clock, such as the times of a film, are shifted by the
/// smallest distance to the arrivals, so that frames keep their distances however unevenly the program passes them.
package struct ProgramTimes: Sendable {
    /// How far times of the monotonic clock may lie behind their arrival, or, because clocks are read a moment apart, ahead.
    private static let (mostBehind, mostAhead): (Int128, Int128) = (1_000_000_000, 50_000_000)
    /// A clock that has moved so far was set, or stood still.
    private static let leap: Int128 = 1_000_000_000
    /// The share of a later arrival by which the shift follows clocks that drift.
    private static let drift: Int128 = 256

    /// From the program's clock to this one. Nil while the program reads this one.
    private var shift: Int128?
    private var last: UInt64 = 0

    package init() {}

    /// Returns the capture time of a frame that arrives now, later than that of the frame before, and not in the future.
    ///
    /// - Parameter time: nil if the program states none.
    package mutating func settle(_ time: MediaTime?, now: MediaTime) -> MediaTime {
        let now = Int128(now.nanoseconds)
        let settled = time.map { shifted(Int128($0.nanoseconds), now) } ?? now
        last = UInt64(clamping: max(min(settled, now), Int128(last) + 1))
        return MediaTime(nanoseconds: last)
    }

    private mutating func shifted(_ time: Int128, _ now: Int128) -> Int128 {
        let distance = now - time
        guard let shift else {
            if (-Self.mostAhead...Self.mostBehind).contains(distance) { return time }
            shift = distance
            return now
        }
        let change = distance - shift
        if change > Self.leap || change <= 0 {
            self.shift = distance
        } else {
            self.shift = shift + change / Self.drift
        }
        return time + (self.shift ?? distance)
    }
}
