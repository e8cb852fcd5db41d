import Dispatch
import GStreamerKit
import MediaGraph
import Synchronization

/// A node that stands in a pipeline.
final class Member: Sendable {
    let instance: NodeInstance
    let running: (any RunningNode)?
    /// What the names of its elements begin with: the node's name, and for one that came by an edit a number, because
    /// the node that it replaces is still there.
    let prefix: String

    var plan: NodePlan { instance.plan }

    init(_ instance: NodeInstance, _ running: (any RunningNode)?, prefix: String) {
        self.instance = instance
        self.running = running
        self.prefix = prefix
    }
}

/// One link between two members, from the tee behind the output to the first pad of the node that it feeds.
final class Connection: Sendable {
    let plan: LinkPlan
    let tee: Element
    let branch: Pad
    /// Keeps raw branches apart from one another; nil where the node brings a queue of its own.
    let queue: Element?
    /// What the branch feeds: the queue, or the node's own pad.
    let entry: Pad
    /// The node's own pad, where it was asked for and has to be given back.
    let requested: (element: Element, pad: Pad)?
    /// Whether an error behind the entry ends there.
    let isContained: Flag
    /// Whether the link is being cut: an error behind the entry ends there and is nobody's failure.
    let isLeaving: Flag

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
    let isContained: Flag
    let isLeaving = Flag()

    /// Wraps the functions of the entry: nothing may flow through it yet.
    func apply(to entry: Pad) {
        entry.containErrors { isLeaving.value ? .silent : isContained.value ? .reported : .none }
    }
}

/// The queue of a link, which need not feed the link's node yet.
struct BranchQueue: Sendable {
    let element: Element
    let containment: BranchContainment
}

/// The nodes of a plan as they stand in a pipeline, and how they hang together.
///
/// Its structure changes on one queue at a time; the lock is for those who look at it meanwhile.
final class RunningGraph: Sendable {
    private struct State {
        var plan: GraphPlan
        var members: [String: Member] = [:]
        /// Those that an edit is about to put in.
        var staged: [String: Member] = [:]
        /// Those that are on their way out.
        var leaving: [String: Member] = [:]
        /// Members that have given up their devices, by their prefixes.
        var yielding: Set<String> = []
        /// Every output ends in a tee, so that branches can come and go; by the member's prefix.
        var tees: [PortReference: Element] = [:]
        var connections: [Link: Connection] = [:]
        var generation = 0
        var observers: [ObjectIdentifier: @Sendable () -> Void] = [:]
    }

    /// Where a node stands whose element has spoken.
    enum Standing: Sendable {
        case live(String)
        case staged(String)
        /// On its way out: what it says no longer matters.
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

    // MARK: Looking

    var plan: GraphPlan { state.withLock { $0.plan } }

    func member(_ name: String) -> Member? { state.withLock { $0.members[name] } }

