internal import MediaNodes
internal import RoomProtocol
internal import Synchronization

/// The functions that an observer of a capture provides. Called on any thread.
struct CaptureObserver: Sendable {
    var failed: @Sendable (RoomError) -> Void
    var ended: @Sendable () -> Void
    var warning: @Sendable (String) -> Void
    var device: @Sendable (StreamMedia, MediaEvent) -> Void
}

/// The observers of a capture, and the events that a new one gets.
final class CaptureObservers: Sendable {
    private struct State {
        var observers: [ObjectIdentifier: CaptureObserver] = [:]
        var failure: RoomError?
        var hasEnded = false
        /// The newest event of each device that is away.
        var away: [StreamMedia: MediaEvent] = [:]
        /// Those since the start, for an observer that comes later.
        var warnings: [String] = []
    }

    private static let keptWarnings = 20

    private let state = Mutex(State())

    func add(_ owner: ObjectIdentifier, _ observer: CaptureObserver) {
        let now = state.withLock { state in
            state.observers[owner] = observer
            return state
        }
        if let failure = now.failure { observer.failed(failure) }
        if now.hasEnded { observer.ended() }
        for warning in now.warnings { observer.warning(warning) }
        for (media, event) in now.away { observer.device(media, event) }
    }

    func remove(_ owner: ObjectIdentifier) { state.withLock { $0.observers[owner] = nil } }

    /// A new pipeline starts: drops the events of the last one.
    func begin() {
        state.withLock { ($0.failure, $0.hasEnded, $0.away, $0.warnings) = (nil, false, [:], []) }
    }

    func isAway(_ media: StreamMedia) -> Bool { state.withLock { $0.away[media] != nil } }

    func warning(_ message: String) {
        let observers = change { state in
            if state.warnings.count < Self.keptWarnings { state.warnings.append(message) }
        }
        for observer in observers { observer.warning(message) }
    }

    /// A failure after which the media continues.
    func problem(_ error: RoomError) {
        for observer in change({ _ in }) { observer.failed(error) }
    }

    /// The end of the media.
    func failed(_ error: RoomError) {
        for observer in change({ $0.failure = error }) { observer.failed(error) }
    }

    func ended() {
        for observer in change({ $0.hasEnded = true }) { observer.ended() }
    }

    func device(_ media: StreamMedia, _ event: MediaEvent) {
        let isAway = event.source?.absence != nil
        for observer in change({ $0.away[media] = isAway ? event : nil }) { observer.device(media, event) }
    }

    private func change(_ edit: (inout State) -> Void) -> [CaptureObserver] {
        state.withLock { state in
            edit(&state)
            return Array(state.observers.values)
        }
    }
}
