import GStreamerKit
import MediaGraph

/// Runs a node made of GStreamer elements.
enum ElementsHost {
    static func implementation(_ node: ElementsNode) throws(MediaError) -> NodeImplementation {
        let links = try node.check()
        let exposed = try node.exposedProperties()
        let bare = CustomNode.elements(node).kind
        let kind = NodeKind(
            bare.name, bare.group, bare.summary, inputs: bare.inputs, outputs: bare.outputs,
            settings: exposed.map(\.contract))
        return NodeImplementation(
            kind: kind,
            plan: { (request) throws(MediaError) in try plan(node, links, exposed, request) },
            activate: { (instance) throws(MediaError) in ElementsRun(instance, exposed) })
    }

    private static func plan(
        _ node: ElementsNode, _ links: [ElementLink], _ exposed: [ExposedProperty], _ request: NodeRequest
    ) throws(MediaError) -> NodePlan {
        var plan = NodePlan(request.node)
        for element in node.elements {
            try request.environment.require(element.factory)
            var properties = element.properties
            for property in exposed where property.element == element.name {
                if let value = request.node.settings[property.contract.name] { properties[property.property] = value }
            }
            plan.add(element.factory, as: element.name, properties)
            // A user's value may be text that is invalid for the property, such as caps.
            if let planned = plan.elements.last { _ = try ElementPreview(planned, node: request.name) }
        }
        plan.links = links
        if let first = node.elements.first, node.takes != nil { plan.inputs["in"] = ElementPad(first.name) }
        if let last = node.elements.last, let gives = node.gives, let port = request.kind.outputs.first?.name {
            var end = last.name
            if gives.isRaw {
                plan.addFilter(gives.pushedCaps, as: "given")
                plan.link(last.name, "given")
                end = "given"
            }
            plan.outputs[port] = ElementPad(end)
            plan.formats[port] = gives
        }
        return plan
    }
}

/// An element's property that is a setting of the node.
private struct ExposedProperty: Sendable {
    let element: String
    let property: String
    let contract: SettingContract
}

extension ElementsNode {
    /// Throws `graph.invalid` for a missing property, and `element.missing` for a missing element.
    fileprivate func exposedProperties() throws(MediaError) -> [ExposedProperty] {
        var found: [ExposedProperty] = []
        for (setting, place) in exposed.sorted(by: { $0.key < $1.key }) {
            guard let target = ElementPad(text: place), let property = target.pad,
                let element = elements.first(where: { $0.name == target.element })
            else {
                throw wrong("exposes \(place), but has no such element; write element.property")
            }
            // A missing element is reported when the node is used.
            guard let description = ElementFactory.describe(element.factory) else { continue }
            guard let contract = description.property(property) else {
                throw wrong("exposes \(place), but \(element.factory) has no property \(property)")
            }
            found.append(
                ExposedProperty(
                    element: element.name, property: property,
                    contract: contract.with(name: setting, default: element.properties[property])))
        }
        return found
    }
}

private final class ElementsRun: RunningNode {
    private let name: String
    private let elements: [String: (element: Element, property: String)]

    init(_ instance: NodeInstance, _ exposed: [ExposedProperty]) {
        name = instance.name
        elements = exposed.reduce(into: [:]) { elements, exposed in
            elements[exposed.contract.name] = (instance.element(exposed.element), exposed.property)
        }
        guard instance.kind.group == .capturer, let output = instance.plan.outputs.values.first else { return }
        instance.awaitFirstBuffer(at: instance.pad(output, isOutput: true))
    }

    func set(_ setting: String, to value: SettingValue) throws(MediaError) -> Bool {
        guard let (element, property) = elements[setting] else { return false }
        if let reason = element.trySet(property, value) { throw fixed(reason) }
        return true
    }

    func check(_ setting: String, to value: SettingValue) throws(MediaError) {
        guard let (element, property) = elements[setting] else { return }
        if let reason = element.obstacle(toSetting: property, value) { throw fixed(reason) }
    }

    private func fixed(_ reason: String) -> MediaError {
        MediaError(code: MediaError.Code.settingFixed, message: "\"\(name)\": \(reason).", node: name)
    }
}