    /// Everybody, sources first.
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
    func standing(ofElementIn path: [String]) -> (standing: Standing, running: (any RunningNode)?)? {
        state.withLock { state in
            for name in path {
                guard let end = name.lastIndex(of: ".") else { continue }
                let prefix = String(name[..<end])
                if let member = state.members.values.first(where: { $0.prefix == prefix }) {
                    let hasYielded = state.yielding.contains(prefix)
                    return (hasYielded ? .leaving(member.plan.name) : .live(member.plan.name), member.running)
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

    /// Calls `body` after each edit, for as long as `owner` has not been let go of.
    func onChange(for owner: AnyObject, _ body: @escaping @Sendable () -> Void) {
        state.withLock { $0.observers[ObjectIdentifier(owner)] = body }
    }

    func letGo(of owner: AnyObject) {
        state.withLock { _ = $0.observers.removeValue(forKey: ObjectIdentifier(owner)) }
    }

    /// The first member that is on its way from one state to the next: while the pipeline starts, the one that is being
    /// opened.
    var memberOpening: Member? {
        membersInOrder.first { $0.instance.allElements.contains(where: \.isChangingState) }
    }

    /// Likewise of those that an edit is about to put in.
    var stagedOpening: Member? {
        state.withLock { Array($0.staged.values) }.first { $0.instance.allElements.contains(where: \.isChangingState) }
    }

    /// Ends everything that stands, where an edit under way keeps the pipeline as a whole from ending.
    func closeAll() {
        for member in membersInOrder.reversed() { close(member) }
    }

    /// The same, each node on a thread of its own. Gives the names of those that have not ended after so many seconds.
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
            preconditionFailure("nothing runs a \(plan.node.kind)")
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

    /// The running nodes that feed a node, nearest first; those of an edit before those that they replace.
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

    /// Prepares a link; `link` makes media flow. `isContained` says that an error behind the input ends there; `branch`
    /// and `queue` are a pad of the tee and the link's queue, where those exist already.
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
            planned.properties.mapValues(PropertyValue.init))
        let queue = BranchQueue(element: element, containment: containment(from: source, to: target, isContained))
        queue.containment.apply(to: element.sink)
        context.pipeline.add(element)
        return queue
    }

    /// An optional node keeps its errors from the rest, wherever it hangs on one that is not.
    private func containment(from source: Member, to target: Member, _ isContained: Bool) -> BranchContainment {
        let isOptional = target.plan.node.isOptional && !source.plan.node.isOptional
        return BranchContainment(isContained: Flag(isContained || isOptional))
    }

    /// Makes what was connected flow. Throws where the formats turn out not to fit.
    func link(_ connection: Connection) throws(MediaError) {
        if let reason = connection.branch.tryLink(connection.entry) { throw Self.clash(connection.plan, reason) }
    }

    private static func clash(_ plan: LinkPlan, _ reason: String) -> MediaError {
        MediaError(
            code: MediaError.Code.formatClash,
            message: "\(plan.link.from) and \(plan.link.to) do not fit together.", cause: reason,
            node: plan.link.to.node)
    }

    func tee(behind port: String, of source: Member) throws(MediaError) -> Element {
        let key = PortReference(node: source.prefix, port: port)
        if let there = state.withLock({ $0.tees[key] }) { return there }
        guard let pad = source.plan.outputs[port] else { preconditionFailure("\(key) has no element") }
        let tee = try Element("tee", name: "\(source.prefix).tee-\(port)", ["allow-not-linked": true])
        context.pipeline.add(tee)
        guard source.instance.pad(pad, isOutput: true).link(tee.sink) else {
            preconditionFailure("a tee takes everything")
        }
        state.withLock { $0.tees[key] = tee }
        return tee
    }

    // MARK: Changing

    /// An edit is about to bring or take out nodes, and functions with them.
    func beginEdit(of nodes: [String], bringing bindings: NodeBindings = NodeBindings()) {
        context.bound.beginEdit(of: nodes, bringing: bindings)
    }

    /// It has been done, or has failed.
    func endEdit() {
        context.bound.endEdit(plan.expanded, registry)
    }

    /// A suffix that no element has yet: new elements stand beside those that they replace.
    func newSuffix() -> String {
        state.withLock { state in
            state.generation += 1
            return "~\(state.generation)"
        }
    }

    /// Makes a node that is to join; it stays apart until `commit`.
    func stage(_ plan: NodePlan, in whole: GraphPlan) throws(MediaError) -> Member {
        let member = try make(plan, in: whole, prefix: plan.name + newSuffix())
        state.withLock { $0.staged[plan.name] = member }
        return member
    }

    /// What an edit has prepared takes the place of what it replaces. Answers those that are to go.
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

    /// Brings inputs to a node that runs; nothing feeds them yet.
    func addInputs(_ part: NodePlan, to member: Member) throws(MediaError) {
        try member.instance.add(part)
        guard let node = member.running as? any PublishingNode else { return }
        for input in part.inputs.keys.sorted() { try node.add(input, of: member.instance) }
    }

    /// Takes inputs from a node that runs; nothing may feed them any more.
    func removeInputs(_ inputs: Set<String>, of member: Member) {
        if let node = member.running as? any PublishingNode { for input in inputs.sorted() { node.remove(input) } }
        member.instance.remove(inputs)
    }

    /// Takes out what an edit has prepared.
    func unstage() {
        let staged = state.withLock { state in
            let staged = Array(state.staged.values)
            for member in staged { state.leaving[member.prefix] = member }
            state.staged.removeAll()
            return staged
        }
        remove(staged, isPartOfGraph: false)
    }

    /// Lets a member give up its devices, where it stands.
    func yield(_ member: Member) {
        state.withLock { _ = $0.yielding.insert(member.prefix) }
        member.running?.finish()
        for element in member.instance.allElements.reversed() { element.close() }
    }

    /// Cuts a link: what comes next goes nowhere. Waits until nothing is on its way through it, for 2 s at most.
    ///
    /// Where a push does not come back in that time, the tee lets go of its pad all the same. The push keeps the pad
    /// until it returns, and the tee has marked it as gone by then. The entry is left refusing everything; true then.
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
        if isCut.wait(timeout: .now() + Self.patience) == .timedOut {
            // Somebody behind holds on to what he was given: he is freed, and gets nothing more.
            entry.refuseEverything()
            refuses = true
            _ = isCut.wait(timeout: .now() + Self.patience)
        }
        connection.tee.release(branch)
        if let queue = connection.queue {
            queue.close()
            context.pipeline.remove(queue)
        }
        if let (element, pad) = connection.requested { element.release(pad) }
        return refuses
    }

    /// How long is waited for what is under way.
    private static let patience = DispatchTimeInterval.seconds(1)

    /// Ends members that nothing feeds any more, and takes their elements out. `isPartOfGraph` is false for those that an
    /// edit has built in vain.
    func remove(_ members: [Member], isPartOfGraph: Bool = true) {
        let nodes = members.compactMap(\.running)
        nodes.finish()
        if isPartOfGraph { for node in nodes { node.reportShortfall() } }
        // Those that wait at the end first: nobody then waits for them.
        for member in members.reversed() { close(member) }
        for member in members {
            for element in extras(of: member) + member.instance.allElements { context.pipeline.remove(element) }
            member.running?.stopped()
        }
        let prefixes = Set(members.map(\.prefix))
        state.withLock { state in
            for prefix in prefixes {
                state.leaving[prefix] = nil
                state.yielding.remove(prefix)
            }
            state.tees = state.tees.filter { !prefixes.contains($0.key.node) }
        }
    }

    /// The tees behind a member's outputs.
    func extras(of member: Member) -> [Element] {
        state.withLock { state in state.tees.filter { $0.key.node == member.prefix }.map(\.value) }
    }
}
