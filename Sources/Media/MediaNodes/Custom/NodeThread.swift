import Dispatch

/// A thread for one node that is written in Swift: what blocks there holds up nobody else.
///
/// A serial queue, which has a thread whenever it has work; Swift's own pool has no more of them than there are cores.
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
