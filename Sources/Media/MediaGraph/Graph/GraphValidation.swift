/// One problem of a graph.
public struct GraphProblem: Sendable, Hashable, CustomStringConvertible {
    /// The rule that a graph breaks.
    public enum Kind: String, Sendable, Hashable {
        /// The graph has no nodes.
        case empty
        /// Two nodes have one name.
        case duplicateName
        /// There is no kind of this name.
        case unknownKind
        /// The kind has no setting of this name.
        case unknownSetting
        /// A required setting is not given.
        case missingSetting
        /// The setting does not accept the value.
        case badSetting
        /// A link names a node that the graph lacks.
        case unknownNode
        /// A link names a port that the kind lacks.
        case unknownPort
        /// The output and the input of a link have no kind of media in common.
        case kindsDoNotMatch
        /// Two links lead to one input.
        case inputTaken
        /// A required port has no link.
        case unconnected
        /// Links lead back to where they began.
        case cycle
        /// Two nodes write one file, or one reads a file that another writes.
        case fileConflict
        /// A node calls a function that the program has not bound.
        case unboundCode
        /// The program binds a function that no node calls.
        case unusedCode
    }

    /// The rule that the graph breaks.
    public let kind: Kind
    /// The node with the problem; nil for a problem of the whole graph.
    public internal(set) var node: String?
    /// All nodes with this problem: both nodes of a file conflict, all nodes of a cycle.
    public internal(set) var nodes: [String] = []
    /// The setting with the problem; nil if the problem is elsewhere.
    public internal(set) var setting: String?
    /// The link with the problem; nil if the problem is elsewhere.
    public internal(set) var link: Link?
    /// One sentence.
    public let message: String
    /// The words that are accepted instead of the wrong one; empty if they cannot be listed.
    public internal(set) var accepted: [String] = []

    public var description: String { message }
}

/// The names under which a program has bound functions.
public typealias BoundNames = [CodeBinding: Set<String>]

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
        guard !nodes.isEmpty else { return [GraphProblem(kind: .empty, message: "The graph has no nodes.")] }
        var validation = Validation(graph: settled(with: kinds), kinds: kinds)
        validation.checkNodes()
        validation.checkLinks()
        validation.checkUnconnectedPorts()
        validation.checkCycles()
        validation.problems += validation.graph.fileConflicts(kinds, identity: \.normalizedPath)
        if let bound { validation.check(bound) }
        return validation.problems
    }
}

/// The checks of a graph, and the problems that they have found.
private struct Validation {
    let graph: MediaGraph
    let kinds: any NodeCatalogue
    var problems: [GraphProblem] = []

    private mutating func add(
        _ kind: GraphProblem.Kind, _ node: String, setting: String? = nil, link: Link? = nil, _ message: String,
        accepted: [String] = []
    ) {
        problems.append(
            GraphProblem(
                kind: kind, node: node, nodes: [node], setting: setting, link: link, message: message,
                accepted: accepted))
    }

    mutating func checkNodes() {
        var seen: Set<String> = []
        for node in graph.nodes {
            if !seen.insert(node.name).inserted {
                add(.duplicateName, node.name, "Two nodes are named \"\(node.name)\".")
            }
            if let kind = kinds.kind(named: node.kind) {
                checkSettings(of: node, kind)
            } else {
                addUnknownKind(of: node)
            }
        }
    }

    private mutating func addUnknownKind(of node: Node) {
        // Optional nodes that this machine lacks are omitted, and the rest runs.
        if node.isOptional, kinds.isLacking(node.kind) { return }
        if let reason = kinds.reasonForLack(of: node.kind) {
            return add(.unknownKind, node.name, "\"\(node.name)\": \(reason)")
        }
        let names = kinds.kinds.map(\.name)
        let start =
            node.name == node.kind
            ? "There is no kind of node \"\(node.kind)\"" : "\"\(node.name)\" is of the unknown kind \"\(node.kind)\""
        let end = node.kind.suggestion(
            among: names, else: ". A plugin's node needs its plugin, also where the graph runs.")
        add(.unknownKind, node.name, start + end, accepted: names)
    }

