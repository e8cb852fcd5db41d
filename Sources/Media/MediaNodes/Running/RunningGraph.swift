import Dispatch
import GStreamerKit
import MediaGraph
import Synchronization

/// A node in a pipeline.
final class Member: Sendable {
    let instance: NodeInstance
    let running: (any RunningNode)?
    /// The prefix of its elements' names: the node's name, with a number if an edit added the node, because the node
    /// that it replaces still exists.
    let prefix: String

    var plan: NodePlan { instance.plan }

    init(_ instance: NodeInstance, _ running: (any RunningNode)?, prefix: String) {
        self.instance = instance
        self.running = running
        self.prefix = prefix
    }
}

/// One link between two members, from the tee behind the output to the first pad of the target node.
final class Connection: Sendable {
    let plan: LinkPlan
    let tee: Element
    let branch: Pad
    /// Separates raw branches from each other. Nil if the node has its own queue.
    let queue: Element?
    /// The pad that the branch feeds: the queue's, or the node's own.
    let entry: Pad
    /// The node's own pad, if it was requested and must be released.
    let requested: (element: Element, pad: Pad)?
    /// Whether an error behind the entry ends there.
    let isContained: AtomicBool
    /// Whether the link is being cut: an error behind the entry ends there and is ignored.
    let isLeaving: AtomicBool

    init(
        _ plan: LinkPlan, tee: Element, branch: Pad, queue: BranchQueue?, pad: Pad, isRequestedFrom element: Element?,
        _ containment: BranchContainment
    ) {
        self.plan = plan
        self.tee = tee
        self.branch = branch
        self.queue = queue?.element
        entry = queue?.element.sink ?? pad
        requested = element.map { ($0, pad) }
        isContained = containment.isContained
        isLeaving = containment.isLeaving
    }
}

/// When an error behind a link ends at its entry.
struct BranchContainment: Sendable {
    let isContained: AtomicBool
    let isLeaving = AtomicBool()

    /// Wraps the functions of the entry, through which no data may pass yet.
    func apply(to entry: Pad) {
        entry.containErrors { isLeaving.value ? .silent : isContained.value ? .reported : .none }
    }
}

/// The queue of a link, which need not feed the link's node yet.
struct BranchQueue: Sendable {
    let element: Element
    let containment: BranchContainment
}

/// The nodes of a plan in a pipeline, and their links.
///
/// Its structure changes on one queue at a time. The lock is for reads on other threads.
final class RunningGraph: Sendable {
    private struct State {
        var plan: GraphPlan
        var members: [String: Member] = [:]
        /// Members that an edit is about to add.
        var staged: [String: Member] = [:]
        /// Members that are being removed.
        var leaving: [String: Member] = [:]
        /// Members that have released their devices, by prefix.
        var released: Set<String> = []
        /// The tees by the member's prefix. Every output ends in a tee, so that branches can be added and removed.
        var tees: [PortReference: Element] = [:]
        var connections: [Link: Connection] = [:]
        var generation = 0
        var observers: [ObjectIdentifier: @Sendable () -> Void] = [:]
    }

    /// The state of the node whose element posted a message.
    enum NodeState: Sendable {
        case live(String)
        case staged(String)
        /// Being removed: its messages no longer matter.
        case leaving(String)
    }

    let context: PipelineContext
    private let registry: NodeRegistry
    private let state: Mutex<State>

    init(_ plan: GraphPlan, _ registry: NodeRegistry, _ context: PipelineContext) throws(MediaError) {
        self.context = context
        self.registry = registry
        state = Mutex(State(plan: plan))
        for node in plan.nodes {
            let member = try make(node, in: plan, prefix: node.name)
            state.withLock { $0.members[node.name] = member }
        }
        for link in plan.links {
            guard let source = member(link.link.from.node), let target = member(link.link.to.node) else { continue }
            let connection = try connect(link, from: source, to: target)
            try self.link(connection)
            state.withLock { $0.connections[link.link] = connection }
        }
    }

    // MARK: Queries

    var plan: GraphPlan { state.withLock { $0.plan } }

    func member(_ name: String) -> Member? { state.withLock { $0.members[name] } }

    /// All members, sources first.
    var membersInOrder: [Member] {
        state.withLock { state in state.plan.nodes.compactMap { state.members[$0.name] } }
    }

    func connections(into node: String) -> [Connection] {
        state.withLock { state in
            state.plan.links(into: node).compactMap { state.connections[$0.link] }
        }
    }

