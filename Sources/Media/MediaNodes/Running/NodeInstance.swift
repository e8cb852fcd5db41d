package import Dispatch
package import GStreamerKit
package import MediaGraph
import Synchronization

/// The shared objects of one pipeline's nodes.
package struct PipelineContext: Sendable {
    package let pipeline: Pipeline
    package let reporter: Reporter
    /// The queue for the pipeline's blocking work: state changes, file loops, images, watchdogs.
    package let control: DispatchQueue
    let bound: BoundCode
}

/// The functions of the application. Edits add functions, and remove those of the nodes that they remove.
final class BoundCode: Sendable {
    private let state: Mutex<NodeBindings>

    init(_ bindings: NodeBindings) {
        state = Mutex(bindings)
    }

    var bindings: NodeBindings { state.withLock { $0 } }

    func add(_ more: NodeBindings) { state.withLock { $0.merge(more) } }

    /// Releases all functions, after the lock: a deinit may call the pipeline.
    func clear() {
        let before = state.withLock { bindings in
            defer { bindings = NodeBindings() }
            return bindings
        }
        withExtendedLifetime(before) {}
    }

    /// Releases the functions of the nodes among `passing` that the graph lacks. Functions of other nodes, which no
    /// graph has had yet, stay for a later one.
    func keep(for graph: MediaGraph, _ registry: NodeRegistry, among passing: Set<String>) {
        // Releases the closures' objects after the lock: a deinit may start an edit.
        let before = state.withLock { bindings in
            defer { bindings = bindings.only(for: graph, registry, among: passing) }
            return bindings
        }
        withExtendedLifetime(before) {}
    }
}

