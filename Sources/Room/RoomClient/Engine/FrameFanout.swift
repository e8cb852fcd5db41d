package import MediaGraph
internal import Synchronization

/// Passes the frames of one stream to any number of sinks. Sinks are added and removed at any time, on any thread. They
/// are called on a GStreamer thread and must return soon.
package final class FrameFanout: Sendable {
    private let sinks = Mutex<[(id: Int, sink: @Sendable (VideoFrame) -> Void)]>([])
    private let lastID = Mutex(0)
    private let demand = Mutex<(@Sendable () -> Void)?>(nil)

    package init() {}

    /// Returns a number for `remove`.
    package func add(_ sink: @escaping @Sendable (VideoFrame) -> Void) -> Int {
        let id = lastID.withLock { last in
            last += 1
            return last
        }
        let isFirst = sinks.withLock { sinks in
            sinks.append((id, sink))
            return sinks.count == 1
        }
        if isFirst { demand.withLock { $0 }?() }
        return id
    }

    /// A call of the sink that began earlier may still be running.
    package func remove(_ id: Int) {
        let wasLast = sinks.withLock { sinks in
            let count = sinks.count
            sinks.removeAll { $0.id == id }
            return count > 0 && sinks.isEmpty
        }
        if wasLast { demand.withLock { $0 }?() }
    }

    package var isEmpty: Bool { sinks.withLock { $0.isEmpty } }

    /// Calls a function when the first sink comes, and when the last one has gone, on the thread that adds or removes it.
    func onDemand(_ body: @escaping @Sendable () -> Void) { demand.withLock { $0 = body } }

    package func deliver(_ frame: VideoFrame) {
        // Outside of the lock, because a sink may add or remove sinks.
        for entry in sinks.withLock({ $0 }) { entry.sink(frame) }
    }
}
