import Dispatch
import MediaAuthoring
import Synchronization

/// A thread for the tested code, which may block like in a pipeline.
private final class StandThread: TaskExecutor {
    private let queue = DispatchQueue(label: "media.testing.capture")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let executor = asUnownedTaskExecutor()
        queue.async { job.runSynchronously(on: executor) }
    }
}

/// A task on its own thread that runs until it is cancelled and reports its return.
final class StandTask: Sendable {
    private struct State {
        var task: Task<Void, Never>?
        var outcome: NodeOutcome?
        var leaving: MediaTime?
    }

    /// A task that does not return within this many seconds is abandoned.
    static let timeout = 2.0

    private let clock: any StandClock
    private let state = Mutex(State())

    /// `clock` is the one that its body waits by. How long it takes to leave is always judged by the machine's clock.
    init(_ clock: any StandClock = MachineClock()) {
        self.clock = clock
    }

    /// Called once.
    func start(_ body: @escaping @Sendable () async throws -> Void) {
        clock.join()
        let task = Task(executorPreference: StandThread()) {
            var outcome = NodeOutcome.ended
            do {
                try await body()
                if Task.isCancelled { outcome = .cancelled }
            } catch {
                // An error after the cancellation is not a failure.
                outcome = Task.isCancelled ? .cancelled : .failed(error)
            }
            let end = outcome
            self.state.withLock { state in
                state.outcome = end
                state.leaving = .current
            }
            // Only now, so that no time passes between its end and the news of it.
            self.clock.leave()
        }
        state.withLock { $0.task = task }
    }

    var outcome: NodeOutcome? { state.withLock { $0.outcome } }
    /// When it returned, on the machine's clock. Nil while it runs.
    var left: MediaTime? { state.withLock { $0.leaving } }

    /// Cancels it. Returns the seconds until its return, or nil if it was abandoned.
    func stop() async -> Double? {
        let began = MediaTime.current
        state.withLock { $0.task }?.cancel()
        _ = await MachineClock().waits(Self.timeout) { self.outcome != nil }
        return left.map { max(0, $0.seconds(since: began)) }
    }
}

/// The media of a run so far, in order.
protocol UnitRecord: Sendable {
    var units: [MediaUnit] { get }
}

/// A node that runs on a thread of its own, like in a pipeline.
final class StandRun<Record: UnitRecord>: NodeRun {
    let record: Record
    private let node: any WrittenNode
    private let task: StandTask

    init(
        _ node: any WrittenNode, _ record: Record, _ clock: any StandClock,
        _ body: @escaping @Sendable () async throws -> Void
    ) {
        (self.node, self.record, task) = (node, record, StandTask(clock))
        task.start(body)
    }

    var units: [MediaUnit] { record.units }
    var outcome: NodeOutcome? { task.outcome }
    /// When it returned, on the machine's clock.
    var left: MediaTime? { task.left }

    func set(_ setting: String, to value: SettingValue) async throws {
        try node.set(setting, to: value)
    }

    func stop() async -> Double? { await task.stop() }
}

/// Measures the delay of the machine itself: how long a task needs to return that only waits.
struct Bystander {
    private let task = StandTask()

    init() {
        task.start { while !Task.isCancelled { try await Task.sleep(for: .seconds(60)) } }
    }

    func stop() async -> Double { await task.stop() ?? StandTask.timeout }
}
