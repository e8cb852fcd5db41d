/// One thing that is wrong with a graph.
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
        case unboundCode
        case unusedCode
    }

    public let kind: Kind
    /// The node that it is about, if it is about one.
    public let node: String?
    /// Every node that it is about.
    public let nodes: [String]
    /// The setting of the node that it is about, if it is about one.
    public let setting: String?
    /// The link that it is about, if it is about one.
    public let link: Link?
    /// One sentence.
    public let message: String
    /// The words that would be taken in place of the wrong one, where they are few enough to be listed.
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
    /// Everything that is wrong with the graph, all at once; empty when it can be run.
    ///
    /// With `bound`, functions that nodes need and that are not bound are reported too, and the other way round.
    public func validate(
        with kinds: any NodeCatalogue = NodeKind.builtIn, bound: BoundNames? = nil
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
        if let bound { problems += problemsOfBindings(kinds, bound) }
        return problems
    }

    private func problemsOfSettings(_ node: Node, _ kinds: any NodeCatalogue) -> [GraphProblem] {
        guard let kind = kinds.kind(named: node.kind) else {
            // What is optional and cannot be had here is left out, and the rest runs.
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
                        + hint(for: node.kind, among: names, else: "; a node of a plugin needs --plugin PATH."),
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
                        "\(node.shown) has no setting \"\(name)\"\(hint(for: name, among: names))",
                        accepted: names))
                continue
            }
            if let complaint = contract.complaint(about: value) {
                problems.append(
                    GraphProblem(
                        .badSetting, node: node.name, setting: name, "\"\(node.name)\": \(name) \(complaint)."))
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
                        "\(link.from) gives \(output.kinds.listed) but \(link.to) takes \(input.kinds.listed)."))
            }
            if !taken.insert(link.to).inserted {
                problems.append(
                    GraphProblem(
                        .inputTaken, node: link.to.node, link: link, "\(link.to) has more than one source."))
            }
        }
        return problems
    }

    /// Finds a port, or says why it cannot be found. Nodes of unknown kinds are reported elsewhere.
    private func port(
        of link: Link, isOutput: Bool, _ kinds: any NodeCatalogue, _ problems: inout [GraphProblem]
    ) -> Port? {
        let reference = isOutput ? link.from : link.to
        guard let node = node(reference.node) else {
            let names = nodes.map(\.name)
            problems.append(
                GraphProblem(
                    .unknownNode, node: reference.node, link: link,
                    "There is no node \"\(reference.node)\"\(hint(for: reference.node, among: names))",
                    accepted: names))
            return nil
        }
        // A port that could not be settled follows from what is unknown at the other end.
        guard let kind = kinds.kind(named: node.kind), !reference.port.isEmpty else { return nil }
        let ports = isOutput ? kind.outputs : kind.inputs
        if let port = ports.first(where: { $0.matches(reference.port) }) { return port }
        let side = isOutput ? "output" : "input"
        let names = ports.map { $0.isRepeated ? "\($0.name)1, \($0.name)2 and so on" : $0.name }
        let others = ports.isEmpty ? "it has none" : "it has " + names.joined(separator: ", ")
        problems.append(
            GraphProblem(
                .unknownPort, node: node.name, link: link,
                "\(node.shown) has no \(side) \"\(reference.port)\": \(others).", accepted: names))
        return nil
    }

    private func problemsOfUnconnectedPorts(_ kinds: any NodeCatalogue) -> [GraphProblem] {
        nodes.flatMap { node in
            guard let kind = kinds.kind(named: node.kind) else { return [GraphProblem]() }
            let inputs = kind.inputs.filter { port in
                port.isRequired && !links.contains { $0.to.node == node.name && $0.to.mayBe(port) }
            }
            let outputs = kind.outputs.filter { port in
                port.isRequired && !links.contains { $0.from.node == node.name && $0.from.mayBe(port) }
            }
            return inputs.map {
                GraphProblem(.unconnected, node: node.name, "Nothing feeds \(node.name).\($0.name).")
            }
                + outputs.map {
                    GraphProblem(
                        .unconnected, node: node.name,
                        "Nothing takes what \(node.name).\($0.name) gives; a \"null\" node would drop it.")
                }
        }
    }

    /// Takes away nodes that nothing feeds until none is left; what stays lies on a cycle or behind one.
    private func problemsOfCycles() -> [GraphProblem] {
        let names = Set(nodes.map(\.name))
        var left = names
        var open = links.filter { names.contains($0.from.node) && names.contains($0.to.node) }
        while true {
            let fed = Set(open.map(\.to.node))
            let free = left.subtracting(fed)
            if free.isEmpty { break }
            left.subtract(free)
            open.removeAll { free.contains($0.from.node) }
        }
        // What only hangs behind the cycle is not part of it.
        while true {
            let feeding = Set(open.map(\.from.node))
            let ends = left.subtracting(feeding)
            if ends.isEmpty { break }
            left.subtract(ends)
            open.removeAll { ends.contains($0.to.node) }
        }
        guard !left.isEmpty else { return [] }
        return [
            GraphProblem(.cycle, "These nodes feed one another in a circle: \(left.listed).", nodes: left.sorted())
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
                        .unboundCode, node: name, "\"\(name)\" has no \(binding.rawValue) function bound to it."))
            }
            for name in given.subtracting(needed).sorted() {
                let names = needed.sorted()
                problems.append(
                    GraphProblem(
                        .unusedCode, node: name,
                        "A \(binding.rawValue) function is bound to \"\(name)\", which no node is named"
                            + hint(for: name, among: names),
                        accepted: names))
            }
        }
        return problems
    }
}

