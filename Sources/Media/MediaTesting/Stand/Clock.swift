import Glibc
import MediaAuthoring

/// The clock that the checks and a node on a stand wait by. The kit's own tests have one that skips all waits.
protocol StandClock: Sendable {
    var now: MediaTime { get }
    /// Returns at `time`. Throws `CancellationError` when the task is cancelled meanwhile.
    func wait(until time: MediaTime) async throws
    /// One more task waits by this clock, until `leave`.
    func join()
    func leave()
    /// A new measurement of how long the machine stands still. Nil if this clock stands still with it.
    var standstill: Standstill? { get }
}

/// The clock of capture times.
struct MachineClock: StandClock {
    var now: MediaTime { .current }

    func wait(until time: MediaTime) async throws {
        let now = now
        if time > now { try await Task.sleep(for: .nanoseconds(Int64(time.nanoseconds - now.nanoseconds))) }
    }

    func join() {}
    func leave() {}
    var standstill: Standstill? { Standstill() }
}

extension StandClock {
    /// Waits until `condition` is true, for at most the given seconds. Returns whether it is.
    func waits(_ seconds: Double, until condition: () -> Bool) async -> Bool {
        let deadline = now.advanced(by: seconds)
        while !condition() {
            if now > deadline || Task.isCancelled { return condition() }
            try? await wait(until: now.advanced(by: 0.001))
        }
        return true
    }

    /// Waits until a run has sent `count` units or has ended. Returns whether it has sent them.
    func gives(_ count: Int, from run: any NodeRun, within seconds: Double) async -> Bool {
        _ = await waits(seconds) { run.units.count >= count || run.outcome != nil }
        return run.units.count >= count
    }

    /// Waits for the given seconds, or until a run has ended.
    func runs(_ run: any NodeRun, for seconds: Double) async {
        _ = await waits(seconds) { run.outcome != nil }
    }
}

extension MediaTime {
    /// The current time on the clock of capture times.
    static var current: MediaTime {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return MediaTime(nanoseconds: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec))
    }

    func advanced(by seconds: Double) -> MediaTime {
        MediaTime(nanoseconds: UInt64(max(0, Double(nanoseconds) + (seconds * 1e9).rounded())))
    }
}
