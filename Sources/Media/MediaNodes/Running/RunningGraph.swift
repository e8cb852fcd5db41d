import GStreamerKit
import MediaGraph
import Synchronization

/// The nodes of a plan as they stand in a pipeline, and how they hang together.
///
/// Its structure changes on one queue at a time (the pipeline's control queue, or that of its edits); the lock is for
/// those who look at it meanwhile.
final class RunningGraph: Sendable {
    struct Member: Sendable {
        let instance: NodeInstance
        let running: (any RunningNode)?
    }

    /// One link between two nodes, from the tee behind the output to the first pad of the node that it feeds.
    struct Connection: Sendable {
        let tee: Element
        let branch: Pad
        /// Keeps raw branches apart from one another; nil where the node brings a queue of its own.
        let queue: Element?
        let entry: Pad
    }

    private struct State {
        var plan: GraphPlan
        var members: [String: Member] = [:]
        /// Every output ends in a tee, so that branches can come and go.
        var tees: [PortReference: Element] = [:]
        var connections: [Link: Connection] = [:]
    }

    let context: PipelineContext
    private let registry: NodeRegistry
    private let state: Mutex<State>

    init(_ plan: GraphPlan, _ registry: NodeRegistry, _ context: PipelineContext) throws(MediaError) {
        self.context = context
        self.registry = registry
        state = Mutex(State(plan: GraphPlan(source: plan.source, nodes: [], links: [], omitted: plan.omitted)))
        for node in plan.nodes { try add(node, of: plan) }
        for link in plan.links { try connect(link) }
    }

    // MARK: Looking

    var plan: GraphPlan { state.withLock { $0.plan } }

    func member(_ name: String) -> Member? { state.withLock { $0.members[name] } }

    /// The running nodes, sources first.
    var runningNodes: [any RunningNode] {
        state.withLock { state in state.plan.nodes.compactMap { state.members[$0.name]?.running } }
    }

    func runningNode(_ name: String) -> (any RunningNode)? { member(name)?.running }

    /// The node that an element belongs to, by the names of the element and the bins around it.
    func owner(of path: [String]) -> String? {
        state.withLock { state in
            path.lazy.compactMap { name in
                name.lastIndex(of: ".").map { String(name[..<$0]) }
            }.first { state.members[$0] != nil }
        }
    }

    // MARK: Building

    /// Makes a node's elements; nothing feeds it yet. `whole` is the plan that it belongs to.
    func add(_ plan: NodePlan, of whole: GraphPlan) throws(MediaError) {
        guard let implementation = registry.implementation(of: plan.node.kind) else {
            preconditionFailure("nothing runs a \(plan.node.kind)")
        }
        let instance = try NodeInstance(
            plan, implementation.kind, context, above: above(plan.name, in: whole))
        try instance.place()
        let running = try implementation.activate(instance)
        state.withLock { state in
            state.members[plan.name] = Member(instance: instance, running: running)
            state.plan.nodes.append(plan)
        }
    }

    /// The running nodes that feed a node, nearest first.
    private func above(_ name: String, in plan: GraphPlan) -> [any RunningNode] {
        state.withLock { state in
            var found: [any RunningNode] = []
            var frontier = plan.links(into: name).map(\.link.from.node)
            while !frontier.isEmpty {
                found += frontier.compactMap { state.members[$0]?.running }
                frontier = frontier.flatMap { plan.links(into: $0).map(\.link.from.node) }
            }
            return found
        }
    }

    /// Lets an output feed an input from now on.
    func connect(_ plan: LinkPlan) throws(MediaError) {
        let link = plan.link
        guard let target = member(link.to.node)?.instance, let input = target.plan.inputs[link.to.port] else {
            preconditionFailure("\(link.to) has no element")
        }
        let tee = try tee(behind: link.from)
        var entry = target.pad(input, isOutput: false)
        var queue: Element?
        if let planned = plan.queue {
            let made = try Element(
                "queue", name: "\(link.to.node).branch-\(link.to.port)", planned.properties.mapValues(PropertyValue.init))
            context.pipeline.add(made)
            _ = made.source.link(entry)
            entry = made.sink
            queue = made
        }
        guard let branch = tee.requestPad("src_%u"), branch.link(entry) else {
            throw MediaError(
                code: MediaError.Code.formatClash,
                message: "\(link.from) and \(link.to) do not fit together.", node: link.to.node)
        }
        let connection = Connection(tee: tee, branch: branch, queue: queue, entry: entry)
        state.withLock { state in
            state.connections[link] = connection
            state.plan.links.append(plan)
        }
    }

    private func tee(behind output: PortReference) throws(MediaError) -> Element {
        if let there = state.withLock({ $0.tees[output] }) { return there }
        guard let source = member(output.node)?.instance, let pad = source.plan.outputs[output.port] else {
            preconditionFailure("\(output) has no element")
        }
        let tee = try Element("tee", name: "\(output.node).tee-\(output.port)", ["allow-not-linked": true])
        context.pipeline.add(tee)
        guard source.pad(pad, isOutput: true).link(tee.sink) else {
            preconditionFailure("a tee takes everything")
        }
        state.withLock { $0.tees[output] = tee }
        return tee
    }
}
