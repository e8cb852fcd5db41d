/// A media pipeline as a value: nodes and the links between them.
///
/// Written in Swift with a builder:
///
/// ```swift
/// let graph = MediaGraph {
///     Chain {
///         Node.testPattern("source")
///         Tee { Node.frames("preview") }
///         Node.videoEncoder("encoder", codec: .vp8)
///         Node.rtpOutput("video")
///     }
///     Chain(from: "source", port: "audio") {
///         Node.opusEncoder()
///         Node.rtpOutput("audio", payloadType: 111)
///     }
/// }
/// ```
///
/// A graph is inert: `validate()` lists what is wrong with it, a `MediaPipeline` runs it.
public struct MediaGraph: Sendable, Hashable, Codable {
    public var nodes: [Node]
    public var links: [Link]

    public init(nodes: [Node] = [], links: [Link] = []) {
        self.nodes = nodes
        self.links = links
    }

    public init(@GraphBuilder _ build: () -> GraphFragment) {
        self.init(build())
    }

    /// The first node of this name, if there is one.
    public func node(_ name: String) -> Node? {
        nodes.first { $0.name == name }
    }

    /// The links into a node.
    public func links(into node: String) -> [Link] {
        links.filter { $0.to.node == node }
    }

    /// The links out of a node.
    public func links(outOf node: String) -> [Link] {
        links.filter { $0.from.node == node }
    }
}
