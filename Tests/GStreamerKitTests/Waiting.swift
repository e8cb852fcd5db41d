import Dispatch
import Synchronization

/// Lets a test wait for an event on another thread.
final class Moment: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    func happened() { semaphore.signal() }

    /// Returns false if it did not happen in time.
    func wait(seconds: Double = 10) -> Bool {
        semaphore.wait(timeout: .now() + seconds) == .success
    }
}

/// Collects values from other threads, and lets a test wait until there are enough.
final class Record<Entry: Sendable>: Sendable {
    private let state = Mutex<(entries: [Entry], waiting: [(@Sendable ([Entry]) -> Bool, Moment)])>(([], []))

    func add(_ entry: Entry) {
        state.withLock { state in
            state.entries.append(entry)
            for (isEnough, moment) in state.waiting where isEnough(state.entries) { moment.happened() }
        }
    }

    var entries: [Entry] { state.withLock { $0.entries } }

    func wait(until isEnough: @escaping @Sendable ([Entry]) -> Bool) -> Bool {
        let moment = Moment()
        let isDone = state.withLock { state in
            state.waiting.append((isEnough, moment))
            return isEnough(state.entries)
        }
        return isDone || moment.wait()
    }

    func wait(count: Int) -> Bool { wait { $0.count >= count } }
}
