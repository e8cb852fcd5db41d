/// One problem of a graph.
public struct GraphProblem: Sendable, Hashable, CustomStringConvertible {
    public enum Kind: String, Sendable, Hashable {
        case empty
        case duplicateName
        case unknownKind
        case unknownSetting
        case missingSetting
        case badSetting
        case unknownNode
        case unknownPort
        case kindsDoNotMatch
        case inputTaken
        case unconnected
        case cycle
        case fileConflict
        case unboundCode
        case unusedCode
    }

    public let kind: Kind
    /// The node with the problem; nil for a problem of the whole graph.
    public let node: String?
    /// All nodes with this problem: both nodes of a file conflict, all nodes of a cycle.
    public let nodes: [String]
    /// The setting with the problem; nil if the problem is elsewhere.
    public let setting: String?
    /// The link with the problem; nil if the problem is elsewhere.
    public let link: Link?
    /// One sentence.
    public let message: String
    /// The words that are accepted instead of the wrong one; empty if they cannot be listed.
    public let accepted: [String]

    public init(
        _ kind: Kind, node: String? = nil, setting: String? = nil, link: Link? = nil, _ message: String,
        accepted: [String] = [], nodes: [String]? = nil
    ) {
        self.kind = kind
        self.node = node
        self.nodes = nodes ?? node.map { [$0] } ?? []
        self.setting = setting
        self.link = link
        self.message = message
        self.accepted = accepted
    }

    public var description: String { message }
}

/// The names under which a program has bound functions.
public struct BoundNames: Sendable, Hashable {
    public var rtpOutputs: Set<String>
    public var frames: Set<String>
    public var audio: Set<String>

    public var frameFunctions: Set<String>

    public init(
        rtpOutputs: Set<String> = [], frames: Set<String> = [], audio: Set<String> = [],
        frameFunctions: Set<String> = []
    ) {
        self.rtpOutputs = rtpOutputs
        self.frames = frames
        self.audio = audio
        self.frameFunctions = frameFunctions
    }

    func names(for binding: CodeBinding) -> Set<String> {
        switch binding {
        case .rtpOutput: rtpOutputs
        case .frames: frames
        case .audio: audio
        case .frameFunction: frameFunctions
        }
    }
}

extension MediaGraph {
    /// Returns all problems of the graph; empty if it can run.
    ///
    /// - Parameters:
    ///   - kinds: the kinds that nodes may have.
    ///   - bound: the names of the program's functions. With them, the result includes nodes without a bound function,
    ///     and functions without a node. Nil checks neither.
    public func validate(
        with kinds: any NodeCatalogue, bound: BoundNames? = nil
    ) -> [GraphProblem] {
        settled(with: kinds).problems(kinds, bound)
    }

    private func problems(_ kinds: any NodeCatalogue, _ bound: BoundNames?) -> [GraphProblem] {
        guard !nodes.isEmpty else { return [GraphProblem(.empty, "The graph has no nodes.")] }
        var problems: [GraphProblem] = []
        var seen: Set<String> = []
        for node in nodes {
            if !seen.insert(node.name).inserted {
                problems.append(
                    GraphProblem(.duplicateName, node: node.name, "Two nodes are named \"\(node.name)\"."))
            }
            problems += problemsOfSettings(node, kinds)
        }
        problems += problemsOfLinks(kinds)
        problems += problemsOfUnconnectedPorts(kinds)
        problems += problemsOfCycles()
        problems += fileConflicts(kinds, identity: \.normalizedPath)
        if let bound { problems += problemsOfBindings(kinds, bound) }
        return problems
    }

