package import Dispatch
package import GStreamerKit
package import MediaGraph
import Synchronization

/// What the nodes of one pipeline share.
package struct PipelineContext: Sendable {
    package let pipeline: Pipeline
    package let reporter: Reporter
    /// Where blocking work of the pipeline is done: state changes, file loops, images, watchdogs.
    package let control: DispatchQueue
    let bound: BoundCode

    /// The functions of the application, by the nodes' names; edits bring more.
    package var bindings: NodeBindings { bound.bindings }
}

/// The functions of the application; edits add to them, and take with them those of the nodes that they take out.
final class BoundCode: Sendable {
    private struct State {
        var bindings: NodeBindings
        /// How many edits are under way or wait: each needs what it has brought until its end.
        var edits = 0
        /// Names of the nodes that these bring or may take out. What is bound for others, which no graph has had yet, is
        /// there for a later one.
        var passing: Set<String> = []
    }

    private let state: Mutex<State>

    init(_ bindings: NodeBindings) {
        state = Mutex(State(bindings: bindings))
    }

    var bindings: NodeBindings { state.withLock { $0.bindings } }

    /// An edit of these nodes begins, which brings more.
    func beginEdit(of nodes: [String], bringing more: NodeBindings = NodeBindings()) {
        state.withLock { state in
            state.edits += 1
            state.bindings.merge(more)
            state.passing.formUnion(more.nodes)
            state.passing.formUnion(nodes)
        }
    }

    /// An edit has been done, or has failed, and this is what runs.
    func endEdit(_ graph: MediaGraph, _ registry: NodeRegistry) {
        // What the closures held goes when the lock is free: its deinit may come back here.
        let dropped = state.withLock { state -> NodeBindings? in
            state.edits -= 1
            guard state.edits == 0 else { return nil }
            let before = state.bindings
            state.bindings = before.only(for: graph, registry, among: state.passing)
            state.passing.removeAll()
            return before
        }
        withExtendedLifetime(dropped) {}
    }
}

/// A node whose elements are made: what its type needs to bring it to life.
package final class NodeInstance: Sendable {
    private struct State {
        var plan: NodePlan
        var elements: [String: Element] = [:]
    }

    package let kind: NodeKind
    package let context: PipelineContext
    /// What the names of its elements begin with.
    private let prefix: String
    /// Changes only where inputs come and go.
    private let state: Mutex<State>
    /// The running nodes above this one, nearest first.
    private let above: [any RunningNode]

    init(
        _ plan: NodePlan, _ kind: NodeKind, _ context: PipelineContext, prefix: String, above: [any RunningNode]
    ) throws(MediaError) {
        self.kind = kind
        self.context = context
        self.prefix = prefix
        self.above = above
        state = Mutex(State(plan: plan, elements: try Self.makeElements(of: plan, prefix: prefix)))
    }

    private static func makeElements(of plan: NodePlan, prefix: String) throws(MediaError) -> [String: Element] {
        var elements: [String: Element] = [:]
        for element in plan.elements {
            elements[element.name] = try Element(
                element.factory, name: "\(prefix).\(element.name)",
                element.properties.mapValues(PropertyValue.init))
        }
        return elements
    }

    package var plan: NodePlan { state.withLock { $0.plan } }
    package var name: String { plan.name }
    package var reporter: Reporter { context.reporter }
    package var control: DispatchQueue { context.control }
    package var pipeline: Pipeline { context.pipeline }

    /// An element of the plan. Traps when the plan has none of this name.
    package func element(_ name: String) -> Element {
        guard let element = state.withLock({ $0.elements[name] }) else {
            preconditionFailure("\(plan.name) has no element \(name)")
        }
        return element
    }

    package func has(_ name: String) -> Bool { state.withLock { $0.elements[name] != nil } }

    var allElements: [Element] { elements(of: plan) }

    /// The elements of a part of the plan.
    func elements(of part: NodePlan) -> [Element] {
        state.withLock { state in part.elements.compactMap { state.elements[$0.name] } }
    }

    package func setting(_ name: String) -> SettingValue? { plan.node.setting(name, of: kind) }

    /// Whether something above may stay without media for as long as it likes.
    package var mayStayEmpty: Bool { above.contains { $0.mayStayEmpty } }

    /// The nearest running node of a type on the way up.
    package func nearest<Node: RunningNode>(_ type: Node.Type) -> Node? {
        above.lazy.compactMap { $0 as? Node }.first
    }

    /// Puts the elements into the pipeline and links them with one another.
    func place() throws(MediaError) { try place(plan) }

    private func place(_ part: NodePlan) throws(MediaError) {
        for element in elements(of: part) { pipeline.add(element) }
        for link in part.links {
            try link.connect(in: self)
        }
    }

    /// Makes the elements of inputs that come while the node runs, and puts them into the pipeline.
    func add(_ part: NodePlan) throws(MediaError) {
        let made = try Self.makeElements(of: part, prefix: prefix)
        state.withLock { state in
            state.elements.merge(made) { $1 }
            state.plan = state.plan.adding(part)
        }
        try place(part)
    }

    /// Closes the elements of inputs that go, and takes them out. Nothing may feed them any more.
    func remove(_ inputs: Set<String>) {
        let gone = state.withLock { state in
            let part = state.plan.part(of: inputs)
            state.plan = state.plan.without(inputs)
            return part.elements.compactMap { state.elements.removeValue(forKey: $0.name) }
        }
        for element in gone.reversed() { element.close() }
        for element in gone { pipeline.remove(element) }
    }

    /// The pad behind a plan's pad: its only one of that direction, one that is there by name, or one that is asked for.
    /// Traps when there is none.
    func pad(_ reference: ElementPad, isOutput: Bool) -> Pad {
        guard let pad = findPad(reference, isOutput: isOutput) else {
            preconditionFailure("\(plan.name): \(reference.element) has no pad \(reference.pad ?? "of its own")")
        }
        return pad
    }

    fileprivate func findPad(_ reference: ElementPad, isOutput: Bool) -> Pad? {
        element(reference.element).padByName(reference.pad ?? (isOutput ? "src" : "sink"))
    }
}

extension ElementLink {
    fileprivate func connect(in instance: NodeInstance) throws(MediaError) {
        let isPlain = from.pad == nil && to.pad == nil
        if isPlain {
            try instance.element(from.element).link(instance.element(to.element))
        } else if let output = instance.findPad(from, isOutput: true),
            let input = instance.findPad(to, isOutput: false), output.link(input)
        {
            return
        } else {
            throw MediaError(
                code: MediaError.Code.elementFailed,
                message: "\"\(instance.name)\": \(from.element) and \(to.element) do not fit together.")
        }
    }
}
