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

/// The functions of the application; edits add to them.
final class BoundCode: Sendable {
    private let state: Mutex<NodeBindings>

    init(_ bindings: NodeBindings) {
        state = Mutex(bindings)
    }

    var bindings: NodeBindings { state.withLock { $0 } }

    func add(_ more: NodeBindings) {
        state.withLock { $0.merge(more) }
    }
}

/// A node whose elements are made: what its type needs to bring it to life.
package final class NodeInstance: Sendable {
    package let plan: NodePlan
    package let kind: NodeKind
    package let context: PipelineContext
    private let elements: [String: Element]
    /// The running nodes above this one, nearest first.
    private let above: [any RunningNode]

    init(
        _ plan: NodePlan, _ kind: NodeKind, _ context: PipelineContext, prefix: String, above: [any RunningNode]
    ) throws(MediaError) {
        self.plan = plan
        self.kind = kind
        self.context = context
        self.above = above
        var elements: [String: Element] = [:]
        for element in plan.elements {
            elements[element.name] = try Element(
                element.factory, name: "\(prefix).\(element.name)",
                element.properties.mapValues(PropertyValue.init))
        }
        self.elements = elements
    }

    package var name: String { plan.name }
    package var reporter: Reporter { context.reporter }
    package var control: DispatchQueue { context.control }
    package var pipeline: Pipeline { context.pipeline }

    /// An element of the plan. Traps when the plan has none of this name.
    package func element(_ name: String) -> Element {
        guard let element = elements[name] else { preconditionFailure("\(plan.name) has no element \(name)") }
        return element
    }

    package func has(_ name: String) -> Bool { elements[name] != nil }

    var allElements: [Element] { plan.elements.compactMap { elements[$0.name] } }

    package func setting(_ name: String) -> SettingValue? { plan.node.setting(name, of: kind) }

    /// The nearest running node of a type on the way up.
    package func nearest<Node: RunningNode>(_ type: Node.Type) -> Node? {
        above.lazy.compactMap { $0 as? Node }.first
    }

    /// Puts the elements into the pipeline and links them with one another.
    func place() throws(MediaError) {
        for element in allElements { pipeline.add(element) }
        for link in plan.links {
            try link.connect(in: self)
        }
    }

    /// The pad behind a plan's pad: its only one of that direction, one that is there by name, or one that is asked for.
    func pad(_ reference: ElementPad, isOutput: Bool) -> Pad {
        let element = element(reference.element)
        let name = reference.pad ?? (isOutput ? "src" : "sink")
        if let pad = name.contains("%") ? element.requestPad(name) : element.pad(name) { return pad }
        guard let pad = element.requestPad(name) else {
            preconditionFailure("\(plan.name): \(element.factory) has no pad \(name)")
        }
        return pad
    }
}

extension ElementLink {
    fileprivate func connect(in instance: NodeInstance) throws(MediaError) {
        let isPlain = from.pad == nil && to.pad == nil
        if isPlain {
            try instance.element(from.element).link(instance.element(to.element))
        } else if !instance.pad(from, isOutput: true).link(instance.pad(to, isOutput: false)) {
            throw MediaError(
                code: MediaError.Code.elementFailed,
                message: "\"\(instance.name)\": \(from.element) and \(to.element) do not fit together.")
        }
    }
}
