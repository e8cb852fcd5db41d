internal import MediaGraph

/// A graph as chains and tees, like in a handwritten file.
///
/// Omits ports that reading settles in the same way, and reads the layout back to check.
struct ChainLayout {
    let graph: MediaGraph
    private(set) var chains: [Chain] = []

    init(_ graph: MediaGraph, catalogue: any NodeCatalogue) {
        let settled = graph.settled(with: catalogue)
        self.graph = settled
        var explicit: Set<Int> = []
        for round in 0... {
            var builder = Builder(graph: settled, catalogue: catalogue, explicit: explicit)
            chains = builder.build()
            let links = chains.flatMap(\.fragment.links)
            let found = Set(MediaGraph(nodes: settled.nodes, links: links).settled(with: catalogue).links)
            let lost = settled.links.indices.filter { !found.contains(settled.links[$0]) && !explicit.contains($0) }
            if lost.isEmpty { return }
            // Usually one round is enough. With all ports written, no link is lost.
            explicit.formUnion(round < Self.mostRounds ? lost : Array(settled.links.indices))
        }
    }

    private static let mostRounds = 4
}

/// Splits a graph into chains.
private struct Builder {
    /// Deeper tees become separate chains, because nobody counts that many dashes.
    private static let deepestTee = 4

    let graph: MediaGraph
    let catalogue: any NodeCatalogue
    /// Links written with both ports.
    let explicit: Set<Int>

    private var indexOfNode: [String: Int] = [:]
    /// By node: its outgoing links.
    private var outgoing: [[Int]]
    /// By node: the link to it from the previous node of its chain. Nil if a chain begins with it.
    private var carrier: [Int?]
    /// By node: the longest chain from it, including itself.
    private var length: [Int]
    /// By node: how many links leave it and all nodes downstream.
    private var size: [Int]
    /// By node: whether it or a downstream node encodes, records or sends, which is the purpose of most graphs.
    private var isMain: [Bool]
    /// Links that begin chains at a port of an earlier node.
    private var waiting: [Int] = []

    init(graph: MediaGraph, catalogue: any NodeCatalogue, explicit: Set<Int>) {
        self.graph = graph
        self.catalogue = catalogue
        self.explicit = explicit
        for (index, node) in graph.nodes.enumerated() where indexOfNode[node.name] == nil {
            indexOfNode[node.name] = index
        }
        outgoing = Array(repeating: [], count: graph.nodes.count)
        carrier = Array(repeating: nil, count: graph.nodes.count)
        length = Array(repeating: 1, count: graph.nodes.count)
        size = Array(repeating: 0, count: graph.nodes.count)
        isMain = graph.nodes.map { node in
            catalogue.kind(named: node.kind).map { [.codec, .recorder, .transport].contains($0.group) } ?? false
        }
        var incoming: [[Int]] = outgoing
        for (index, link) in graph.links.enumerated() {
            if let source = indexOfNode[link.from.node] { outgoing[source].append(index) }
            if let target = indexOfNode[link.to.node] { incoming[target].append(index) }
        }
        for node in graph.nodes.indices { carrier[node] = carrier(of: node, incoming[node]) }
        measure()
    }

    mutating func build() -> [Chain] {
        var chains: [Chain] = []
        for node in graph.nodes.indices where carrier[node] == nil {
            chains.append(Chain(items: items(from: node, depth: 0)))
            // A chain may add further ones.
            while !waiting.isEmpty {
                let link = waiting.removeFirst()
                chains.append(Chain(from: graph.links[link].from, items: branch(link, depth: 0)))
            }
        }
        // Links from missing nodes are written too, so that reading reports them.
        for link in graph.links where indexOfNode[link.from.node] == nil {
            chains.append(Chain(from: link.from, items: [.join(Join(link.to))]))
        }
        return chains
    }

    // MARK: Order of nodes

    private func source(of link: Int) -> Int? { indexOfNode[graph.links[link].from.node] }

    private func target(of link: Int) -> Int? { indexOfNode[graph.links[link].to.node] }

