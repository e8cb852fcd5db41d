public import MediaGraph

/// What came of reading a graph file: as much of the document as could be made out, and everything that is wrong with it.
public struct GraphReading: Sendable {
    /// Bytes of the largest file that is read; a larger one is told to be too large.
    public static let largestFile = FileText.largestFile

    /// Complete only when there is no problem.
    public var document: GraphDocument
    /// In the order of the file; empty when the graph can be planned and run.
    public var problems: [GraphFileProblem]
    /// The file's text, where it is one.
    let text: String?
    /// How long values are that nobody else is to read, by where they stand.
    let secrets: [GraphPlace: Int]

    /// Reads YAML or JSON.
    ///
    /// - Parameters:
    ///   - bytes: the file as it is; nothing that stands in it traps.
    ///   - values: of variables, by name, in place of the file's defaults.
    ///   - catalogue: the kinds of nodes that the graph may be made of.
    ///   - bound: the names under which the program has bound functions; with it, names that lack one are problems.
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

    public init(
        text: String, values: [String: String] = [:], catalogue: any NodeCatalogue, bound: BoundNames? = nil
    ) {
        self.init(text.utf8, values: values, catalogue: catalogue, bound: bound)
    }
}

extension GraphDocument {
    /// The document of a file without problems; else an error that lists them all, as `GraphReading.report` does.
    public init(
        _ bytes: some Sequence<UInt8>, path: String, values: [String: String] = [:], catalogue: any NodeCatalogue,
        bound: BoundNames? = nil
    ) throws(MediaError) {
        let reading = GraphReading(bytes, values: values, catalogue: catalogue, bound: bound)
        guard reading.problems.isEmpty else {
            let report = reading.report(path: path)
            throw MediaError(
                code: MediaError.Code.graphInvalid,
                message: "\(path) cannot be run as it is:\n\(report.dropLast())")
        }
        self = reading.document
    }
}

/// Reads one file.
struct GraphReader {
    /// More are refused: the work of validation grows with the square of them.
    static let mostSteps = 1000

    let catalogue: any NodeCatalogue
    private let bound: BoundNames?
    var problems = ProblemList()
    var variables: Variables
    /// Nodes and links as they are found, ports still open; the places of each link stand at the same index.
    var nodes: [Node] = []
    var links: [FoundLink] = []
    var places = GraphPlaces()
    var steps = 0
    /// Nodes beside a step that could not be read, of which it is not known whether they are connected.
    var besideBroken: Set<String> = []
    /// By node name and setting: the setting's own name, where `places` has its value.
    var settingNames: [String: [String: GraphPlace]] = [:]
    /// Names that more than one node has.
    var sharedNames: Set<String> = []
    /// Settings whose value could not be read, as `node.setting`: they are given, though the graph lacks them.
    var brokenSettings: Set<String> = []
    /// How long values are that nobody else is to read, by where they stand.
    var secrets: [GraphPlace: Int] = [:]
    private(set) var document = GraphDocument(graph: MediaGraph())

    struct FoundLink {
        var from: FoundPort
        var to: FoundPort
        var place: GraphPlace
    }

    /// A node as it is written, with its port or without.
    struct FoundPort {
        var text: String
        /// Whether `text` is a node's own name and holds no port.
        var isNode: Bool
    }

    init(values: [String: String], catalogue: any NodeCatalogue, bound: BoundNames?) {
        self.catalogue = catalogue
        self.bound = bound
        variables = Variables(given: values)
    }

    mutating func read(_ bytes: [UInt8]) -> String? {
        guard let text = FileText.decode(bytes, &problems) else { return nil }
        guard let tree = TreeReader.read(text, &problems) else {
            if problems.problems.isEmpty { problems.add(nil, "The file is empty; a graph has \"chains\".") }
            return text
        }
        readTop(tree)
        return text
    }

