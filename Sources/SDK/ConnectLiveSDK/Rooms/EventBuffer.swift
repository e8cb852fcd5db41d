internal import RoomProtocol
internal import Synchronization

/// The events of a room that wait for the loop over one `RoomEvents`.
final class EventBuffer: Sendable {
    private struct State {
        var backlog = EventBacklog<RoomEvents.Event>()
        var hasEnded = false
    }

    private let state = Mutex(State())
    /// Has an element if there may be events, and ends with the last one.
    let signal: AsyncStream<Void>
    private let source: AsyncStream<Void>.Continuation

    init() {
        (signal, source) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        source.onTermination = { [weak self] reason in
            // The end of the room leaves the events that wait.
            if case .cancelled = reason { self?.cancel() }
        }
    }

    /// - Parameter key: the kind of an event that replaces a waiting one of the same kind.
    func add(_ event: RoomEvents.Event, replacing key: EventKey?) {
        let isFull = state.withLock { state in
            guard !state.hasEnded else { return false }
            if let key, state.backlog.replace(key, with: event) { return false }
            let isFull = state.backlog.count >= DelegateQueue.capacity
            _ = state.backlog.append(isFull ? .error(Self.full, isCritical: false) : event, key)
            state.hasEnded = isFull
            return isFull
        }
        source.yield()
        if isFull { source.finish() }
    }

    /// The loop's task is cancelled: not even events that wait follow.
    func cancel() {
        state.withLock { $0 = State(hasEnded: true) }
        source.finish()
    }

    /// The application has left the room: of the events that wait, only the end follows.
    func leave() {
        state.withLock { state in
            let end = state.backlog.beginTurn()
            var last: RoomEvents.Event?
            while let entry = state.backlog.next(before: end) { last = entry.body }
            if let last, case .disconnected = last { _ = state.backlog.append(last, nil) }
        }
    }

    /// No event follows.
    func end() {
        state.withLock { $0.hasEnded = true }
        source.finish()
    }

    /// The next event, if there is one.
    func take() -> RoomEvents.Event? {
        state.withLock { state in
            let end = state.backlog.beginTurn()
            while let entry = state.backlog.next(before: end) {
                if let event = entry.body { return event }
            }
            return nil
        }
    }

    private static let full = RoomError(
        .roomReleased,
        "More than \(DelegateQueue.capacity) events of this sequence are waiting, so it ends. Read them sooner, or release it."
    )
}
