package import MediaGraph
internal import Synchronization

/// Hands the pictures of one stream to everyone who wants them. Sinks come and go at any time, on any thread; they are
/// called on a GStreamer thread and must return soon.
package final class FrameFanout: Sendable {
    private let sinks = Mutex<[(id: Int, sink: @Sendable (VideoFrame) -> Void)]>([])
    private let lastID = Mutex(0)

    package init() {}

    /// The number is for `remove`.
    package func add(_ sink: @escaping @Sendable (VideoFrame) -> Void) -> Int {
        let id = lastID.withLock { last in
            last += 1
            return last
        }
        sinks.withLock { $0.append((id, sink)) }
        return id
    }

    /// The sink may still be in a call that began before.
    package func remove(_ id: Int) { sinks.withLock { $0.removeAll { $0.id == id } } }

    package func deliver(_ frame: VideoFrame) {
        // Not under the lock: a sink may add or remove one.
        for entry in sinks.withLock({ $0 }) { entry.sink(frame) }
    }
}
