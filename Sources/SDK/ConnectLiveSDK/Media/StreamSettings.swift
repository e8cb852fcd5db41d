internal import RoomProtocol
internal import Synchronization

/// The attributes of a stream of local media, which the rooms that have the media tell their servers.
final class StreamSettings: Sendable {
    /// A room that has the media.
    private struct Observer {
        let room: ObjectIdentifier
        let changed: @Sendable () -> Void
        let refused: @Sendable (RoomError) -> Void
    }

    private struct State {
        var attributes: StreamAttributes
        var observers: [Observer] = []
        /// How many calls of `follow` have begun.
        var calls = 0
        /// The newest of them that has taken a value.
        var followed = 0

        /// Returns the observers, if anything has changed.
        mutating func apply(_ change: StreamChange) -> [Observer] {
            let before = attributes
            attributes.apply(change)
            return attributes == before ? [] : observers
        }
    }

    private let state: Mutex<State>

    init(_ attributes: StreamAttributes) { state = Mutex(State(attributes: attributes)) }

    var attributes: StreamAttributes { state.withLock { $0.attributes } }

    /// Changes attributes, or reports to the rooms why no room takes them.
    func change(_ change: StreamChange) {
        do throws(RoomError) {
            try change.validate()
        } catch {
            for observer in state.withLock({ $0.observers }) { observer.refused(error) }
            return
        }
        let observers = state.withLock { state in state.apply(change) }
        // Without the lock, because a room may be released here.
        for observer in observers { observer.changed() }
    }

    /// Takes the newest value of `isActive`, on any thread. Of several calls at a time, the one that began last counts, because
    /// it has read the newest value.
    func follow(isActive: () -> Bool) {
        let call = state.withLock { state in
            state.calls += 1
            return state.calls
        }
        // Without the lock, because edits of applications may run here.
        let change = StreamChange(isActive: isActive())
        let observers = state.withLock { state in
            guard call > state.followed else { return [Observer]() }
            state.followed = call
            return state.apply(change)
        }
        for observer in observers { observer.changed() }
    }

    /// Sets the weight and the mode, or reports to the rooms why not.
    func setSort(weight: Int, mode: String) {
        guard Sort.weights.contains(weight), Sort.modes.contains(mode) else {
            let error = RoomError(
                .settingInvalid,
                "A video cannot have the weight \(weight) and the mode '\(mode.prefix(32))'. Set a weight of 0 to 9, and crop, fit "
                    + "or stretch.")
            for observer in state.withLock({ $0.observers }) { observer.refused(error) }
            return
        }
        change(StreamChange(sort: "\(weight) \(mode)"))
    }

    /// - Parameters:
    ///   - changed: called after each change, on the thread that made it
    ///   - refused: called for a value that is not taken
    func observe(
        as room: AnyObject, changed: @escaping @Sendable () -> Void, refused: @escaping @Sendable (RoomError) -> Void
    ) {
        let observer = Observer(room: ObjectIdentifier(room), changed: changed, refused: refused)
        state.withLock { state in
            state.observers.removeAll { $0.room == observer.room }
            state.observers.append(observer)
        }
    }

    func stopObserving(as room: AnyObject) {
        let id = ObjectIdentifier(room)
        state.withLock { $0.observers.removeAll { $0.room == id } }
    }
}

/// The text of `sort`: a weight and a mode.
enum Sort {
    static let weights = 0...9
    static let modes = ["crop", "fit", "stretch"]

    /// `(0, "crop")` for a text of another form.
    static func parse(_ text: String) -> (Int, String) {
        let parts = text.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 2, let weight = Int(parts[0]), weights.contains(weight), modes.contains(String(parts[1]))
        else { return (0, "crop") }
        return (weight, String(parts[1]))
    }
}
