import GStreamerKit
public import MediaGraph
import Synchronization

/// Mixes several inputs into one frame.
///
/// Each input has a queue with its own thread. The mixing element waits for a late input for at most one of its own
/// frames, then repeats that input's last frame. An input that ends gives its place to the others.
package final class MixerNode: NodeType, RunningNode {
    package static let kind = NodeKind(
        "mixer", .processor, "Combines several videos into one; an input that stalls or ends does not stop the others",
        inputs: [Port("in", [.rawVideo], encodings: ["I420"], isRepeated: true)], outputs: .rawVideoOut,
        settings: [
            SettingContract(
                "layout", Mixer.Layout.settingDomain, default: "picture-in-picture", isChangeable: true,
                "One input fills the frame with the others inset, or all have the same size"),
            SettingContract(
                "width", .integer(64...8192), unit: "pixels",
                "Width (default: that of the first input, else 1280)"),
            SettingContract(
                "height", .integer(64...8192), unit: "pixels",
                "Height (default: that of the first input, else 720)"),
            SettingContract(
                "fps", .number(1...240), unit: "frames/s",
                "Frame rate (default: that of the fastest input, else 30)"),
            SettingContract(
                "main", .integer(1...1000), default: 1, isChangeable: true,
                "Number of the input that fills the frame; if it is missing, the first available one"),
            SettingContract(
                "corner", Mixer.Corner.settingDomain, default: "bottom-right",
                isChangeable: true, "Corner of the insets"),
            SettingContract(
                "inset", .number(0.05...0.5), default: 0.25, isChangeable: true,
                "Width of an inset, as a fraction of the frame"),
            SettingContract(
                "margin", .integer(0...500), default: 16, isChangeable: true, unit: "pixels",
                "Margin between insets and edges"),
        ])

    private struct State: NodeSettings {
        var node: Node
        let kind = MixerNode.kind
        /// Numbers of the inputs that have not ended.
        var inputs: Set<Int>
        /// Width for a height of 1, by the input's number.
        var shapes: [Int: Double]
    }

    private let format: MediaFormat?
    private let pads: [Int: Pad]
    private let state: Mutex<State>
    /// Whether places have changed since they were last set on the mixing element.
    private let isStale = AtomicBool()

    package static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        try request.environment.require("compositor")
        let first = request.inputs.first?.format
        let known = first?.width != nil && first?.height != nil
        let rates = request.inputs.compactMap(\.format.framesPerSecond)
        let format = MediaFormat.rawVideo(
            width: request.optionalInteger("width") ?? (known ? first?.width : nil) ?? 1280,
            height: request.optionalInteger("height") ?? (known ? first?.height : nil) ?? 720,
            framesPerSecond: request.optionalNumber("fps") ?? rates.max() ?? 30)
        var plan = NodePlan(request.node)
        plan.add("compositor", as: "mix", ["background": "black", "start-time-selection": "first"])
        plan.mix(request.inputs, .rawPictures, to: format, "\(RawFormat.video(format)),pixel-aspect-ratio=1/1")
        if request.inputs.count > 1 {
            // Measured: inputs of one rate wait for each other a quarter of a frame, those of several rates half a
            // frame.
            let frame = 1 / (format.framesPerSecond ?? 30)
            plan.latency = rates.count == request.inputs.count && Set(rates).count == 1 ? frame / 4 : frame / 2
        }
        plan.notes.append("\(request.inputs.count) inputs become one video of \(format)")
        plan.notes.append("a late input delays the output by at most one frame, then its last frame is repeated")
        return plan
    }

    package static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        let node = MixerNode(instance)
        try node.arrange()
        // Between two frames, on the mixing thread, so that no frame shows half of a new arrangement.
        instance.element("mix").source.watchBuffers { [weak node] _ in
            if let node, node.isStale.exchange(false) { try? node.arrange() }
        }
        for number in node.pads.keys {
            instance.element("in\(number)").source.watchEvents { [weak node] event in node?.heard(event, from: number) }
        }
        return node
    }

    private init(_ instance: NodeInstance) {
        format = instance.plan.formats["out"]
        let numbers = instance.plan.inputs.keys.map(Self.number)
        let mix = instance.element("mix")
        pads = numbers.reduce(into: [:]) { $0[$1] = mix.pad("sink_\($1)") }
        state = Mutex(State(node: instance.node, inputs: Set(numbers), shapes: [:]))
    }

    private static func number(of port: String) -> Int {
        Int(port.dropFirst(2)) ?? 0
    }

    package func set(_ setting: String, to value: SettingValue) throws(MediaError) -> Bool {
        state.withLock { $0.node.settings[setting] = value }
        isStale.raise()
        return true
    }

    private func heard(_ event: PadEvent, from number: Int) {
        switch event {
        case .endOfStream:
            // An ended input gives its place to the others.
            state.withLock { _ = $0.inputs.remove(number) }
        case .streamStart:
            state.withLock { _ = $0.inputs.insert(number) }
        case .caps(let caps):
            guard let format = caps.structures.first, let width = format.integer("width"),
                let height = format.integer("height"), height > 0
            else { return }
            state.withLock { $0.shapes[number] = Double(width) / Double(height) }
        default: return
        }
        isStale.raise()
    }

    private func arrange() throws(MediaError) {
        try state.withLock { (state) throws(MediaError) in
            let settings = MixerLayout.Settings(
                isGrid: state.text("layout") == "grid", width: format?.width ?? 1280, height: format?.height ?? 720,
                main: state.integer("main"), corner: state.text("corner"), inset: state.number("inset"),
                margin: state.integer("margin"))
            let places = MixerLayout.places(of: Array(state.inputs), shapes: state.shapes, settings)
            for (number, place) in places {
                guard let pad = pads[number] else { continue }
                try pad.set("xpos", .integer(place.x))
                try pad.set("ypos", .integer(place.y))
                try pad.set("width", .integer(place.width))
                try pad.set("height", .integer(place.height))
                try pad.set("zorder", .integer(place.depth))
                try pad.set("sizing-policy", "keep-aspect-ratio")
            }
        }
    }
}

