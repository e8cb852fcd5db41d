/// The input of a node's `plan` function: the node, the formats of its inputs, its linked outputs, and the machine.
public struct NodeRequest: NodeSettings, Sendable {
    public let node: Node
    public let kind: NodeKind
    /// The formats of the linked inputs, in the order of the links.
    public let inputs: [(port: String, format: MediaFormat)]
    /// The outputs that are linked.
    public let usedOutputs: Set<String>
    /// The inputs whose media has other consumers too. Changing it in place needs a copy.
    public let sharedInputs: Set<String>
    /// The consumers of the linked outputs. Empty for a node that is planned alone.
    public let demands: [String: Demand]
    /// The kinds of the nodes without inputs whose media reaches this one.
    public let sources: [String]
    /// The machine on which the graph would run.
    public let environment: any PlanEnvironment

    /// A request for a node of a kind.
    public init(
        _ node: Node, _ kind: NodeKind, inputs: [(port: String, format: MediaFormat)] = [],
        usedOutputs: Set<String> = [], sharedInputs: Set<String> = [], demands: [String: Demand] = [:],
        sources: [String] = [], environment: any PlanEnvironment
    ) {
        self.node = node
        self.kind = kind
        self.inputs = inputs
        self.usedOutputs = usedOutputs
        self.sharedInputs = sharedInputs
        self.demands = demands
        self.sources = sources
        self.environment = environment
    }

    /// The name of the node.
    public var name: String { node.name }

    /// Throws `graph.invalid` if no output is linked. For kinds that require none of their outputs in particular.
    public func requireSomeOutput() throws(MediaError) {
        guard usedOutputs.isEmpty else { return }
        let outputs = kind.outputs.map { "\(name).\($0.name)" }.joined(separator: " or ")
        throw MediaError(
            code: MediaError.Code.graphInvalid,
            message: "Nothing reads \(outputs). Link one of them, or leave \(name) out.")
    }

    /// The format of an input; nil if it is not linked.
    public func input(_ port: String) -> MediaFormat? {
        inputs.first { $0.port == port }?.format
    }

    /// The best of the formats that an output can have, for its consumers.
    public func choice(_ output: String, among alternatives: [FormatAlternative]) -> FormatChoice {
        (demands[output] ?? Demand()).choice(among: alternatives)
    }
}
