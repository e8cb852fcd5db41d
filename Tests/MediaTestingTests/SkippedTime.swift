import MediaAuthoring
@testable import MediaTesting
import Synchronization

/// A clock that stands still while any task that joined it runs. When all of them wait, it skips to the earliest time
/// that one of them waits for. The machine is never late on it: reading the time takes a microsecond, everything else
/// no time.
final class SkippedTime: StandClock {
    private struct Sleeper {
        let time: MediaTime
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var now = MediaTime(nanoseconds: 3_600_000_000_000)
        /// The number of tasks that do not wait. The testing task counts from the beginning.
        var running = 1
        var sleepers: [Int: Sleeper] = [:]
        /// Waits that were cancelled before they began.
        var cancelled: Set<Int> = []
        var count = 0

        /// Skips to the next time if no task runs. Returns the task that runs then.
        mutating func skip() -> CheckedContinuation<Void, any Error>? {
            guard running == 0,
                let next = sleepers.min(by: { ($0.value.time, $0.key) < ($1.value.time, $1.key) })
            else { return nil }
            now = max(now, next.value.time)
            running = 1
            return sleepers.removeValue(forKey: next.key)?.continuation
        }
    }

    private let state = Mutex(State())

    var now: MediaTime {
        state.withLock { state in
            state.now.nanoseconds += 1000
            return state.now
        }
    }

    var standstill: Standstill? { nil }

    func join() {
        state.withLock { $0.running += 1 }
    }

    func leave() {
        state.withLock { state in
            state.running -= 1
            return state.skip()
        }?.resume()
    }

    func wait(until time: MediaTime) async throws {
        let number: Int? = state.withLock { state in
            guard time > state.now else { return nil }
            state.count += 1
            return state.count
        }
        guard let number else { return }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let (next, isCancelled) = state.withLock { state in
                    if state.cancelled.remove(number) != nil {
                        return (CheckedContinuation<Void, any Error>?.none, true)
                    }
                    state.sleepers[number] = Sleeper(time: time, continuation: continuation)
                    state.running -= 1
                    return (state.skip(), false)
                }
                next?.resume()
                if isCancelled { continuation.resume(throwing: CancellationError()) }
            }
        } onCancel: {
            let sleeper = state.withLock { state in
                let sleeper = state.sleepers.removeValue(forKey: number)
                if sleeper == nil { state.cancelled.insert(number) } else { state.running += 1 }
                return sleeper
            }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }
}
