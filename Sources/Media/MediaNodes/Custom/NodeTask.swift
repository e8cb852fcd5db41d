import Dispatch
import MediaGraph
import Synchronization

/// What a node that is written in Swift does while it runs: one task on a thread of its own.
final class NodeTask: Sendable {
    private enum Phase {
        case idle
        case running(Task<Void, Never>)
        case ended
    }

    /// A node that has not left by then is left behind, and said to be stuck. The contract is 50 ms.
    static let patience = 1.0

    private let name: String
    private let reporter: Reporter
    private let phase = Mutex(Phase.idle)
    private let hasLeft = DispatchSemaphore(value: 0)

    init(_ name: String, _ reporter: Reporter) {
        self.name = name
        self.reporter = reporter
    }

    /// Runs `body` once, unless the node was stopped before. `onEnd` is called when it returns of itself.
    func start(_ body: @escaping @Sendable () async throws -> Void, onEnd: @escaping @Sendable () -> Void = {}) {
        phase.withLock { phase in
            guard case .idle = phase else { return }
            phase = .running(
                Task(executorPreference: NodeThread(name)) { [name, reporter, hasLeft] in
                    defer { hasLeft.signal() }
                    do {
                        try await body()
                        if !Task.isCancelled { onEnd() }
                    } catch {
                        // What it says of being cancelled is no failure.
                        if !Task.isCancelled { reporter.fail(MediaError(thrown: error, by: name), name) }
                    }
                })
        }
    }

    /// Cancels and waits for the end, but not for ever. Before that it may end of itself for `grace` seconds.
    func stop(grace: Double = 0) {
        let task = phase.withLock { phase -> Task<Void, Never>? in
            defer { phase = .ended }
            if case .running(let task) = phase { return task }
            return nil
        }
        guard let task else { return }
        if grace > 0, hasLeft.wait(timeout: .now() + grace) == .success { return }
        task.cancel()
        guard hasLeft.wait(timeout: .now() + Self.patience) == .timedOut else { return }
        reporter.warn(
            name,
            "\"\(name)\" was cancelled and has not left after \(Self.patience) s; it is left behind, and its thread runs "
                + "on. Whoever wrote it should look at Task.isCancelled more often. [\(MediaError.Code.nodeStuck)]")
    }
}

extension MediaError {
    /// What a node that somebody else wrote has thrown, as an error of the graph.
    init(thrown error: any Error, by node: String) {
        self =
            (error as? MediaError)?.about(node)
            ?? MediaError(code: Code.nodeFailed, message: "\"\(node)\" failed: \(error).", node: node)
    }
}
