internal import Synchronization

/// The ids of a stream, in the rooms in which it is published.
final class StreamIdentities: Sendable {
    private let known = Mutex<[(id: Int, owner: String)]>([])

    /// Those of the room in which it was published last.
    var newest: (id: Int, owner: String) { known.withLock { $0.last } ?? (0, "") }

    func add(_ id: Int, _ owner: String) { known.withLock { $0.append((id, owner)) } }

    func remove(_ owner: String) { known.withLock { $0.removeAll { $0.owner == owner } } }
}
