import Dispatch
import GStreamerKit
import MediaGraph
import Synchronization

/// A node for a GStreamer element, derived from the element's description.
final class ElementNode: RunningNode {
    private let name: String
    private let element: Element
    private let shape: ElementShape
    /// Pads requested because they have settings, by port.
    private let pads: [String: Pad]
    private let outputs: ElementOutputs

    /// Longest wait for media inside a muxer or a file.
    private static let endLimit = 2.0

    init(_ instance: NodeInstance, _ shape: ElementShape) throws(MediaError) {
        name = instance.name
        element = instance.element(ElementPlanning.element)
        self.shape = shape
        pads = try Self.askForPads(instance, element)
        outputs = ElementOutputs(instance, element)
    }

    /// Pads with their own settings, in the order of their numbers.
    private static func askForPads(
        _ instance: NodeInstance, _ element: Element
    ) throws(MediaError) -> [String: Pad] {
        let settings = instance.plan.node.settings.filter { $0.key.contains(".") }
        var pads: [String: Pad] = [:]
        guard !settings.isEmpty else { return pads }
        for (port, reference) in instance.plan.inputs.sorted(by: { $0.key < $1.key })
        where reference.element == ElementPlanning.element {
            pads[port] = instance.pad(reference, isOutput: false)
        }
        for (name, value) in settings.sorted(by: { $0.key < $1.key }) {
            let parts = name.split(separator: ".", maxSplits: 1).map(String.init)
            // Settings of an unlinked input are not used.
            guard let pad = pads[parts[0]], let reason = pad.trySet(parts[1], value) else { continue }
            throw MediaError(
                code: MediaError.Code.graphInvalid, message: "\"\(instance.name)\": \(reason).", node: instance.name)
        }
        return pads
    }

    func set(_ setting: String, to value: SettingValue) throws(MediaError) -> Bool {
        try use(setting) { $0.trySet($1, value) }
        return true
    }

    func check(_ setting: String, to value: SettingValue) throws(MediaError) {
        try use(setting) { $0.obstacle(toSetting: $1, value) }
    }

    /// Calls `body` with the object and the property of a setting. Throws the reason that it returns.
    private func use(_ setting: String, _ body: (GStreamerObject, String) -> String?) throws(MediaError) {
        let parts = setting.split(separator: ".", maxSplits: 1).map(String.init)
        let reason =
            parts.count == 2
            ? pads[parts[0]].map { body($0, parts[1]) } ?? "no running element has the setting \(setting)"
            : body(element, setting)
        guard let reason else { return }
        throw MediaError(code: MediaError.Code.settingFixed, message: "\"\(name)\": \(reason).", node: name)
    }

    /// Sends the end of the stream, at which a muxer completes its file.
    func finish() {
        let isMuxer = element.classification.contains("Muxer")
        guard isMuxer || (shape.outputs.isEmpty && element.has("location")) else { return }
        let ended = DispatchSemaphore(value: 0)
        let inputs = element.pads.filter { !$0.isSource && $0.isLinked }
        let last = isMuxer ? element.pad("src") : inputs.first
        last?.onEndOfStream { ended.signal() }
        for input in inputs where !input.isAtEndOfStream {
            // The upstream node continues, and is not notified that this one accepts no more.
            input.peer?.onBuffer { _ in .drop }
            input.sendEndOfStream()
        }
        if !inputs.isEmpty { _ = ended.wait(timeout: .now() + Self.endLimit) }
    }
}

/// The kinds derived so far.
enum ElementKinds {
    private static let known = Mutex<[String: NodeImplementation]>([:])

    static func implementation(of factory: String) -> NodeImplementation? {
        if let there = known.withLock({ $0[factory] }) { return there }
        // Outside of the lock, because it loads a plugin and creates an element.
        guard let description = ElementFactory.describe(factory) else { return nil }
        let made = implementation(description)
        known.withLock { $0[factory] = made }
        return made
    }

    private static func implementation(_ description: ElementDescription) -> NodeImplementation {
        let shape = ElementShape(of: description)
        let kind = NodeKind(
            NodeKind.elementPrefix + description.name, .element,
            description.longName + (description.summary.isEmpty ? "" : ": \(description.summary)"),
            inputs: shape.inputs.map(\.port), outputs: shape.outputs.map(\.port),
            settings: ElementSettings.contracts(of: description, shape))
        return NodeImplementation(
            kind: kind,
            plan: { (request) throws(MediaError) in
                try request.environment.require(description.name)
                var planning = try ElementPlanning(request, description, shape)
                return try planning.finished()
            },
            activate: { (instance) throws(MediaError) in try ElementNode(instance, shape) })
    }
}