    /// The running nodes, sources first.
    var runningNodes: [any RunningNode] {
        state.withLock { state in state.plan.nodes.compactMap { state.members[$0.name]?.running } }
    }

    func runningNode(_ name: String) -> (any RunningNode)? { member(name)?.running }

    /// The node that an element belongs to, by the names of the element and the bins around it, innermost first.
    func owner(ofElementIn path: [String]) -> (state: NodeState, running: (any RunningNode)?)? {
        state.withLock { state in
            for name in path {
                guard let end = name.lastIndex(of: ".") else { continue }
                let prefix = String(name[..<end])
                if let member = state.members.values.first(where: { $0.prefix == prefix }) {
                    let isReleased = state.released.contains(prefix)
                    return (isReleased ? .leaving(member.plan.name) : .live(member.plan.name), member.running)
                }
                if let member = state.staged.values.first(where: { $0.prefix == prefix }) {
                    return (.staged(member.plan.name), member.running)
                }
                if let member = state.leaving.values.first(where: { $0.prefix == prefix }) {
                    return (.leaving(member.plan.name), member.running)
                }
            }
            return nil
        }
    }

    /// Ignores the errors of sources from now on. Closing a network camera whose server has gone fails, and no media is
    /// lost by it.
    func releaseSources() {
        state.withLock { state in
            for member in state.members.values where state.plan.links(into: member.plan.name).isEmpty {
                state.released.insert(member.prefix)
            }
        }
    }

    /// Calls `body` after each edit, until `owner` is released.
    func onChange(for owner: AnyObject, _ body: @escaping @Sendable () -> Void) {
        state.withLock { $0.observers[ObjectIdentifier(owner)] = body }
    }

    func removeObserver(of owner: AnyObject) {
        state.withLock { _ = $0.observers.removeValue(forKey: ObjectIdentifier(owner)) }
    }

    /// The first member that is changing its state: while the pipeline starts, the one that is being opened.
    var memberOpening: Member? {
        membersInOrder.first { $0.instance.allElements.contains(where: \.isChangingState) }
    }

    /// The same for members that an edit is about to add.
    var stagedOpening: Member? {
        state.withLock { Array($0.staged.values) }.first { $0.instance.allElements.contains(where: \.isChangingState) }
    }

    /// Ends all members, if a running edit prevents the pipeline as a whole from ending.
    func closeAll() {
        for member in membersInOrder.reversed() { close(member) }
    }

    /// Ends all members in parallel, each on its own thread. Returns the names of those that have not ended after
    /// `seconds`.
    func closeEach(waiting seconds: Double) -> [String] {
        let queue = DispatchQueue(label: "media.closing", attributes: .concurrent)
        let closing = membersInOrder.map { member in
            let group = DispatchGroup()
            queue.async(group: group) { self.close(member) }
            return (name: member.plan.name, group: group)
        }
        let deadline = DispatchTime.now() + seconds
        return closing.filter { $0.group.wait(timeout: deadline) == .timedOut }.map(\.name)
    }

    private func close(_ member: Member) {
        for element in extras(of: member) + member.instance.allElements.reversed() { element.close() }
    }

    func connection(_ link: Link) -> Connection? { state.withLock { $0.connections[link] } }

    // MARK: Building

    /// Makes a node's elements; nothing feeds it yet.
    private func make(_ plan: NodePlan, in whole: GraphPlan, prefix: String) throws(MediaError) -> Member {
        guard let implementation = registry.implementation(of: plan.node.kind) else {
            preconditionFailure("no node type runs a \(plan.node.kind)")
        }
        do throws(MediaError) {
            let instance = try NodeInstance(
                plan, implementation.kind, context, prefix: prefix, above: above(plan.name, in: whole))
            do throws(MediaError) {
                try instance.place()
                return Member(instance, try implementation.activate(instance), prefix: prefix)
            } catch {
                for element in instance.allElements { context.pipeline.remove(element) }
                throw error
            }
        } catch {
            throw error.about(plan.name)
        }
    }

    /// The running nodes upstream of a node, nearest first; those of an edit before those that they replace.
    private func above(_ name: String, in plan: GraphPlan) -> [any RunningNode] {
        state.withLock { state in
            var found: [any RunningNode] = []
            var frontier = plan.links(into: name).map(\.link.from)
            while !frontier.isEmpty {
                found += frontier.compactMap { output in
                    let running = (state.staged[output.node] ?? state.members[output.node])?.running
                    return (running as? any BranchingNode)?.part(behind: output.port) ?? running
                }
                frontier = frontier.flatMap { plan.links(into: $0.node).map(\.link.from) }
            }
            return found
        }
    }

