/// A catalogue with a plan for each of its kinds.
public protocol PlanningCatalogue: NodeCatalogue {
    /// Returns the plan of a node. Throws the reason why it cannot run: a missing device, element or file, or formats
    /// that do not match.
    func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan
    /// An input of a node, with the encodings that its settings and the machine allow: a recorder's depend on the type of
    /// its file, an encoder's on the installed element. `running` is the plan of the node if it runs: hardware that is in
    /// use is not opened again.
    func input(_ port: String, of node: Node, running: NodePlan?, on environment: any PlanEnvironment) -> Port?
    /// The output that has the format of an input, whatever that is. Nil for most nodes.
    func output(repeating input: String, of node: Node) -> String?
    /// In how many layers a node wants the video of its input `video`. 1 for most nodes.
    func videoLayers(of node: Node) -> Int
}

extension PlanningCatalogue {
    public func input(
        _ port: String, of node: Node, running: NodePlan?, on environment: any PlanEnvironment
    ) -> Port? {
        kind(named: node.kind)?.input(port)
    }

    public func output(repeating input: String, of node: Node) -> String? { nil }

    public func videoLayers(of node: Node) -> Int { 1 }
}

/// Turns a graph into a plan: collects the demand for each output from the ends of the graph, settles formats along the
/// links from its sources, inserts converters, encoders and decoders, and asks each node for its elements. A pure function
/// of the graph and the environment.
public struct Planner: Sendable {
    private let catalogue: any PlanningCatalogue
    private let environment: any PlanEnvironment

    /// A planner for the kinds of a catalogue and a machine.
    public init(_ catalogue: any PlanningCatalogue, _ environment: any PlanEnvironment) {
        self.catalogue = catalogue
        self.environment = environment
    }

    /// Returns the plan of a graph.
    ///
    /// - Parameters:
    ///   - bound: the names of the program's functions; nil does not check them.
    ///   - running: the plan that is running. Nodes that stay unchanged keep their plan: a camera that this graph uses
    ///     is not queried again.
    /// - Throws: `graph.invalid` with all problems of the graph, or the first reason why it cannot run on this machine.
    public func plan(
        _ graph: MediaGraph, bound: BoundNames? = nil, running: GraphPlan? = nil
    ) throws(MediaError) -> GraphPlan {
        let graph = graph.settled(with: catalogue)
        let problems = graph.validate(with: catalogue, bound: bound)
        guard problems.isEmpty else {
            throw MediaError(
                code: MediaError.Code.graphInvalid, message: problems.map(\.message).joined(separator: " "))
        }
        var runnable = graph
        var omitted: [OmittedNode] = []
        while true {
            do throws(MediaError) {
                var planning = Planning(
                    graph: runnable, catalogue: catalogue, environment: environment, running: running)
                if let conflict = runnable.fileConflicts(catalogue, identity: environment.fileIdentity).first {
                    throw MediaError(
                        code: MediaError.Code.fileConflict, message: conflict.message, node: conflict.node)
                }
                for node in runnable.inOrder { try planning.add(node) }
                var plan = planning.finish()
                plan.source = graph
                plan.omitted = omitted
                return plan
            } catch {
                // Optional nodes that cannot run here are left out with the nodes that feed only them. The rest is
                // planned without these.
                guard let name = error.node, runnable.node(name)?.isOptional == true else { throw error }
                let part = runnable.optionalPart(around: name)
                let left = runnable.removing(part.union(runnable.feedingOnly(part)))
                guard !left.nodes.isEmpty else { throw error }
                runnable = left
                omitted.append(OmittedNode(node: name, code: error.code, reason: error.message))
            }
        }
    }
}

extension MediaGraph {
    /// The nodes, each after the nodes that feed it. Traps if the graph has a cycle.
    public var inOrder: [Node] {
        var left = nodes
        var ordered: [Node] = []
        while !left.isEmpty {
            let waiting = Set(left.map(\.name))
            let free = left.filter { node in
                !links(into: node.name).contains { waiting.contains($0.from.node) }
            }
            precondition(!free.isEmpty, "a validated graph has a cycle")
            ordered += free
            let done = Set(free.map(\.name))
            left.removeAll { done.contains($0.name) }
        }
        return ordered
    }
}

/// A plan under construction.
private struct Planning {
    let graph: MediaGraph
    let catalogue: any PlanningCatalogue
    let environment: any PlanEnvironment
    let running: GraphPlan?
    private let demands: [PortReference: Demand]
    /// The inputs for the further layers of a video, beside those of the graph.
    private let layers: [PortReference: LayerInput]
    private var nodes: [NodePlan] = []
    private var links: [LinkPlan] = []

