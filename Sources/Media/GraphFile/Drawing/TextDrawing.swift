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

    let drawing: GraphDrawing
    let layout: ChainLayout

    func lines(of chain: ChainLayout.Chain) -> [String] {
        guard let start = chain.start else { return lines(of: chain.items, inherited: nil) }
        return ["  from \(start)"] + flow(from: start.node, port: start.port) + arrow(chain.items.first)
            + lines(of: chain.items, inherited: nil)
    }

    /// The items from top to bottom. The first line of a box is its upper edge; the arrow points to the second.
    private func lines(of items: [ChainLayout.Item], inherited: Node?) -> [String] {
        var lines: [String] = []
        var current = inherited
        for (index, item) in items.enumerated() {
            let isLast = index == items.count - 1
            switch item {
            case .node(let index):
                if let current, !lines.isEmpty { lines += arrow(item, after: current) }
                let node = layout.graph.nodes[index]
                lines += box(node, isLast: isLast, besides: inherited ?? current)
                if !isLast { lines += flow(from: node.name, port: nil) }
                current = node
            case .tee(let items): lines += tee(items, of: current)
            case .join(let port): lines.append("   ╰─▶ \(name(port))")
            }
        }
        return lines
    }

    private func tee(_ items: [ChainLayout.Item], of node: Node?) -> [String] {
        if case .join(let port)? = items.first { return ["   ├─▶ \(name(port))"] }
        let block = lines(of: items, inherited: node)
        let isOptional = firstNode(items)?.isOptional ?? false
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

    private func arrow(_ item: ChainLayout.Item?, after node: Node? = nil) -> [String] {
        guard case .node? = item else { return [] }
        return ["   ▼"]
    }

    private func box(_ node: Node, isLast: Bool, besides parent: Node?) -> [String] {
        let caption = drawing.caption(of: node)
        let rows = [caption.title + (caption.kind.map { "  (\($0))" } ?? "")] + wrapped(caption.details)
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

    private func wrapped(_ details: [String]) -> [String] {
        var rows: [String] = []
        for detail in details {
            if let last = rows.last, last.count + detail.count + 2 <= Self.width {
                rows[rows.count - 1] = "\(last), \(detail)"
            } else {
                rows.append(detail)
            }
        }
        return rows
    }

    private func firstNode(_ items: [ChainLayout.Item]) -> Node? {
        ChainLayout.nodes(in: items).first.map { layout.graph.nodes[$0] }
    }

    private func name(_ port: PortReference) -> String { "\(port)" }
}

extension String {
    fileprivate var trimmedEnd: String { String(reversed().drop { $0 == " " }.reversed()) }
}