extension SettingContract {
    /// What is wrong with a value, as the end of a sentence; nil when it fits. A whole number may be an integer.
    func complaint(about value: SettingValue) -> String? {
        if isSecret, value == .text(Self.hidden) {
            return "is \(Self.hidden), which only stands for a value that was not shown; give the value itself"
        }
        return switch (domain, value) {
        case (.flag, .flag), (.text, .text):
            nil
        case (.integer(let range), .integer(let number)):
            range.contains(number)
                ? nil : "is \(number), outside \(range.lowerBound) to \(range.upperBound)\(suffix)"
        case (.number(let range), .integer(let number)):
            complaint(about: Double(number), range)
        case (.number(let range), .number(let number)):
            complaint(about: number, range)
        case (.choice(let choices), .text(let text)):
            choices.contains(text)
                ? nil
                : "is \"\(text)\", not one of \(choices.joined(separator: ", "))"
                    + (text.nearest(among: choices).map { "; did you mean \"\($0)\"?" } ?? "")
        default:
            "is \(isSecret ? "another value" : "\(value)") where \(domain.noun)\(suffix) is needed"
        }
    }

    private func complaint(about number: Double, _ range: ClosedRange<Double>) -> String? {
        range.contains(number)
            ? nil : "is \(number.short), outside \(range.lowerBound.short) to \(range.upperBound.short)\(suffix)"
    }

    private var suffix: String { unit.map { " \($0)" } ?? "" }
}

extension SettingContract.Domain {
    fileprivate var noun: String {
        switch self {
        case .flag: "true or false"
        case .integer(let range): "a whole number from \(range.lowerBound) to \(range.upperBound)"
        case .number(let range): "a number from \(range.lowerBound.short) to \(range.upperBound.short)"
        case .text: "text"
        case .choice(let choices): "one of \(choices.joined(separator: ", "))"
        }
    }
}

extension Node {
    /// The name, and the kind where the name does not say it.
    fileprivate var shown: String { name == kind ? "\"\(name)\"" : "\"\(name)\" (\(kind))" }
}

extension PortReference {
    /// Whether this names the port, or is still open.
    fileprivate func mayBe(_ port: Port) -> Bool { self.port.isEmpty || port.matches(self.port) }
}

extension Set<MediaKind> {
    fileprivate var listed: String { map(\.rawValue).sorted().joined(separator: " or ") }
}

extension Set<String> {
    fileprivate var listed: String { sorted().joined(separator: ", ") }
}

/// The end of a sentence about a word that is none of `candidates`.
private func hint(for word: String, among candidates: [String], else end: String = ".") -> String {
    word.nearest(among: candidates).map { "; did you mean \"\($0)\"?" } ?? end
}

extension Double {
    /// A whole number without its ".0".
    fileprivate var short: String { Int(exactly: self).map { "\($0)" } ?? "\(self)" }
}
