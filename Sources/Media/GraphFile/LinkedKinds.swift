public import MediaGraph

/// A catalogue, extended by a graph's links for unknown kinds: those of plugins that are loaded only where the graph
/// runs. Readers of a file written with it need the plugin too.
public struct LinkedKinds: NodeCatalogue {
    private let catalogue: any NodeCatalogue
    private let linked: [String: NodeKind]

    /// A catalogue, and the kinds of a graph that it lacks.
    public init(_ catalogue: any NodeCatalogue, _ graph: MediaGraph) {
        self.catalogue = catalogue
        var linked: [String: NodeKind] = [:]
        for kind in Set(graph.nodes.map(\.kind)) where catalogue.kind(named: kind) == nil {
            let names = Set(graph.nodes.filter { $0.kind == kind }.map(\.name))
            let inputs = graph.links.filter { names.contains($0.to.node) }.ports(\.to) { link in
                graph.known(link.from, catalogue)?.output(link.from.port)
            }
            let outputs = graph.links.filter { names.contains($0.from.node) }.ports(\.from) { link in
                graph.known(link.to, catalogue)?.input(link.to.port)
            }
            guard !inputs.isEmpty || !outputs.isEmpty else { continue }
            linked[kind] = NodeKind(
                kind, inputs.isEmpty ? .capturer : outputs.isEmpty ? .renderer : .processor, "", inputs: inputs,
                outputs: outputs)
        }
        self.linked = linked
    }

    public var kinds: [NodeKind] { catalogue.kinds }

    public func kind(named name: String) -> NodeKind? { catalogue.kind(named: name) ?? linked[name] }
}

extension MediaGraph {
    fileprivate func known(_ reference: PortReference, _ catalogue: any NodeCatalogue) -> NodeKind? {
        node(reference.node).flatMap { catalogue.kind(named: $0.kind) }
    }
}

extension [Link] {
    /// The ports at one end of the links, in the order of their first use, with the media of the ports at the other
    /// end.
    fileprivate func ports(_ end: KeyPath<Link, PortReference>, across: (Link) -> Port?) -> [Port] {
        var ports: [Port] = []
        for link in self {
            let name = link[keyPath: end].port
            guard !name.isEmpty, !ports.contains(where: { $0.name == name }) else { continue }
            ports.append(Port(name, across(link)?.kinds ?? [.rawVideo]))
        }
        return ports
    }
}
