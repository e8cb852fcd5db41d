public import MediaGraph

/// The result of reading a graph file: the readable part of the document, and all problems.
public struct GraphReading: Sendable {
    /// The size of the largest accepted file, in bytes.
    public static let largestFile = FileText.largestFile

    /// Complete only if there are no problems.
    public var document: GraphDocument
    /// In the order of the file. Empty if the graph can be planned and run.
    public var problems: [GraphFileProblem]
    /// The file's text, if it is valid UTF-8.
    let text: String?
    /// The lengths of secret values, by place.
    let secrets: [GraphPlace: Int]

    /// Reads YAML or JSON.
    ///
    /// - Parameters:
    ///   - bytes: the contents of the file. No input traps
    ///   - values: values of variables by name, which replace the file's defaults
    ///   - catalogue: the available kinds of nodes
    ///   - bound: the names of the program's bound functions. If given, unbound names are problems
    public init(
        _ bytes: some Sequence<UInt8>, values: [String: String] = [:], catalogue: any NodeCatalogue,
        bound: BoundNames? = nil
    ) {
        var reader = GraphReader(values: values, catalogue: catalogue, bound: bound)
        text = reader.read(Array(bytes))
        document = reader.document
        problems = reader.problems.sorted
        secrets = reader.secrets
    }
}

extension GraphDocument {
    /// The document of a valid file. Otherwise throws an error that lists all problems, like `GraphReading.report`.
    public init(
        _ bytes: some Sequence<UInt8>, path: String, values: [String: String] = [:], catalogue: any NodeCatalogue,
        bound: BoundNames? = nil
    ) throws(MediaError) {
        let reading = GraphReading(bytes, values: values, catalogue: catalogue, bound: bound)
        guard reading.problems.isEmpty else {
            let report = reading.report(path: path)
            throw MediaError(
                code: MediaError.Code.graphInvalid,
                message: "\(path) is not a valid graph:\n\(report.dropLast())")
        }
        self = reading.document
    }
}

/// Reads one file.
struct GraphReader {
    /// More steps are refused, because the cost of validation grows with their square.
    static let mostSteps = 1000

    let catalogue: any NodeCatalogue
    private let bound: BoundNames?
    var problems = ProblemList()
    var variables: Variables
    /// Nodes and links in the order of the file, with ports still open. The places of each link have the same index.
    var nodes: [Node] = []
    var links: [FoundLink] = []
    var places = GraphPlaces()
    /// The place of the `from` that names a link's source, if one does.
    private var sources: [Link: GraphPlace] = [:]
    var steps = 0
    /// Nodes next to an unreadable step, whose links are unknown.
    var besideBroken: Set<String> = []
    /// Names that unreadable steps may have.
    var lostNames: Set<String> = []
    /// By node name and setting: the place of the setting's name. `places` has that of its value.
    var settingNames: [String: [String: GraphPlace]] = [:]
    /// Names of more than one node.
    var sharedNames: Set<String> = []
    /// Settings with an unreadable value, as `node.setting`. They are set, though the graph lacks them.
    var brokenSettings: Set<String> = []
    /// The lengths of secret values, by place.
    var secrets: [GraphPlace: Int] = [:]
    private(set) var document = GraphDocument(graph: MediaGraph())

    struct FoundLink {
        var from: FoundPort
        var to: FoundPort
        var place: GraphPlace
    }

    /// A node as written, with or without its port.
    struct FoundPort {
        var text: String
        /// The place of a `from` or `to`.
        var place: GraphPlace?
    }

    init(values: [String: String], catalogue: any NodeCatalogue, bound: BoundNames?) {
        self.catalogue = catalogue
        self.bound = bound
        variables = Variables(given: values)
    }

    mutating func read(_ bytes: [UInt8]) -> String? {
        guard let text = FileText.decode(bytes, &problems) else { return nil }
        guard let tree = TreeReader.read(text, &problems) else {
            if problems.problems.isEmpty { problems.add(nil, "The file is empty. A graph needs \"chains\".") }
            return text
        }
        readTop(tree)
        return text
    }

    private mutating func readTop(_ tree: Tree) {
        let demand = "A graph file must be a map with the key \"chains\""
        guard let entries = problems.map(tree, demand, accepted: TopKey.all) else { return }
        var chains: Tree?
        for entry in entries {
            switch entry.key.text {
            case TopKey.description: readDescription(entry.value)
            case TopKey.variables: variables.declare(entry.value, &problems)
            case TopKey.chains: chains = entry.value
            // JSON files refer editors to their schema with it.
            case TopKey.schema: break
            default:
                problems.addUnknown(
                    "A graph file has no key", entry.key.text, at: entry.key.place, accepted: TopKey.all)
            }
        }
        if let chains {
            readChains(chains)
        } else {
            problems.add(tree.place, "The file has no \"chains\". Add lists of nodes, each feeding the next.")
        }
        variables.finish(&problems)
        document.variables = variables.listed
        finishGraph()
    }

