import Dispatch
import GStreamerKit
import MediaGraph

/// A node with every default filled in.
struct ResolvedNode {
    let node: Node
    let kind: NodeKind

    var name: String { node.name }

    private func value(_ setting: String) -> SettingValue? {
        guard let contract = kind.setting(setting) else {
            preconditionFailure("\(kind.name) has no setting \(setting)")
        }
        return node.settings[setting] ?? contract.defaultValue
    }

    func integer(_ setting: String) -> Int? {
        if case .integer(let value) = value(setting) { value } else { nil }
    }

    func number(_ setting: String) -> Double? {
        switch value(setting) {
        case .number(let value): value
        case .integer(let value): Double(value)
        default: nil
        }
    }

    func flag(_ setting: String) -> Bool {
        if case .flag(let value) = value(setting) { value } else { false }
    }

    func text(_ setting: String) -> String {
        if case .text(let value) = value(setting) { value } else { "" }
    }
}

/// What a node leaves behind for the running pipeline.
protocol RunningNode: Sendable {
    var name: String { get }
    /// The elements are in place and the pipeline is about to play.
    func prepare() throws(MediaError)
    /// The pipeline is about to stop: what is under way should come to an end. May block for a moment.
    func finish()
    /// All streaming threads have left.
    func stopped()
    func report(into statistics: inout MediaStatistics)
    /// A failure of one of the node's elements, in the node's words; nil to leave it to the general ones. `missing`
    /// is what nothing installed can decode, when that was said before.
    func explain(_ failure: PipelineFailure, missing: String?) -> MediaError?
    /// What to say when nothing came at the start, in the node's words; nil to leave it to the general ones.
    var stalled: MediaError? { get }
}

extension RunningNode {
    func prepare() throws(MediaError) {}
    func finish() {}
    func stopped() {}
    func report(into statistics: inout MediaStatistics) {}
    func explain(_ failure: PipelineFailure, missing: String?) -> MediaError? { nil }
    var stalled: MediaError? { nil }
}

/// A pipeline under construction: elements are added node by node, then linked as the graph says.
final class Assembly {
    /// What raw pictures are between nodes.
    static let rawVideo = "video/x-raw,format=I420"
    /// What raw sound is between nodes.
    static let rawAudio = "audio/x-raw,format=S16LE,layout=interleaved,rate=48000,channels=2"

    let graph: MediaGraph
    let bindings: NodeBindings
    let reporter: Reporter
    let pipeline: Pipeline
    /// Where blocking work of this pipeline is done: state changes, file loops, images, watchdogs.
    let control: DispatchQueue
    private(set) var running: [any RunningNode] = []
    private var outputs: [PortReference: Element] = [:]
    private var inputs: [PortReference: Element] = [:]
    /// The RTP input that a node's media came from, by node.
    private var origins: [String: RTPInputNode] = [:]
    private var owners: [String: String] = [:]
    private var elementCount = 0

    init(
        graph: MediaGraph, bindings: NodeBindings, reporter: Reporter, pipeline: Pipeline, control: DispatchQueue
    ) {
        self.graph = graph
        self.bindings = bindings
        self.reporter = reporter
        self.pipeline = pipeline
        self.control = control
    }

    // MARK: For nodes

    func register(_ node: any RunningNode) {
        running.append(node)
    }

    /// Makes an element that belongs to `node` and adds it to the pipeline.
    func element(
        _ factory: String, of node: ResolvedNode, _ properties: [String: PropertyValue] = [:]
    ) throws(MediaError) -> Element {
        elementCount += 1
        let name = "\(factory)-\(elementCount)"
        let element = try Element(factory, name: name, properties)
        pipeline.add(element)
        owners[name] = node.name
        return element
    }

    /// Adds an element that was made elsewhere.
    func adopt(_ element: Element, of node: ResolvedNode) {
        pipeline.add(element)
        owners[element.name] = node.name
    }

    func filter(_ caps: String, of node: ResolvedNode) throws(MediaError) -> Element {
        try element("capsfilter", of: node, ["caps": .text(caps)])
    }

    /// A sink that takes whatever comes, at once: what counts happens in a probe on its input.
    func sink(of node: ResolvedNode) throws(MediaError) -> Element {
        try element(
            "fakesink", of: node,
            ["sync": false, "async": false, "enable-last-sample": false, "qos": false])
    }

    /// Links elements one after the other.
    func link(_ elements: Element...) throws(MediaError) {
        for (from, to) in zip(elements, elements.dropFirst()) { try from.link(to) }
    }

    func provide(_ port: String, of node: ResolvedNode, from element: Element) {
        outputs[PortReference(node: node.name, port: port)] = element
    }

    func accept(_ port: String, of node: ResolvedNode, into element: Element) {
        inputs[PortReference(node: node.name, port: port)] = element
    }

    func isUsed(_ port: String, of node: ResolvedNode) -> Bool {
        graph.links.contains { $0.from == PortReference(node: node.name, port: port) }
    }

    /// The node that feeds the only input of `node`.
    func upstream(of node: String) -> Node? {
        graph.links(into: node).first.flatMap { graph.node($0.from.node) }
    }

