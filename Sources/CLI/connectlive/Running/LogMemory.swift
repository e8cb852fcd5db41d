internal import MediaNodes
internal import Synchronization

/// Keeps the first lines of GStreamer's log, each once.
///
/// Elements write such lines for their developers, also in graphs that work. They help a user only where something has
/// failed; what elements mean for users comes over the bus, as events.
final class LogMemory: Sendable {
    private static let capacity = 200
    /// How many lines are worth reading after a failure.
    private static let shown = 8

    private struct State {
        var seen: Set<GStreamerLog.Line> = []
        var lines: [GStreamerLog.Line] = []
    }

    private let state = Mutex(State())

    /// Keeps a line. False for one that came before, and where there is no room.
    func isNew(_ line: GStreamerLog.Line) -> Bool {
        state.withLock { state in
            guard state.lines.count < Self.capacity, state.seen.insert(line).inserted else { return false }
            state.lines.append(line)
            return true
        }
    }

    /// The last lines about a node and about none; of all nodes where `node` is nil.
    func lines(about node: String?) -> [GStreamerLog.Line] {
        state.withLock { state in
            state.lines.filter { node == nil || $0.node == nil || $0.node == node }.suffix(Self.shown)
        }
    }
}
