/// A point on the system's monotonic clock (CLOCK_MONOTONIC), in nanoseconds.
///
/// The transport core never reads a clock: every entry point receives the time.
public struct MonotonicTime: Hashable, Comparable, Sendable {
    public var nanoseconds: UInt64

    public init(nanoseconds: UInt64) { self.nanoseconds = nanoseconds }

    public static let zero = MonotonicTime(nanoseconds: 0)
    /// Later than any event. The deadline if nothing is due.
    public static let never = MonotonicTime(nanoseconds: .max)

    public static func < (a: Self, b: Self) -> Bool { a.nanoseconds < b.nanoseconds }

    public static func + (time: Self, interval: TimeInterval) -> Self {
        guard time != .never else { return .never }
        return MonotonicTime(nanoseconds: UInt64(max(0, Int64(time.nanoseconds) + interval.nanoseconds)))
    }

    public static func - (a: Self, b: Self) -> TimeInterval {
        TimeInterval(nanoseconds: Int64(bitPattern: a.nanoseconds &- b.nanoseconds))
    }
}

/// A signed span of time in nanoseconds.
public struct TimeInterval: Hashable, Comparable, Sendable {
    public var nanoseconds: Int64

    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    public static func microseconds(_ n: Int64) -> Self { Self(nanoseconds: n * 1000) }
    public static func milliseconds(_ n: Int64) -> Self { Self(nanoseconds: n * 1_000_000) }
    public static func seconds(_ n: Int64) -> Self { Self(nanoseconds: n * 1_000_000_000) }
    public static let zero = TimeInterval(nanoseconds: 0)

    public var milliseconds: Double { Double(nanoseconds) / 1e6 }
    public var seconds: Double { Double(nanoseconds) / 1e9 }

    public static func < (a: Self, b: Self) -> Bool { a.nanoseconds < b.nanoseconds }
    public static func + (a: Self, b: Self) -> Self { Self(nanoseconds: a.nanoseconds + b.nanoseconds) }
    public static func - (a: Self, b: Self) -> Self { Self(nanoseconds: a.nanoseconds - b.nanoseconds) }
    public static func * (a: Self, n: Int64) -> Self { Self(nanoseconds: a.nanoseconds * n) }
    public static func / (a: Self, n: Int64) -> Self { Self(nanoseconds: a.nanoseconds / n) }
}
