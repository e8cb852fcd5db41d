extension String {
    /// A path without redundant parts: `./`, `/./` and doubled slashes. A path through `..` is unchanged, because the
    /// component before `..` may be a symbolic link.
    var normalizedPath: String {
        let parts = split(separator: "/").filter { $0 != "." }
        return (hasPrefix("/") ? "/" : "") + parts.joined(separator: "/")
    }
}

extension MediaGraph {
    /// All pairs of nodes that use one file, of which at least one writes it. `identity` returns the same text for two
    /// paths that lead to one file, and nil for a path that several nodes may share.
    func fileConflicts(_ kinds: any NodeCatalogue, identity: (String) -> String?) -> [GraphProblem] {
        var users: [String: [(node: String, use: FileUse)]] = [:]
        var conflicts: [GraphProblem] = []
        for node in nodes {
            for contract in kinds.kind(named: node.kind)?.settings ?? [] {
                guard let use = contract.file, let path = node.settings[contract.name]?.text, !path.isEmpty else {
                    continue
                }
                for path in [path] + (use == .writes ? kinds.otherFiles(writtenBy: node) : []) {
                    guard let file = identity(path) else { continue }
                    let others = users[file, default: []]
                    users[file, default: []].append((node.name, use))
                    guard let other = others.first(where: { $0.use == .writes || use == .writes }) else { continue }
                    conflicts.append(
                        GraphProblem(
                            kind: .fileConflict, node: node.name, nodes: [other.node, node.name],
                            setting: contract.name, message: Self.sentences(other, (node.name, use), path)))
                    break
                }
            }
        }
        return conflicts
    }

    private static func sentences(
        _ first: (node: String, use: FileUse), _ second: (node: String, use: FileUse), _ path: String
    ) -> String {
        if first.use == .writes, second.use == .writes {
            return "\"\(first.node)\" and \"\(second.node)\" both write \(path). Choose another file for one of them."
        }
        let (writer, reader) = first.use == .writes ? (first.node, second.node) : (second.node, first.node)
        return "\"\(writer)\" writes \(path), which \"\(reader)\" reads. Choose another file for \"\(writer)\"."
    }
}
