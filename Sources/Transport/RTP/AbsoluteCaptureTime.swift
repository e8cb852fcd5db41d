/// When the frame of a packet was captured, as the header extension `abs-capture-time` carries it
/// (https://webrtc.org/experiments/rtp-hdrext/abs-capture-time).
public struct AbsoluteCaptureTime: Sendable, Hashable {
    /// By the NTP clock of the system that captured, which is that of its sender reports.
    public var timestamp: NTPTime
    /// The sender's estimate of its NTP clock's difference: capture clock = clock of the sender's reports + this. In units
    /// of 2^-32 s, 0 if the sender captured the frame itself. Nil if the sender does not tell it.
    public var clockOffset: Int64?

    public init(_ timestamp: NTPTime, clockOffset: Int64?) {
        self.timestamp = timestamp
        self.clockOffset = clockOffset
    }

    /// How far receivers compute the capture times of other frames from one.
    public static let reach = TimeInterval.seconds(5)

    /// The capture time of a frame that the same machine captured later.
    public func advanced(by interval: TimeInterval) -> AbsoluteCaptureTime {
        AbsoluteCaptureTime(timestamp.advanced(by: interval), clockOffset: clockOffset)
    }

    /// The length of the longest value.
    static let maximumLength = 16

    /// The value's length in bytes.
    var length: Int { clockOffset == nil ? 8 : 16 }

    /// Reads the value of a header extension element. Nil if it has another length than 8 or 16.
    init?(_ bytes: borrowing [UInt8], _ range: Range<Int>) {
        guard range.count == 8 || range.count == 16, range.upperBound <= bytes.count else { return nil }
        timestamp = NTPTime(rawValue: Self.read(bytes, range.lowerBound))
        clockOffset = range.count == 16 ? Int64(bitPattern: Self.read(bytes, range.lowerBound + 8)) : nil
    }

    /// Writes `length` bytes.
    func write(to bytes: inout MutableSpan<UInt8>, at place: Int) {
        Self.write(timestamp.rawValue, to: &bytes, at: place)
        if let clockOffset { Self.write(UInt64(bitPattern: clockOffset), to: &bytes, at: place + 8) }
    }

    private static func read(_ bytes: borrowing [UInt8], _ place: Int) -> UInt64 {
        var value: UInt64 = 0
        for index in place..<(place + 8) { value = value << 8 | UInt64(bytes[index]) }
        return value
    }

    private static func write(_ value: UInt64, to bytes: inout MutableSpan<UInt8>, at place: Int) {
        for index in 0..<8 { bytes[place + index] = UInt8(truncatingIfNeeded: value >> UInt64(56 - 8 * index)) }
    }
}

/// Decides which frames of a stream carry their capture time. Receivers compute those between from the RTP timestamps.
public struct CaptureTimeSchedule: Sendable {
    /// Between two values, far below the reach of one.
    public static let interval = TimeInterval.seconds(1)
    /// A frame whose computed time would be further off carries its own. RTP timestamps are rounded to 11 µs.
    public static let tolerance = TimeInterval.milliseconds(1)

    private let clockRate: UInt32
    private var last: (ntp: NTPTime, rtp: RTPTimestamp)?

    public init(clockRate: UInt32) { self.clockRate = clockRate }

    /// Whether a frame carries its capture time. Records that it does.
    ///
    /// - Parameter beginsStream: a receiver can begin with the frame.
    public mutating func includes(_ ntp: NTPTime, rtp: RTPTimestamp, beginsStream: Bool) -> Bool {
        if !beginsStream, let last {
            let computed = last.ntp.advanced(by: rtp.interval(since: last.rtp, clockRate: clockRate))
            let error = ntp.interval(since: computed)
            let isRecent = ntp.interval(since: last.ntp) < Self.interval
            if isRecent, max(error, .zero - error) <= Self.tolerance { return false }
        }
        last = (ntp, rtp)
        return true
    }
}
