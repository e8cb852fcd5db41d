import MediaGraph
import Synchronization

/// The time in which elements open their devices and files. A driver can take indefinitely long, so the caller of the
/// pipeline must be able to cancel the wait.
final class Opening: Sendable {
    typealias Listener = @Sendable (MediaError) -> Void

    private enum Phase {
        case before
        case underWay([Listener])
        case givenUp(MediaError)
        case over
    }

    private let phase = Mutex(Phase.before)

    /// Begins. `body` is called if it is cancelled.
    func begin(orGivenUp body: @escaping Listener) {
        phase.withLock { $0 = .underWay([body]) }
    }

    /// Ends. False if it had been cancelled and no caller waits for it.
    func end() -> Bool {
        phase.withLock { phase in
            defer { phase = .over }
            if case .givenUp = phase { return false }
            return true
        }
    }

    var isUnderWay: Bool {
        phase.withLock { if case .underWay = $0 { true } else { false } }
    }

    /// Cancels the wait for the current opening, if any.
    func giveUp(_ error: MediaError) {
        let listeners = phase.withLock { phase -> [Listener] in
            guard case .underWay(let listeners) = phase else { return [] }
            phase = .givenUp(error)
            return listeners
        }
        for listener in listeners { listener(error) }
    }

    /// Calls `body` if it is cancelled, immediately if it already is. Never if it ends before.
    func whenGivenUp(_ body: @escaping Listener) {
        let givenUp = phase.withLock { phase -> MediaError? in
            switch phase {
            case .underWay(let listeners): phase = .underWay(listeners + [body])
            case .givenUp(let error): return error
            case .before, .over: break
            }
            return nil
        }
        if let givenUp { body(givenUp) }
    }
}
