internal import Dispatch
internal import Logging
internal import Synchronization

/// Writes log lines on a separate queue, so that a full pipe on standard error delays only log lines. Drops and counts
/// the lines beyond `capacity`.
final class LogQueue: Sendable {
    /// How many lines may wait.
    static let capacity = 1024

    private let log: Logger
    private let queue = DispatchQueue(label: "connectlive.server-log")
    private let waiting = Atomic<Int>(0)
    private let dropped = Atomic<Int>(0)

    init(_ log: Logger) { self.log = log }

    func write(_ message: Logger.Message, _ metadata: Logger.Metadata, level: Logger.Level = .info) {
        guard waiting.add(1, ordering: .relaxed).newValue <= Self.capacity else {
            waiting.subtract(1, ordering: .relaxed)
            dropped.add(1, ordering: .relaxed)
            return
        }
        queue.async { self.pass(message, metadata, level) }
    }

    /// Waits until the queued lines are written, half a second at most.
    func drain() {
        let end = DispatchSemaphore(value: 0)
        queue.async { end.signal() }
        _ = end.wait(timeout: .now() + 0.5)
    }

    private func pass(_ message: Logger.Message, _ metadata: Logger.Metadata, _ level: Logger.Level) {
        let missing = dropped.exchange(0, ordering: .relaxed)
        if missing > 0 { log.warning("log lines dropped", metadata: ["count": "\(missing)"]) }
        log.log(level: level, message, metadata: metadata)
        waiting.subtract(1, ordering: .relaxed)
    }
}
