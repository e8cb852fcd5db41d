internal import Synchronization

/// Whether the process plays rooms or captures microphones at present, and whether the sound server has silenced it.
package final class SoundActivity: Sendable {
    package enum Event: Sendable, Equatable {
        /// The first room plays, or the first microphone is captured.
        case began
        /// Nothing is played or captured any more.
        case ended
        /// The sound server has silenced the rooms, or no longer does.
        case interrupted(Bool)
    }

    private struct State {
        var users: Set<ObjectIdentifier> = []
        var isInterrupted = false
        var observer: (@Sendable (Event) -> Void)?
    }

    /// That of the process.
    package static let shared = SoundActivity()

    private let state = Mutex(State())

    package init() {}

    /// An object plays or captures, or no longer does.
    func set(_ isActive: Bool, _ user: AnyObject) {
        state.withLock { state in
            let before = state.users.isEmpty
            if isActive {
                state.users.insert(ObjectIdentifier(user))
            } else {
                state.users.remove(ObjectIdentifier(user))
            }
            // Under the lock, so that the observer gets the events in their order.
            if state.users.isEmpty != before { state.observer?(before ? .began : .ended) }
        }
    }

    func interrupted(_ isInterrupted: Bool) {
        state.withLock { state in
            guard state.isInterrupted != isInterrupted else { return }
            state.isInterrupted = isInterrupted
            state.observer?(.interrupted(isInterrupted))
        }
    }

    /// - Parameter observer: gets the events from now on, and first the present state if it is not silence. Called on any thread.
    ///   Must not call this object.
    package func observe(_ observer: @escaping @Sendable (Event) -> Void) {
        state.withLock { state in
            state.observer = observer
            if !state.users.isEmpty { observer(.began) }
            if state.isInterrupted { observer(.interrupted(true)) }
        }
    }
}
