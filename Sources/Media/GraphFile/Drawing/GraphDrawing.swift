public import MediaGraph

/// A picture of a graph.
public struct GraphDrawing: Sendable {
    let graph: MediaGraph
    let catalogue: any NodeCatalogue
    let title: String?
    /// What is written at a link in place of what the contracts say, such as the format that was planned or measured.
    public var linkNotes: [Link: String] = [:]
    /// What is written in a node below its settings, such as what was measured there.
    public var nodeNotes: [String: [String]] = [:]

    public init(_ graph: MediaGraph, title: String? = nil, catalogue: any NodeCatalogue) {
        // Drawings go into documents.
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
