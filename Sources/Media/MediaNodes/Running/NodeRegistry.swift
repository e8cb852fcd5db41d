import GStreamerKit
public import MediaGraph

/// The kinds that can be planned and run: built-in ones, those of other targets, GStreamer's elements.
public struct NodeRegistry: PlanningCatalogue {
    private var order: [String] = []
    private var implementations: [String: NodeImplementation] = [:]
    /// The kinds that single nodes bring along, by the nodes' names.
    private var own: [String: NodeImplementation] = [:]

    package init(_ types: [any NodeType.Type]) {
        for type in types { add(NodeImplementation(type)) }
    }

    /// The nodes of this target.
    public static let builtIn = NodeRegistry([
        // Capturers
        CameraNode.self, MicrophoneNode.self, FileNode.self, BypassNode.self, ScreenNode.self, TestPatternNode.self,
        RTSPNode.self, FeedNode.self, ProcessNode.self, ExecNode.self,
        // Processors
        ScaleNode.self, ConvertNode.self, RateNode.self, CropNode.self, MirrorNode.self, RotateNode.self,
        OverlayNode.self,
        MixerNode.self, FrameFunctionNode.self, VolumeNode.self, LevelNode.self, AudioMixerNode.self,
        EchoCancelNode.self, EchoProbeNode.self,
    ]).adding(EncodedVideo.all.map(\.encoder)).adding([
        // Codecs
        OpusEncoderNode.self, AACEncoderNode.self, VideoDecoderNode.self, AudioDecoderNode.self,
        // Renderers
        FramesNode.self, SoundNode.self, SnapshotNode.self, WindowNode.self, TerminalNode.self, SpeakerNode.self,
        NullNode.self,
        // Recorders
        RecorderNode.self,
        // Transport
        RTPOutputNode.self, RTPInputNode.self,
    ])

    /// This registry with more types. An existing kind is replaced.
    package func adding(_ types: [any NodeType.Type]) -> NodeRegistry {
        adding(types.map(NodeImplementation.init))
    }

    /// This registry with kinds that have no type of their own.
    package func adding(_ implementations: [NodeImplementation]) -> NodeRegistry {
        var registry = self
        for implementation in implementations { registry.add(implementation) }
        return registry
    }

    /// This registry with kinds that single nodes bring along, by the nodes' names. Two of them may have one kind with
    /// different objects of the application.
    func with(_ own: [String: NodeImplementation]) -> NodeRegistry {
        var registry = self
        registry.own = own
        return registry
    }

    private mutating func add(_ implementation: NodeImplementation) {
        let name = implementation.kind.name
        if implementations[name] == nil { order.append(name) }
        implementations[name] = implementation
    }

    public var kinds: [NodeKind] { order.compactMap { implementations[$0]?.kind } }

    public func kind(named name: String) -> NodeKind? {
        implementation(of: name)?.kind ?? own.values.first { $0.kind.name == name }?.kind
    }

    /// Whether a kind is in the registry itself, rather than brought along by a node.
    func isListed(_ kind: String) -> Bool { implementations[kind] != nil }

    public func reasonForLack(of name: String) -> String? {
        if let factory = Self.factory(of: name) { return ElementFactory.reasonForLack(of: factory) }
        guard GStreamer.has(name) else { return nil }
        return "There is no kind of node \"\(name)\""
            + (name.nearest(among: order).map { "; did you mean \"\($0)\"? The" } ?? "; the")
            + " GStreamer element of that name is written {element: \(name)}, and \"connectlive nodes "
            + "\(NodeKind.elementPrefix)\(name)\" describes it."
    }

    public func isLacking(_ name: String) -> Bool {
        Self.factory(of: name).map(ElementFactory.isLacking) ?? false
    }

    /// The GStreamer element that a kind is made of on request.
    private static func factory(of kind: String) -> String? {
        let prefix = NodeKind.elementPrefix
        return kind.hasPrefix(prefix) ? String(kind.dropFirst(prefix.count)) : nil
    }

    public func input(
        _ port: String, of node: Node, running: NodePlan?, on environment: any PlanEnvironment
    ) -> Port? {
        guard let implementation = implementation(of: node), let found = implementation.kind.input(port) else {
            return nil
        }
        return implementation.input(found, node, running, environment)
    }

    public func output(repeating input: String, of node: Node) -> String? {
        implementation(of: node)?.repeatedInputs[input]
    }

    public func videoLayers(of node: Node) -> Int {
        guard kind(named: node.kind)?.setting("layers") != nil else { return 1 }
        return node.settings["layers"]?.integer ?? 1
    }

    public func otherFiles(writtenBy node: Node) -> [String] {
        implementation(of: node)?.otherFiles(node) ?? []
    }

    public func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        guard let implementation = implementation(of: request.node) else {
            preconditionFailure("no node type plans a \(request.kind.name)")
        }
        return try implementation.plan(request)
    }

    func implementation(of node: Node) -> NodeImplementation? {
        if let own = own[node.name], own.kind.name == node.kind { return own }
        return implementation(of: node.kind)
    }

    private func implementation(of kind: String) -> NodeImplementation? {
        implementations[kind] ?? Self.factory(of: kind).flatMap(ElementKinds.implementation)
    }
}

/// The functions of one kind.
package struct NodeImplementation: Sendable {
    package let kind: NodeKind
    /// An input of the kind, narrowed by a node's settings, by its plan if it runs, and by the machine.
    package var input: @Sendable (Port, Node, NodePlan?, any PlanEnvironment) -> Port = { port, _, _, _ in port }
    /// The outputs that have the format of an input, by input.
    var repeatedInputs: [String: String] = [:]
    /// Files that a node writes beside those that its settings name.
    var otherFiles: @Sendable (Node) -> [String] = { _ in [] }
    package let plan: @Sendable (NodeRequest) throws(MediaError) -> NodePlan
    package let activate: @Sendable (NodeInstance) throws(MediaError) -> (any RunningNode)?
}

extension NodeImplementation {
    /// A kind whose nodes are bound to an object of the program.
    package init(
        kind: NodeKind, input: @escaping @Sendable (Port, Node, any PlanEnvironment) -> Port,
        plan: @escaping @Sendable (NodeRequest) throws(MediaError) -> NodePlan,
        activate: @escaping @Sendable (NodeInstance) throws(MediaError) -> (any RunningNode)?
    ) {
        self.init(
            kind: kind, input: { port, node, _, environment in input(port, node, environment) }, plan: plan,
            activate: activate)
    }

    package init(_ type: any NodeType.Type) {
        self.init(
            kind: type.kind, input: { port, node, _, environment in type.input(port, of: node, on: environment) },
            repeatedInputs: type.repeatedInputs, otherFiles: { type.otherFiles(writtenBy: $0) },
            plan: { (request) throws(MediaError) in try type.plan(request) },
            activate: { (instance) throws(MediaError) in try type.activate(instance) })
    }
}
