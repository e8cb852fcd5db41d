/// A point on the system's monotonic clock (CLOCK_MONOTONIC), in nanoseconds.
///
/// The transport core never reads a clock: every entry point receives the time.
public struct MonotonicTime: Hashable, Comparable, Sendable {
    public var nanoseconds: UInt64

    @inlinable public init(nanoseconds: UInt64) { self.nanoseconds = nanoseconds }

    @inlinable public static var zero: Self { Self(nanoseconds: 0) }
    /// Later than any event. The deadline if nothing is due.
    @inlinable public static var never: Self { Self(nanoseconds: .max) }

    @inlinable public static func == (a: Self, b: Self) -> Bool { a.nanoseconds == b.nanoseconds }
    @inlinable public static func < (a: Self, b: Self) -> Bool { a.nanoseconds < b.nanoseconds }

    @inlinable public static func + (time: Self, interval: TimeInterval) -> Self {
        guard time.nanoseconds != .max else { return .never }
        return MonotonicTime(nanoseconds: UInt64(max(0, Int64(time.nanoseconds) + interval.nanoseconds)))
    }

    @inlinable public static func - (a: Self, b: Self) -> TimeInterval {
        TimeInterval(nanoseconds: Int64(bitPattern: a.nanoseconds &- b.nanoseconds))
    }
}

/// A signed span of time in nanoseconds.
public struct TimeInterval: Hashable, Comparable, Sendable {
    public var nanoseconds: Int64

    @inlinable public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    @inlinable public static func microseconds(_ n: Int64) -> Self { Self(nanoseconds: n * 1000) }
    @inlinable public static func milliseconds(_ n: Int64) -> Self { Self(nanoseconds: n * 1_000_000) }
    @inlinable public static func seconds(_ n: Int64) -> Self { Self(nanoseconds: n * 1_000_000_000) }
    @inlinable public static var zero: Self { Self(nanoseconds: 0) }

    @inlinable public var milliseconds: Double { Double(nanoseconds) / 1e6 }
    @inlinable public var seconds: Double { Double(nanoseconds) / 1e9 }

    @inlinable public static func == (a: Self, b: Self) -> Bool { a.nanoseconds == b.nanoseconds }
    @inlinable public static func < (a: Self, b: Self) -> Bool { a.nanoseconds < b.nanoseconds }
    @inlinable public static func + (a: Self, b: Self) -> Self { Self(nanoseconds: a.nanoseconds + b.nanoseconds) }
    @inlinable public static func - (a: Self, b: Self) -> Self { Self(nanoseconds: a.nanoseconds - b.nanoseconds) }
    @inlinable public static func * (a: Self, n: Int64) -> Self { Self(nanoseconds: a.nanoseconds * n) }
    @inlinable public static func / (a: Self, n: Int64) -> Self { Self(nanoseconds: a.nanoseconds / n) }
}
