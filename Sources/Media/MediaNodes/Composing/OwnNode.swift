public import MediaGraph

/// A node that is written in Swift, made of a value, which may hold objects of the application.
///
/// A value can be linked as it is; each mention is then a node of its own. A handle can be linked repeatedly, and its
/// settings can be changed. Nodes of one value would share settings with `isChangeable`, so a pipeline has one at most:
///
/// ```swift
/// let drawn = Breathing(fps: 15, device: device).node
/// let pipeline = try await MediaPipeline {
///     drawn >>> Window().optional
///     drawn >>> VideoEncoder(.vp8) >>> Publish(room: "demo")
/// }
/// try await drawn.set(\.$speed, to: 5)
/// ```
public struct OwnNode<Value: WrittenNode>: MediaNode {
    public var handle: NodeHandle
    /// The value that the node was made of. Its settings with `isChangeable` have their current values; a node that is
    /// added again begins with the first ones.
    public let value: Value

    fileprivate init(_ value: Value, _ implementation: NodeImplementation) {
        self.value = value
        let settings = value.contracts.compactMap { contract in contract.defaultValue.map { (contract.name, $0) } }
        handle = NodeHandle(
            implementation.kind.name, Dictionary(settings) { first, _ in first },
            .own { () throws(MediaError) in implementation }, of: value)
    }

    /// Changes a setting with `isChangeable` while the node runs.
    ///
    /// - Throws: `graph.invalid` for a value out of range or a key path to a setting of another type,
    ///   `graph.setting-fixed` for a setting without `isChangeable`, and `node.not-running`.
    public func set<Content>(
        _ setting: any KeyPath<Value, Setting<Content>> & Sendable, to content: Content
    ) async throws(MediaError) {
        guard let name = value.name(of: value[keyPath: setting]) else {
            throw Composition.invalid(
                "The key path is not that of a setting of \(Value.self). Only a @Setting of the type itself is one.")
        }
        try await change(name, to: content)
    }
}

extension Capturer {
    /// A handle of a node that is made of this value. Each use of this property makes another node.
    public var node: OwnNode<Self> { OwnNode(self, CapturerHost.implementation(self)) }
}

extension Processor {
    /// A handle of a node that is made of this value. Each use of this property makes another node.
    public var node: OwnNode<Self> { OwnNode(self, ProcessorHost.implementation(self)) }
}

extension Renderer {
    /// A handle of a node that is made of this value. Each use of this property makes another node.
    public var node: OwnNode<Self> { OwnNode(self, RendererHost.implementation(self)) }
}

extension ElementsNode {
    /// A handle of a node of these elements. Each call makes another node.
    ///
    /// - Parameter settings: values of the exposed settings, by their names.
    public func node(_ settings: [String: SettingValue] = [:]) -> OwnElements { OwnElements(self, settings) }
}

/// A node that is made of GStreamer elements by an `ElementsNode`.
public struct OwnElements: MediaNode {
    public var handle: NodeHandle

    fileprivate init(_ elements: ElementsNode, _ settings: [String: SettingValue]) {
        handle = NodeHandle(
            elements.name, settings, .own { () throws(MediaError) in try ElementsHost.implementation(elements) })
    }

    /// Changes an exposed setting while the node runs. Throws like the setters of other nodes.
    public func set(_ setting: String, to value: SettingValue) async throws(MediaError) {
        try await change(setting, to: value)
    }
}

/// Any installed GStreamer element.
public struct GStreamerElement: MediaNode {
    public var handle: NodeHandle

    /// A node of one element. The graph is rejected if the machine lacks it.
    ///
    /// - Parameters:
    ///   - factory: the element's type as `gst-inspect-1.0` lists it.
    ///   - properties: the element's properties.
    public init(_ factory: String, _ properties: [String: SettingValue] = [:]) {
        handle = NodeHandle(NodeKind.elementPrefix + factory, properties, nil)
    }

    /// An input by the name of the element's pad.
    public func input(_ pad: String) -> NodeInput { input(named: pad) }

    /// An output by the name of the element's pad.
    public func output(_ pad: String) -> NodeOutput { output(named: pad) }

    /// Changes a property while the element runs.
    ///
    /// - Throws: `graph.invalid` for an unknown property or an invalid value, `graph.setting-fixed` for one that is not
    ///   live, and `node.not-running`.
    public func set(_ property: String, to value: SettingValue) async throws(MediaError) {
        try await change(property, to: value)
    }
}
