internal import Glibc
internal import RTP

/// Wall-clock time for RTCP that steps of the system's clock do not affect.
///
/// Sender reports tie RTP timestamps to wall-clock time (RFC 3550, section 6.4.1). Receivers align audio and video by
/// them, so this time must not jump during a call. The system's clock is read once. Afterwards the monotonic clock
/// counts, which NTP slews but nothing sets. The two clocks then differ only by later steps of the system's clock.
struct WallClock: Sendable {
    /// The clock of this process, shared by all its streams.
    static let shared = WallClock(wall: nanoseconds(CLOCK_REALTIME), monotonic: nanoseconds(CLOCK_MONOTONIC))

    private let offset: Int64

    /// Both times in nanoseconds, read at the same moment. `wall` counts from 1970.
    init(wall: Int64, monotonic: Int64) { offset = wall - monotonic }

    /// The wall-clock time at a point of the monotonic clock.
    func time(at point: MonotonicTime) -> NTPTime {
        // A source may give any capture time.
        let (sum, isTooLarge) = Int64(clamping: point.nanoseconds).addingReportingOverflow(offset)
        return NTPTime(unixNanoseconds: UInt64(isTooLarge ? .max : max(0, sum)))
    }

    private static func nanoseconds(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
