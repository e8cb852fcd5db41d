internal import Dispatch
import Synchronization

/// A question to the machine that may hang, such as one to a sound server. It is asked on a thread of its own, once at a time,
/// and threads that ask at the same time share the answer.
///
/// A question that hangs keeps its thread until it ends. No other one begins before.
package final class SharedProbe<Answer: Sendable>: Sendable {
    /// A question that is being asked, or that waits for the one before.
    private final class Run: Sendable {
        let hasEnded = DispatchGroup()
        let answer = Mutex<Answer?>(nil)

        init() { hasEnded.enter() }
    }

    private struct State {
        var running: Run?
        var next: Run?
        /// How many questions have begun.
        var asked = 0
        /// How many calls wait for an answer.
        var waiting = 0
    }

    private let state = Mutex(State())
    private let seconds: Double
    private let ask: @Sendable () -> Answer
    private let queue: DispatchQueue

    /// - Parameters:
    ///   - seconds: how long a call waits at most.
    ///   - ask: called on a queue of its own. May block.
    package init(_ label: String, seconds: Double, ask: @escaping @Sendable () -> Answer) {
        (self.seconds, self.ask) = (seconds, ask)
        queue = DispatchQueue(label: label)
    }

    /// Returns the answer to a question that began after this call, or nil if there is none in time. Blocks until then.
    package func answer() -> Answer? {
        defer { state.withLock { $0.waiting -= 1 } }
        let run = state.withLock { state in
            state.waiting += 1
            if state.running != nil {
                let next = state.next ?? Run()
                state.next = next
                return next
            }
            let run = Run()
            begin(run, &state)
            return run
        }
        guard run.hasEnded.wait(timeout: .now() + seconds) == .success else { return nil }
        return run.answer.withLock { $0 }
    }

    /// How many questions have begun.
    package var asked: Int { state.withLock { $0.asked } }

    /// How many calls wait for an answer.
    package var waiting: Int { state.withLock { $0.waiting } }

    private func begin(_ run: Run, _ state: inout State) {
        state.running = run
        state.asked += 1
        queue.async { [self] in
            let answer = ask()
            run.answer.withLock { $0 = answer }
            self.state.withLock { state in
                state.running = nil
                guard let next = state.next else { return }
                state.next = nil
                begin(next, &state)
            }
            run.hasEnded.leave()
        }
    }
}
