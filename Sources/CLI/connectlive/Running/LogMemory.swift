internal import MediaNodes
internal import Synchronization

/// Keeps the newest distinct lines of GStreamer's log.
///
/// Elements write these lines for their developers, even in graphs that work. They help a user only after a failure.
/// Messages for users arrive on the bus, as events.
final class LogMemory: Sendable {
    private static let capacity = 200
    /// How many lines to show after a failure.
    private static let shown = 8

    private struct State {
        var seen: Set<GStreamerLog.Line> = []
        var lines: [GStreamerLog.Line] = []
    }

    private let state = Mutex(State())

    /// Keeps a line, in place of the oldest when the memory is full. Returns false for a duplicate of a kept one.
    func isNew(_ line: GStreamerLog.Line) -> Bool {
        state.withLock { state in
            guard state.seen.insert(line).inserted else { return false }
            if state.lines.count == Self.capacity { state.seen.remove(state.lines.removeFirst()) }
            state.lines.append(line)
            return true
        }
    }

    /// The last lines about a node or about none. If `node` is nil, about all nodes.
    func lines(about node: String?) -> [GStreamerLog.Line] {
        state.withLock { state in
            state.lines.filter { node == nil || $0.node == nil || $0.node == node }.suffix(Self.shown)
        }
    }
}
