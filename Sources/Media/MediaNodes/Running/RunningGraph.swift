import Dispatch
import GStreamerKit
import MediaGraph
import Synchronization

/// Where a link enters the node that it feeds: the queue of the link, which need not feed the node yet, or the node's
/// own pad. An error behind it can end there.
struct LinkEntry: Sendable {
    let pad: Pad
    /// Separates raw branches from each other. Nil if the node has its own queue.
    let queue: Element?
    /// Whether an error behind the entry ends there.
    let isContained: AtomicBool
    /// Whether the link is being cut: an error behind the entry ends there and is ignored.
    let isLeaving = AtomicBool()

    /// Wraps the functions of the pad, through which no data may pass yet.
    init(_ pad: Pad, queue: Element? = nil, isContained: Bool) {
        self.pad = pad
        self.queue = queue
        self.isContained = AtomicBool(isContained)
        pad.containErrors { [isContained = self.isContained, isLeaving] in
            isLeaving.value ? .silent : isContained.value ? .reported : .none
        }
    }
}

/// One link between two nodes, from the tee behind the output to the first pad of the target node.
struct Connection: Sendable {
    let plan: LinkPlan
    let tee: Element
    let branch: Pad
    let entry: LinkEntry
    /// The node's own pad, if it was requested and must be released.
    let requested: (element: Element, pad: Pad)?
}

/// The handles of nodes, by the names of the nodes.
typealias NodeOwners = [String: ObjectIdentifier]

extension GraphPlan {
    fileprivate func setting(_ change: GraphChange.SettingChange) -> GraphPlan {
        setting(change.node, change.setting, to: change.value)
    }

    /// The present values of the settings that differ from those of an earlier plan, or are among `others`.
    fileprivate func settingsChanged(
        since base: GraphPlan, or others: [GraphChange.SettingChange]
    ) -> [GraphChange.SettingChange] {
        nodes.flatMap { node -> [GraphChange.SettingChange] in
            let (before, now) = (base.node(node.name)?.node.settings ?? [:], node.node.settings)
            return Set(before.keys).union(now.keys).sorted().compactMap { name in
                let isOther = others.contains { $0.node == node.name && $0.setting == name }
                guard isOther || before[name] != now[name] else { return nil }
                return GraphChange.SettingChange(node: node.name, setting: name, value: now[name])
            }
        }
    }
}

/// The nodes of a plan in a pipeline, and their links.
///
/// Its structure changes on one queue at a time. The lock is for reads on other threads.
final class RunningGraph: Sendable {
    /// The part that a node has in the graph, which decides about errors of its elements.
    enum Stage: Sendable {
        /// An edit is about to add it.
        case staged
        case live
        /// Live, but it has released its devices: its messages no longer matter.
        case released
        /// Being removed: its messages no longer matter.
        case leaving
    }

    private struct State {
        var plan: GraphPlan
        /// The plan of the edit whose nodes are staged.
        var next: GraphPlan?
        /// By the prefix of the elements' names: while an edit replaces a node, there are two of one name.
        var nodes: [String: (instance: NodeInstance, stage: Stage)] = [:]
        var connections: [Link: Connection] = [:]
        /// The handles of the nodes that have one, by the names of the nodes.
        var owners: NodeOwners
        /// The figures of a graph that has released its nodes.
        var last: MediaStatistics?
        var generation = 0
        var observers: [ObjectIdentifier: @Sendable () -> Void] = [:]
        /// Called before the nodes are released.
        var farewells: [ObjectIdentifier: @Sendable () -> Void] = [:]

        func nodes(_ stages: Stage...) -> [NodeInstance] {
            nodes.values.filter { stages.contains($0.stage) }.map(\.instance)
        }

        func node(_ name: String) -> NodeInstance? { nodes(.live, .released).first { $0.name == name } }
    }

    let context: PipelineContext
    private let kinds: NodeRegistry
    private let state: Mutex<State>
    /// Held while live settings change, which an edit need not wait for.
    private let settings = Mutex(())
    private let hasFinished = AtomicBool()

