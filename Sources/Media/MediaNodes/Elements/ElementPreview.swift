import GStreamerKit
import MediaGraph

/// An element that is created to query its output formats, and does not run.
struct ElementPreview {
    let element: Element
    private let node: String
    /// Retained, because they feed the element.
    private var feeders: [Element] = []
    private var fed: [String] = []

    /// Throws `graph.invalid` if a property cannot have its value.
    init(_ plan: ElementPlan, node: String) throws(MediaError) {
        element = try Element(plan.factory)
        self.node = node
        for (name, value) in plan.properties.sorted(by: { $0.key < $1.key }) {
            guard let reason = element.trySet(name, value) else { continue }
            throw MediaError(
                code: MediaError.Code.graphInvalid, message: "\"\(node)\": \(reason)\(reason.hasSuffix("?") ? "" : ".")"
            )
        }
    }

    /// Throws `graph.format-clash` if a permanent input does not accept the format.
    mutating func feed(_ format: MediaFormat, into pad: String) throws(MediaError) {
        guard let caps = format.caps, let input = element.pad(pad) else { return }
        let feeder = try Element.filter(caps)
        if feeder.source.tryLink(input) != nil {
            let accepted = input.queriedCaps.map { $0.description.count <= 80 ? $0.description : $0.summary }
            throw MediaError(
                code: MediaError.Code.formatClash,
                message: "\(shown) cannot accept \(format) with these properties: it accepts \(accepted ?? "nothing"). "
                    + "Change its properties, or put a scale or convert node upstream.")
        }
        feeders.append(feeder)
        fed.append("\(format)")
    }

    /// The possible output of a pad. Throws `graph.format-clash` if there is none.
    func output(_ pad: String) throws(MediaError) -> Caps? {
        guard let caps = element.pad(pad)?.queriedCaps else { return nil }
        guard caps.isEmpty else { return caps }
        throw MediaError(
            code: MediaError.Code.formatClash,
            message: "\(shown) cannot process \(fed.joined(separator: " and ")) with these properties. Change them.")
    }

    /// The node in messages, with its element unless the node has the element's name.
    private var shown: String { node == element.factory ? "\"\(node)\"" : "\"\(node)\" (\(element.factory))" }

    /// Names for links: of the pads, and of the templates for more.
    func padNames(isOutput: Bool) -> [String] {
        element.padTemplates.filter { ($0.direction == .source) == isOutput && $0.presence != .sometimes }.map(\.name)
    }
}
