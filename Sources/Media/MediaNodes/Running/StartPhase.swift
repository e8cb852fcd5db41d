import MediaGraph
import Synchronization

/// The time in which elements open their devices and files. A driver can take indefinitely long, so the caller of the
/// pipeline must be able to cancel the wait.
final class StartPhase: Sendable {
    typealias Listener = @Sendable (MediaError) -> Void

    private enum Phase {
        case before
        case running([Listener])
        case cancelled(MediaError)
        case over
    }

    private let phase = Mutex(Phase.before)

    /// Begins. `body` is called if it is cancelled.
    func begin(onCancel body: @escaping Listener) {
        phase.withLock { $0 = .running([body]) }
    }

    /// Ends. False if it had been cancelled and no caller waits for it.
    func end() -> Bool {
        phase.withLock { phase in
            defer { phase = .over }
            if case .cancelled = phase { return false }
            return true
        }
    }

    var isRunning: Bool {
        phase.withLock { if case .running = $0 { true } else { false } }
    }

    /// Cancels the wait for the current opening, if any.
    func cancel(_ error: MediaError) {
        let listeners = phase.withLock { phase -> [Listener] in
            guard case .running(let listeners) = phase else { return [] }
            phase = .cancelled(error)
            return listeners
        }
        for listener in listeners { listener(error) }
    }

    /// Calls `body` if it is cancelled, immediately if it already is. Never if it ends before.
    func onCancel(_ body: @escaping Listener) {
        let cancelled = phase.withLock { phase -> MediaError? in
            switch phase {
            case .running(let listeners): phase = .running(listeners + [body])
            case .cancelled(let error): return error
            case .before, .over: break
            }
            return nil
        }
        if let cancelled { body(cancelled) }
    }
}