    /// Prepares a link; `link` starts its data. `isContained`: whether an error behind the input ends there. `branch`:
    /// an existing pad of the tee. `queue`: the link's existing queue.
    func connect(
        _ plan: LinkPlan, from source: Member, to target: Member, isContained: Bool = false, branch: Pad? = nil,
        queue held: BranchQueue? = nil
    ) throws(MediaError) -> Connection {
        guard let input = target.plan.inputs[plan.link.to.port] else {
            preconditionFailure("\(plan.link.to) has no element")
        }
        let tee = try tee(behind: plan.link.from.port, of: source)
        let pad = target.instance.pad(input, isOutput: false)
        var queue = held
        if queue == nil { queue = try makeQueue(of: plan, from: source, to: target, isContained: isContained) }
        let containment = queue?.containment ?? containment(from: source, to: target, isContained)
        if let queue {
            if let reason = queue.element.source.tryLink(pad) { throw Self.clash(plan, reason) }
        } else {
            containment.apply(to: pad)
        }
        guard let branch = branch ?? tee.requestPad("src_%u") else { preconditionFailure("a tee gives every pad") }
        let isRequested = input.pad?.contains("%") == true
        return Connection(
            plan, tee: tee, branch: branch, queue: queue, pad: pad,
            isRequestedFrom: isRequested ? target.instance.element(input.element) : nil, containment)
    }

    /// Makes the planned queue of a link; nil where none is planned. `suffix` tells it from the queue of the link that it
    /// replaces.
    func makeQueue(
        of plan: LinkPlan, from source: Member, to target: Member, isContained: Bool = false, suffix: String = ""
    ) throws(MediaError) -> BranchQueue? {
        guard let planned = plan.queue else { return nil }
        let element = try Element(
            "queue", name: "\(target.prefix).branch-\(plan.link.to.port)\(suffix)",
            planned.properties)
        let queue = BranchQueue(element: element, containment: containment(from: source, to: target, isContained))
        queue.containment.apply(to: element.sink)
        context.pipeline.add(element)
        return queue
    }

    /// An optional node keeps its errors from the rest, wherever it hangs on one that is not.
    private func containment(from source: Member, to target: Member, _ isContained: Bool) -> BranchContainment {
        let isOptional = target.plan.node.isOptional && !source.plan.node.isOptional
        return BranchContainment(isContained: AtomicBool(isContained || isOptional))
    }

    /// Starts the data of a prepared link. Throws if the formats do not fit.
    func link(_ connection: Connection) throws(MediaError) {
        if let reason = connection.branch.tryLink(connection.entry) { throw Self.clash(connection.plan, reason) }
    }

    private static func clash(_ plan: LinkPlan, _ reason: String) -> MediaError {
        MediaError(
            code: MediaError.Code.formatClash,
            message: "\(plan.link.from) and \(plan.link.to) have no common format.", cause: reason,
            node: plan.link.to.node)
    }

    func tee(behind port: String, of source: Member) throws(MediaError) -> Element {
        let key = PortReference(node: source.prefix, port: port)
        if let there = state.withLock({ $0.tees[key] }) { return there }
        guard let pad = source.plan.outputs[port] else { preconditionFailure("\(key) has no element") }
        let tee = try Element("tee", name: "\(source.prefix).tee-\(port)", ["allow-not-linked": true])
        context.pipeline.add(tee)
        guard source.instance.pad(pad, isOutput: true).link(tee.sink) else {
            preconditionFailure("a tee accepts any format")
        }
        state.withLock { $0.tees[key] = tee }
        return tee
    }

    // MARK: Changing

    /// Begins an edit that adds or removes nodes and their functions.
    func beginEdit(of nodes: [String], bringing bindings: NodeBindings = NodeBindings()) {
        context.bound.beginEdit(of: nodes, bringing: bindings)
    }

    /// Ends an edit, done or failed.
    func endEdit() {
        context.bound.endEdit(plan.expanded, registry)
    }

    /// A suffix that no element has yet, because new elements exist beside those that they replace.
    func newSuffix() -> String {
        state.withLock { state in
            state.generation += 1
            return "~\(state.generation)"
        }
    }

