/// A synchronization source identifier (RFC 3550 section 3).
public struct SSRC: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public var rawValue: UInt32

    @inlinable public init(rawValue: UInt32) { self.rawValue = rawValue }
    @inlinable public init(_ value: UInt32) { rawValue = value }

    public var description: String { String(rawValue) }
}

/// An RTP sequence number, which wraps at 65536.
///
/// "Newer" means less than half a turn ahead, as in RFC 1982. This is not a total order, so the type is not
/// `Comparable`.
public struct SequenceNumber: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public var rawValue: UInt16

    @inlinable public init(rawValue: UInt16) { self.rawValue = rawValue }
    @inlinable public init(_ value: UInt16) { rawValue = value }

    /// Steps from `other` to here, -32768...32767.
    @inlinable public func distance(from other: SequenceNumber) -> Int {
        Int(Int16(bitPattern: rawValue &- other.rawValue))
    }

    @inlinable public func isNewer(than other: SequenceNumber) -> Bool { distance(from: other) > 0 }

    @inlinable public func advanced(by steps: Int) -> SequenceNumber {
        SequenceNumber(rawValue &+ UInt16(truncatingIfNeeded: steps))
    }

    public var description: String { String(rawValue) }
}

/// An RTP timestamp in units of the stream's clock rate, which wraps at 2^32.
public struct RTPTimestamp: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public var rawValue: UInt32

    @inlinable public init(rawValue: UInt32) { self.rawValue = rawValue }
    @inlinable public init(_ value: UInt32) { rawValue = value }

    /// Ticks from `other` to here, less than half a turn in either direction.
    @inlinable public func distance(from other: RTPTimestamp) -> Int {
        Int(Int32(bitPattern: rawValue &- other.rawValue))
    }

    @inlinable public func isNewer(than other: RTPTimestamp) -> Bool { distance(from: other) > 0 }

    @inlinable public func advanced(by ticks: Int) -> RTPTimestamp {
        RTPTimestamp(rawValue &+ UInt32(truncatingIfNeeded: ticks))
    }

    public var description: String { String(rawValue) }
}

/// Extends sequence numbers to numbers without wrap, so that 65536 follows 65535.
///
/// The first number is increased by one turn, so that older packets that arrive late stay positive.
public struct SequenceUnwrapper: Sendable {
    public private(set) var highest: Int?

    public init() {}

    /// The extended number closest to the highest one so far.
    public func extended(_ number: SequenceNumber) -> Int {
        guard let highest else { return Int(number.rawValue) + 65536 }
        return highest + number.distance(from: SequenceNumber(UInt16(truncatingIfNeeded: highest)))
    }

    /// Extends the number and remembers it if it is the highest.
    public mutating func unwrap(_ number: SequenceNumber) -> Int {
        let value = extended(number)
        if value > (highest ?? Int.min) { highest = value }
        return value
    }
}

/// Wall-clock time of RTCP: 32.32 fixed-point seconds since 1900 (RFC 3550, section 4).
public struct NTPTime: RawRepresentable, Hashable, Sendable {
    public var rawValue: UInt64

    public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// From nanoseconds since 1970 (CLOCK_REALTIME).
    public init(unixNanoseconds: UInt64) {
        let seconds = unixNanoseconds / 1_000_000_000 &+ 2_208_988_800
        let fraction = ((unixNanoseconds % 1_000_000_000) << 32) / 1_000_000_000
        rawValue = seconds << 32 | fraction
    }

    /// Nanoseconds since 1970; dates before are 0.
    public var unixNanoseconds: UInt64 {
        let seconds = rawValue >> 32
        guard seconds >= 2_208_988_800 else { return 0 }
        let fraction = ((rawValue & 0xffff_ffff) &* 1_000_000_000) >> 32
        return (seconds - 2_208_988_800) * 1_000_000_000 + fraction
    }

    /// The middle 32 bits, for LSR.
    public var compact: UInt32 { UInt32(truncatingIfNeeded: rawValue >> 16) }

    public func advanced(by interval: TimeInterval) -> NTPTime {
        let magnitude = interval.nanoseconds.magnitude
        let units = (magnitude / 1_000_000_000) << 32 | ((magnitude % 1_000_000_000) << 32) / 1_000_000_000
        return NTPTime(rawValue: interval.nanoseconds < 0 ? rawValue &- units : rawValue &+ units)
    }

    /// The time from `other` to here: less than 68 years in either direction, because the seconds wrap in 2036.
    public func interval(since other: NTPTime) -> TimeInterval {
        TimeInterval(ntpUnits: Int64(bitPattern: rawValue &- other.rawValue))
    }
}

extension TimeInterval {
    /// From units of 2^-32 s.
    public init(ntpUnits units: Int64) {
        // Rounded, so that a time that became units is the same again.
        let fraction = ((units & 0xffff_ffff) * 1_000_000_000 + 0x8000_0000) >> 32
        self.init(nanoseconds: (units >> 32) * 1_000_000_000 + fraction)
    }
}

extension RTPTimestamp {
    /// The time from `other` to here.
    public func interval(since other: RTPTimestamp, clockRate: UInt32) -> TimeInterval {
        TimeInterval(nanoseconds: Int64(distance(from: other)) * 1_000_000_000 / Int64(max(clockRate, 1)))
    }
}