    private mutating func checkSettings(of node: Node, _ kind: NodeKind) {
        let unset = kind.settings.filter { $0.isRequired && node.settings[$0.name] == nil }
        let isOneUnknown = node.settings.keys.count { kind.setting($0) == nil } == 1
        // Settings that are set by another name.
        var meantSettings: Set<String> = []
        for (name, value) in node.settings.sorted(by: { $0.key < $1.key }) {
            guard let contract = kind.setting(name) else {
                let names = kind.settings.map(\.name)
                let isSubstitute = isOneUnknown && unset.count == 1 && unset[0].problem(of: value) == nil
                let isRate = ["framerate", "frame-rate"].contains(name) && names.contains("fps")
                let near = isRate ? "fps" : name.nearest(among: names)
                let meant =
                    near ?? kind.setting(describedBy: name, taking: value) ?? (isSubstitute ? unset[0].name : nil)
                if let meant { meantSettings.insert(meant) }
                let other =
                    if name == "size", names.contains("width"), names.contains("height") {
                        "; did you mean \"width\" and \"height\"?"
                    } else if names.contains("controls") {
                        ". A control of the driver is set by controls=\(name)=VALUE."
                    } else {
                        "."
                    }
                let end = meant.map { "; did you mean \"\($0)\"?" } ?? other
                let message = "\(node.shown) has no setting \"\(name)\"\(end)"
                add(.unknownSetting, node.name, setting: name, message, accepted: names)
                continue
            }
            if let complaint = contract.problem(of: value) {
                let end = complaint.hasSuffix("?") ? "" : "."
                add(.badSetting, node.name, setting: name, "\"\(node.name)\": \(name) \(complaint)\(end)")
            }
            if let other = contract.excludedSettings.first(where: { node.settings[$0] != nil }) {
                let message = "\"\(node.name)\" has both \(name) and \(other). Set one of them, or use two nodes."
                add(.badSetting, node.name, setting: name, message)
            }
        }
        for name in unset.map(\.name) where !meantSettings.contains(name) {
            add(.missingSetting, node.name, setting: name, "\(node.shown) needs the setting \"\(name)\".")
        }
    }

    mutating func checkLinks() {
        var taken: Set<PortReference> = []
        for link in graph.links {
            let output = port(of: link, isOutput: true)
            let input = port(of: link, isOutput: false)
            if let output, let input, !output.kinds.canBecome(input.kinds) {
                let message =
                    "\(link.from) delivers \(output.kinds.listed), but \(link.to) accepts \(input.kinds.listed); "
                add(.kindsDoNotMatch, link.to.node, link: link, message + remedy(for: link, input))
            }
            if !taken.insert(link.to).inserted {
                add(.inputTaken, link.to.node, link: link, "\(link.to) has more than one source.")
            }
        }
    }

    /// The fix for a link between ports that do not match.
    private func remedy(for link: Link, _ input: Port) -> String {
        let source = graph.node(link.from.node).flatMap { kinds.kind(named: $0.kind) }
        let other = source?.outputs.first { $0.kinds.canBecome(input.kinds) }
        return other.map { "link \(link.from.node).\($0.name) instead." } ?? "link a node that delivers that."
    }

    /// Returns a port, or nil after adding a problem. Nodes of unknown kinds are reported elsewhere.
    private mutating func port(of link: Link, isOutput: Bool) -> Port? {
        let reference = isOutput ? link.from : link.to
        guard let node = graph.node(reference.node) else {
            let names = graph.nodes.map(\.name)
            let message = "There is no node \"\(reference.node)\"\(reference.node.suggestion(among: names))"
            // Without the nodes that have no port of this side.
            let possible = graph.nodes.filter { node in
                kinds.kind(named: node.kind).map { !(isOutput ? $0.outputs : $0.inputs).isEmpty } ?? true
            }
            add(.unknownNode, reference.node, link: link, message, accepted: possible.map(\.name))
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
                "\(node.shown) has no output. Link to it, or put it into a tee: \"- tee: [\(node.kind)]\"."
            } else {
                "Nothing can feed \(node.shown). Link from it, not to it."
            }
        add(.unknownPort, node.name, link: link, message, accepted: names)
        return nil
    }