    /// Makes a node that an edit adds. It stays separate until `commit`.
    func stage(_ plan: NodePlan, in whole: GraphPlan) throws(MediaError) -> Member {
        let member = try make(plan, in: whole, prefix: plan.name + newSuffix())
        state.withLock { $0.staged[plan.name] = member }
        return member
    }

    /// Replaces members with those that an edit has prepared. Returns the replaced members.
    func commit(_ change: GraphChange, _ connections: [Connection]) -> [Member] {
        let (leaving, observers) = state.withLock { state in
            let leaving = change.removed.compactMap { state.members.removeValue(forKey: $0) }
            for member in leaving { state.leaving[member.prefix] = member }
            state.members.merge(state.staged) { $1 }
            state.staged.removeAll()
            for link in change.removedLinks { state.connections[link] = nil }
            for connection in connections { state.connections[connection.plan.link] = connection }
            state.plan = change.result
            return (leaving, Array(state.observers.values))
        }
        for observer in observers { observer() }
        return leaving
    }

    /// Adds inputs to a running node, without sources yet.
    func addInputs(_ part: NodePlan, to member: Member) throws(MediaError) {
        try member.instance.add(part)
        guard let node = member.running as? any PublishingNode else { return }
        for input in part.inputs.keys.sorted() { try node.add(input, of: member.instance) }
    }

    /// Removes inputs of a running node, which must have no sources any more.
    func removeInputs(_ inputs: Set<String>, of member: Member) {
        if let node = member.running as? any PublishingNode { for input in inputs.sorted() { node.remove(input) } }
        member.instance.remove(inputs)
    }

    /// Removes the members that an edit has prepared.
    func unstage() {
        let staged = state.withLock { state in
            let staged = Array(state.staged.values)
            for member in staged { state.leaving[member.prefix] = member }
            state.staged.removeAll()
            return staged
        }
        remove(staged, isPartOfGraph: false)
    }

    /// Makes a member release its devices, without removing it.
    func releaseDevices(of member: Member) {
        state.withLock { _ = $0.released.insert(member.prefix) }
        member.running?.finish()
        for element in member.instance.allElements.reversed() { element.close() }
    }

    /// Cuts a link, so that its buffers are dropped. Waits until it has no buffer in transit, for at most 2 s.
    ///
    /// If a push does not return in that time, the tee releases its pad all the same. The push retains the pad until it
    /// returns, and the tee has marked it as removed by then. The entry then refuses all data, and this returns true.
    @discardableResult
    func detach(_ connection: Connection) -> Bool {
        connection.isLeaving.raise()
        let branch = connection.branch
        let entry = connection.entry
        let isCut = DispatchSemaphore(value: 0)
        var refuses = false
        branch.whenIdle {
            branch.unlink(entry)
            isCut.signal()
        }
        if isCut.wait(timeout: .now() + Self.transitTimeout) == .timedOut {
            // An element behind the link holds its buffer: this unblocks it and refuses further buffers.
            entry.refuseEverything()
            refuses = true
            _ = isCut.wait(timeout: .now() + Self.transitTimeout)
        }
        connection.tee.release(branch)
        if let queue = connection.queue {
            queue.close()
            context.pipeline.remove(queue)
        }
        if let (element, pad) = connection.requested { element.release(pad) }
        return refuses
    }

    /// How long to wait for buffers in transit.
    private static let transitTimeout = DispatchTimeInterval.seconds(1)

    /// Ends members without sources, and removes their elements. `isPartOfGraph` is false for those of a failed edit.
    func remove(_ members: [Member], isPartOfGraph: Bool = true) {
        let nodes = members.compactMap(\.running)
        nodes.finish()
        if isPartOfGraph { for node in nodes { node.reportShortfall() } }
        // The last members first, so that no member waits for them.
        for member in members.reversed() { close(member) }
        for member in members {
            for element in extras(of: member) + member.instance.allElements { context.pipeline.remove(element) }
            member.running?.stopped()
        }
        let prefixes = Set(members.map(\.prefix))
        state.withLock { state in
            for prefix in prefixes {
                state.leaving[prefix] = nil
                state.released.remove(prefix)
            }
            state.tees = state.tees.filter { !prefixes.contains($0.key.node) }
        }
    }

    /// The tees downstream of a member's outputs.
    func extras(of member: Member) -> [Element] {
        state.withLock { state in state.tees.filter { $0.key.node == member.prefix }.map(\.value) }
    }
}
