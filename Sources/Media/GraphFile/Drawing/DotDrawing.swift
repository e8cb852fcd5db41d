internal import MediaGraph

extension GraphDrawing {
    /// The graph in the Graphviz language, for its program `dot`.
    public var dot: String { DotDrawing(drawing: self).text }
}

extension NodeKind? {
    /// Colours by group: light boxes with a darker frame. Readable in grey too, because each box names its group.
    fileprivate var palette: (fill: String, frame: String, word: String) {
        switch self?.group {
        case .capturer: ("#E6F4EA", "#2E7D4F", "capturer")
        case .processor: ("#E8F0FC", "#2F5DA8", "processor")
        case .codec: ("#FFF3DF", "#A86400", "codec")
        case .renderer: ("#F3EAFB", "#6B3FA0", "renderer")
        case .recorder: ("#FCE8E6", "#A8322B", "recorder")
        case .transport: ("#E0F3F5", "#0B6E7A", self?.name.hasPrefix("rtp") == true ? "RTP" : "room")
        case .element: ("#F1F3F4", "#4D5358", "GStreamer element")
        case nil: ("#FFFFFF", "#4D5358", "unknown")
        }
    }
}

private struct DotDrawing {
    private static let ink = "#202124"
    private static let faint = "#5F6368"
    private static let video = "#3C4A66"
    private static let audio = "#8A3A6B"
    /// Longest line of the title.
    private static let titleWidth = 90

    let drawing: GraphDrawing

    private var graph: MediaGraph { drawing.graph }

    var text: String {
        var lines = [
            "digraph graph_of_media {",
            "  graph [rankdir=LR, bgcolor=white, pad=0.3, nodesep=0.35, ranksep=0.6, fontname=\"Helvetica,Arial,sans-serif\", "
                + "fontsize=12, fontcolor=\"\(Self.faint)\"]",
            "  node [shape=plain, fontname=\"Helvetica,Arial,sans-serif\", fontsize=12, fontcolor=\"\(Self.ink)\"]",
            "  edge [fontname=\"Helvetica,Arial,sans-serif\", fontsize=10, arrowsize=0.7]",
        ]
        if let title = drawing.title {
            lines.append("  labelloc=t; labeljust=l")
            lines.append("  label=<\(heading(title))>")
        }
        lines += branches(of: graph.nodes)
        lines += graph.links.map { "  \(edge($0))" }
        return lines.joined(separator: "\n") + "\n}\n"
    }

    private func heading(_ title: String) -> String {
        let rows = title.split(whereSeparator: \.isWhitespace).map(String.init)
            .wrapped(separator: " ", width: Self.titleWidth)
        let lines = rows.map { "<TR><TD ALIGN=\"LEFT\">\($0.escaped)</TD></TR>" }.joined()
        return "<FONT POINT-SIZE=\"14\" COLOR=\"\(Self.ink)\"><TABLE BORDER=\"0\" CELLSPACING=\"0\" CELLPADDING=\"3\">"
            + "\(lines)</TABLE></FONT>"
    }

    /// The nodes. Those of a branch are in a frame with its name.
    private func branches(of nodes: [Node]) -> [String] {
        var lines: [String] = []
        for node in nodes where node.branch == nil { lines.append("  \(self.node(node))") }
        var seen: Set<String> = []
        for branch in nodes.compactMap(\.branch) where seen.insert(branch).inserted {
            let members = nodes.filter { $0.branch == branch }
            let isOptional = members.allSatisfy(\.isOptional)
            lines.append("  subgraph \("cluster \(branch)".dotName) {")
            lines.append(
                "    label=<<FONT POINT-SIZE=\"10\">branch <B>\(branch.escaped)</B>\(isOptional ? ", optional" : "")</FONT>>; labeljust=l; margin=12; "
                    + "color=\"#9AA0A6\"; style=\"rounded\(isOptional ? ",dashed" : "")\"")
            lines += members.map { "    \(node($0))" }
            lines.append("  }")
        }
        return lines
    }

