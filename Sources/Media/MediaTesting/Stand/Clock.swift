import Glibc
import MediaGraph

extension MediaTime {
    /// Now, on the clock of capture times.
    static var current: MediaTime {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return MediaTime(nanoseconds: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec))
    }

    func advanced(by seconds: Double) -> MediaTime {
        MediaTime(nanoseconds: UInt64(max(0, Double(nanoseconds) + (seconds * 1e9).rounded())))
    }
}

/// Waits until `condition` holds, at most so many seconds. Whether it does.
func waits(_ seconds: Double, until condition: () -> Bool) async -> Bool {
    let deadline = MediaTime.current.advanced(by: seconds)
    while !condition() {
        if MediaTime.current > deadline || Task.isCancelled { return condition() }
        try? await Task.sleep(for: .milliseconds(1))
    }
    return true
}

extension CaptureRun {
    /// Waits until so many have come, or until it has ended. Whether so many have come.
    func gives(_ count: Int, within seconds: Double) async -> Bool {
        _ = await waits(seconds) { self.units.count >= count || self.outcome != nil }
        return units.count >= count
    }

    func runs(for seconds: Double) async {
        _ = await waits(seconds) { self.outcome != nil }
    }
}