    mutating func checkUnconnectedPorts() {
        let isMeantElsewhere = graph.links.contains { graph.node($0.to.node) == nil }
        for node in graph.nodes {
            guard let kind = kinds.kind(named: node.kind) else { continue }
            let (sources, targets) = (graph.links(into: node.name), graph.links(outOf: node.name))
            let isFed = isMeant(node.name, asTarget: true)
            // An end without input does nothing, even if none of its inputs is required. A link may misspell its name.
            let isEnd = !isMeantElsewhere && !kind.inputs.isEmpty && kind.outputs.isEmpty && kind.group != .element
            if isEnd, !isFed, !kind.inputs.contains(where: \.isRequired), sources.isEmpty {
                let ports = kind.inputs.filter { !kind.isLayer($0) }.map { "\(node.name).\($0.name)" }
                    .joined(separator: " or ")
                add(
                    .unconnected, node.name,
                    "Nothing feeds \(ports). Link an output to one of them, or remove the node.")
            }
            for port in kind.inputs
            where port.isRequired && !isFed && !sources.contains(where: { $0.to.mayBe(port) }) {
                let name = "\(node.name).\(port.name)"
                add(.unconnected, node.name, "Nothing feeds \(name). Link an output to it, or remove the node.")
            }
            guard !isMeant(node.name, asTarget: false) else { continue }
            for port in kind.outputs where port.isRequired && !targets.contains(where: { $0.from.mayBe(port) }) {
                let name = "\(node.name).\(port.name)"
                add(.unconnected, node.name, "Nothing reads \(name). Link it, or drop its media with a \"null\" node.")
            }
        }
    }

    /// Whether a link that is a problem probably means a port of the node: it misspells the port, or the name of the node.
    private func isMeant(_ name: String, asTarget: Bool) -> Bool {
        problems.contains { problem in
            guard let link = problem.link else { return false }
            let end = asTarget ? link.to.node : link.from.node
            switch problem.kind {
            case .unknownPort: return problem.node == name && end == name
            case .unknownNode: return problem.node == end && end.nearest(among: graph.nodes.map(\.name)) == name
            default: return false
            }
        }
    }

    /// Removes nodes without input until none is left, so that the remaining ones are on a cycle or downstream of one.
    /// Then removes those without output.
    mutating func checkCycles() {
        var left = Set(graph.nodes.map(\.name))
        var open = graph.links
        for end in [\Link.to.node, \.from.node] {
            var before: Int
            repeat {
                before = left.count
                open.removeAll { !left.contains($0.from.node) || !left.contains($0.to.node) }
                left.formIntersection(open.map { $0[keyPath: end] })
            } while left.count < before
        }
        guard !left.isEmpty else { return }
        let names = left.sorted()
        let message =
            "Remove one of the links between these nodes, which form a cycle: \(names.joined(separator: ", "))."
        problems.append(GraphProblem(kind: .cycle, nodes: names, message: message))
    }

    mutating func check(_ bound: BoundNames) {
        for binding in CodeBinding.allCases {
            let given = bound[binding] ?? []
            let needed = Set(graph.nodes.filter { kinds.kind(named: $0.kind)?.binding == binding }.map(\.name))
            for name in needed.subtracting(given).sorted() {
                let message =
                    "\"\(name)\" needs a function of the program. Pass \(binding.handle) { … }.named(\"\(name)\")."
                add(.unboundCode, name, message)
            }
            for name in given.subtracting(needed).sorted() {
                let names = needed.sorted()
                let message = "A \(binding.rawValue) function is bound to \"\(name)\", but no node has this name"
                add(.unusedCode, name, message + name.suggestion(among: names), accepted: names)
            }
        }
    }
}

extension Node {
    /// The name, followed by the kind if they differ.
    fileprivate var shown: String { name == kind ? "\"\(name)\"" : "\"\(name)\" (\(kind))" }
}

extension NodeKind {
    /// The only setting whose description has all words of a name, such as `shape` for `aspect-ratio`.
    ///
    /// - Parameter value: the setting takes it, or another one is meant.
    fileprivate func setting(describedBy name: String, taking value: SettingValue) -> String? {
        let words = Set(name.lowercased().split { !$0.isLetter })
        guard !words.isEmpty else { return nil }
        let found = settings.filter { words.isSubset(of: $0.summary.lowercased().split { !$0.isLetter }) }
        return found.count == 1 && found[0].problem(of: value) == nil ? found[0].name : nil
    }
}

extension PortReference {
    /// Whether this names the port or is still open.
    fileprivate func mayBe(_ port: Port) -> Bool { self.port.isEmpty || port.matches(self.port) }
}

extension Set<MediaKind> {
    fileprivate var listed: String { map(\.words).sorted().joined(separator: " or ") }
}
