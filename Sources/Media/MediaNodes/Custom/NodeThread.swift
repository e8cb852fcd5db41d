import Dispatch

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
        let executor = asUnownedTaskExecutor()
        queue.async { job.runSynchronously(on: executor) }
    }
}