extension NodePlan {
    /// Limits the output of the mixing element, the plan's only one, to `caps`, and gives it a queue for each input.
    mutating func mix(
        _ inputs: [(port: String, format: MediaFormat)], _ limits: QueuePlan.Limits, to format: MediaFormat,
        _ caps: String
    ) {
        addFilter(caps, as: "format")
        chain(to: format)
        for (port, input) in inputs {
            addQueue(as: port, limits, holding: input)
            link(ElementPad(port), ElementPad("mix", "sink_\(port.dropFirst(2))"))
        }
        self.inputs = inputs.reduce(into: [:]) { $0[$1.port] = ElementPad($1.port) }
    }
}

/// Combines several videos into one. An input that stalls or ends does not stop the others.
public struct Mixer: MediaNode {
    /// The arrangement of the inputs.
    public enum Layout: String, SettingChoice {
        /// One input fills the frame, with the others inset.
        case pictureInPicture = "picture-in-picture"
        /// All have the same size.
        case grid
    }

    /// A corner of the frame.
    public enum Corner: String, SettingChoice {
        /// At the top, on the left.
        case topLeft = "top-left"
        /// At the top, on the right.
        case topRight = "top-right"
        /// At the bottom, on the left.
        case bottomLeft = "bottom-left"
        /// At the bottom, on the right.
        case bottomRight = "bottom-right"
    }

    public var handle: NodeHandle

    /// A mixer, whose inputs are added by links. Its size is in pixels.
    ///
    /// - Parameters:
    ///   - width: nil for that of the first input.
    ///   - height: nil for that of the first input.
    ///   - framesPerSecond: nil for that of the fastest input.
    ///   - main: the number of the input that fills the frame, from 1.
    ///   - corner: the corner of the insets.
    ///   - inset: the width of an inset, as a fraction of the frame.
    ///   - margin: pixels between insets and edges.
    public init(
        _ layout: Layout? = nil, width: Int? = nil, height: Int? = nil, framesPerSecond: Double? = nil,
        main: Int? = nil, corner: Corner? = nil, inset: Double? = nil, margin: Int? = nil
    ) {
        handle = NodeHandle(
            MixerNode.kind,
            [
                "layout": layout, "width": width, "height": height, "fps": framesPerSecond, "main": main,
                "corner": corner, "inset": inset, "margin": margin,
            ])
    }

    /// An input by its number, from 1. Inputs without a number are filled in the order of the links.
    public func input(_ number: Int) -> NodeInput { input(named: "in\(number)") }

    /// Changes the arrangement of the inputs.
    ///
    /// - Throws: `node.not-running`, as all setters.
    public func setLayout(_ layout: Layout) async throws(MediaError) { try await change("layout", to: layout) }
    /// Changes the number of the input that fills the frame.
    ///
    /// - Throws: like `setLayout`.
    public func setMain(_ number: Int) async throws(MediaError) { try await change("main", to: number) }
    /// Changes the corner of the insets. Throws like `setLayout`.
    public func setCorner(_ corner: Corner) async throws(MediaError) { try await change("corner", to: corner) }
    /// Changes the width of an inset, as a fraction of the frame.
    ///
    /// - Throws: like `setLayout`.
    public func setInset(_ fraction: Double) async throws(MediaError) { try await change("inset", to: fraction) }
    /// Changes the pixels between insets and edges.
    ///
    /// - Throws: like `setLayout`.
    public func setMargin(_ pixels: Int) async throws(MediaError) { try await change("margin", to: pixels) }
}
