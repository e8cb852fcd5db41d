/// Ties a stream's RTP timestamps to wall-clock time: at `at`, the wall clock was `ntp` and the stream was at `rtp`. A
/// sender report has the pair extrapolated to the moment of sending (RFC 3550, section 6.4.1).
public struct SenderClock: Sendable, Equatable {
    public var ntp: NTPTime
    public var rtp: RTPTimestamp
    public var at: MonotonicTime
    public var clockRate: UInt32

    public init(ntp: NTPTime, rtp: RTPTimestamp, at: MonotonicTime, clockRate: UInt32) {
        self.ntp = ntp
        self.rtp = rtp
        self.at = at
        self.clockRate = clockRate
    }

    /// The clock extrapolated to another moment.
    public func extrapolated(to now: MonotonicTime) -> SenderClock {
        var clock = shown(ntp.advanced(by: now - at))
        clock.at = now
        return clock
    }

    /// The clock if its wall clock shows another time at `at`. Ties the same timestamps to the same times.
    public func shown(_ time: NTPTime) -> SenderClock {
        let elapsed = time.interval(since: ntp).nanoseconds
        let rate = Int64(clockRate)
        let ticks = elapsed / 1_000_000_000 * rate + elapsed % 1_000_000_000 * rate / 1_000_000_000
        return SenderClock(ntp: time, rtp: rtp.advanced(by: Int(ticks)), at: at, clockRate: clockRate)
    }
}