    init(
        _ plan: GraphPlan, _ registry: NodeRegistry, _ context: PipelineContext, _ owners: NodeOwners
    ) throws(MediaError) {
        self.context = context
        kinds = registry
        state = Mutex(State(plan: plan, owners: owners))
        for node in plan.nodes { _ = try make(node, prefix: node.name, .live) }
        for link in plan.links {
            guard let source = node(link.link.from.node), let target = node(link.link.to.node) else { continue }
            let connection = try connect(link, from: source, to: target)
            try self.link(connection)
            state.withLock { $0.connections[link.link] = connection }
        }
    }

    /// Also after an initializer that has failed.
    deinit {
        if !hasFinished.value { discard() }
    }

    // MARK: Queries

    /// The kinds, with those that nodes bring along.
    var registry: NodeRegistry { kinds.with(context.bound.bindings.own) }

    var plan: GraphPlan { state.withLock { $0.plan } }

    func node(_ name: String) -> NodeInstance? { state.withLock { $0.node(name) } }

    /// The handle of a node; nil if it has none.
    func owner(of name: String) -> ObjectIdentifier? { state.withLock { $0.owners[name] } }

    /// The node with this prefix, unless it has been removed.
    func node(prefix: String) -> (instance: NodeInstance, stage: Stage)? { state.withLock { $0.nodes[prefix] } }

    /// All nodes, sources first.
    var nodes: [NodeInstance] {
        state.withLock { state in state.plan.nodes.compactMap { state.node($0.name) } }
    }

    func connections(into node: String) -> [Connection] {
        state.withLock { state in
            state.plan.links(into: node).compactMap { state.connections[$0.link] }
        }
    }

    /// The figures of all nodes since the start.
    var statistics: MediaStatistics {
        if let last = state.withLock({ $0.last }) { return last }
        var statistics = MediaStatistics()
        for node in nodes { node.running?.report(into: &statistics, as: node.name) }
        return statistics
    }

    /// The behaviour of the nodes, sources first.
    var runningNodes: [any RunningNode] { nodes.compactMap(\.running) }

    /// The node that an element belongs to, by the names of the element and the bins around it, innermost first.
    func owner(ofElementIn path: [String]) -> (instance: NodeInstance, stage: Stage)? {
        state.withLock { state in
            path.compactMap { name in name.lastIndex(of: ".").flatMap { state.nodes[String(name[..<$0])] } }.first
        }
    }

    /// Ignores the errors of sources from now on. Closing a network camera whose server has gone fails, and no media is
    /// lost by it.
    func releaseSources() {
        state.withLock { state in
            for node in state.nodes(.live) where state.plan.links(into: node.name).isEmpty {
                state.nodes[node.prefix]?.stage = .released
            }
        }
    }

    /// Calls `body` after each edit and change of a setting, until `owner` is released, and `farewell` before the nodes are
    /// released.
    func onChange(
        for owner: AnyObject, _ body: @escaping @Sendable () -> Void, farewell: (@Sendable () -> Void)? = nil
    ) {
        state.withLock { state in
            state.observers[ObjectIdentifier(owner)] = body
            state.farewells[ObjectIdentifier(owner)] = farewell
        }
    }

    func removeObserver(of owner: AnyObject) {
        state.withLock { state in
            state.observers[ObjectIdentifier(owner)] = nil
            state.farewells[ObjectIdentifier(owner)] = nil
        }
    }

    /// The first node that is changing its state: while the pipeline starts, the one that is being opened.
    var nodeOpening: NodeInstance? { nodes.first(where: \.isChangingState) }

    /// The nodes that an edit is about to add.
    var staged: [NodeInstance] { state.withLock { $0.nodes(.staged) } }

    func connection(_ link: Link) -> Connection? { state.withLock { $0.connections[link] } }

    // MARK: Ending

    /// Finishes the nodes' work, before they are closed.
    func finish() {
        hasFinished.raise()
        // A paused sink accepts no data, not even the end of a recording.
        context.pipeline.resume()
        Self.finish(runningNodes)
    }

    private static func finish(_ nodes: [any RunningNode], isPartOfGraph: Bool = true) {
        for node in nodes { node.prepareToFinish() }
        for node in nodes { node.finish() }
        if isPartOfGraph { for node in nodes { node.reportShortfall() } }
    }

    /// Ends the nodes of a graph that never ran. One may claim a file from its creation on.
    func discard() {
        for node in runningNodes {
            node.discard()
            node.stopped()
        }
    }

