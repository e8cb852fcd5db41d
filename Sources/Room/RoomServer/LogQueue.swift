internal import Logging

/// The log lines of a server, written on a separate queue. Drops and counts the lines beyond `LineQueue.capacity`.
final class LogQueue: Sendable {
    private let log: Logger
    private let lines: LineQueue

    init(_ log: Logger) {
        self.log = log
        lines = LineQueue("connectlive.server-log") { missing in
            log.warning("log lines dropped", metadata: ["count": "\(missing)"])
        }
    }

    func write(_ message: Logger.Message, _ metadata: Logger.Metadata, level: Logger.Level = .info) {
        lines.add { [log] in log.log(level: level, message, metadata: metadata) }
    }

    /// Waits until the queued lines are written, half a second at most.
    func drain() { lines.drain() }
}
