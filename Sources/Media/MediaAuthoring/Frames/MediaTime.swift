/// A point in time on the machine's monotonic clock (CLOCK_MONOTONIC), in nanoseconds.
///
/// Every frame and audio buffer carries a time on this one clock, so latency within one machine is a subtraction:
/// `frame.handedOver - frame.captureTime`. Add and subtract a `Duration` to shift a time.
@frozen
public struct MediaTime: Sendable, Hashable, Comparable, Codable {
    /// Nanoseconds since the clock started, usually at boot.
    public var nanoseconds: UInt64

    /// The time this many nanoseconds after the start of the clock.
    public init(nanoseconds: UInt64) {
        self.nanoseconds = nanoseconds
    }

    public static func < (left: MediaTime, right: MediaTime) -> Bool {
        left.nanoseconds < right.nanoseconds
    }

    /// The time from `right` to `left`; negative when `right` is the later one.
    public static func - (left: MediaTime, right: MediaTime) -> Duration {
        .nanoseconds(Int64(truncatingIfNeeded: left.nanoseconds &- right.nanoseconds))
    }

    /// A later time. Stops at the ends of the clock's range, which lasts 584 years.
    public static func + (time: MediaTime, duration: Duration) -> MediaTime {
        MediaTime(nanoseconds: UInt64(clamping: Int128(time.nanoseconds) + duration.attoseconds / 1_000_000_000))
    }

    /// An earlier time. Stops at the ends of the clock's range.
    public static func - (time: MediaTime, duration: Duration) -> MediaTime {
        time + (.zero - duration)
    }

    /// Seconds from `earlier` to this time; negative when `earlier` is the later one.
    public func seconds(since earlier: MediaTime) -> Double {
        if self >= earlier { return Double(nanoseconds - earlier.nanoseconds) / 1e9 }
        return -Double(earlier.nanoseconds - nanoseconds) / 1e9
    }

    /// Milliseconds from `earlier` to this time; negative when `earlier` is the later one.
    public func milliseconds(since earlier: MediaTime) -> Double {
        seconds(since: earlier) * 1e3
    }
}
