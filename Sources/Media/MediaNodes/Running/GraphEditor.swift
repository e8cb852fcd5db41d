import Dispatch
import GStreamerKit
import MediaGraph
import Synchronization

/// Runs the edits of a running graph one after the other, on a queue of its own, and removes optional parts that fail.
final class GraphEditor: Sendable {
    private struct State {
        var outcome: EditOutcome?
        var hasEnded = false
        /// The prefixes of optional nodes that have failed and are being removed.
        var failing: Set<String> = []
        /// Whether the running edit, and with it the edits queued after it, was abandoned.
        var isStuck = false
        /// When the devices must be open again that a failed edit gives back. Nil at any other time.
        var restoreLimit: DispatchTime?
    }

    let graph: RunningGraph
    let limits: Limits
    private let feeds: FeedWatch
    private var reporter: Reporter { graph.context.reporter }
    private let queue = DispatchQueue(label: "media.edits")
    /// For live settings, which do not wait for an edit.
    private let settings = DispatchQueue(label: "media.settings")
    /// Timers for work that may block the queue of the edits.
    private let timeouts = DispatchQueue(label: "media.edit-limits")
    private let state = Mutex(State())

    /// Makes the elements of a plan in a new pipeline, and loads their plugins, which may block.
    init(
        _ plan: GraphPlan, _ bindings: NodeBindings, _ registry: NodeRegistry, _ limits: Limits,
        _ clock: PipelineClock, owners: NodeOwners = [:]
    ) throws(MediaError) {
        let reporter = Reporter(events: bindings.events)
        let control = DispatchQueue(label: "media.pipeline")
        let translator = ErrorTranslator(reporter)
        // The closure lives inside the pipeline's bus, so it must not retain the pipeline.
        let running = WeakBox<Pipeline>()
        let pipeline = Pipeline(clock: clock) { message in
            switch message {
            case .endOfStream: reporter.ended()
            case .error(let failure): translator.report(failure)
            case .warning(let path, let message): translator.warn(path, message)
            case .missingPlugin(let name): translator.note(missing: name)
            // The message comes on a streaming thread.
            case .latencyChanged: control.async { running.value?.distributeLatency() }
            // Only those of devices, which have pipelines of their own.
            case .stateRequested: break
            }
        }
        running.set(pipeline)
        let context = PipelineContext(
            pipeline: pipeline, reporter: reporter, control: control, bound: BoundCode(bindings))
        graph = try RunningGraph(plan, registry, context, owners)
        feeds = FeedWatch(graph)
        reporter.know { [weak graph] prefix in
            guard let graph else { return .running }
            switch graph.node(prefix: prefix)?.stage {
            case .staged: return .staged
            case .live, .released: return .running
            case .leaving, nil: return .gone
            }
        }
        self.limits = limits
        reporter.intercept { [weak self] error, node, prefix in self?.contain(error, of: node, prefix) ?? false }
        translator.set(self)
    }

    /// Replaces the running graph with the graph that `plan` makes of it. Returns in time even if a driver does not:
    /// such an edit is abandoned, and its nodes are removed when the driver returns. `bindings` are functions for new
    /// nodes, `owners` the handles of mentioned ones. With `needsDevices`, an edit fails if the device of a new source is
    /// away.
    func edit(
        _ ticket: EditTicket = EditTicket(), seconds: Double, bringing bindings: NodeBindings = NodeBindings(),
        owners: NodeOwners = [:], needsDevices: Bool = false,
        _ plan: @escaping @Sendable (GraphPlan) throws(MediaError) -> GraphPlan
    ) async throws(MediaError) -> GraphChange {
        // The timeout retains neither the editor nor the graph.
        let waiting = Timeout(at: .now() + seconds + limits.undo, on: timeouts) { [weak self] timeout in
            guard let self else { return }
            guard state.withLock({ $0.isStuck }) else { return timeout.set(.now() + seconds + limits.undo) }
            ticket.abandon(stuck(isWaiting: true))
        }
        queue.async { [self] in
            waiting.cancel()
            let hasEnded = AtomicBool()
            let limit = Timeout(at: .now() + limits.plan + seconds + limits.undo, on: timeouts) { [weak self] limit in
                guard let self, !hasEnded.value else { return }
                // A camera may take longer to open again than an edit to fail.
                if let later = state.withLock({ $0.restoreLimit }), .now() < later { return limit.set(later) }
                let error = stuck(isWaiting: false)
                guard ticket.outcome.fail(error) else { return }
                state.withLock { $0.isStuck = true }
                // The edit may have failed before, and its devices do not return.
                ticket.answer.give(.failure(ticket.outcome.failure ?? error))
            }
            defer {
                hasEnded.raise()
                limit.cancel()
                ticket.end()
                state.withLock { $0.isStuck = false }
            }
            do throws(MediaError) {
                if let failure = ticket.outcome.failure { throw failure }
                let made = try binding(bindings) { () throws(MediaError) in
                    let running = graph.plan
                    var change = GraphChange(from: running, to: try plan(running))
                    let deadline = DispatchTime.now() + seconds
                    limit.set(deadline + limits.undo)
                    try ticket.begin { limit.set(.now() + self.limits.undo) }
                    try perform(
                        change, from: running, until: deadline, ticket.outcome, owners: owners,
                        needsDevices: needsDevices)
                    change.result = graph.plan
                    return change
                }
                ticket.answer.give(.success(made))
            } catch {
                ticket.answer.give(.failure(error))
            }
        }
        return try await ticket.answer.value.get()
    }

