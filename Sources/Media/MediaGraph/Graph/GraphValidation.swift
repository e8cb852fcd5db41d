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
    /// One sentence.
    public let message: String

    public init(_ kind: Kind, node: String? = nil, _ message: String) {
        self.kind = kind
        self.node = node
        self.message = message
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
            if let reason = kinds.reasonForLack(of: node.kind) {
                return [GraphProblem(.unknownKind, node: node.name, "\"\(node.name)\": \(reason)")]
            }
            let hint =
                nearest(to: node.kind, among: kinds.kinds.map(\.name)).map { "; did you mean \"\($0)\"?" } ?? "."
            return [
                GraphProblem(
                    .unknownKind, node: node.name, "\"\(node.name)\" is of the unknown kind \"\(node.kind)\"\(hint)")
            ]
        }
        var problems: [GraphProblem] = []
        for (name, value) in node.settings.sorted(by: { $0.key < $1.key }) {
            guard let contract = kind.setting(name) else {
                let hint = nearest(to: name, among: kind.settings.map(\.name)).map { "; did you mean \"\($0)\"?" }
                problems.append(
                    GraphProblem(
                        .unknownSetting, node: node.name,
                        "\"\(node.name)\" (\(kind.name)) has no setting \"\(name)\"\(hint ?? ".")"))
                continue
            }
            if let complaint = contract.complaint(about: value) {
                problems.append(
                    GraphProblem(.badSetting, node: node.name, "\"\(node.name)\": \(name) \(complaint)."))
            }
        }
        for contract in kind.settings where contract.isRequired && node.settings[contract.name] == nil {
            problems.append(
                GraphProblem(
                    .missingSetting, node: node.name,
                    "\"\(node.name)\" (\(kind.name)) needs the setting \"\(contract.name)\"."))
        }
        return problems
    }

    private func problemsOfLinks(_ kinds: any NodeCatalogue) -> [GraphProblem] {
        var problems: [GraphProblem] = []
        var taken: Set<PortReference> = []
        for link in links {
            let output = port(link.from, isOutput: true, kinds, &problems)
            let input = port(link.to, isOutput: false, kinds, &problems)
            if let output, let input, !output.kinds.canBecome(input.kinds) {
                problems.append(
                    GraphProblem(
                        .kindsDoNotMatch, node: link.to.node,
                        "\(link.from) gives \(output.kinds.listed) but \(link.to) takes \(input.kinds.listed)."))
            }
            if !taken.insert(link.to).inserted {
                problems.append(GraphProblem(.inputTaken, node: link.to.node, "\(link.to) has more than one source."))
            }
        }
        return problems
    }

    /// Finds a port, or says why it cannot be found. Nodes of unknown kinds are reported elsewhere.
    private func port(
        _ reference: PortReference, isOutput: Bool, _ kinds: any NodeCatalogue, _ problems: inout [GraphProblem]
    ) -> Port? {
        guard let node = node(reference.node) else {
            let hint = nearest(to: reference.node, among: nodes.map(\.name)).map { "; did you mean \"\($0)\"?" }
            problems.append(
                GraphProblem(
                    .unknownNode, node: reference.node, "There is no node \"\(reference.node)\"\(hint ?? ".")"))
            return nil
        }
        guard let kind = kinds.kind(named: node.kind) else { return nil }
        let ports = isOutput ? kind.outputs : kind.inputs
        if let port = ports.first(where: { $0.matches(reference.port) }) { return port }
        let side = isOutput ? "output" : "input"
        let names = ports.map { $0.isRepeated ? "\($0.name)1, \($0.name)2 and so on" : $0.name }
        let others = ports.isEmpty ? "it has none" : "it has " + names.joined(separator: ", ")
        problems.append(
            GraphProblem(
                .unknownPort, node: node.name,
                "\"\(node.name)\" (\(kind.name)) has no \(side) \"\(reference.port)\": \(others)."))
        return nil
    }

    private func problemsOfUnconnectedPorts(_ kinds: any NodeCatalogue) -> [GraphProblem] {
        nodes.flatMap { node in
            guard let kind = kinds.kind(named: node.kind) else { return [GraphProblem]() }
            let inputs = kind.inputs.filter { port in
                port.isRequired && !links.contains { $0.to.node == node.name && port.matches($0.to.port) }
            }
            let outputs = kind.outputs.filter { port in
                port.isRequired && !links.contains { $0.from.node == node.name && port.matches($0.from.port) }
            }
            return (inputs + outputs).map {
                GraphProblem(.unconnected, node: node.name, "\(node.name).\($0.name) is not connected.")
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
        return [GraphProblem(.cycle, "These nodes feed one another in a circle: \(left.listed).")]
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
                let hint = nearest(to: name, among: Array(needed)).map { "; did you mean \"\($0)\"?" } ?? "."
                problems.append(
                    GraphProblem(
                        .unusedCode, node: name,
                        "A \(binding.rawValue) function is bound to \"\(name)\", which no node is named\(hint)"))
            }
        }
        return problems
    }
}

extension SettingContract {
    /// What is wrong with a value, as the end of a sentence; nil when it fits. A whole number may be an integer.
    func complaint(about value: SettingValue) -> String? {
        switch (domain, value) {
        case (.flag, .flag), (.text, .text):
            return nil
        case (.integer(let range), .integer(let number)):
            return range.contains(number)
                ? nil : "is \(number), outside \(range.lowerBound) to \(range.upperBound)\(suffix)"
        case (.number(let range), .integer(let number)):
            return complaint(about: Double(number), range)
        case (.number(let range), .number(let number)):
            return complaint(about: number, range)
        case (.choice(let choices), .text(let text)):
            return choices.contains(text)
                ? nil : "is \"\(text)\", not one of \(choices.joined(separator: ", "))"
        default:
            return "is \(value) where \(domain.noun) is needed"
        }
    }

    private func complaint(about number: Double, _ range: ClosedRange<Double>) -> String? {
        range.contains(number)
            ? nil : "is \(number), outside \(range.lowerBound) to \(range.upperBound)\(suffix)"
    }

    private var suffix: String { unit.map { " \($0)" } ?? "" }
}

extension SettingContract.Domain {
    fileprivate var noun: String {
        switch self {
        case .flag: "true or false"
        case .integer: "a whole number"
        case .number: "a number"
        case .text: "text"
        case .choice(let choices): "one of \(choices.joined(separator: ", "))"
        }
    }
}

extension Set<MediaKind> {
    fileprivate var listed: String { map(\.rawValue).sorted().joined(separator: " or ") }
}

extension Set<String> {
    fileprivate var listed: String { sorted().joined(separator: ", ") }
}

/// The candidate that the fewest edits lead to, when they are few enough for a typing mistake.
private func nearest(to word: String, among candidates: [String]) -> String? {
    let scored = candidates.map { (name: $0, edits: edits(from: word, to: $0)) }
    guard let best = scored.min(by: { $0.edits < $1.edits }) else { return nil }
    return best.edits <= max(2, word.count / 3) ? best.name : nil
}

/// Levenshtein distance.
private func edits(from left: String, to right: String) -> Int {
    let target = Array(right)
    var row = Array(0...target.count)
    for (index, character) in left.enumerated() {
        var diagonal = row[0]
        row[0] = index + 1
        for column in target.indices {
            let substituted = diagonal + (character == target[column] ? 0 : 1)
            diagonal = row[column + 1]
            row[column + 1] = min(substituted, diagonal + 1, row[column] + 1)
        }
    }
    return row[target.count]
}