    private func problemsOfSettings(_ node: Node, _ kinds: any NodeCatalogue) -> [GraphProblem] {
        guard let kind = kinds.kind(named: node.kind) else {
            // Optional nodes that this machine lacks are omitted, and the rest runs.
            if node.isOptional, kinds.isLacking(node.kind) { return [] }
            if let reason = kinds.reasonForLack(of: node.kind) {
                return [GraphProblem(.unknownKind, node: node.name, "\"\(node.name)\": \(reason)")]
            }
            let names = kinds.kinds.map(\.name)
            return [
                GraphProblem(
                    .unknownKind, node: node.name,
                    (node.name == node.kind
                        ? "There is no kind of node \"\(node.kind)\""
                        : "\"\(node.name)\" is of the unknown kind \"\(node.kind)\"")
                        + node.kind.suggestion(
                            among: names, else: ". A plugin's node needs --plugin PATH, also where the graph runs."),
                    accepted: names)
            ]
        }
        var problems: [GraphProblem] = []
        for (name, value) in node.settings.sorted(by: { $0.key < $1.key }) {
            guard let contract = kind.setting(name) else {
                let names = kind.settings.map(\.name)
                problems.append(
                    GraphProblem(
                        .unknownSetting, node: node.name, setting: name,
                        "\(node.shown) has no setting \"\(name)\"\(name.suggestion(among: names))",
                        accepted: names))
                continue
            }
            if let complaint = contract.problem(of: value) {
                problems.append(
                    GraphProblem(
                        .badSetting, node: node.name, setting: name,
                        "\"\(node.name)\": \(name) \(complaint)" + (complaint.hasSuffix("?") ? "" : ".")))
            }
            if let other = contract.excludedSettings.first(where: { node.settings[$0] != nil }) {
                problems.append(
                    GraphProblem(
                        .badSetting, node: node.name, setting: name,
                        "\"\(node.name)\" has both \(name) and \(other). Set one of them, or use two nodes."))
            }
        }
        for contract in kind.settings where contract.isRequired && node.settings[contract.name] == nil {
            problems.append(
                GraphProblem(
                    .missingSetting, node: node.name, setting: contract.name,
                    "\(node.shown) needs the setting \"\(contract.name)\"."))
        }
        return problems
    }

    private func problemsOfLinks(_ kinds: any NodeCatalogue) -> [GraphProblem] {
        var problems: [GraphProblem] = []
        var taken: Set<PortReference> = []
        for link in links {
            let output = port(of: link, isOutput: true, kinds, &problems)
            let input = port(of: link, isOutput: false, kinds, &problems)
            if let output, let input, !output.kinds.canBecome(input.kinds) {
                problems.append(
                    GraphProblem(
                        .kindsDoNotMatch, node: link.to.node, link: link,
                        "\(link.from) delivers \(output.kinds.listed), but \(link.to) accepts \(input.kinds.listed); "
                            + remedy(for: link, input, kinds)))
            }
            if !taken.insert(link.to).inserted {
                problems.append(
                    GraphProblem(
                        .inputTaken, node: link.to.node, link: link, "\(link.to) has more than one source."))
            }
        }
        return problems
    }

    /// The fix for a link between ports that do not match.
    private func remedy(for link: Link, _ input: Port, _ kinds: any NodeCatalogue) -> String {
        let source = node(link.from.node).flatMap { kinds.kind(named: $0.kind) }
        let other = source?.outputs.first { $0.kinds.canBecome(input.kinds) }
        return other.map { "link \(link.from.node).\($0.name) instead." } ?? "link a node that delivers that."
    }

    /// Returns a port, or nil after adding a problem. Nodes of unknown kinds are reported elsewhere.
    private func port(
        of link: Link, isOutput: Bool, _ kinds: any NodeCatalogue, _ problems: inout [GraphProblem]
    ) -> Port? {
        let reference = isOutput ? link.from : link.to
        guard let node = node(reference.node) else {
            let names = nodes.map(\.name)
            problems.append(
                GraphProblem(
                    .unknownNode, node: reference.node, link: link,
                    "There is no node \"\(reference.node)\"\(reference.node.suggestion(among: names))",
                    accepted: names))
            return nil
        }
        // An open port means that the kind at the other end is unknown, which is reported there.
        guard let kind = kinds.kind(named: node.kind), !reference.port.isEmpty else { return nil }
        let ports = isOutput ? kind.outputs : kind.inputs
        if let port = ports.first(where: { $0.matches(reference.port) }) { return port }
        let side = isOutput ? "output" : "input"
        let names = ports.map { $0.isRepeated ? "\($0.name)1, \($0.name)2 and so on" : $0.name }
        let message =
            if !ports.isEmpty {
                "\(node.shown) has no \(side) \"\(reference.port)\": it has \(names.joined(separator: ", "))."
            } else if isOutput {
                "Nothing can follow \(node.shown). Put it last in its chain, or in a tee."
            } else {
                "Nothing can feed \(node.shown). Put it first in its chain."
            }
        problems.append(GraphProblem(.unknownPort, node: node.name, link: link, message, accepted: names))
        return nil
    }

