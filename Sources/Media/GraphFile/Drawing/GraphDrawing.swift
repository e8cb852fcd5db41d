public import MediaGraph

/// A drawing of a graph.
public struct GraphDrawing: Sendable {
    let graph: MediaGraph
    let catalogue: any NodeCatalogue
    let title: String?
    /// Text at links instead of the contracts' media, such as the planned or measured format.
    public var linkNotes: [Link: String] = [:]
    /// Text in nodes below their settings, such as measured values.
    public var nodeNotes: [String: [String]] = [:]

    /// A drawing of a graph, without the values of secret settings.
    public init(_ graph: MediaGraph, title: String? = nil, catalogue: any NodeCatalogue) {
        // Drawings are published in documents.
        self.graph = graph.withoutSecrets(catalogue).settled(with: catalogue)
        self.catalogue = catalogue
        self.title = title
    }

    func kind(of node: Node) -> NodeKind? { catalogue.kind(named: node.kind) }

    func caption(of node: Node) -> NodeCaption {
        var caption = NodeCaption(node, kind(of: node))
        caption.details += nodeNotes[node.name] ?? []
        return caption
    }

    func words(for link: Link) -> String? { linkNotes[link] ?? graph.media(on: link, catalogue)?.words }
}
