import Synchronization

/// Work that may be in progress, and functions that wait for its end.
final class Ongoing: Sendable {
    /// Nil unless the work is in progress.
    private let bodies = Mutex<[@Sendable () -> Void]?>(nil)

    var waiting: Int { bodies.withLock { $0?.count ?? 0 } }

    func begin() { bodies.withLock { $0 = $0 ?? [] } }

    /// May be called repeatedly.
    func end() {
        let waiting = bodies.withLock { bodies in
            defer { bodies = nil }
            return bodies ?? []
        }
        for body in waiting { body() }
    }

    /// Calls `body` once: when the work is over, or now if there is none.
    func whenOver(_ body: @escaping @Sendable () -> Void) {
        let isWaiting = bodies.withLock { bodies in
            bodies?.append(body)
            return bodies != nil
        }
        if !isWaiting { body() }
    }
}