    private func carrier(of node: Int, _ incoming: [Int]) -> Int? {
        // A node with several like inputs begins a chain, and its sources join it by name.
        let isMixer = catalogue.kind(named: graph.nodes[node].kind)?.inputs.contains(where: \.isRepeated) ?? false
        if isMixer || indexOfNode[graph.nodes[node].name] != node { return nil }
        return incoming.first { link in
            guard !explicit.contains(link), entersFirst(link), let source = source(of: link) else { return false }
            // In a cycle, one node has to be first.
            var before: Int? = source
            while let current = before {
                if current == node { return false }
                before = carrier[current].flatMap { self.source(of: $0) }
            }
            return true
        }
    }

    /// Whether a link enters the first input for its media, which a reader assumes without a port.
    private func entersFirst(_ link: Int) -> Bool {
        let port = graph.links[link].to.port
        let inputs = target(of: link).flatMap { catalogue.kind(named: graph.nodes[$0].kind) }?.inputs ?? []
        guard let entered = inputs.first(where: { $0.matches(port) }) else { return true }
        return inputs.first { !$0.kinds.isDisjoint(with: entered.kinds) } == entered
    }

    private mutating func measure() {
        // From each end of the forest to its root.
        for end in graph.nodes.indices {
            var count = 1
            var current = end
            size[end] += outgoing[end].count
            while let link = carrier[current], let before = source(of: link) {
                count += 1
                length[before] = max(length[before], count)
                size[before] += outgoing[end].count
                isMain[before] = isMain[before] || isMain[end]
                current = before
            }
        }
    }

    // MARK: Chains

    private mutating func items(from first: Int, depth: Int) -> [ChainItem] {
        var items: [ChainItem] = []
        var node: Int? = first
        while let current = node {
            items.append(.node(graph.nodes[current]))
            node = nil
            var (here, elsewhere) = linksByPort(of: current)
            let next = next(after: current, here)
            here.removeAll { $0 == next }
            if depth >= Self.deepestTee {
                elsewhere = here + elsewhere
                here = []
            }
            for link in here { items.append(.tee(Tee(items: branch(link, depth: depth + 1)))) }
            waiting += elsewhere
            guard let next else { continue }
            if carried(by: next) { node = target(of: next) } else { items.append(join(next)) }
        }
        return items
    }

    /// The links that may continue the chain, and those that begin chains at one of the node's ports.
    private func linksByPort(of node: Int) -> ([Int], [Int]) {
        let open = outgoing[node].filter { !explicit.contains($0) }
        let outputs = catalogue.kind(named: graph.nodes[node].kind)?.outputs ?? []
        let used = open.map { graph.links[$0].from.port }
        let port = outputs.lazy.compactMap { output in used.first { output.matches($0) } }.first ?? used.first
        let here = open.filter { graph.links[$0].from.port == port }
        return (here, outgoing[node].filter { !here.contains($0) })
    }

    private func carried(by link: Int) -> Bool { target(of: link).flatMap { carrier[$0] } == link }

    /// The link that continues the chain: not into a branch, towards the main output, the longest.
    private func next(after node: Int, _ links: [Int]) -> Int? {
        let following = links.filter(carried)
        guard !following.isEmpty else { return links.last }
        func isBranch(_ link: Int) -> Bool {
            guard let target = target(of: link) else { return true }
            let (from, to) = (graph.nodes[node], graph.nodes[target])
            return (to.branch != nil && to.branch != from.branch) || (to.isOptional && !from.isOptional)
        }
        let main = following.filter { !isBranch($0) }
        // Of equal ones the last, because people write branches first.
        return (main.isEmpty ? following : main).max { left, right in
            let targets = (target(of: left) ?? node, target(of: right) ?? node)
            return (isMain[targets.0] ? 1 : 0, length[targets.0], size[targets.0])
                <= (isMain[targets.1] ? 1 : 0, length[targets.1], size[targets.1])
        }
    }

    private mutating func branch(_ link: Int, depth: Int) -> [ChainItem] {
        if carried(by: link), let target = target(of: link) { return items(from: target, depth: depth) }
        return [join(link)]
    }

    /// Names the port if the node has several inputs.
    private func join(_ link: Int) -> ChainItem {
        let port = graph.links[link].to
        let inputs = target(of: link).flatMap { catalogue.kind(named: graph.nodes[$0].kind) }?.inputs ?? []
        let isOnly = inputs.count == 1 && !inputs[0].isRepeated
        return .join(Join(isOnly && !explicit.contains(link) ? PortReference(node: port.node, port: "") : port))
    }
}
