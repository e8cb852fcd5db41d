internal import Synchronization

/// Runs the jobs of applications in the order in which they become ready, on the thread of `Simulation.run`.
final class SimulationExecutor: TaskExecutor {
    private let jobs = Mutex<[UnownedJob]>([])

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
    }

    /// Runs the jobs that are ready. Returns false if there was none.
    func runJobs() -> Bool {
        let ready = jobs.withLock { jobs in
            defer { jobs = [] }
            return jobs
        }
        for job in ready { job.runSynchronously(on: asUnownedTaskExecutor()) }
        return !ready.isEmpty
    }
}