    private func problemsOfUnconnectedPorts(_ kinds: any NodeCatalogue) -> [GraphProblem] {
        let isMeantElsewhere = links.contains { node($0.to.node) == nil }
        return nodes.flatMap { node -> [GraphProblem] in
            guard let kind = kinds.kind(named: node.kind) else { return [] }
            var messages = kind.inputs.filter { port in
                port.isRequired && !links.contains { $0.to.node == node.name && $0.to.mayBe(port) }
            }.map { "Nothing feeds \(node.name).\($0.name). Link an output to it, or remove the node." }
            messages += kind.outputs.filter { port in
                port.isRequired && !links.contains { $0.from.node == node.name && $0.from.mayBe(port) }
            }.map { "Nothing reads \(node.name).\($0.name). Link it, or drop its media with a \"null\" node." }
            // An end without input does nothing, even if none of its inputs is required. A link may misspell its name.
            let isEnd = !isMeantElsewhere && !kind.inputs.isEmpty && kind.outputs.isEmpty && kind.group != .element
            if isEnd, !kind.inputs.contains(where: \.isRequired), links(into: node.name).isEmpty {
                let ports = kind.inputs.map { "\(node.name).\($0.name)" }.joined(separator: " or ")
                messages = ["Nothing feeds \(ports). Link an output to one of them, or remove the node."]
            }
            return messages.map { GraphProblem(.unconnected, node: node.name, $0) }
        }
    }

    /// Removes nodes without input until none is left, so that the remaining ones are on a cycle or downstream of one.
    /// Then removes those without output.
    private func problemsOfCycles() -> [GraphProblem] {
        var left = Set(nodes.map(\.name))
        var open = links
        for end in [\Link.to.node, \.from.node] {
            var before: Int
            repeat {
                before = left.count
                open.removeAll { !left.contains($0.from.node) || !left.contains($0.to.node) }
                left.formIntersection(open.map { $0[keyPath: end] })
            } while left.count < before
        }
        guard !left.isEmpty else { return [] }
        return [
            GraphProblem(
                .cycle, "Remove one of the links between these nodes, which form a cycle: \(left.listed).",
                nodes: left.sorted())
        ]
    }

    private func problemsOfBindings(_ kinds: any NodeCatalogue, _ bound: BoundNames) -> [GraphProblem] {
        var problems: [GraphProblem] = []
        for binding in CodeBinding.allCases {
            let needed = Set(nodes.filter { kinds.kind(named: $0.kind)?.binding == binding }.map(\.name))
            let given = bound.names(for: binding)
            for name in needed.subtracting(given).sorted() {
                problems.append(
                    GraphProblem(
                        .unboundCode, node: name, "\"\(name)\" needs a bound \(binding.rawValue) function."))
            }
            for name in given.subtracting(needed).sorted() {
                let names = needed.sorted()
                problems.append(
                    GraphProblem(
                        .unusedCode, node: name,
                        "A \(binding.rawValue) function is bound to \"\(name)\", but no node has this name"
                            + name.suggestion(among: names),
                        accepted: names))
            }
        }
        return problems
    }
}

extension Node {
    /// The name, followed by the kind if they differ.
    fileprivate var shown: String { name == kind ? "\"\(name)\"" : "\"\(name)\" (\(kind))" }
}

extension PortReference {
    /// Whether this names the port or is still open.
    fileprivate func mayBe(_ port: Port) -> Bool { self.port.isEmpty || port.matches(self.port) }
}

extension Set<MediaKind> {
    fileprivate var listed: String { map(\.words).sorted().joined(separator: " or ") }
}

extension Set<String> {
    fileprivate var listed: String { sorted().joined(separator: ", ") }
}