    init(
        graph: MediaGraph, catalogue: any PlanningCatalogue, environment: any PlanEnvironment, running: GraphPlan?
    ) {
        let (graph, layers) = graph.addingLayers(catalogue)
        (self.graph, self.catalogue, self.environment, self.running) = (graph, catalogue, environment, running)
        self.layers = layers
        demands = graph.demands(
            catalogue, layers: layers,
            input: { reference, node in
                let plan = running?.node(node.name)
                let isSame =
                    plan?.node.kind == node.kind
                    && plan?.fixedSettings == catalogue.kind(named: node.kind)?.fixedSettings(of: node)
                return catalogue.input(reference.port, of: node, running: isSame ? plan : nil, on: environment)
            },
            encoder: { codec in
                let node = Node("\(codec)-encoder")
                let plan = running?.nodes.first { $0.adapts != nil && $0.node.kind == node.kind }
                return catalogue.input("in", of: node, running: plan, on: environment)
            },
            running: { link in
                let feeding = running?.links.first { $0.link.to == link.to }
                guard let feeding, running?.node(feeding.link.from.node)?.adapts == link.from else { return nil }
                return feeding.format.encoding
            })
    }

    mutating func add(_ node: Node) throws(MediaError) {
        if catalogue.isLacking(node.kind) {
            throw MediaError(
                code: MediaError.Code.elementMissing,
                message: catalogue.reasonForLack(of: node.kind) ?? "This machine has no \(node.kind).",
                node: node.name)
        }
        var (feeding, notes) = ([LinkPlan](), [String]())
        for link in graph.links(into: node.name) {
            let before = self
            do throws(MediaError) {
                if let layer = layers[link.to], !layer.suits(try format(of: link.from)) { continue }
                let output = try adapt(link)
                feeding.append(LinkPlan(link: Link(from: output, to: link.to), format: try format(of: output)))
            } catch {
                guard let layer = layers[link.to] else { throw error.about(node.name) }
                // The video goes out in fewer sizes, such as one that nothing here can encode.
                self = before
                notes.append("without the \(layer.layer.rawValue) layer: \(error.message)")
            }
        }
        try place(node, feeding, adapts: nil)
        nodes[nodes.count - 1].notes += notes
    }

    private mutating func place(
        _ node: Node, _ feeding: [LinkPlan], adapts: PortReference?, demand: Demand? = nil
    ) throws(MediaError) {
        guard let kind = catalogue.kind(named: node.kind) else {
            throw MediaError(
                code: MediaError.Code.graphInvalid,
                message:
                    "\(adapts.map { "\($0)" } ?? node.name) needs a node of the kind \(node.kind), which does not "
                    + "exist.")
        }
        let request = NodeRequest(
            node, kind, inputs: feeding.map { ($0.link.to.port, $0.format) },
            usedOutputs: Set(graph.links(outOf: node.name).map(\.from.port)).union(adapts == nil ? [] : ["out"]),
            sharedInputs: Set(feeding.filter { isShared($0.link.from) }.map(\.link.to.port)),
            demands: demand.map { ["out": $0] }
                ?? Dictionary(
                    uniqueKeysWithValues: demands.filter { $0.key.node == node.name }.map { ($0.key.port, $0.value) }),
            sources: sources(feeding: feeding), environment: environment)
        var plan: NodePlan
        do throws(MediaError) {
            plan = if let running = runningPlan(request) { running } else { try catalogue.plan(request) }
        } catch {
            throw adapts == nil ? error.about(node.name) : error
        }
        plan.adapts = adapts
        plan.fixedSettings = kind.fixedSettings(of: node)
        plan.keepDefaults(of: kind)
        nodes.append(plan)
        links += feeding
    }

    /// The kinds of the nodes without inputs whose media reaches one of the links.
    private func sources(feeding links: [LinkPlan]) -> [String] {
        let plan = GraphPlan(source: graph, nodes: nodes, links: self.links + links)
        return links.flatMap { plan.sources(feeding: $0.link.to) }.compactMap { plan.node($0)?.node.kind }
    }

    /// The running plan of the node, if planning it again would give the same.
    private func runningPlan(_ request: NodeRequest) -> NodePlan? {
        guard let running, let plan = running.node(request.name), plan.node.kind == request.node.kind else {
            return nil
        }
        let inputs = running.links(into: request.name).map { "\($0.link.to.port) \($0.format.withoutBitrate)" }
        guard plan.fixedSettings == request.kind.fixedSettings(of: request.node),
            request.usedOutputs.isSubset(of: plan.outputs.keys),
            inputs.sorted() == request.inputs.map({ "\($0.port) \($0.format.withoutBitrate)" }).sorted()
        else { return nil }
        return plan.following(request.node)
    }

    /// Throws if the output has no media without an input of its node that nothing feeds.
    private func format(of output: PortReference) throws(MediaError) -> MediaFormat {
        guard let plan = nodes.first(where: { $0.name == output.node }) else {
            preconditionFailure("\(output.node) is not planned yet")
        }
        guard let format = plan.formats[output.port] else {
            throw MediaError(
                code: MediaError.Code.graphInvalid,
                message: "\(output) delivers nothing, because nothing feeds the input of \"\(output.node)\" that it "
                    + "repeats. Feed that input, or remove what reads \(output).")
        }
        return format
    }

