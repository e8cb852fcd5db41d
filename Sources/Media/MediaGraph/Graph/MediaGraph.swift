/// A media pipeline as a value: nodes and the links between them.
///
/// Its forms are a composition of handles in Swift, YAML and JSON. The composition
///
/// ```swift
/// let source = TestPattern(), encoder = VideoEncoder(.vp8)
/// let composition = Composition {
///     source >>> Window().optional
///     source >>> encoder >>> Recorder(path: "talk.mkv")
/// }
/// ```
///
/// gives a graph, `composition.graph`, of the nodes `test-pattern`, `window`, `vp8-encoder` and `recorder`.
///
/// A graph does nothing by itself: `validate()` lists its problems, and a `MediaPipeline` runs it.
public struct MediaGraph: Sendable, Hashable, Codable {
    /// The nodes, in the order of the file.
    public var nodes: [Node]
    /// The links, in the order of the file.
    public var links: [Link]

    /// A graph of nodes and links, which may be invalid: see `validate`.
    public init(nodes: [Node] = [], links: [Link] = []) {
        self.nodes = nodes
        self.links = links
    }

    /// Ports that a chain does not name stay open until the graph is validated, planned or settled with a catalogue.
    package init(@GraphBuilder _ build: () -> MediaGraph) {
        self = build()
    }

    /// Two graphs are equal if their nodes and links are, in any order.
    public static func == (left: MediaGraph, right: MediaGraph) -> Bool {
        left.nodes.count == right.nodes.count && left.links.count == right.links.count
            && Set(left.nodes) == Set(right.nodes) && Set(left.links) == Set(right.links)
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(Set(nodes))
        hasher.combine(Set(links))
    }

    /// The first node with this name.
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

    /// The nodes of a branch.
    public func nodes(ofBranch branch: String) -> [Node] {
        nodes.filter { $0.branch == branch }
    }

    /// The graph without these nodes and their links.
    public func removing(_ names: Set<String>) -> MediaGraph {
        MediaGraph(
            nodes: nodes.filter { !names.contains($0.name) },
            links: links.filter { !names.contains($0.from.node) && !names.contains($0.to.node) })
    }

    /// The graph without the nodes of a branch, and without nodes that only they feed.
    public func removing(branch: String) -> MediaGraph {
        let names = Set(nodes(ofBranch: branch).map(\.name))
        return removing(names.union(fedOnly(by: names)))
    }

    /// The graph without a node, and without the nodes that only it fed or that fed only it.
    package func removingPart(of node: String) -> MediaGraph {
        let below = fedOnly(by: [node]).union([node])
        return removing(below.union(feedingOnly(below)))
    }

    /// The graph with the nodes and links of another one that it lacks. An open port is any port.
    package func adding(_ other: MediaGraph) -> MediaGraph {
        var graph = self
        graph.nodes += other.nodes.filter { node($0.name) == nil }
        graph.links += other.links.filter { link in
            !links.contains { $0.from.isOrMayBe(link.from) && $0.to.isOrMayBe(link.to) }
        }
        return graph
    }

    /// The graph with more nodes and links. Chains may start and end at existing nodes.
    package func adding(@GraphBuilder _ build: () -> MediaGraph) -> MediaGraph {
        var graph = self
        graph.append(build())
        return graph
    }

    /// The graph with another value for one setting of one node; nil for its default.
    public func setting(_ node: String, _ setting: String, to value: SettingValue?) -> MediaGraph {
        var graph = self
        for index in nodes.indices where nodes[index].name == node { graph.nodes[index].settings[setting] = value }
        return graph
    }

    /// The graph with the settings that some of its nodes have in a running graph.
    package func keepingSettings(of names: Set<String>, in running: MediaGraph) -> MediaGraph {
        var graph = self
        for index in nodes.indices where names.contains(nodes[index].name) {
            guard let there = running.node(nodes[index].name), there.kind == nodes[index].kind else { continue }
            graph.nodes[index].settings = there.settings
        }
        return graph
    }

    /// The optional nodes that are linked to this one, directly or through optional nodes, and all nodes that only they
    /// feed. They end together when this node fails. Empty if the node is not optional.
    public func optionalPart(around name: String) -> Set<String> {
        guard node(name)?.isOptional == true else { return [] }
        var part: Set<String> = [name]
        var before: Int
        repeat {
            before = part.count
            let beside = links.map { [$0.from.node, $0.to.node] }.filter { !part.isDisjoint(with: $0) }.joined()
            part.formUnion(beside.filter { node($0)?.isOptional == true })
        } while part.count > before
        return part.union(fedOnly(by: part))
    }

