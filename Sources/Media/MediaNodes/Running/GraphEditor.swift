import Dispatch
import GStreamerKit
import MediaGraph
import Synchronization

/// Does the edits of a running graph one after the other, on a queue of its own, and takes out optional parts that fail.
final class GraphEditor: Sendable {
    private struct State {
        var outcome: EditOutcome?
        var hasEnded = false
        /// Optional nodes that have failed and are being taken out.
        var failing: Set<String> = []
        /// Those that have been: what they still say is nobody's failure. A later edit may bring them back.
        var lost: Set<String> = []
        /// Whether what is under way has been given up, and those that wait behind it are, too.
        var isStuck = false
    }

    private let graph: RunningGraph
    private let reporter: Reporter
    private let queue = DispatchQueue(label: "media.edits")
    /// Where time is kept for what may block the queue of the edits.
    private let timeouts = DispatchQueue(label: "media.edit-limits")
    private let limits: Limits
    private let state = Mutex(State())

    init(_ graph: RunningGraph, _ reporter: Reporter, _ limits: Limits) {
        self.graph = graph
        self.reporter = reporter
        self.limits = limits
        reporter.intercept { [weak self] error, node in self?.takeOut(node, for: error) ?? false }
    }

    /// Makes what runs what `plan` makes of it. Comes back in time, whatever a driver does: an edit that waits for one is
    /// given up, and what it has built goes when the driver answers. `finished` is called when nothing of it is left to do.
    @discardableResult
    func edit(
        seconds: Double, finished: @escaping @Sendable () -> Void = {},
        _ plan: @escaping @Sendable (GraphPlan) throws(MediaError) -> GraphPlan
    ) async throws(MediaError) -> GraphChange {
        let outcome = EditOutcome()
        let result = await withCheckedContinuation {
            (continuation: CheckedContinuation<Result<GraphChange, MediaError>, Never>) in
            let isAnswered = Flag()
            @Sendable func answer(_ result: Result<GraphChange, MediaError>) {
                if !isAnswered.exchange(true) { continuation.resume(returning: result) }
            }
            // What waits for a time holds neither the editor nor what runs.
            let waiting = Timeout(at: .now() + seconds + limits.undo, on: timeouts) { [weak self] timeout in
                guard let self else { return }
                guard state.withLock({ $0.isStuck }) else { return timeout.set(.now() + seconds + limits.undo) }
                let error = stuck(isWaiting: true)
                if outcome.giveUp(error) { answer(.failure(error)) }
            }
            queue.async {
                waiting.cancel()
                let limit = Timeout(at: .now() + self.limits.plan + seconds + self.limits.undo, on: self.timeouts) {
                    [weak self] _ in
                    guard let self, !isAnswered.value else { return }
                    let error = stuck(isWaiting: false)
                    guard outcome.giveUp(error) else { return }
                    state.withLock { $0.isStuck = true }
                    answer(.failure(error))
                }
                defer { limit.cancel() }
                do throws(MediaError) {
                    if let failure = outcome.failure { throw failure }
                    let running = self.graph.plan
                    let next = try plan(running)
                    self.state.withLock { $0.lost.subtract(next.nodes.map(\.name)) }
                    let change = GraphChange(from: running, to: next)
                    let deadline = DispatchTime.now() + seconds
                    limit.set(deadline + self.limits.undo)
                    try self.perform(change, until: deadline, outcome)
                    finished()
                    answer(.success(change))
                } catch {
                    finished()
                    answer(.failure(error))
                }
                self.state.withLock { $0.isStuck = false }
            }
        }
        return try result.get()
    }

    private func stuck(isWaiting: Bool) -> MediaError {
        let node = graph.stagedOpening?.plan.name
        let name = node.map { "\"\($0)\"" } ?? "What is new"
        return MediaError(
            code: MediaError.Code.editFailed,
            message: (isWaiting
                ? "The edit could not begin: \(name) of the one before still waits for its driver or file system; "
                : "\(name) could not be opened in time, because its driver or file system does not answer, so the graph "
                    + "goes on as it was; ") + "plug the device in again, or check what the path leads to.",
            node: isWaiting ? nil : node)
    }