    /// A scalar with its variables filled in. Nil, with a reported problem, if that fails.
    mutating func filled(_ tree: Tree, _ demand: String) -> Tree.Scalar? {
        problems.scalar(tree, demand).flatMap { variables.fillIn($0, &problems) }
    }

    private mutating func readDescription(_ tree: Tree) {
        guard let filled = filled(tree, "\"description\" must be text") else { return }
        let lines = filled.text.split(separator: "\n", omittingEmptySubsequences: false)
        let text = lines.reversed().drop { $0.isEmpty }.reversed().joined(separator: "\n")
        document.description = text.isEmpty ? nil : text
    }

    private mutating func readChains(_ tree: Tree) {
        guard let chains = problems.list(tree, "\"chains\" must be a list of chains") else { return }
        if chains.isEmpty { problems.add(tree.place, "\"chains\" is empty, so the graph has no nodes.") }
        for chain in chains {
            let hint = " Begin its first step with two dashes: \"- - camera\"."
            guard let steps = problems.list(chain, "A chain must be a list", hint: hint) else { continue }
            if steps.isEmpty { problems.add(chain.place, "The chain has no steps.") }
            readSteps(steps)
        }
    }

    // MARK: The graph

    /// Settles ports, validates, and finds the place of each problem.
    private mutating func finishGraph() {
        guard steps <= Self.mostSteps else {
            problems.add(nil, "The file has \(steps) steps; the limit is \(Self.mostSteps).")
            return
        }
        let names = Set(nodes.map(\.name))
        let open = links.map { found in
            Link(from: reference(found.from, names), to: reference(found.to, names))
        }
        let graph = MediaGraph(nodes: nodes, links: open).settled(with: catalogue)
        for (link, found) in zip(graph.links, links) where places.links[link] == nil {
            places.links[link] = found.place
            sources[link] = found.from.place
        }
        document.graph = graph
        document.places = places
        guard !nodes.isEmpty else { return }
        for problem in graph.validate(with: catalogue, bound: bound) {
            guard !isConsequence(problem) else { continue }
            // If two links feed one input, the later one is reported.
            let last = problem.kind == .inputTaken ? graph.links.lastIndex { $0 == problem.link } : nil
            problems.add(
                last.map { links[$0].place } ?? place(of: problem), sentence(problem), accepted: problem.accepted)
        }
    }

    private func reference(_ port: FoundPort, _ names: Set<String>) -> PortReference {
        guard !names.contains(port.text), let dot = port.text.lastIndex(of: ".") else {
            return PortReference(node: port.text, port: "")
        }
        return PortReference(
            node: String(port.text[..<dot]), port: String(port.text[port.text.index(after: dot)...]))
    }

    /// Whether a problem only follows from a reported one.
    private func isConsequence(_ problem: GraphProblem) -> Bool {
        switch problem.kind {
        case .duplicateName, .empty: true
        // It is open which of the nodes a link means.
        case _ where !sharedNames.isEmpty && concernsLinks(of: sharedNames, problem): true
        case .unconnected: problem.node.map(besideBroken.contains) ?? false
        case .unknownNode: problem.node.map(lostNames.contains) ?? false
        case .missingSetting: brokenSettings.contains("\(problem.node ?? "").\(problem.setting ?? "")")
        default: false
        }
    }

    private func concernsLinks(of names: Set<String>, _ problem: GraphProblem) -> Bool {
        if let link = problem.link { return !names.isDisjoint(with: [link.from.node, link.to.node]) }
        return [.unconnected, .cycle].contains(problem.kind) && !names.isDisjoint(with: problem.nodes)
    }

    private func place(of problem: GraphProblem) -> GraphPlace? {
        if let link = problem.link, let place = places.links[link] {
            let isOfSource = [.unknownNode, .unknownPort].contains(problem.kind) && problem.node == link.from.node
            return isOfSource ? sources[link] ?? place : place
        }
        if problem.kind == .cycle { return placesOnCircle(problem).min() }
        guard let node = problem.node else { return nil }
        if let setting = problem.setting, problem.kind == .unknownSetting { return settingNames[node]?[setting] }
        if let setting = problem.setting, let place = places.settings[node]?[setting] { return place }
        return places.nodes[node]
    }

    private func sentence(_ problem: GraphProblem) -> String {
        guard problem.kind == .cycle else { return problem.message }
        let lines = placesOnCircle(problem).map(\.line).sorted().map(String.init)
        return lines.count > 1
            ? "\(problem.message.dropLast()) (lines \(lines.joined(separator: ", ")))." : problem.message
    }

    private func placesOnCircle(_ problem: GraphProblem) -> [GraphPlace] {
        problem.nodes.compactMap { places.nodes[$0] }
    }
}
