import Dispatch
import GStreamerKit
public import MediaGraph

extension MediaPipeline {
    /// Replaces the running graph by another one, as one transaction. New nodes are built beside the old ones. When
    /// they have delivered their first frame, they replace the old ones, at a keyframe if media is encoded. Nodes that
    /// stay, because the composition has their handles, lose no frame and keep their settings.
    ///
    /// - Parameter seconds: the timeout for the new nodes' first frames.
    /// - Returns: the changes.
    /// - Throws: the reason why the graph was not replaced. It then runs unchanged. `graph.invalid`, an error of a new
    ///   node's device, `graph.edit-failed` if a new node delivered no frame in time, `node.in-use`, or the reason why a
    ///   node refuses a new value of a live setting.
    @discardableResult
    public func apply(_ composition: Composition, within seconds: Double = 2) async throws -> GraphChange {
        let enrolled = try roster.enroll(composition, beside: plan.expanded)
        return try await edit(enrolled, within: seconds) {
            enrolled.graph.keepingSettings(of: enrolled.staying, in: $0)
        }
    }

    /// Replaces the running graph like `apply(_:within:)`.
    ///
    /// - Throws: like `apply(_:within:)`.
    @discardableResult
    public nonisolated(nonsending) func apply(
        within seconds: Double = 2, @CompositionBuilder _ compose: () -> Composition
    ) async throws -> GraphChange {
        try await apply(compose(), within: seconds)
    }

    /// Adds nodes and links to the running graph, as one transaction like `apply`:
    ///
    /// ```swift
    /// try await pipeline.add { encoder >>> Recorder(path: "talk.mkv") }
    /// ```
    ///
    /// - Throws: like `apply`; `graph.invalid` also if the graph has all of it already.
    @discardableResult
    public nonisolated(nonsending) func add(
        within seconds: Double = 2, @CompositionBuilder _ compose: () -> Composition
    ) async throws -> GraphChange {
        let composition = compose()
        let enrolled = try roster.enroll(composition, beside: plan.expanded, isWhole: false)
        let change = try await edit(enrolled, within: seconds) { $0.adding(enrolled.graph) }
        guard change.isEmpty, !composition.nodes.isEmpty else { return change }
        throw Composition.invalid(
            "The graph has all of this already, so nothing was added. For a second link between two nodes, name its port, "
                + "such as file.audio or mixer.input(2).")
    }

    /// Removes a node from the running graph, and the nodes that only it fed or that fed only it, such as its
    /// camera. A recording is completed.
    ///
    /// - Parameter seconds: the timeout, like that of `apply`.
    /// - Throws: `node.not-running` if the node is not in this pipeline's graph; otherwise like `apply`.
    @discardableResult
    public func remove(_ node: some MediaNode, within seconds: Double = 2) async throws -> GraphChange {
        let (pipeline, name) = try node.running()
        guard pipeline === self else { throw node.handle.identity.notRunning(as: nil) }
        let (graph, owner) = (self.graph, ObjectIdentifier(node.handle.identity))
        let missing = node.handle.identity.notRunning(as: name)
        return try await edit(nil, within: seconds) { (running) throws(MediaError) in
            // Another edit may have removed it meanwhile.
            guard graph.owner(of: name) == owner else { throw missing }
            return running.removingPart(of: name)
        }
    }

    /// Replaces the running graph like `apply(_:within:)` by a graph of names, such as that of a file.
    ///
    /// - Parameter nodes: handles that take the places of new nodes with their names, as for a new pipeline.
    /// - Throws: like `apply(_:within:)`.
    @discardableResult
    public func apply(
        _ graph: MediaGraph, nodes: [any MediaNode] = [], within seconds: Double = 2
    ) async throws -> GraphChange {
        let enrolled = try roster.enroll(nodes, in: graph)
        return try await edit(enrolled, within: seconds) { _ in enrolled.graph }
    }

    /// Replaces the running graph by a graph of names. Functions of removed nodes are released. With `needsDevices`, also
    /// throws if the device of a new source is away. Otherwise a stand-in is its first frame.
    @discardableResult
    package func apply(
        _ graph: MediaGraph, bindings: NodeBindings, within seconds: Double = 2, needsDevices: Bool = false
    ) async throws(MediaError) -> GraphChange {
        try await edit(EditTicket(), bindings, within: seconds, needsDevices: needsDevices) { _ in graph }
    }

