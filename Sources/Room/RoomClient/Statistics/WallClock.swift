internal import Glibc
internal import RTP

/// Wall-clock time for RTCP, which a step of the system's clock does not move.
///
/// Sender reports tie RTP timestamps to wall-clock time (RFC 3550 section 6.4.1). Receivers align audio and video by them,
/// so the line must not break in mid-call. The system's clock is read once; from then on the monotonic clock counts, which
/// NTP slews but nobody sets. After an hour the two differ by what the clock was stepped, and by nothing else.
struct WallClock: Sendable {
    /// The clock of this process: all its streams share one line.
    static let shared = WallClock(wall: nanoseconds(CLOCK_REALTIME), monotonic: nanoseconds(CLOCK_MONOTONIC))

    private let offset: Int64

    /// Both in nanoseconds, read at the same moment; `wall` counts from 1970.
    init(wall: Int64, monotonic: Int64) { offset = wall - monotonic }

    /// What the wall clock shows (showed, will show) at a point of the monotonic clock.
    func time(at point: MonotonicTime) -> NTPTime {
        NTPTime(unixNanoseconds: UInt64(max(0, Int64(clamping: point.nanoseconds) + offset)))
    }

    private static func nanoseconds(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