    /// Changes a live setting at once. Returns in time even if a driver does not.
    ///
    /// - Parameter owner: the handle of the node; nil for any node of this name.
    func set(_ change: GraphChange.SettingChange, of owner: ObjectIdentifier?) async throws(MediaError) {
        let answer = Answer<Result<Void, MediaError>>()
        let limit = Timeout(at: .now() + limits.setting, on: timeouts) { [limits] _ in
            answer.give(
                .failure(
                    MediaError(
                        code: MediaError.Code.editFailed,
                        message:
                            "\(change.node).\(change.setting) did not change within \(limits.setting.short) s, because "
                            + "its driver is not responding. Plug the device in again.", node: change.node)))
        }
        settings.async { [self] in
            do throws(MediaError) {
                if state.withLock({ $0.hasEnded }) { throw Reporter.stoppedWhileEdited }
                if let value = change.value {
                    try graph.node(change.node)?.running?.check(change.setting, to: value)
                }
                try graph.set(change, of: owner)
                answer.give(.success(()))
            } catch {
                answer.give(.failure(error))
            }
        }
        defer { limit.cancel() }
        try await answer.value.get()
    }

    /// Runs an edit with functions of the application. Afterwards, done or failed, releases those of the nodes that it
    /// has removed or not added.
    private func binding<Value>(
        _ more: NodeBindings, _ edit: () throws(MediaError) -> Value
    ) throws(MediaError) -> Value {
        let passing = more.nodes.union(graph.plan.nodes.map(\.name))
        graph.context.bound.add(more)
        defer { graph.context.bound.keep(for: graph.plan.expanded, graph.registry, among: passing) }
        return try edit()
    }

    private func stuck(isWaiting: Bool) -> MediaError {
        let node = graph.staged.first(where: \.isChangingState)?.name
        let name = node.map { "\"\($0)\"" } ?? "a new node"
        return MediaError(
            code: MediaError.Code.editFailed,
            message: (isWaiting
                ? "The edit did not start: the previous edit is still opening \(name), whose driver or file system is "
                    + "not responding. "
                : "The graph is unchanged: \(name) could not be opened in time, because its driver or file system is "
                    + "not responding. ") + "Plug the device in again, or check the path.",
            node: isWaiting ? nil : node)
    }

    /// Makes a change.
    private func perform(
        _ change: GraphChange, from running: GraphPlan, until deadline: DispatchTime,
        _ outcome: EditOutcome = EditOutcome(), owners: NodeOwners = [:], needsDevices: Bool = false
    ) throws(MediaError) {
        guard begin(outcome) else { throw Reporter.stoppedWhileEdited }
        defer {
            state.withLock { $0.outcome = nil }
            // The start may still wait for nodes that are gone.
            let names = change.removed + change.added.map(\.name)
            for name in names where graph.node(name) == nil { reporter.isReady(name) }
        }
        let edit = GraphEdit(
            graph, change, from: running, until: deadline, outcome: outcome, owners: owners, needsDevices: needsDevices)
        do throws(MediaError) {
            try edit.perform()
        } catch {
            if !edit.released.isEmpty {
                outcome.fail(error)
                restore(edit.released)
            }
            throw error
        }
    }

    /// Makes this the outcome of the running edit. False if the pipeline stops.
    private func begin(_ outcome: EditOutcome) -> Bool {
        state.withLock { state in
            if !state.hasEnded { state.outcome = outcome }
            return !state.hasEnded
        }
    }

    /// Makes the nodes again that had to release their devices for a failed edit, unless the pipeline stops.
    private func restore(_ names: Set<String>) {
        let outcome = EditOutcome()
        guard begin(outcome) else { return }
        let running = graph.plan
        let change = GraphChange(renewing: names, in: running)
        let deadline = DispatchTime.now() + limits.restore
        state.withLock { $0.restoreLimit = deadline + limits.undo }
        defer { state.withLock { $0.restoreLimit = nil } }
        do throws(MediaError) {
            try GraphEdit(graph, change, from: running, until: deadline, outcome: outcome).perform()
        } catch {
            guard !state.withLock({ $0.hasEnded }), let name = names.first else { return }
            // Not as a failure of the node: it has released its device, so that would not count.
            if let node = graph.node(name), takeOut(node, for: error) { return }
            reporter.fail(error.about(name))
        }
    }