    /// The nodes that receive media from these nodes only.
    func fedOnly(by names: Set<String>) -> Set<String> {
        closed(over: names) { node in links(into: node).map(\.from.node) }
    }

    /// The nodes that send media to these nodes only.
    func feedingOnly(_ names: Set<String>) -> Set<String> {
        closed(over: names) { node in links(outOf: node).map(\.to.node) }
    }

    /// The nodes whose neighbours on one side are all among these nodes, or among those found before.
    private func closed(over names: Set<String>, _ neighbours: (String) -> [String]) -> Set<String> {
        var found: Set<String> = []
        while true {
            let all = names.union(found)
            let more = nodes.map(\.name).filter { name in
                let beside = neighbours(name)
                return !all.contains(name) && !beside.isEmpty && beside.allSatisfy(all.contains)
            }
            if more.isEmpty { return found }
            found.formUnion(more)
        }
    }

    /// The graph with all open ports settled. An open output becomes the first one that fits the input; outputs that
    /// must be linked come first. An open input becomes the first one that fits and is free. A port that cannot be
    /// settled gets the name for which `validate()` reports the clearest problem. A link that becomes one of the others is
    /// the same.
    public func settled(with catalogue: any NodeCatalogue) -> MediaGraph {
        guard links.contains(where: { $0.from.port.isEmpty || $0.to.port.isEmpty }) else { return self }
        var graph = self
        var taken = Set(links.map(\.to).filter { !$0.port.isEmpty })
        func kind(of name: String) -> NodeKind? { node(name).flatMap { catalogue.kind(named: $0.kind) } }
        for index in links.indices {
            let link = links[index]
            guard let source = kind(of: link.from.node), let target = kind(of: link.to.node) else { continue }
            let given = link.from.port.isEmpty ? nil : source.output(link.from.port)?.kinds
            if link.to.port.isEmpty {
                let waiting = source.outputs.first { output in
                    output.isRequired && !graph.links(outOf: link.from.node).contains { $0.from.port == output.name }
                        && target.inputs.contains { output.kinds.canBecome($0.kinds) }
                }
                let all: Set<MediaKind> = source.outputs.reduce(into: []) { $0.formUnion($1.kinds) }
                let port = target.freeInput(for: given ?? waiting?.kinds ?? all, of: link.to.node, taken)
                graph.links[index].to.port = port
                taken.insert(graph.links[index].to)
            }
            if link.from.port.isEmpty {
                let wanted = target.input(graph.links[index].to.port)?.kinds ?? []
                let fitting = source.outputs.first { $0.kinds.canBecome(wanted) } ?? source.outputs.first
                graph.links[index].from.port = fitting?.name ?? "out"
            }
        }
        func isNamed(_ link: Link) -> Bool { !link.from.port.isEmpty && !link.to.port.isEmpty }
        var found = Set(links.filter(isNamed))
        graph.links = zip(links, graph.links).filter { isNamed($0) || found.insert($1).inserted }.map(\.1)
        return graph
    }
}

extension PortReference {
    /// Whether this is the port, or one that the open port may become.
    fileprivate func isOrMayBe(_ other: PortReference) -> Bool {
        node == other.node && (port == other.port || other.port.isEmpty)
    }
}

extension NodeKind {
    /// The name of the first free input that fits; the first input if none does.
    fileprivate func freeInput(for kinds: Set<MediaKind>, of node: String, _ taken: Set<PortReference>) -> String {
        for port in inputs where kinds.canBecome(port.kinds) && !isLayer(port) {
            if port.isRepeated {
                let number = (1...1000).first { !taken.contains(PortReference(node: node, port: "\(port.name)\($0)")) }
                return "\(port.name)\(number ?? 1)"
            }
            if !taken.contains(PortReference(node: node, port: port.name)) { return port.name }
        }
        return inputs.first.map { $0.isRepeated ? $0.name + "1" : $0.name } ?? "in"
    }
}

extension Set<MediaKind> {
    /// Whether media of one of these kinds can become one of `wanted`: unchanged, encoded or decoded.
    func canBecome(_ wanted: Set<MediaKind>) -> Bool {
        contains { kind in wanted.contains { kind.canBecome($0) } }
    }
}

extension MediaKind {
    /// Whether this kind is the other one, or becomes it by encoding or decoding.
    public func canBecome(_ other: MediaKind) -> Bool {
        if self == other { return true }
        let pairs: [Set<MediaKind>] = [[.rawVideo, .encodedVideo], [.rawAudio, .encodedAudio]]
        return pairs.contains([self, other])
    }
}
