public import MediaGraph

extension GraphDocument {
    /// The document as a YAML file of the same graph, with the values of variables.
    public func yaml(with catalogue: any NodeCatalogue) -> String {
        let text = GraphWriter(self, catalogue).tree.yaml(indent: 0)
        return String(text.drop { $0 == "\n" })
    }

    /// The document as a JSON file of the same graph, with the values of variables.
    public func json(with catalogue: any NodeCatalogue) -> String {
        GraphWriter(self, catalogue).tree.json() + "\n"
    }

    /// One node as a step of YAML, on one line.
    public static func step(_ node: Node, of kind: NodeKind?) -> String {
        GraphWriter.step(node, kind, GraphWriter.Inherited()).yamlInBraces
    }
}

/// Writes one document.
private struct GraphWriter {
    private let document: GraphDocument
    private let catalogue: any NodeCatalogue
    private let layout: ChainLayout

    /// Marks of nodes without their own.
    struct Inherited {
        var branch: String?
        var isOptional = false
    }

    init(_ document: GraphDocument, _ catalogue: any NodeCatalogue) {
        self.document = document
        self.catalogue = catalogue
        layout = ChainLayout(document.graph, catalogue: catalogue)
    }

    var tree: OutputTree {
        var entries: [OutputTree.Entry] = []
        if let description = document.description {
            entries.append(OutputTree.Entry("description", .text(Self.escaped(description))))
        }
        let chains = layout.chains.map { chain -> OutputTree in
            guard let start = chain.start else { return .list(steps(chain.items, Inherited())) }
            let (marks, inherited) = marks(for: chain.items, Inherited())
            return .list(
                [.map([OutputTree.Entry(StepKey.from, .text(Self.escaped("\(start)")))] + marks)]
                    + steps(chain.items, inherited))
        }
        entries.append(OutputTree.Entry("chains", .list(chains)))
        return .map(entries)
    }

    private func steps(_ items: [ChainLayout.Item], _ inherited: Inherited) -> [OutputTree] {
        items.map { item in
            switch item {
            case .node(let index):
                let node = layout.graph.nodes[index]
                return Self.step(node, catalogue.kind(named: node.kind), inherited)
            case .tee(let items):
                let (marks, within) = marks(for: items, inherited)
                return .map([OutputTree.Entry(StepKey.tee, .list(steps(items, within)))] + marks)
            case .join(let port): return .map([OutputTree.Entry(StepKey.to, .text(Self.escaped("\(port)")))])
            }
        }
    }

    /// The marks of a tee or a `from` that apply to all its nodes.
    private func marks(
        for items: [ChainLayout.Item], _ inherited: Inherited
    ) -> ([OutputTree.Entry], Inherited) {
        let nodes = ChainLayout.nodes(in: items).map { layout.graph.nodes[$0] }
        var within = inherited
        var marks: [OutputTree.Entry] = []
        if let branch = nodes.first?.branch, branch != inherited.branch, nodes.allSatisfy({ $0.branch != nil }) {
            within.branch = branch
            marks.append(OutputTree.Entry(StepKey.branch, .text(Self.escaped(branch))))
        }
        if !inherited.isOptional, !nodes.isEmpty, nodes.allSatisfy(\.isOptional) {
            within.isOptional = true
            marks.append(OutputTree.Entry(StepKey.optional, .value(.flag(true))))
        }
        return (marks, within)
    }

    static func step(_ node: Node, _ contract: NodeKind?, _ inherited: Inherited) -> OutputTree {
        let isElement = node.kind.hasPrefix(NodeKind.elementPrefix)
        let kind = isElement ? String(node.kind.dropFirst(NodeKind.elementPrefix.count)) : node.kind
        var entries = [OutputTree.Entry(isElement ? StepKey.element : StepKey.node, .text(Self.escaped(kind)))]
        if node.name != kind { entries.append(OutputTree.Entry(StepKey.name, .text(Self.escaped(node.name)))) }
        if let branch = node.branch, branch != inherited.branch {
            entries.append(OutputTree.Entry(StepKey.branch, .text(Self.escaped(branch))))
        }
        if node.isOptional, !inherited.isOptional {
            entries.append(OutputTree.Entry(StepKey.optional, .value(.flag(true))))
        }
        // In the order of the contract, which is by importance.
        let known = contract?.settings.map(\.name) ?? []
        let names =
            known.filter { node.settings[$0] != nil } + node.settings.keys.filter { !known.contains($0) }.sorted()
        let settings = names.compactMap { name in node.settings[name].map { (key: name, value: $0) } }.map {
            OutputTree.Entry($0.key, written($0.value))
        }
        entries += settings.filter { !StepKey.all.contains($0.key) }
        let others = settings.filter { StepKey.all.contains($0.key) }
        if !others.isEmpty { entries.append(OutputTree.Entry(StepKey.settings, .map(others))) }
        return entries.count == 1 && !isElement ? .text(Self.escaped(kind)) : .map(entries)
    }

    private static func written(_ value: SettingValue) -> OutputTree {
        if case .text(let text) = value { .text(Self.escaped(text)) } else { .value(value) }
    }

    /// Escapes text that looks like a variable.
    private static func escaped(_ text: String) -> String {
        text.contains("${")
            ? text.split(separator: "${", omittingEmptySubsequences: false).joined(separator: "$${") : text
    }
}
