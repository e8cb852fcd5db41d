internal import Dispatch
internal import Synchronization

/// Writes lines on a separate queue, so that a full pipe on standard error delays only the lines. Drops and counts the lines
/// beyond `capacity`. Any thread.
package final class LineQueue: Sendable {
    /// How many lines may wait.
    package static let capacity = 1024

    private let queue: DispatchQueue
    private let onDropped: @Sendable (Int) -> Void
    private let waiting = Atomic<Int>(0)
    private let dropped = Atomic<Int>(0)

    /// - Parameter onDropped: writes how many lines were dropped, before the next line. Called on the queue.
    package init(_ label: String, onDropped: @escaping @Sendable (Int) -> Void) {
        queue = DispatchQueue(label: label)
        self.onDropped = onDropped
    }

    /// Lets `write` write a line, or drops the line. Does not block.
    package func add(_ write: @escaping @Sendable () -> Void) {
        guard waiting.add(1, ordering: .relaxed).newValue <= Self.capacity else {
            waiting.subtract(1, ordering: .relaxed)
            dropped.add(1, ordering: .relaxed)
            return
        }
        queue.async { [self] in
            let missing = dropped.exchange(0, ordering: .relaxed)
            if missing > 0 { onDropped(missing) }
            write()
            waiting.subtract(1, ordering: .relaxed)
        }
    }

    /// Waits until the queued lines are written, half a second at most.
    package func drain() {
        let end = DispatchSemaphore(value: 0)
        queue.async { end.signal() }
        _ = end.wait(timeout: .now() + 0.5)
    }
}
