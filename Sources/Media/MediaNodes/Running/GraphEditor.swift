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
    }

    private let graph: RunningGraph
    private let reporter: Reporter
    private let queue = DispatchQueue(label: "media.edits")
    private let state = Mutex(State())

    init(_ graph: RunningGraph, _ reporter: Reporter) {
        self.graph = graph
        self.reporter = reporter
        reporter.intercept { [weak self] error, node in self?.takeOut(node, for: error) ?? false }
    }

    /// Makes what runs what `plan` makes of it.
    @discardableResult
    func edit(
        seconds: Double, _ plan: @escaping @Sendable (GraphPlan) throws(MediaError) -> GraphPlan
    ) async throws(MediaError) -> GraphChange {
        let result = await withCheckedContinuation {
            (continuation: CheckedContinuation<Result<GraphChange, MediaError>, Never>) in
            queue.async {
                do throws(MediaError) {
                    let running = self.graph.plan
                    let change = GraphChange(from: running, to: try plan(running))
                    try self.perform(change, seconds: seconds)
                    continuation.resume(returning: .success(change))
                } catch {
                    continuation.resume(returning: .failure(error))
                }
            }
        }
        return try result.get()
    }

    private func perform(_ change: GraphChange, seconds: Double) throws(MediaError) {
        let outcome = EditOutcome()
        guard
            state.withLock({ state in
                if !state.hasEnded { state.outcome = outcome }
                return !state.hasEnded
            })
        else { throw Reporter.stopped }
        defer { state.withLock { $0.outcome = nil } }
        let edit = GraphEdit(graph, change, seconds: seconds, outcome: outcome)
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
            try GraphEdit(graph, change, seconds: Self.restoreSeconds, outcome: outcome).perform()
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
            throw MediaError(
                code: MediaError.Code.graphInvalid, message: "\(change.node).\(change.setting): \(reason)",
                node: change.node)
        }
    }

    /// A node that an edit is about to put in has failed.
    func stagedFailed(_ error: MediaError) {
        state.withLock { $0.outcome }?.fail(error)
    }

    /// Takes out the part that a failed node belongs to, if it is optional. Called on any thread.
    private func takeOut(_ node: String, for error: MediaError) -> Bool {
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
            try? perform(change, seconds: 0)
            state.withLock { $0.failing.subtract(part) }
            reporter.partFailed(error, part.sorted())
        }
        return true
    }

    /// No edit begins after this; `done` is called when the one that is under way has ended.
    func end(_ done: @escaping @Sendable () -> Void) {
        state.withLock { state in
            state.hasEnded = true
            state.outcome?.fail(Reporter.stopped)
        }
        queue.async(execute: done)
    }
}