    /// The nearest node of one of these kinds on the way up from `node`.
    func nearest(_ kinds: Set<String>, above node: String) -> Node? {
        var current = upstream(of: node)
        while let candidate = current, !kinds.contains(candidate.kind) { current = upstream(of: candidate.name) }
        return current
    }

    /// The running node of this name and type, if it has been assembled.
    func runningNode<Kind: RunningNode>(_ type: Kind.Type, named name: String) -> Kind? {
        running.lazy.compactMap { $0 as? Kind }.first { $0.name == name }
    }

    /// The RTP input that the media at `node` came through, if it came through one.
    func rtpInput(above node: String) -> RTPInputNode? {
        nearest(["rtp-input"], above: node).flatMap { runningNode(RTPInputNode.self, named: $0.name) }
    }

    // MARK: For the pipeline

    /// The node that an element belongs to, by the names of the element and the bins around it.
    var ownersByElement: [String: String] { owners }

    /// Makes the elements of every node, sources first, and links them.
    func assemble() throws(MediaError) {
        for node in inOrder() {
            guard let kind = NodeKind.builtIn.kind(named: node.kind) else {
                preconditionFailure("a graph that was validated has a node of kind \(node.kind)")
            }
            try Self.build(ResolvedNode(node: node, kind: kind), in: self)
        }
        for output in Set(graph.links.map(\.from)).sorted(by: { "\($0)" < "\($1)" }) {
            try connect(output)
        }
    }

    /// Nodes in an order where each comes after those that feed it.
    private func inOrder() -> [Node] {
        var left = graph.nodes
        var ordered: [Node] = []
        while !left.isEmpty {
            let waiting = Set(left.map(\.name))
            let free = left.filter { node in
                !graph.links(into: node.name).contains { waiting.contains($0.from.node) }
            }
            precondition(!free.isEmpty, "a graph that was validated has a cycle")
            ordered += free
            let done = Set(free.map(\.name))
            left.removeAll { done.contains($0.name) }
        }
        return ordered
    }

    private func connect(_ output: PortReference) throws(MediaError) {
        let targets = graph.links.filter { $0.from == output }.map(\.to)
        guard let source = outputs[output], let owner = graph.node(output.node),
            let kind = NodeKind.builtIn.kind(named: owner.kind)
        else { preconditionFailure("\(output) has no element") }
        if targets.count == 1, let target = inputs[targets[0]] {
            return try source.link(target)
        }
        let resolved = ResolvedNode(node: owner, kind: kind)
        let tee = try element("tee", of: resolved, ["allow-not-linked": true])
        try source.link(tee)
        for reference in targets {
            guard let target = inputs[reference] else { preconditionFailure("\(reference) has no element") }
            // Each branch of raw media has its own thread; a slow one loses its oldest media and does not hold up the
            // others. An encoder brings a queue of its own, whose losses are counted; encoded media may not be
            // dropped, and goes to each branch in turn.
            let kinds = kind.outputs.first { $0.name == output.port }?.kinds ?? []
            if target.factory == "queue" || !kinds.isSubset(of: [.rawVideo, .rawAudio]) {
                try tee.link(target)
            } else {
                let isSound = kinds == [.rawAudio]
                let queue = try element(
                    "queue", of: resolved,
                    [
                        "leaky": "downstream", "max-size-buffers": isSound ? 20 : 2, "max-size-bytes": 0,
                        "max-size-time": 0, "silent": true,
                    ])
                try link(tee, queue, target)
            }
        }
    }

    private static func build(_ node: ResolvedNode, in assembly: Assembly) throws(MediaError) {
        switch node.node.kind {
        case NodeKind.camera.name: try CameraNode.build(node, in: assembly)
        case NodeKind.microphone.name: try MicrophoneNode.build(node, in: assembly)
        case NodeKind.file.name: try FileNode.build(node, in: assembly)
        case NodeKind.testPattern.name: try TestPatternNode.build(node, in: assembly)
        case NodeKind.scale.name: try ScaleNode.build(node, in: assembly)
        case NodeKind.vp8Encoder.name: try VideoEncoderNode.build(node, codec: .vp8, in: assembly)
        case NodeKind.h264Encoder.name: try VideoEncoderNode.build(node, codec: .h264, in: assembly)
        case NodeKind.opusEncoder.name: try OpusEncoderNode.build(node, in: assembly)
        case NodeKind.rtpOutput.name: try RTPOutputNode.build(node, in: assembly)
        case NodeKind.rtpInput.name: try RTPInputNode.build(node, in: assembly)
        case NodeKind.videoDecoder.name: try VideoDecoderNode.build(node, in: assembly)
        case NodeKind.audioDecoder.name: try AudioDecoderNode.build(node, in: assembly)
        case NodeKind.frames.name: try VideoRendererNode.build(frames: node, in: assembly)
        case NodeKind.sound.name: try AudioRendererNode.build(sound: node, in: assembly)
        case NodeKind.image.name: try ImageNode.build(node, in: assembly)
        case NodeKind.window.name: try WindowNode.build(node, in: assembly)
        case NodeKind.speaker.name: try AudioRendererNode.build(speaker: node, in: assembly)
        case NodeKind.null.name: try NullNode.build(node, in: assembly)
        default: preconditionFailure("the kind \(node.node.kind) has no builder")
        }
    }
}