    private func node(_ node: Node) -> String {
        let kind = drawing.kind(of: node)
        let palette = kind.palette
        let caption = drawing.caption(of: node)
        var rows = [
            "<TR><TD ALIGN=\"LEFT\"><FONT POINT-SIZE=\"8\" COLOR=\"\(palette.frame)\">\(palette.word.uppercased().escaped)"
                + "</FONT></TD></TR>",
            "<TR><TD ALIGN=\"LEFT\"><B>\(caption.title.escaped)</B></TD></TR>",
        ]
        rows += ([caption.kind].compactMap { $0 } + caption.details).map {
            "<TR><TD ALIGN=\"LEFT\"><FONT POINT-SIZE=\"10\" COLOR=\"\(Self.faint)\">\($0.escaped)</FONT></TD></TR>"
        }
        let text = "<TABLE BORDER=\"0\" CELLBORDER=\"0\" CELLSPACING=\"0\" CELLPADDING=\"1\">\(rows.joined())</TABLE>"
        let inputs = column(ports(of: node, isOutput: false), "LEFT")
        let outputs = column(ports(of: node, isOutput: true), "RIGHT")
        let style = node.isOptional ? "ROUNDED,DASHED" : "ROUNDED"
        return "\(node.name.dotName) [tooltip=\(caption.title.dotName), label=<<TABLE BORDER=\"1\" STYLE=\"\(style)\" "
            + "COLOR=\"\(palette.frame)\" BGCOLOR=\"\(palette.fill)\" CELLBORDER=\"0\" CELLSPACING=\"0\" CELLPADDING=\"0\">"
            + "<TR>\(inputs)<TD CELLPADDING=\"6\">\(text)</TD>\(outputs)</TR></TABLE>>]"
    }

    /// A column with the ports' names.
    private func column(_ names: [String], _ side: String) -> String {
        if names.isEmpty { return "" }
        let rows = names.map {
            "<TR><TD PORT=\($0.dotName.attribute) ALIGN=\"\(side)\"><FONT POINT-SIZE=\"9\" COLOR=\"\(Self.faint)\">\($0.escaped)"
                + "</FONT></TD></TR>"
        }
        return
            "<TD><TABLE BORDER=\"0\" CELLBORDER=\"0\" CELLSPACING=\"0\" CELLPADDING=\"5\">\(rows.joined())</TABLE></TD>"
    }

    /// The linked ports in the order of the contract; numbered ports by number. Empty if the kind has only one.
    private func ports(of node: Node, isOutput: Bool) -> [String] {
        let kind = drawing.kind(of: node)
        let contract = (isOutput ? kind?.outputs : kind?.inputs) ?? []
        let used =
            isOutput ? graph.links(outOf: node.name).map(\.from.port) : graph.links(into: node.name).map(\.to.port)
        let names = Set(used).subtracting([""]).sorted { left, right in
            let places = [left, right].map { name in contract.firstIndex { $0.matches(name) } ?? contract.count }
            return (places[0], left.count, left) < (places[1], right.count, right)
        }
        return names.count == 1 && contract.count == 1 && !contract[0].isRepeated ? [] : names
    }

    private func edge(_ link: Link) -> String {
        let media = graph.media(on: link, drawing.catalogue)
        let colour = media?.isAudio == true ? Self.audio : Self.video
        var attributes = ["color=\"\(colour)\"", "fontcolor=\"\(colour)\""]
        if let words = drawing.words(for: link) { attributes.append("label=<\(words.escaped)>") }
        if media?.isEncoded == true { attributes.append("penwidth=2") }
        if graph.node(link.to.node)?.isOptional == true { attributes.append("style=dashed") }
        return
            "\(end(link.from, isOutput: true)) -> \(end(link.to, isOutput: false)) [\(attributes.joined(separator: ", "))]"
    }

    /// The node, with its port if the port is drawn.
    private func end(_ port: PortReference, isOutput: Bool) -> String {
        let side = isOutput ? "e" : "w"
        guard let node = graph.node(port.node) else { return "\(port.node.dotName):\(side)" }
        let isDrawn = ports(of: node, isOutput: isOutput).contains(port.port)
        return isDrawn ? "\(port.node.dotName):\(port.port.dotName):\(side)" : "\(port.node.dotName):\(side)"
    }
}

extension String {
    /// A quoted name for Graphviz.
    fileprivate var dotName: String { "\"" + escaping(["\"": "\\\"", "\\": "\\\\"]) + "\"" }

    /// A quoted name inside a label's attribute.
    fileprivate var attribute: String { "\"" + dropFirst().dropLast().description.escaped + "\"" }

    /// The text escaped for a label, which is HTML.
    fileprivate var escaped: String { escaping(["&": "&amp;", "<": "&lt;", ">": "&gt;", "\"": "&quot;"]) }

    private func escaping(_ escapes: [Unicode.Scalar: String]) -> String {
        unicodeScalars.map { scalar in
            escapes[scalar] ?? (scalar.isYAMLPrintable && !scalar.isYAMLBreak ? String(scalar) : "?")
        }.joined()
    }
}
