/// The result of planning a graph: each node with its elements, each link with its format, and the expected latency.
public struct GraphPlan: Sendable, Hashable, Codable {
    /// The planned graph, with all ports settled.
    public var source: MediaGraph
    /// All nodes, each after the nodes that feed it, including those that the planner inserted.
    public var nodes: [NodePlan]
    /// All links, with their formats.
    public var links: [LinkPlan]
    /// Optional nodes that cannot run on this machine, with the reason.
    public var omitted: [OmittedNode] = []

    /// The plan of the node with this name.
    public func node(_ name: String) -> NodePlan? {
        nodes.first { $0.name == name }
    }

    /// The links into a node, in the graph's order.
    public func links(into node: String) -> [LinkPlan] {
        links.filter { $0.link.to.node == node }
    }

    /// The links that begin at an output.
    public func links(outOf output: PortReference) -> [LinkPlan] {
        links.filter { $0.link.from == output }
    }

    /// The nodes without inputs whose media reaches an input, nearest first.
    package func sources(feeding input: PortReference) -> [String] {
        var (found, seen, frontier) = ([String](), Set<PortReference>(), [input])
        while !frontier.isEmpty {
            let outputs = frontier.flatMap { input in links.filter { $0.link.to == input }.map(\.link.from) }
            frontier = []
            for output in outputs where seen.insert(output).inserted {
                let inputs = links(into: output.node).map(\.link.to)
                let reaching = node(output.node)?.inputs(reaching: output.port) ?? []
                // A node of a program or plugin has no links inside.
                frontier += reaching.isEmpty ? inputs : inputs.filter { reaching.contains($0.port) }
                if inputs.isEmpty, !found.contains(output.node) { found.append(output.node) }
            }
        }
        return found
    }

    /// The node that encodes the media of an input, the nearest one. Nil if a source delivers it encoded, or if it is raw.
    package func encoder(feeding input: PortReference) -> String? {
        var input = input
        while let link = links.first(where: { $0.link.to == input }),
            [.encodedVideo, .encodedAudio].contains(link.format.kind)
        {
            let name = link.link.from.node
            guard let before = links(into: name).first else { return nil }
            if [.rawVideo, .rawAudio].contains(before.format.kind) { return name }
            input = before.link.to
        }
        return nil
    }

    /// The plan without these nodes, and without inserted nodes that only they needed.
    public func removing(_ names: Set<String>) -> GraphPlan {
        var plan = self
        var names = names
        while !names.isEmpty {
            plan.nodes.removeAll { names.contains($0.name) }
            plan.links.removeAll { names.contains($0.link.from.node) || names.contains($0.link.to.node) }
            plan.source = plan.source.removing(names)
            plan.dropUnfedInputs()
            names = Set(
                plan.nodes.filter { node in
                    node.adapts != nil && !plan.links.contains { $0.link.from.node == node.name }
                }.map(\.name))
        }
        return plan
    }

    /// Removes inputs without a source from nodes that can add and remove inputs. A node keeps its last inputs.
    private mutating func dropUnfedInputs() {
        for index in nodes.indices where nodes[index].inputsComeAndGo {
            let fed = Set(links(into: nodes[index].name).map(\.link.to.port))
            guard !fed.isEmpty else { continue }
            nodes[index] = nodes[index].without(Set(nodes[index].inputs.keys).subtracting(fed))
        }
    }

    /// The plan with another value of a setting that can change while the node runs; nil for its default.
    public func setting(_ node: String, _ setting: String, to value: SettingValue?) -> GraphPlan {
        var plan = self
        for index in nodes.indices where nodes[index].name == node {
            var changed = nodes[index].node
            changed.settings[setting] = value
            plan.nodes[index] = nodes[index].following(changed)
        }
        for index in links.indices where links[index].link.from.node == node {
            let output = links[index].link.from.port
            if let format = plan.node(node)?.formats[output] { plan.links[index].format = format }
        }
        plan.source = source.setting(node, setting, to: value)
        return plan
    }

    /// The graph including the nodes that the planner inserted.
    public var expanded: MediaGraph {
        MediaGraph(nodes: nodes.map(\.node), links: links.map(\.link))
    }

    /// Names of the nodes without a linked output: renderers, recorders, transport.
    public var ends: [String] {
        nodes.filter { node in !links.contains { $0.link.from.node == node.name } }.map(\.name)
    }

    /// The expected seconds from capture until a frame is rendered, recorded or sent at the end of the slowest path
    /// into a node. For renderers that play by the clock, this is the longest allowed time.
    public func latency(of name: String) -> Double {
        guard let plan = node(name) else { return 0 }
        if plan.playsByClock {
            return nodes.filter(\.playsByClock).map { allowance(before: $0.name, nil) + $0.latency }.max() ?? 0
        }
        let before = links(into: name).map { latency(of: $0.link.from.node) }.max() ?? 0
        return before + plan.latency
    }

    /// The longest allowed time from capture until a frame enters a node, in seconds. With `output`, only paths that
    /// reach this output count.
    private func allowance(before name: String, _ output: String?) -> Double {
        let reaching = output.flatMap { output in node(name)?.inputs(reaching: output) }
        return links(into: name).filter { reaching?.contains($0.link.to.port) ?? true }.map { link in
            let from = link.link.from
            return allowance(before: from.node, from.port) + (node(from.node)?.allowances[from.port] ?? 0)
        }.max() ?? 0
    }

    /// Names of the nodes that encode.
    public var encoders: [String] {
        nodes.filter { plan in
            plan.formats.values.contains { $0.kind == .encodedVideo || $0.kind == .encodedAudio }
                && links(into: plan.name).contains { $0.format.kind == .rawVideo || $0.format.kind == .rawAudio }
        }.map(\.name)
    }

    /// The capacity of all queues together, in bytes, as far as it is known.
    public var queuedBytes: Int {
        nodes.flatMap(\.queues).compactMap(\.mostBytes).reduce(0, +)
            + links.compactMap { $0.queue?.mostBytes }.reduce(0, +)
    }

    /// The number of elements of all nodes, without tees and their queues.
    public var elementCount: Int { nodes.map { $0.elements.count + ($0.device?.elements.count ?? 0) }.reduce(0, +) }
}

/// An optional node that was left out with its branch, because it cannot run on this machine.
public struct OmittedNode: Sendable, Hashable, Codable {
    /// The name of the node.
    public var node: String
    /// The code of the error, such as `camera.absent`.
    public var code: String
    /// One sentence with the reason.
    public var reason: String
}

/// A link, its format, and the queue that separates its branch from the others, if it needs one.
public struct LinkPlan: Sendable, Hashable, Codable {
    /// The link in the graph.
    public var link: Link
    /// The format of its media.
    public var format: MediaFormat
    /// The queue on the link. Nil for a link without one.
    public var queue: QueuePlan?
}