/// A node in a pipeline: its elements, and its behaviour while it runs.
package final class NodeInstance: NodeSettings, Sendable {
    private struct State {
        /// Changes only when inputs are added or removed.
        var plan: NodePlan
        var elements: [String: Element]
        /// By output. Every output ends in a tee, so that branches can be added and removed, and an output without a
        /// consumer stops nothing.
        var tees: [String: Element] = [:]
        var running: (any RunningNode)?
    }

    package let kind: NodeKind
    package let context: PipelineContext
    /// The common prefix of its elements' names: the node's name, with a number if an edit added the node, because the
    /// node that it replaces still exists.
    let prefix: String
    package let reporter: Reporter
    private let state: Mutex<State>
    /// Finds the running nodes above this one, or above one of its inputs, as they are now, nearest first.
    private let findAbove: @Sendable (_ input: String?) -> [any RunningNode]

    /// Makes the elements, which nothing feeds yet, and starts the node's behaviour.
    init(
        _ plan: NodePlan, _ implementation: NodeImplementation, _ context: PipelineContext, prefix: String,
        above: @escaping @Sendable (_ input: String?) -> [any RunningNode]
    ) throws(MediaError) {
        kind = implementation.kind
        self.context = context
        self.prefix = prefix
        findAbove = above
        reporter = context.reporter.ofNode(prefix)
        state = Mutex(State(plan: plan, elements: try Self.makeElements(of: plan, prefix: prefix)))
        do throws(MediaError) {
            try place(plan)
            let running = try implementation.activate(self)
            state.withLock { $0.running = running }
        } catch {
            removeElements()
            throw error
        }
    }

    private static func makeElements(of plan: NodePlan, prefix: String) throws(MediaError) -> [String: Element] {
        var elements: [String: Element] = [:]
        for element in plan.elements {
            elements[element.name] = try Element(
                element.factory, name: "\(prefix).\(element.name)",
                element.properties)
        }
        return elements
    }

    package var plan: NodePlan { state.withLock { $0.plan } }
    package var name: String { plan.name }
    package var node: Node { plan.node }
    /// Its behaviour. Nil for a node that consists of its elements only.
    var running: (any RunningNode)? { state.withLock { $0.running } }
    var publishing: (any PublishingNode)? { running as? any PublishingNode }
    package var control: DispatchQueue { context.control }
    package var pipeline: Pipeline { context.pipeline }

    /// An element of the plan. Traps if the plan has none of this name.
    package func element(_ name: String) -> Element {
        guard let element = state.withLock({ $0.elements[name] }) else {
            preconditionFailure("\(plan.name) has no element \(name)")
        }
        return element
    }

    package func has(_ name: String) -> Bool { state.withLock { $0.elements[name] != nil } }

    /// The elements of the plan, without tees.
    var allElements: [Element] { elements(of: plan) }

    /// The elements of a part of the plan.
    func elements(of part: NodePlan) -> [Element] {
        state.withLock { state in part.elements.compactMap { state.elements[$0.name] } }
    }

    /// The elements of a part of the plan that feed no other element of it.
    func lastElements(of part: NodePlan) -> [Element] {
        let feeding = Set(part.links.map(\.from.element))
        return state.withLock { state in
            part.elements.compactMap { feeding.contains($0.name) ? nil : state.elements[$0.name] }
        }
    }

    /// The tees behind the outputs, in the order of their names.
    var tees: [Element] { teesByOutput.map(\.value) }
    var teesByOutput: [(key: String, value: Element)] { state.withLock { $0.tees.sorted { $0.key < $1.key } } }

    var isChangingState: Bool { allElements.contains(where: \.isChangingState) }

    /// Whether a node upstream may stay without media indefinitely.
    package var mayStayEmpty: Bool { findAbove(nil).contains { $0.mayStayEmpty } }

    /// The reason why a node upstream delivers no audio, if it is known.
    var silence: String? { findAbove(nil).firstNonNil(\.silence) }

    /// Makes the start wait for the first buffer at a pad.
    func awaitFirstBuffer(at pad: Pad) {
        reporter.await(name)
        pad.onBuffer { [reporter, name] _ in
            reporter.isReady(name)
            return .passAndRemove
        }
    }

    /// The nearest upstream running node of a type.
    package func nearest<Node: RunningNode>(_ type: Node.Type) -> Node? {
        findAbove(nil).firstNonNil { $0 as? Node }
    }

    /// The running nodes above an input, nearest first.
    func above(_ input: String) -> [any RunningNode] { findAbove(input) }

    /// The heads of the sources of this node's media. Empty if the media of several is mixed.
    var heads: [SourceHead] {
        let above = findAbove(nil)
        return above.contains { $0 is MixerNode } ? [] : above.compactMap { ($0 as? any HeadedNode)?.head }
    }

    /// Adds elements to the pipeline, links them, and puts a tee behind each output.
    private func place(_ part: NodePlan) throws(MediaError) {
        for element in elements(of: part) { pipeline.add(element) }
        for link in part.links {
            try link.connect(in: self)
        }
        for (port, output) in part.outputs {
            let tee = try Element("tee", name: "\(prefix).tee-\(port)", ["allow-not-linked": true])
            pipeline.add(tee)
            guard pad(output, isOutput: true).link(tee.sink) else { preconditionFailure("a tee accepts any format") }
            state.withLock { $0.tees[port] = tee }
        }
    }

    /// Adds inputs while the node runs, without sources yet.
    func add(_ part: NodePlan) throws(MediaError) {
        let made = try Self.makeElements(of: part, prefix: prefix)
        state.withLock { state in
            state.elements.merge(made) { $1 }
            state.plan = state.plan.adding(part)
        }
        try place(part)
        // In the order of the contract: one input may depend on another.
        let order = kind.inputs.map(\.name)
        let inputs = part.inputs.keys.map { (order.firstIndex(of: $0) ?? order.count, $0) }.sorted { $0 < $1 }
        for (_, input) in inputs { try publishing?.add(input, of: self) }
    }

    /// Removes inputs while the node runs, which must have no source any more.
    func remove(_ inputs: Set<String>) {
        for input in inputs.sorted() { publishing?.remove(input) }
        let gone = state.withLock { state in
            let part = state.plan.part(of: inputs)
            state.plan = state.plan.without(inputs)
            return part.elements.compactMap { state.elements.removeValue(forKey: $0.name) }
        }
        for element in gone.reversed() { element.close() }
        for element in gone { pipeline.remove(element) }
    }

    func close() {
        for element in tees + allElements.reversed() { element.close() }
    }

    /// Removes the elements from the pipeline.
    func removeElements() {
        for element in tees + allElements { pipeline.remove(element) }
    }

    /// The tee behind an output. Traps if the plan has no such output.
    func tee(behind port: String) -> Element {
        guard let tee = state.withLock({ $0.tees[port] }) else {
            preconditionFailure("\(plan.name) has no output \(port)")
        }
        return tee
    }

    /// The pad of a plan's pad: the only one of that direction, an existing one by name, or a requested one. Traps if
    /// there is none.
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
                message: "\"\(instance.name)\": \(from.element) and \(to.element) have no common format.")
        }
    }
}