    /// Whether an output feeds more than one input.
    private func isShared(_ output: PortReference) -> Bool {
        graph.links.count { $0.from == output } > 1
    }

    // MARK: Adapters

    /// Returns the output that feeds a link's input: the linked one, or that of an inserted node.
    private mutating func adapt(_ link: Link) throws(MediaError) -> PortReference {
        let given = try format(of: link.from)
        guard let demand = demands[link.from],
            let consumer = demand.consumers.first(where: { $0.name == "\(link.to)" })
        else { preconditionFailure("\(link.to.node) has no input \(link.to.port)") }
        guard let adapters = demand.adapters(from: given, to: consumer) else {
            throw clash(link.from, given, consumer)
        }
        var output = link.from
        for adapter in adapters {
            let part = adapter.isEncoder ? demand.part(behind: adapter, from: given) : nil
            output = try insert(adapter, behind: output, origin: link.from, demand: part)
        }
        return output
    }

    private mutating func insert(
        _ adapter: Adapter, behind output: PortReference, origin: PortReference, demand: Demand?
    ) throws(MediaError) -> PortReference {
        let (kind, encoding, settings) = adapter.node
        // Consumers with the same need share the node.
        let there = nodes.first { $0.adapts == origin && $0.node.kind == kind && $0.node.settings == settings }
        if let there { return PortReference(node: there.name, port: "out") }
        let node = Node(
            kind, name: unused("\(origin.node)-\(encoding)"), settings: settings,
            branch: graph.node(origin.node)?.branch, isOptional: graph.node(origin.node)?.isOptional ?? false)
        let link = Link(from: output, to: PortReference(node: node.name, port: "in"))
        try place(node, [LinkPlan(link: link, format: try format(of: output))], adapts: origin, demand: demand)
        return PortReference(node: node.name, port: "out")
    }

    private func unused(_ name: String) -> String {
        func isTaken(_ name: String) -> Bool {
            graph.node(name) != nil || nodes.contains { $0.name == name }
        }
        if !isTaken(name) { return name }
        return (2...10_000).lazy.map { "\(name)-\($0)" }.first { !isTaken($0) } ?? name
    }

    private func clash(_ output: PortReference, _ given: MediaFormat, _ consumer: Demand.Consumer) -> MediaError {
        let port = consumer.port
        let takes = port.encodings.isEmpty ? port.kinds.map(\.rawValue).sorted() : port.encodings
        return MediaError(
            code: MediaError.Code.formatClash,
            message:
                "\(output) delivers \(given), but \(consumer.name) accepts \(takes.joined(separator: ", ")), and no "
                + "inserted node can convert it. Choose another format for one of them.")
    }

    // MARK: Branches

    /// Gives each branch of raw media its own thread and queue. A slow branch drops its oldest media and does not block
    /// the others. An encoder already has a queue. Encoded media may not be dropped, and the branches receive it in
    /// turn.
    func finish() -> GraphPlan {
        var links = links
        for index in links.indices {
            let link = links[index]
            let isBranch = links.count { $0.link.from == link.link.from } > 1
            let target = nodes.first { $0.name == link.link.to.node }
            let entry = target?.inputs[link.link.to.port].flatMap { target?.element($0.element) }
            guard isBranch, entry?.factory != "queue" else { continue }
            links[index].queue = link.format.branchQueue
        }
        return GraphPlan(source: graph, nodes: nodes, links: links)
    }
}

extension NodeKind {
    /// The settings of a node that cannot change while it runs.
    func fixedSettings(of node: Node) -> [String: SettingValue] {
        node.settings.filter { setting($0.key)?.isChangeable != true }
    }
}

extension Port {
    /// Whether media of this format can enter without conversion.
    func takes(_ format: MediaFormat) -> Bool {
        guard kinds.contains(format.kind) else { return false }
        let named = encodings(of: format.kind)
        return named.isEmpty || named.contains(format.encoding)
    }

    /// The port's encodings for one kind of media.
    func encodings(of kind: MediaKind) -> [String] {
        encodings.filter { MediaKind(ofEncoding: $0) == kind }
    }
}

extension Adapter {
    fileprivate var isEncoder: Bool {
        switch self {
        case .encode, .layer: true
        case .decodeVideo, .decodeAudio, .convert: false
        }
    }

    /// Its node: the kind, the ending of its name, and the settings.
    fileprivate var node: (kind: String, ending: String, settings: [String: SettingValue]) {
        switch self {
        case .decodeVideo: ("video-decoder", "raw", [:])
        case .decodeAudio: ("audio-decoder", "raw", [:])
        case .convert(let format): ("convert", format.lowercased(), ["pixel-format": .text(format)])
        case .encode(let codec): ("\(codec)-encoder", codec, [:])
        case .layer(let codec, let input): ("\(codec)-encoder", "\(codec)-\(input.layer.rawValue)", input.settings)
        }
    }
}

extension MediaError {
    /// The same error with its node, unless it has one.
    public func about(_ node: String) -> MediaError {
        self.node == nil ? MediaError(code: code, message: message, cause: cause, node: node) : self
    }
}
