public import MediaGraph

extension GraphDocument {
    /// The document as a YAML file of the same graph, with the values of variables.
    public func yaml(with catalogue: any NodeCatalogue) -> String {
        let text = GraphWriter(document: self, catalogue: catalogue).tree.yaml(indent: 0)
        return String(text.drop { $0 == "\n" })
    }

    /// The document as a JSON file of the same graph, with the values of variables.
    public func json(with catalogue: any NodeCatalogue) -> String {
        GraphWriter(document: self, catalogue: catalogue).tree.json() + "\n"
    }

    /// One node as a step of YAML, on one line.
    public static func step(_ node: Node, of kind: NodeKind?) -> String {
        GraphWriter.step(node, kind, BranchMarks()).yamlInBraces
    }
}

/// Writes one document.
private struct GraphWriter {
    let document: GraphDocument
    let catalogue: any NodeCatalogue

    var tree: OutputTree {
        var entries: [OutputTree.Entry] = []
        if let description = document.description {
            entries.append((TopKey.description, .text(Self.escaped(description))))
        }
        let chains = ChainLayout(document.graph, catalogue: catalogue).chains.map { chain -> OutputTree in
            guard let start = chain.start else { return .list(steps(chain.items, BranchMarks())) }
            let (marks, inherited) = marks(for: chain.items, BranchMarks())
            return .list(
                [.map([(StepKey.from, .text(Self.escaped("\(start)")))] + marks)]
                    + steps(chain.items, inherited))
        }
        entries.append((TopKey.chains, .list(chains)))
        return .map(entries)
    }

    private func steps(_ items: [ChainItem], _ inherited: BranchMarks) -> [OutputTree] {
        items.map { item in
            switch item {
            case .node(let node): return Self.step(node, catalogue.kind(named: node.kind), inherited)
            case .tee(let tee):
                let (marks, within) = marks(for: tee.items, inherited)
                return .map([(StepKey.tee, .list(steps(tee.items, within)))] + marks)
            case .join(let join): return .map([(StepKey.to, .text(Self.escaped("\(join.target)")))])
            }
        }
    }

    /// The marks of a tee or a `from` that apply to all its nodes.
    private func marks(for items: [ChainItem], _ inherited: BranchMarks) -> ([OutputTree.Entry], BranchMarks) {
        let nodes = Chain(items: items).fragment.nodes
        var within = inherited
        var marks: [OutputTree.Entry] = []
        if let branch = nodes.first?.branch, branch != inherited.branch, nodes.allSatisfy({ $0.branch != nil }) {
            within.branch = branch
            marks.append((StepKey.branch, .text(Self.escaped(branch))))
        }
        if !inherited.isOptional, !nodes.isEmpty, nodes.allSatisfy(\.isOptional) {
            within.isOptional = true
            marks.append((StepKey.optional, .value(.flag(true))))
        }
        return (marks, within)
    }

    static func step(_ node: Node, _ contract: NodeKind?, _ inherited: BranchMarks) -> OutputTree {
        let kind = node.kindInFiles
        let isElement = kind != node.kind
        var entries: [OutputTree.Entry] = [(isElement ? StepKey.element : StepKey.node, .text(Self.escaped(kind)))]
        if node.name != kind { entries.append((StepKey.name, .text(Self.escaped(node.name)))) }
        if let branch = node.branch, branch != inherited.branch {
            entries.append((StepKey.branch, .text(Self.escaped(branch))))
        }
        if node.isOptional, !inherited.isOptional {
            entries.append((StepKey.optional, .value(.flag(true))))
        }
        let settings: [OutputTree.Entry] = node.settings(inOrderOf: contract).map { ($0.key, written($0.value)) }
        entries += settings.filter { !StepKey.all.contains($0.key) }
        let others = settings.filter { StepKey.all.contains($0.key) }
        if !others.isEmpty { entries.append((StepKey.settings, .map(others))) }
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
