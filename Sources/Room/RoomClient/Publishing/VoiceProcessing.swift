internal import Synchronization

/// How the audio of microphones is processed.
package struct VoiceProcessing: Sendable, Equatable {
    /// Whether the echo of the loudspeaker and noise are removed. Otherwise the audio stays unchanged, such as for music.
    package var isOn = true
    /// Whether the level is raised or lowered to one of speech. Only while processing is on.
    package var controlsGain = false

    package init() {}

    /// The choice of the application for all microphones of the process, and the captures that follow it.
    package final class Choice: Sendable {
        private struct State {
            var processing = VoiceProcessing()
            var observers: [ObjectIdentifier: @Sendable () -> Void] = [:]
        }

        package static let shared = Choice()

        private let state = Mutex(State())

        package var processing: VoiceProcessing { state.withLock { $0.processing } }

        /// Changes the choice, also for the captures that run. Changes of several threads follow one another.
        package func change(_ body: (inout VoiceProcessing) -> Void) {
            let observers = state.withLock { state -> [@Sendable () -> Void] in
                let former = state.processing
                body(&state.processing)
                return state.processing == former ? [] : Array(state.observers.values)
            }
            for observer in observers { observer() }
        }

        func observe(as owner: AnyObject, _ changed: @escaping @Sendable () -> Void) {
            state.withLock { $0.observers[ObjectIdentifier(owner)] = changed }
        }

        func stopObserving(as owner: AnyObject) {
            state.withLock { $0.observers[ObjectIdentifier(owner)] = nil }
        }
    }
}