    private func edit(
        _ enrolled: NodeRoster.Enrolment?, within seconds: Double,
        _ change: @escaping @Sendable (MediaGraph) throws(MediaError) -> MediaGraph
    ) async throws -> GraphChange {
        let (codes, registry, ticket) = (enrolled?.codes ?? [:], graph.registry, EditTicket())
        let made: GraphChange
        do {
            try Task.checkCancellation()
            let bindings = try await offPoolUntilCancelled { () throws(MediaError) in try NodeBindings(codes, registry)
            }
            made = try await withTaskCancellationHandler {
                try await edit(ticket, bindings, owners: enrolled?.owners ?? [:], within: seconds, change)
            } onCancel: {
                ticket.cancel()
            }
        } catch {
            roster.edited(enrolled, now: plan.source, isDone: false)
            throw Task.isCancelled ? CancellationError() : error
        }
        roster.edited(enrolled, now: plan.source)
        return made
    }

    private func edit(
        _ ticket: EditTicket, _ bindings: NodeBindings, owners: NodeOwners = [:], within seconds: Double,
        needsDevices: Bool = false, _ change: @escaping @Sendable (MediaGraph) throws(MediaError) -> MediaGraph
    ) async throws(MediaError) -> GraphChange {
        if state == .running { try await waitToEdit(ticket) }
        let state = state
        guard state == .running else {
            let isOver = state != .prepared && state != .paused
            throw MediaError(
                code: isOver ? MediaError.Code.pipelineStopped : MediaError.Code.pipelineNotRunning,
                message: "The graph cannot be changed while it is \(state.rawValue), only while it runs.")
        }
        let runs = self.graph
        return try await editor.edit(
            ticket, seconds: seconds, bringing: bindings, owners: owners, needsDevices: needsDevices
        ) { running throws(MediaError) in
            let graph = try change(running.source)
            let bound = runs.context.bound.bindings.only(for: graph, runs.registry).names
            return try Planner(runs.registry, SystemEnvironment()).plan(graph, bound: bound, running: running)
        }
    }

    /// Changes a live setting of a node, also while an edit is in progress.
    ///
    /// - Parameter owner: the handle of the node; nil for any node of this name.
    /// - Throws: `graph.invalid` for an unknown node or setting or an invalid value; `graph.setting-fixed` for a
    ///   setting that is not live. `apply` replaces the node instead.
    package func set(
        _ node: String, _ setting: String, to value: SettingValue, of owner: ObjectIdentifier? = nil
    ) async throws(MediaError) {
        try checkContract(node, setting, to: value)
        try await editor.set(GraphChange.SettingChange(node: node, setting: setting, value: value), of: owner)
    }

    /// Throws the error that `set` would throw, without changing the setting.
    package func check(_ node: String, _ setting: String, to value: SettingValue) throws(MediaError) {
        try checkContract(node, setting, to: value)
        try graph.node(node)?.running?.check(setting, to: value)
    }

    private func checkContract(_ node: String, _ setting: String, to value: SettingValue) throws(MediaError) {
        let plan = self.plan
        guard let there = plan.node(node), let kind = graph.registry.kind(named: there.node.kind) else {
            throw unknown(node)
        }
        let problems = MediaGraph(nodes: [Node(there.node.kind, name: node, settings: [setting: value])])
            .validate(with: graph.registry).filter { $0.setting == setting }
        if let problem = problems.first { throw Self.invalid(problem.message, node) }
        guard kind.setting(setting)?.isChangeable == true else {
            let changeable = kind.settings.filter(\.isChangeable).map(\.name)
            throw MediaError(
                code: MediaError.Code.settingFixed,
                message: "\(node).\(setting) is fixed while the node runs; "
                    + (changeable.isEmpty
                        ? "\(kind.name) has no live settings. "
                        : "the live settings are \(changeable.joined(separator: ", ")). ")
                    + "To replace the node, apply a graph with the new value, or a composition with a new handle.",
                node: node)
        }
    }

    func unknown(_ node: String) -> MediaError {
        let names = plan.nodes.map(\.node.name)
        let hint = node.nearest(among: names).map { "; did you mean \"\($0)\"?" }
        let listed = " in the running graph. Its nodes are \(names.joined(separator: ", "))."
        return Self.invalid("There is no node \"\(node)\"\(hint ?? listed)", node)
    }

    static func invalid(_ message: String, _ node: String) -> MediaError {
        MediaError(code: MediaError.Code.graphInvalid, message: message, node: node)
    }

    func find<Kind: RunningNode>(_ type: Kind.Type, _ name: String) -> Kind? {
        graph.node(name)?.running as? Kind
    }
}