    /// Finishes and ends the nodes.
    func halt() {
        finish()
        releaseSources()
        context.pipeline.stop()
        for node in runningNodes { node.stopped() }
    }

    /// The same, one node after the other, if a running edit prevents the pipeline as a whole from ending.
    func haltEach() {
        finish()
        for node in nodes.reversed() { node.close() }
        for node in runningNodes { node.stopped() }
    }

    /// Ends all nodes in parallel, each on its own thread. Returns the names of those that have not ended after
    /// `seconds`.
    func closeEach(waiting seconds: Double) -> [String] {
        let queue = DispatchQueue(label: "media.closing", attributes: .concurrent)
        let closing = nodes.map { node in
            let group = DispatchGroup()
            queue.async(group: group) { node.close() }
            return (name: node.name, group: group)
        }
        let deadline = DispatchTime.now() + seconds
        return closing.filter { $0.group.wait(timeout: deadline) == .timedOut }.map(\.name)
    }

    /// Releases the nodes, which have ended, with the functions of the program. Their figures stay.
    func release() {
        for farewell in state.withLock({ Array($0.farewells.values) }) { farewell() }
        let last = statistics
        let (nodes, connections) = state.withLock { state in
            defer { (state.nodes, state.connections, state.next, state.last) = ([:], [:], nil, last) }
            return (state.nodes.values.map(\.instance), Array(state.connections.values))
        }
        for connection in connections { discard(connection.entry.queue) }
        for node in nodes { node.removeElements() }
        context.bound.clear()
    }

    // MARK: Building

    private func make(_ plan: NodePlan, prefix: String, _ stage: Stage) throws(MediaError) -> NodeInstance {
        guard let implementation = registry.implementation(of: plan.node) else {
            preconditionFailure("no node type runs a \(plan.node.kind)")
        }
        do throws(MediaError) {
            let node = try NodeInstance(plan, implementation, context, prefix: prefix) { [weak self] input in
                self?.above(plan.name, prefix, input) ?? []
            }
            state.withLock { $0.nodes[prefix] = (node, stage) }
            return node
        } catch {
            throw error.about(plan.name)
        }
    }

    /// The running nodes upstream of a node, or of one of its inputs, nearest first. For one that an edit adds, those of the
    /// edit come before those that they replace.
    private func above(_ name: String, _ prefix: String, _ input: String?) -> [any RunningNode] {
        state.withLock { state in
            let isLive = state.nodes[prefix].map { $0.stage != .staged } ?? false
            let plan = isLive ? state.plan : state.next ?? state.plan
            var found: [any RunningNode] = []
            var frontier = plan.links(into: name).filter { input == nil || $0.link.to.port == input }.map(\.link.from)
            while !frontier.isEmpty {
                found += frontier.compactMap { output in
                    let staged = isLive ? nil : state.nodes(.staged).first { $0.name == output.node }
                    return (staged ?? state.node(output.node))?.running?.part(behind: output.port)
                }
                frontier = frontier.flatMap { plan.links(into: $0.node).map(\.link.from) }
            }
            return found
        }
    }

    /// Prepares a link; `link` starts its data. `isContained`: whether an error behind the input ends there. `branch`:
    /// an existing pad of the tee. `queue`: the link's existing queue.
    func connect(
        _ plan: LinkPlan, from source: NodeInstance, to target: NodeInstance, isContained: Bool = false,
        branch: Pad? = nil, queue held: LinkEntry? = nil
    ) throws(MediaError) -> Connection {
        guard let input = target.plan.inputs[plan.link.to.port] else {
            preconditionFailure("\(plan.link.to) has no element")
        }
        let tee = source.tee(behind: plan.link.from.port)
        let pad = target.pad(input, isOutput: false)
        var entry = held
        if entry == nil { entry = try makeQueue(of: plan, from: source, to: target, isContained: isContained) }
        if let queue = entry?.queue, let reason = queue.source.tryLink(pad) { throw Self.clash(plan, reason) }
        guard let branch = branch ?? tee.requestPad("src_%u") else { preconditionFailure("a tee gives every pad") }
        let isRequested = input.pad?.contains("%") == true
        return Connection(
            plan: plan, tee: tee, branch: branch,
            entry: entry ?? LinkEntry(pad, isContained: isContained || target.isOptional(after: source)),
            requested: isRequested ? (target.element(input.element), pad) : nil)
    }