    private mutating func readTop(_ tree: Tree) {
        guard case .map(let entries, let place) = tree else {
            problems.add(
                tree.place, "A graph file is a map with \"chains\" in it, not \(tree.noun).", accepted: TopKey.all)
            return
        }
        var chains: Tree?
        for entry in entries {
            switch entry.key.text {
            case TopKey.description: readDescription(entry.value)
            case TopKey.variables: variables.declare(entry.value, &problems)
            case TopKey.chains: chains = entry.value
            // By which JSON files tell editors their schema.
            case TopKey.schema: break
            default:
                problems.addUnknown("A graph file has no", entry.key.text, at: entry.key.place, accepted: TopKey.all)
            }
        }
        if let chains {
            readChains(chains)
        } else {
            problems.add(place, "The file has no \"chains\": lists of nodes, each feeding the next.")
        }
        variables.finish(&problems)
        document.variables = variables.listed
        finishGraph()
    }

    private mutating func readDescription(_ tree: Tree) {
        guard case .scalar(let scalar) = tree else {
            problems.add(tree.place, "\"description\" is a text, not \(tree.noun).")
            return
        }
        guard let filled = variables.fillIn(scalar, &problems) else { return }
        let lines = filled.text.split(separator: "\n", omittingEmptySubsequences: false)
        let text = lines.reversed().drop { $0.isEmpty }.reversed().joined(separator: "\n")
        document.description = text.isEmpty ? nil : text
    }

    private mutating func readChains(_ tree: Tree) {
        guard case .list(let chains, let place) = tree else {
            problems.add(tree.place, "\"chains\" is a list of chains, not \(tree.noun).")
            return
        }
        guard !chains.isEmpty else {
            problems.add(place, "\"chains\" holds no chain: the graph has no nodes.")
            return
        }
        for chain in chains {
            guard case .list(let steps, let place) = chain else {
                problems.add(
                    chain.place,
                    "A chain is a list of its own, not \(chain.noun): its first step has two dashes, \"- - camera\".")
                continue
            }
            if steps.isEmpty { problems.add(place, "The chain holds no step.") }
            readSteps(steps, in: .chain)
        }
    }

    // MARK: The graph

    /// Settles ports, validates, and tells where each problem stands.
    private mutating func finishGraph() {
        guard steps <= Self.mostSteps else {
            problems.add(nil, "The file has \(steps) steps; \(Self.mostSteps) are the most.")
            return
        }
        let names = Set(nodes.map(\.name))
        let open = links.map { found in
            Link(from: reference(found.from, names), to: reference(found.to, names))
        }
        let graph = MediaGraph(nodes: nodes, links: open).settled(with: catalogue)
        for (link, found) in zip(graph.links, links) where places.links[link] == nil {
            places.links[link] = found.place
        }
        document.graph = graph
        document.places = places
        guard !nodes.isEmpty else { return }
        for problem in graph.validate(with: catalogue, bound: bound) {
            guard !isConsequence(problem) else { continue }
            // Of two links into one input the later one is to blame.
            let last = problem.kind == .inputTaken ? graph.links.lastIndex { $0 == problem.link } : nil
            problems.add(
                last.map { links[$0].place } ?? place(of: problem), sentence(problem), accepted: problem.accepted)
        }
    }

    private func reference(_ port: FoundPort, _ names: Set<String>) -> PortReference {
        guard !port.isNode, !names.contains(port.text), let dot = port.text.lastIndex(of: ".") else {
            return PortReference(node: port.text, port: "")
        }
        return PortReference(
            node: String(port.text[..<dot]), port: String(port.text[port.text.index(after: dot)...]))
    }

    /// Whether a problem only follows from one that was told.
    private func isConsequence(_ problem: GraphProblem) -> Bool {
        switch problem.kind {
        case .duplicateName, .empty: true
        case .inputTaken: problem.node.map(sharedNames.contains) ?? false
        case .unconnected: problem.node.map(besideBroken.contains) ?? false
        case .missingSetting: brokenSettings.contains("\(problem.node ?? "").\(problem.setting ?? "")")
        default: false
        }
    }

    private func place(of problem: GraphProblem) -> GraphPlace? {
        if let link = problem.link, let place = places.links[link] { return place }
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
