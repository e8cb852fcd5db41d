import Dispatch
import MediaGraph
import Synchronization

/// The running code of a Swift node: one task on its own thread.
final class NodeTask: Sendable {
    /// A node that has not returned by then is abandoned and reported as stuck. The contract is 50 ms.
    static let abandonTimeout = 1.0

    private let name: String
    private let reporter: Reporter
    private let state = Mutex<(task: Task<Void, Never>?, hasEnded: Bool)>((nil, false))
    private let hasLeft = DispatchSemaphore(value: 0)

    init(_ instance: NodeInstance) {
        (name, reporter) = (instance.name, instance.reporter)
    }

    /// Runs `body` once, unless the node was stopped before. Calls `onEnd` when it returns by itself.
    func start(_ body: @escaping @Sendable () async throws -> Void, onEnd: @escaping @Sendable () -> Void = {}) {
        state.withLock { state in
            guard state.task == nil, !state.hasEnded else { return }
            state.task = Task(executorPreference: NodeThread(name)) { [name, reporter, hasLeft] in
                defer { hasLeft.signal() }
                do {
                    try await body()
                    if !Task.isCancelled { onEnd() }
                } catch {
                    // An error after the cancellation is not a failure.
                    if !Task.isCancelled { reporter.fail(MediaError(thrown: error, by: name), name) }
                }
            }
        }
    }

    /// Cancels the task and waits for its end, with a timeout. Before that, it may end by itself for `grace` seconds.
    func stop(grace: Double = 0) {
        let task = state.withLock { state in
            defer { state = (nil, true) }
            return state.task
        }
        guard let task else { return }
        if grace > 0, hasLeft.wait(timeout: .now() + grace) == .success { return }
        task.cancel()
        guard hasLeft.wait(timeout: .now() + Self.abandonTimeout) == .timedOut else { return }
        reporter.warn(
            name,
            "\"\(name)\" did not return within \(Self.abandonTimeout) s of its cancellation and was abandoned; its thread "
                + "still runs. Its author should check Task.isCancelled more often. [\(MediaError.Code.nodeStuck)]")
    }
}

extension MediaError {
    /// An error thrown by a custom node, as an error of the graph.
    init(thrown error: any Error, by node: String) {
        self =
            (error as? MediaError)?.about(node)
            ?? MediaError(code: Code.nodeFailed, message: "\"\(node)\" failed: \(error).", node: node)
    }
}

/// A thread for one Swift node, so that blocking in it affects no other node.
///
/// A serial queue, which has a thread whenever it has work. Swift's own pool has only as many threads as cores.
final class NodeThread: TaskExecutor {
    private let queue: DispatchQueue

    init(_ node: String) {
        queue = DispatchQueue(label: "media.node.\(node)")
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        // Keeps this executor until the job has returned.
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
