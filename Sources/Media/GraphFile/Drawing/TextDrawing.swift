internal import MediaGraph

extension GraphDrawing {
    /// The graph as boxes and arrows for a terminal, one chain below another. Ends with a line feed.
    public var text: String {
        let layout = ChainLayout(graph, catalogue: catalogue)
        var lines: [String] = []
        if let title { lines += title.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) + [""] }
        for (index, chain) in layout.chains.enumerated() {
            if index > 0 { lines.append("") }
            lines += TextDrawing(drawing: self, layout: layout).lines(of: chain)
        }
        return lines.map { $0.trimmedEnd + "\n" }.joined()
    }
}

/// Draws chains with box characters: chains go down, their tees to the right.
private struct TextDrawing {
    /// Widest text in a box.
    private static let width = 56
    private static let arrow = "   ▼"

    let drawing: GraphDrawing
    let layout: ChainLayout

    func lines(of chain: Chain) -> [String] {
        let rows = lines(of: chain.items, inherited: nil)
        guard let start = chain.start else { return rows }
        let arrow = if case .node? = chain.items.first { [Self.arrow] } else { [String]() }
        return ["  from \(start)"] + flow(from: start.node, port: start.port) + arrow + rows
    }

    /// The items from top to bottom. The first line of a box is its upper edge; the arrow points to the second.
    private func lines(of items: [ChainItem], inherited: Node?) -> [String] {
        var lines: [String] = []
        var current = inherited
        for (index, item) in items.enumerated() {
            let isLast = index == items.count - 1
            switch item {
            case .node(let node):
                if current != nil, !lines.isEmpty { lines.append(Self.arrow) }
                lines += box(node, isLast: isLast, besides: inherited ?? current)
                if !isLast { lines += flow(from: node.name, port: nil) }
                current = node
            case .tee(let tee): lines += self.tee(tee.items, of: current)
            case .join(let join): lines.append("   ╰─▶ \(join.target)")
            }
        }
        return lines
    }

    private func tee(_ items: [ChainItem], of node: Node?) -> [String] {
        if case .join(let join)? = items.first { return ["   ├─▶ \(join.target)"] }
        let block = lines(of: items, inherited: node)
        let isOptional = Chain(items: items).fragment.nodes.first?.isOptional ?? false
        return block.enumerated().map { index, line in
            (index == 1 ? "   ├\(isOptional ? "╌" : "─")▶" : "   │  ") + line
        }
    }

    /// The media downstream of a node.
    private func flow(from node: String, port: String?) -> [String] {
        let link = layout.graph.links(outOf: node).first { port == nil || port == "" || $0.from.port == port }
        let words = link.flatMap { drawing.words(for: $0) }
        return ["   │ \(words ?? "")"]
    }

    private func box(_ node: Node, isLast: Bool, besides parent: Node?) -> [String] {
        let caption = drawing.caption(of: node)
        let rows =
            [caption.title + (caption.kind.map { "  (\($0))" } ?? "")]
            + caption.details.wrapped(separator: ", ", width: Self.width)
        let width = rows.map(\.count).max() ?? 0
        let horizontal = String(repeating: "─", count: width + 2)
        let lower = isLast ? "└\(horizontal)┘" : "└──┬" + String(repeating: "─", count: max(0, width - 1)) + "┘"
        var lines = ["┌\(horizontal)┐"]
        for (index, row) in rows.enumerated() {
            let padding = String(repeating: " ", count: width - row.count)
            lines.append("│ \(row)\(padding) │" + (index == 0 ? marks(node, besides: parent) : ""))
        }
        return lines + [lower]
    }

    /// The branch that begins here, and whether it is optional.
    private func marks(_ node: Node, besides parent: Node?) -> String {
        var words: [String] = []
        if let branch = node.branch, branch != parent?.branch { words.append("branch \(branch)") }
        if node.isOptional, !(parent?.isOptional ?? false) { words.append("optional") }
        return words.isEmpty ? "" : "  " + words.joined(separator: ", ")
    }

}

extension String {
    fileprivate var trimmedEnd: String { String(reversed().drop { $0 == " " }.reversed()) }
}
