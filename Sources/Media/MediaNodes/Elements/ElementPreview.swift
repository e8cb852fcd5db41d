import GStreamerKit
import MediaGraph

/// An element that is made to be asked what would come out of it, and is not run.
struct ElementPreview {
    private let element: Element
    private let node: String
    /// Held: they feed the element.
    private var feeders: [Element] = []
    private var fed: [String] = []

    /// Throws `graph.invalid` when a property cannot have its value.
    init(_ plan: ElementPlan, node: String) throws(MediaError) {
        element = try Element(plan.factory)
        self.node = node
        for (name, value) in plan.properties.sorted(by: { $0.key < $1.key }) {
            guard let reason = element.trySet(name, PropertyValue(value)) else { continue }
            throw MediaError(
                code: MediaError.Code.graphInvalid, message: "\"\(node)\": \(reason)\(reason.hasSuffix("?") ? "" : ".")"
            )
        }
    }

    /// Throws `graph.format-clash` when an input that is always there does not take what comes.
    mutating func feed(_ format: MediaFormat, into pad: String) throws(MediaError) {
        guard let caps = format.caps, let input = element.pad(pad) else { return }
        let feeder = try Element.filter(caps)
        if feeder.source.tryLink(input) != nil {
            throw MediaError(
                code: MediaError.Code.formatClash,
                message: "\"\(node)\": \(element.factory) does not take \(format) the way that its properties are; "
                    + "its input takes \(input.queriedCaps?.summary ?? "nothing").")
        }
        feeders.append(feeder)
        fed.append("\(format)")
    }

    /// What can come out of a pad. Throws `graph.format-clash` when nothing can.
    func output(_ pad: String) throws(MediaError) -> Caps? {
        guard let caps = element.pad(pad)?.queriedCaps else { return nil }
        guard caps.isEmpty else { return caps }
        throw MediaError(
            code: MediaError.Code.formatClash,
            message:
                "\"\(node)\": \(element.factory) makes nothing of \(fed.joined(separator: " and ")) the way that its "
                + "properties are.")
    }

    /// A pad that a link names, as the runner finds it.
    func pad(_ name: String) -> Pad? { element.padByName(name) }

    /// Names of the pads, and of the templates by which one asks for more, that a link can name.
    func padNames(isOutput: Bool) -> [String] {
        element.padTemplates.filter { ($0.direction == .source) == isOutput && $0.presence != .sometimes }.map(\.name)
    }

    /// Whether a property is there.
    func has(_ property: String) -> Bool { element.has(property) }

    func flag(_ property: String) -> Bool? {
        if case .flag(let value)? = element.value(property) { value } else { nil }
    }
}