    /// Makes the planned queue of a link; nil where none is planned. `suffix` tells it from the queue of the link that it
    /// replaces.
    func makeQueue(
        of plan: LinkPlan, from source: NodeInstance, to target: NodeInstance, isContained: Bool = false,
        suffix: String = ""
    ) throws(MediaError) -> LinkEntry? {
        guard let planned = plan.queue else { return nil }
        let queue = try Element(
            "queue", name: "\(target.prefix).branch-\(plan.link.to.port)\(suffix)",
            planned.properties)
        context.pipeline.add(queue)
        return LinkEntry(queue.sink, queue: queue, isContained: isContained || target.isOptional(after: source))
    }

    /// Starts the data of a prepared link. Throws if the formats do not fit.
    func link(_ connection: Connection) throws(MediaError) {
        if let reason = connection.branch.tryLink(connection.entry.pad) { throw Self.clash(connection.plan, reason) }
    }

    private static func clash(_ plan: LinkPlan, _ reason: String) -> MediaError {
        MediaError(
            code: MediaError.Code.formatClash,
            message: "\(plan.link.from) and \(plan.link.to) have no common format.", cause: reason,
            node: plan.link.to.node)
    }

    // MARK: Changing

    /// A suffix that no element has yet, because new elements exist beside those that they replace.
    func newSuffix() -> String {
        state.withLock { state in
            state.generation += 1
            return "~\(state.generation)"
        }
    }

    /// Makes a node that an edit adds. It stays separate until `commit`.
    func stage(_ plan: NodePlan, in whole: GraphPlan) throws(MediaError) -> NodeInstance {
        state.withLock { $0.next = whole }
        return try make(plan, prefix: plan.name + newSuffix(), .staged)
    }

    /// Replaces nodes with those that an edit has prepared. Returns the replaced nodes. Live settings that have changed since
    /// the edit began stay.
    ///
    /// - Parameters:
    ///   - base: the plan that the edit has begun with.
    ///   - owners: the handles of the nodes that the edit mentions.
    func commit(
        _ change: GraphChange, from base: GraphPlan, _ connections: [Connection], _ owners: NodeOwners
    ) -> [NodeInstance] {
        let (leaving, observers) = settings.withLock { _ in
            let (leaving, late, observers) = state.withLock { state in
                let leaving = change.removed.compactMap { state.node($0) }
                for node in leaving { state.nodes[node.prefix]?.stage = .leaving }
                for node in state.nodes(.staged) { state.nodes[node.prefix]?.stage = .live }
                for link in change.removedLinks { state.connections[link] = nil }
                for connection in connections { state.connections[connection.plan.link] = connection }
                let replaced = Set(change.added.map(\.name))
                // Another handle of the same name and kind may get the running node, with its settings, but not a new one.
                let kept = state.plan.settingsChanged(since: base, or: change.settings).filter {
                    let owner = owners[$0.node]
                    let isSame = owner == nil || owner == state.owners[$0.node] || !replaced.contains($0.node)
                    return isSame && change.result.node($0.node)?.node.kind == state.plan.node($0.node)?.node.kind
                }
                (state.plan, state.next) = (kept.reduce(change.result) { $0.setting($1) }, nil)
                state.owners.merge(owners) { $1 }
                // An optional node that was left out may come with a later edit.
                state.owners = state.owners.filter { state.plan.source.node($0.key) != nil }
                let late = kept.filter { replaced.contains($0.node) }.compactMap { setting in
                    state.node(setting.node).map { (node: $0, setting: setting) }
                }
                return (leaving, late, Array(state.observers.values))
            }
            for (node, setting) in late {
                do throws(MediaError) {
                    try node.set(setting)
                } catch {
                    context.reporter.warn(node.name, "\(error)")
                }
            }
            return (leaving, observers)
        }
        for observer in observers { observer() }
        return leaving
    }

