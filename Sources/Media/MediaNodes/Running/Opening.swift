import MediaGraph
import Synchronization

/// The moment in which elements open their devices and files, which takes as long as a driver likes: whoever waits for
/// the pipeline then must be able to give up.
final class Opening: Sendable {
    typealias Listener = @Sendable (MediaError) -> Void

    private enum Phase {
        case before
        case underWay([Listener])
        case givenUp(MediaError)
        case over
    }

    private let phase = Mutex(Phase.before)

    /// It begins; `body` is called when it is given up.
    func begin(orGivenUp body: @escaping Listener) {
        phase.withLock { $0 = .underWay([body]) }
    }

    /// It has come to its end. False when it had been given up: nobody waits for it.
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

    /// Nobody waits any longer for what is being opened. Does nothing when nothing is.
    func giveUp(_ error: MediaError) {
        let listeners = phase.withLock { phase -> [Listener] in
            guard case .underWay(let listeners) = phase else { return [] }
            phase = .givenUp(error)
            return listeners
        }
        for listener in listeners { listener(error) }
    }

    /// Calls `body` when it is given up, at once when it has been; never when it comes to its end before.
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
