package import MediaGraph
internal import Synchronization

/// Passes the frames of one stream to any number of sinks. Sinks are added and removed at any time, on any thread. They
/// are called on a GStreamer thread and must return soon.
package final class FrameFanout: Sendable {
    private let sinks = Mutex<[(id: Int, sink: @Sendable (VideoFrame) -> Void)]>([])
    private let lastID = Mutex(0)

    package init() {}

    /// Returns a number for `remove`.
    package func add(_ sink: @escaping @Sendable (VideoFrame) -> Void) -> Int {
        let id = lastID.withLock { last in
            last += 1
            return last
        }
        sinks.withLock { $0.append((id, sink)) }
        return id
    }

    /// A call of the sink that began earlier may still be running.
    package func remove(_ id: Int) { sinks.withLock { $0.removeAll { $0.id == id } } }

    package func deliver(_ frame: VideoFrame) {
        // Outside of the lock, because a sink may add or remove sinks.
        for entry in sinks.withLock({ $0 }) { entry.sink(frame) }
    }
}