    /// Handles a failure that does not end the whole graph: of a node that an edit is adding, of an optional one, and of
    /// one that has left. Called on any thread. False for every other failure.
    private func contain(_ error: MediaError, of name: String, _ prefix: String?) -> Bool {
        guard let prefix = prefix ?? graph.node(name)?.prefix else { return false }
        guard let (node, stage) = graph.node(prefix: prefix) else { return true }
        switch stage {
        case .staged: stagedFailed(error, node)
        case .live: return takeOut(node, for: error)
        case .released, .leaving: break
        }
        return true
    }

    /// Fails the edit that is adding the node. If it can no longer be undone, this counts as a failure of the new graph.
    private func stagedFailed(_ error: MediaError, _ node: NodeInstance) {
        guard let outcome = state.withLock({ $0.outcome }), !outcome.fail(error) else { return }
        // Behind the edit.
        queue.async { node.reporter.fail(error, node.name) }
    }

    /// Removes the part that a failed node belongs to, if it is optional.
    private func takeOut(_ node: NodeInstance, for error: MediaError) -> Bool {
        guard let part = graph.plan.removablePart(around: node.name) else { return false }
        let prefixes = Set(part.compactMap { graph.node($0)?.prefix }).union([node.prefix])
        let isNews = state.withLock { state in
            guard !state.failing.contains(node.prefix) else { return false }
            state.failing.formUnion(prefixes)
            return true
        }
        guard isNews else { return true }
        queue.async { [weak self] in
            guard let self else { return }
            defer { state.withLock { $0.failing.subtract(prefixes) } }
            // An edit may have replaced the node meanwhile, or changed its part.
            guard graph.node(node.name) === node else { return }
            let running = graph.plan
            guard let part = running.removablePart(around: node.name) else { return reporter.fail(error) }
            let change = GraphChange(from: running, to: running.removing(part))
            _ = try? binding(NodeBindings()) { () throws(MediaError) in
                try perform(change, from: running, until: .now())
            }
            reporter.partFailed(error, part.sorted())
        }
        return true
    }

    /// Waits until the optional parts that have failed so far are removed.
    func finishRemovals() {
        if !state.withLock({ $0.failing.isEmpty }) { queue.sync {} }
    }

    /// Prevents further edits. `done` is called when the running edit has ended, and `stuck` before, if a driver keeps
    /// it from ending.
    func end(stuck: @escaping @Sendable () -> Void, _ done: @escaping @Sendable () -> Void) {
        state.withLock { state in
            state.hasEnded = true
            state.outcome?.fail(Reporter.stoppedWhileEdited)
        }
        let timeout = Timeout(at: .now() + limits.cancel, on: timeouts) { _ in stuck() }
        queue.async {
            timeout.cancel()
            done()
        }
    }
}

/// An edit, for the caller that waits for it.
final class EditTicket: Sendable {
    let outcome = EditOutcome()
    let answer = Answer<Result<GraphChange, MediaError>>()
    /// Called when the caller cancels an edit that waits for the start, or has begun to change the graph.
    private let onCancel = Mutex<(@Sendable () -> Void)?>(nil)

    /// Called before a wait for the start, and before the graph changes. Throws if the caller does not wait any more.
    func begin(_ onCancel: @escaping @Sendable () -> Void) throws(MediaError) {
        self.onCancel.withLock { $0 = onCancel }
        if let failure = outcome.failure { throw failure }
    }

    func end() { onCancel.withLock { $0 = nil } }

    /// Fails the edit. An edit that has not changed anything yet need not be undone.
    func cancel() {
        guard outcome.fail(Reporter.cancelled) else { return }
        guard let undo = onCancel.withLock({ $0 }) else { return answer.give(.failure(Reporter.cancelled)) }
        undo()
    }

    /// Fails an edit that has not begun.
    func abandon(_ error: MediaError) {
        if outcome.fail(error) { answer.give(.failure(error)) }
    }
}

extension GraphPlan {
    /// The optional nodes around this one that end with it, and those that were inserted only for them. Nil if the node is
    /// not optional, or if nothing would be left.
    fileprivate func removablePart(around name: String) -> Set<String>? {
        let optional = expanded.optionalPart(around: name)
        let left = removing(optional).nodes.map(\.name)
        return optional.isEmpty || left.isEmpty ? nil : Set(nodes.map(\.name)).subtracting(left)
    }
}