    private func perform(
        _ change: GraphChange, until deadline: DispatchTime, _ outcome: EditOutcome = EditOutcome()
    ) throws(MediaError) {
        guard
            state.withLock({ state in
                if !state.hasEnded { state.outcome = outcome }
                return !state.hasEnded
            })
        else { throw Reporter.stopped }
        defer { state.withLock { $0.outcome = nil } }
        let edit = GraphEdit(graph, change, until: deadline, outcome: outcome)
        do throws(MediaError) {
            try edit.perform()
        } catch {
            if !edit.yielded.isEmpty { restore(edit.yielded) }
            throw error
        }
        for setting in change.settings { try set(setting) }
    }

    /// How long a camera may take that is opened again after an edit has failed.
    private static let restoreSeconds = 5.0

    /// Makes nodes anew that had to give up their devices for an edit that failed.
    private func restore(_ names: Set<String>) {
        let outcome = EditOutcome()
        state.withLock { $0.outcome = outcome }
        let change = GraphChange(renewing: names, in: graph.plan)
        do throws(MediaError) {
            try GraphEdit(graph, change, until: .now() + Self.restoreSeconds, outcome: outcome).perform()
        } catch {
            reporter.fail(error, names.first)
        }
    }

    private func set(_ change: GraphChange.SettingChange) throws(MediaError) {
        guard let member = graph.member(change.node),
            let value = change.value ?? member.instance.kind.setting(change.setting)?.defaultValue
        else { return }
        if try member.running?.set(change.setting, to: value) == true { return }
        let elements = member.instance.allElements.filter { $0.has(change.setting) }
        guard let element = elements.first else { return }
        if let reason = element.trySet(change.setting, PropertyValue(value)) {
            let isSecret = member.instance.kind.setting(change.setting)?.isSecret == true
            throw MediaError(
                code: MediaError.Code.graphInvalid,
                message: "\(change.node).\(change.setting): \(isSecret ? "the element does not take this." : reason)",
                node: change.node)
        }
    }

    /// A node that an edit is about to put in has failed.
    func stagedFailed(_ error: MediaError) {
        state.withLock { $0.outcome }?.fail(error)
    }

    /// Takes out the part that a failed node belongs to, if it is optional. Called on any thread.
    private func takeOut(_ node: String, for error: MediaError) -> Bool {
        if state.withLock({ $0.failing.contains(node) || $0.lost.contains(node) }) { return true }
        let plan = graph.plan
        let optional = plan.expanded.optionalPart(around: node)
        guard !optional.isEmpty else { return false }
        let left = plan.removing(optional)
        guard !left.nodes.isEmpty else { return false }
        // With what had been put in for it only.
        let part = Set(plan.nodes.map(\.name)).subtracting(left.nodes.map(\.name))
        let isNews = state.withLock { state in
            defer { state.failing.formUnion(part) }
            return !state.failing.contains(node)
        }
        guard isNews else { return true }
        queue.async { [weak self] in
            guard let self else { return }
            let running = graph.plan
            let change = GraphChange(from: running, to: running.removing(part))
            graph.beginEdit(of: part.sorted())
            try? perform(change, until: .now())
            graph.endEdit()
            state.withLock { state in
                state.failing.subtract(part)
                state.lost.formUnion(part.subtracting(graph.plan.nodes.map(\.name)))
            }
            reporter.partFailed(error, part.sorted())
        }
        return true
    }

    /// No edit begins after this; `done` is called when the one that is under way has ended, and `stuck` before, where a
    /// driver keeps it from ending.
    func end(stuck: @escaping @Sendable () -> Void, _ done: @escaping @Sendable () -> Void) {
        state.withLock { state in
            state.hasEnded = true
            state.outcome?.fail(Reporter.stopped)
        }
        let timeout = Timeout(at: .now() + limits.cancel, on: timeouts) { _ in stuck() }
        queue.async {
            timeout.cancel()
            done()
        }
    }
}
