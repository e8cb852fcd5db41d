import GStreamerKit
import MediaGraph

/// Plans a node for an element: the element itself, and the conversions between it and other nodes.
struct ElementPlanning {
    /// The name of the element within its node.
    static let element = "element"

    private let request: NodeRequest
    private let factory: String
    private let shape: ElementShape
    private var plan: NodePlan
    private var preview: ElementPreview

    init(_ request: NodeRequest, _ description: ElementDescription, _ shape: ElementShape) throws(MediaError) {
        self.request = request
        self.shape = shape
        factory = description.name
        plan = NodePlan(request.node)
        var properties = request.node.settings.filter { !$0.key.contains(".") }
        // A sink that waits for its first frame before it plays would block all the others.
        if shape.outputs.isEmpty, properties["async"] == nil, description.property("async")?.domain == .flag {
            properties["async"] = false
        }
        let element = ElementPlan(name: Self.element, factory: factory, properties: properties)
        plan.elements.append(element)
        preview = try ElementPreview(element, node: request.name)
    }

    mutating func finished() throws(MediaError) -> NodePlan {
        for (port, format) in request.inputs { try addInput(port, format) }
        for port in request.usedOutputs.sorted() {
            guard let output = shape.output(port) else { preconditionFailure("\(request.name) has no output \(port)") }
            switch output.origin {
            case .pad(let template): try addOutput(port, template)
            case .appearing(let isDecoded): addAppearing(port, output.port.kinds, isDecoded)
            }
        }
        if let format = request.inputs.first?.format ?? plan.formats.values.first {
            plan.latency += request.environment.secondsPerFrame(plan.elements[0], format)
        }
        return plan
    }

    // MARK: Inputs

    private mutating func addInput(_ port: String, _ format: MediaFormat) throws(MediaError) {
        guard let input = shape.input(port) else { preconditionFailure("\(request.name) has no input \(port)") }
        var pad = input.template.name
        if input.template.presence == .always {
            if format.kind == .rawAudio, !input.template.caps.meets(Caps(RawFormat.audio)) {
                // Audio is converted to the element's format, which is queried in its own terms.
                plan.inputs[port] = convertedSound(into: ElementPad(Self.element, pad), port)
                return
            }
            try preview.feed(format, into: pad)
        } else if hasPadSettings {
            // Pads with their own settings are requested by number.
            pad = numbered(pad, port)
        }
        plan.inputs[port] = ElementPad(Self.element, pad)
    }

    private var hasPadSettings: Bool { request.node.settings.keys.contains { $0.contains(".") } }

    /// `sink_0` for the template `sink_%u` and the port `in1`.
    private func numbered(_ template: String, _ port: String) -> String {
        let number = (Int(port.drop { !$0.isNumber }) ?? 1) - 1
        return template.split(separator: "_").map { $0.contains("%") ? "\(number)" : String($0) }
            .joined(separator: "_")
    }

    private mutating func convertedSound(into pad: ElementPad, _ port: String) -> ElementPad {
        plan.add("audioconvert", as: "\(port)-convert")
        plan.append("audioresample", as: "\(port)-resample")
        plan.link(ElementPad("\(port)-resample"), pad)
        plan.notes.append("audio is converted to a format that \(factory) accepts")
        return ElementPad("\(port)-convert")
    }

    // MARK: Outputs

    private mutating func addOutput(_ port: String, _ template: PadTemplate) throws(MediaError) {
        let input = request.inputs.first?.format
        let origin = ElementPad(Self.element, template.name)
        let caps = template.presence == .always ? try preview.output(template.name) : template.caps
        let format = format(of: caps ?? template.caps, after: input)
        var last = origin
        if !template.caps.isAny || input == nil {
            switch format.kind {
            case .rawVideo:
                plan.addFilter("video/x-raw,format=\(format.encoding)", as: "\(port)-format")
                plan.link(last, ElementPad("\(port)-format"))
                last = ElementPad("\(port)-format")
            case .rawAudio where !template.caps.lies(within: Caps(RawFormat.audio)):
                plan.link(last, ElementPad("\(port)-convert"))
                plan.addSoundConversion("\(port)-")
                last = ElementPad("\(port)-format")
            default: break
            }
        }
        plan.outputs[port] = paced(last, port, format.kind)
        plan.formats[port] = format
    }

    private func format(of caps: Caps, after input: MediaFormat?) -> MediaFormat {
        if caps.isAny { return input ?? MediaFormat(.data, "bytes") }
        let plain = caps.structuresInPlainMemory
        // Keeps the input's format if possible, else the element's first one.
        let same = plain.first { structure in
            guard let input else { return false }
            let kind = ElementMedia.kind(of: structure)
            return kind == input.kind && (kind == .rawVideo || Encoding.of(structure)?.name == input.encoding)
        }
        if let chosen = same ?? plain.first { return .known(chosen, after: input) }
        return MediaFormat(.data, caps.structures.first?.name ?? "bytes")
    }

    /// Plans pads that appear when the element knows its output. They are linked then.
    private mutating func addAppearing(_ port: String, _ kinds: Set<MediaKind>, _ isDecoded: Bool) {
        if isDecoded {
            plan.add("decodebin", as: "\(port)-decoder")
            plan.notes.append("\(port) is decoded, because its codec is known only at run time")
        }
        let isVideo = kinds.contains(.rawVideo)
        let format: MediaFormat = isVideo ? .rawVideo() : .rawAudio
        if isVideo {
            plan.add("videoconvert", as: "\(port)-convert")
            plan.appendFilter(RawFormat.video, as: "\(port)-format")
        } else {
            plan.addSoundConversion("\(port)-")
        }
        // Video and audio from one thread must not wait for each other.
        plan.addQueue(as: "\(port)-queue", .init(seconds: 1, rule: .wait), holding: nil)
        plan.link("\(port)-format", "\(port)-queue")
        plan.outputs[port] = paced(ElementPad("\(port)-queue"), port, format.kind)
        plan.formats[port] = format
    }

    // MARK: Pace

    /// Media that begins here arrives as fast as it is consumed unless its source is live, but nodes downstream expect
    /// the pace of its timestamps.
    private mutating func paced(_ pad: ElementPad, _ port: String, _ kind: MediaKind) -> ElementPad {
        let begins = request.inputs.allSatisfy { $0.format.kind == .data }
        guard begins, kind != .data, preview.element.value("is-live") != true else { return pad }
        plan.add("clocksync", as: "\(port)-pace")
        plan.link(pad, ElementPad("\(port)-pace"))
        if preview.element.has("is-live") {
            plan.notes.append("\(factory) is not live (is-live is false), so its output is paced by its timestamps")
        }
        return ElementPad("\(port)-pace")
    }
}
