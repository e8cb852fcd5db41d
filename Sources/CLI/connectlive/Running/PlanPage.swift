internal import MediaGraph

/// A plan as text.
struct PlanPage {
    private static let width = 100

    private let plan: GraphPlan
    private let title: String
    private let description: String?

    init(_ plan: GraphPlan, title: String, description: String?) {
        self.plan = plan
        self.title = title
        self.description = description
    }

    func lines(_ style: Style) -> [String] {
        var lines = [style.bold(title)]
        if let description { lines += Wrapping.lines(description, width: Self.width) }
        lines += section("Nodes", nodes, style)
        lines += section("Why", said(\.notes), style)
        lines += section("Rejected", said(\.passedOver), style)
        lines += section("Summary", summary, style)
        lines += section("Queues", queues, style)
        lines += section("Latency from capture", latency, style)
        lines += section("Left out", omitted, style)
        return lines
    }

    private func section(_ title: String, _ lines: [String], _ style: Style) -> [String] {
        lines.isEmpty ? [] : ["", style.bold(title)] + lines.map { "  \($0)" }
    }

    // MARK: Sections

    /// Each node with its inputs, elements and output formats.
    private var nodes: [String] {
        var table = Table(.left, .left, .left, .left)
        for node in plan.nodes {
            let feeding = plan.links(into: node.name).map { "\($0.link.from)" }
            let gives = node.formats.sorted { $0.key > $1.key }
                .filter { port, _ in !plan.links(outOf: PortReference(node: node.name, port: port)).isEmpty }
                .map { "\($0.value)" }.joined(separator: " and ")
            table.add(
                name(of: node), feeding.isEmpty ? "" : "<- \(feeding.joined(separator: ", "))", elements(of: node),
                gives.isEmpty ? "" : "-> \(gives)")
        }
        return table.lines()
    }

    private func name(of node: NodePlan) -> String {
        node.adapts == nil ? node.name : "+ \(node.name)"
    }

    /// The elements that do the work. Filters, queues and tees are omitted.
    private func elements(of node: NodePlan) -> String {
        var working: [String] = []
        if let device = node.device, device.waiting != nil { return "waits for \(device.name)" }
        for factory in ((node.device?.elements ?? []) + node.elements).map(\.factory)
        where !Self.orderly.contains(factory) && !working.contains(factory) {
            working.append(factory)
        }
        return working.isEmpty ? "-" : working.joined(separator: ", ")
    }

    private static let orderly: Set = ["appsrc", "capsfilter", "queue", "tee", "fakesink", "identity"]

    private func said(_ sentences: KeyPath<NodePlan, [String]>) -> [String] {
        let nodes = plan.nodes.filter { !$0[keyPath: sentences].isEmpty }
        let longest = nodes.map(\.name.count).max() ?? 0
        return nodes.flatMap { node -> [String] in
            let room = Self.width - longest - 4
            let text = node[keyPath: sentences].flatMap { Wrapping.lines($0, width: room) }
            return text.enumerated().map { index, line in
                (index == 0 ? padded(node.name, longest) : padded("", longest)) + "  " + line
            }
        }
    }

    private var summary: [String] {
        var table = Table(.left, .left)
        let inserted = plan.nodes.filter { $0.adapts != nil }
        table.add(
            "inserted", inserted.isEmpty ? "none" : inserted.map { words(for: $0) }.joined(separator: ", "))
        let encodes = plan.encoders.map { "\($0) for \(list(takers(of: $0)))" }
        table.add("encodes", encodes.isEmpty ? "none" : "\(encodes.count): \(encodes.joined(separator: "; "))")
        let untouched = plan.untouched.map { "\($0.link.from) to \($0.link.to) (\($0.format.encoding))" }
        if !untouched.isEmpty { table.add("passthrough", untouched.joined(separator: ", ")) }
        let copies = plan.nodes.filter { $0.copiesPerFrame > 0 }
        let copyWords = copies.map { "\($0.name) \(Figures.count($0.copiesPerFrame, "time"))" }
        table.add("copied", copyWords.isEmpty ? "none" : copyWords.joined(separator: ", ") + " per frame")
        table.add("elements", "\(plan.elementCount)")
        return table.lines()
    }

    private func words(for node: NodePlan) -> String {
        guard let output = node.adapts else { return node.name }
        return "\(node.name) (\(node.node.kind)) after \(output)"
    }

    /// The nodes directly downstream of a node.
    private func takers(of name: String) -> [String] {
        plan.links.filter { $0.link.from.node == name }.map(\.link.to.node)
    }

    private func list(_ names: [String]) -> String {
        guard let last = names.last, names.count > 1 else { return names.first ?? "none" }
        return "\(names.dropLast().joined(separator: ", ")) and \(last)"
    }

    private var queues: [String] {
        var table = Table(.left, .left, .right, .left)
        func add(_ name: String, _ queue: QueuePlan) {
            let limits = queue.limits
            let capacity =
                limits.frames.map { Figures.count($0, "frame") } ?? limits.seconds.map {
                    Figures.milliseconds($0 * 1000)
                } ?? limits.bytes.map(Figures.bytes) ?? "no limit"
            table.add(name, capacity, queue.mostBytes.map(Figures.bytes) ?? "", limits.rule.rawValue)
        }
        for node in plan.nodes {
            for link in plan.links(into: node.name) {
                if let queue = link.queue { add("before \(node.name)", queue) }
            }
            for queue in node.queues { add("in \(node.name)", queue) }
        }
        guard !table.isEmpty else { return [] }
        let known = plan.queuedBytes
        return table.lines()
            + (known > 0 ? ["at most \(Figures.bytes(known)) in queues of known size"] : [])
    }

    private var latency: [String] {
        var table = Table(.left, .right)
        for end in plan.ends { table.add(end, Figures.milliseconds(plan.latency(of: end) * 1000)) }
        return table.lines()
    }

    private var omitted: [String] {
        plan.omitted.flatMap { left in
            Wrapping.lines("\(left.node): \(left.reason) [\(left.code)]", width: Self.width)
        }
    }

    private func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}
