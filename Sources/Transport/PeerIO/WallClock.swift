internal import CLinux

/// The clock whose times sender reports and capture times carry to other machines.
package enum WallClock {
    /// The largest error by the kernel's estimate (adjtimex(2), `maxerror`). Nil if nothing synchronises the clock.
    package static var error: Duration? {
        let microseconds = clinux_wall_clock_error()
        return microseconds < 0 ? nil : .microseconds(microseconds)
    }
}
