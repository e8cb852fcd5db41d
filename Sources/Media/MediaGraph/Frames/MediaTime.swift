/// A point in time on the machine's monotonic clock (CLOCK_MONOTONIC), in nanoseconds.
///
/// Everything in the media floor is stamped on this one clock, so that the time from capture to rendering inside one
/// machine is a subtraction.
@frozen
public struct MediaTime: Sendable, Hashable, Comparable, Codable {
    /// Nanoseconds since the clock's start.
    public var nanoseconds: UInt64

    public init(nanoseconds: UInt64) {
        self.nanoseconds = nanoseconds
    }

    public static func < (left: MediaTime, right: MediaTime) -> Bool {
        left.nanoseconds < right.nanoseconds
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

/// A rate of bits, in bits per second.
public struct Bitrate: Sendable, Hashable, Comparable, Codable, CustomStringConvertible {
    public var bitsPerSecond: Int

    public init(bitsPerSecond: Int) {
        self.bitsPerSecond = bitsPerSecond
    }

    public static func kilobitsPerSecond(_ value: Int) -> Bitrate {
        Bitrate(bitsPerSecond: value * 1000)
    }

    public var kilobitsPerSecond: Int { bitsPerSecond / 1000 }

    public static func < (left: Bitrate, right: Bitrate) -> Bool {
        left.bitsPerSecond < right.bitsPerSecond
    }

    public var description: String { "\(kilobitsPerSecond) kbit/s" }
}