    /// Changes a live setting of a node, also while an edit is in progress.
    ///
    /// - Parameter owner: the handle of the node; nil for any node of this name.
    /// - Returns: the former value.
    /// - Throws: `node.not-running` if no such node runs, or the reason why it refuses the value.
    @discardableResult
    func set(
        _ change: GraphChange.SettingChange, of owner: ObjectIdentifier? = nil
    ) throws(MediaError) -> GraphChange.SettingChange {
        let (former, observers) = try settings.withLock {
            (_) throws(MediaError) -> (GraphChange.SettingChange, [@Sendable () -> Void]) in
            let node = state.withLock { state in
                owner == nil || state.owners[change.node] == owner ? state.node(change.node) : nil
            }
            guard let node else {
                throw MediaError(
                    code: MediaError.Code.nodeNotRunning,
                    message: "\"\(change.node)\" is not in the running graph any more.", node: change.node)
            }
            try node.set(change)
            return state.withLock { state in
                var former = change
                former.value = state.plan.node(change.node)?.node.settings[change.setting]
                state.plan = state.plan.setting(change)
                return (former, Array(state.observers.values))
            }
        }
        for observer in observers { observer() }
        return former
    }

    /// Gives a setting its former value, unless it has changed since.
    func restore(_ former: GraphChange.SettingChange, from value: SettingValue?) {
        settings.withLock { _ in
            let node = state.withLock { state in
                let now = state.plan.node(former.node)?.node.settings[former.setting]
                return now == value ? state.node(former.node) : nil
            }
            guard let node else { return }
            // The node has had this value.
            try? node.set(former)
            state.withLock { $0.plan = $0.plan.setting(former) }
        }
    }

    /// Removes the nodes that an edit has prepared.
    func unstage() {
        let staged = state.withLock { state in
            let staged = state.nodes(.staged)
            for node in staged { state.nodes[node.prefix]?.stage = .leaving }
            state.next = nil
            return staged
        }
        remove(staged, isPartOfGraph: false)
    }

    /// Makes a node release its devices, without removing it.
    func releaseDevices(of node: NodeInstance) {
        state.withLock { $0.nodes[node.prefix]?.stage = .released }
        node.running?.finish()
        for element in node.allElements.reversed() { element.close() }
    }

    /// Cuts a link, so that its buffers are dropped. Waits until it has no buffer in transit, for at most 2 s.
    ///
    /// If a push does not return in that time, the tee releases its pad all the same. The push retains the pad until it
    /// returns, and the tee has marked it as removed by then. The entry then refuses all data, and this returns true.
    @discardableResult
    func detach(_ connection: Connection) -> Bool {
        let (branch, entry) = (connection.branch, connection.entry)
        entry.isLeaving.raise()
        let isCut = DispatchSemaphore(value: 0)
        var refuses = false
        branch.whenIdle {
            branch.unlink(entry.pad)
            isCut.signal()
        }
        if isCut.wait(timeout: .now() + Self.transitTimeout) == .timedOut {
            // An element behind the link holds its buffer: this unblocks it and refuses further buffers.
            entry.pad.refuseEverything()
            refuses = true
            _ = isCut.wait(timeout: .now() + Self.transitTimeout)
        }
        connection.tee.release(branch)
        discard(entry.queue)
        if let (element, pad) = connection.requested { element.release(pad) }
        return refuses
    }

    /// How long to wait for buffers in transit.
    private static let transitTimeout = DispatchTimeInterval.seconds(1)

    /// Ends an element of the graph, if there is one.
    func discard(_ element: Element?) {
        guard let element else { return }
        element.close()
        context.pipeline.remove(element)
    }

    /// Ends nodes without sources, and removes their elements. `isPartOfGraph` is false for those of a failed edit.
    func remove(_ nodes: [NodeInstance], isPartOfGraph: Bool = true) {
        Self.finish(nodes.compactMap(\.running), isPartOfGraph: isPartOfGraph)
        // The last nodes first, so that no node waits for them.
        for node in nodes.reversed() { node.close() }
        for node in nodes {
            node.removeElements()
            node.running?.stopped()
        }
        state.withLock { state in
            for node in nodes { state.nodes[node.prefix] = nil }
        }
    }
}

extension NodeInstance {
    /// Whether the node keeps its errors from a source: an optional node does, wherever it hangs on one that is not.
    fileprivate func isOptional(after source: NodeInstance) -> Bool { node.isOptional && !source.node.isOptional }
}
