public import RTP

/// Bits per second. Arithmetic never traps, whatever a peer reports.
public struct DataRate: Hashable, Comparable, Sendable {
    public var bitsPerSecond: Double

    public init(bitsPerSecond: Double) { self.bitsPerSecond = bitsPerSecond }

    /// The rate of `bytes` within `time`. `.unlimited` for no time.
    public init(bytes: Double, in time: TimeInterval) {
        bitsPerSecond = time > .zero ? bytes * 8 / time.seconds : .infinity
    }

    public static let zero = DataRate(bitsPerSecond: 0)
    public static let unlimited = DataRate(bitsPerSecond: .infinity)
    public static func kilobits(_ n: Double) -> Self { Self(bitsPerSecond: n * 1000) }

    public var kilobits: Double { bitsPerSecond / 1000 }
    public var isLimited: Bool { bitsPerSecond.isFinite }

    /// The bytes that this rate carries within `time`.
    public func bytes(in time: TimeInterval) -> Double { bitsPerSecond / 8 * time.seconds }

    /// How long `bytes` take. At most an hour.
    public func time(for bytes: Double) -> TimeInterval {
        let seconds = bytes * 8 / max(bitsPerSecond, 1)
        return TimeInterval(nanoseconds: Int64(min(max(seconds, 0), 3600) * 1e9))
    }

    public static func < (a: Self, b: Self) -> Bool { a.bitsPerSecond < b.bitsPerSecond }
    public static func * (a: Self, b: Double) -> Self { Self(bitsPerSecond: a.bitsPerSecond * b) }
    public static func / (a: Self, b: Self) -> Double { a.bitsPerSecond / b.bitsPerSecond }
    public static func + (a: Self, b: Self) -> Self { Self(bitsPerSecond: a.bitsPerSecond + b.bitsPerSecond) }
    public static func - (a: Self, b: Self) -> Self { Self(bitsPerSecond: a.bitsPerSecond - b.bitsPerSecond) }
}
