public import MediaGraph

precedencegroup LinkPrecedence {
    associativity: left
    higherThan: AssignmentPrecedence
}

/// Links an output to an input: `camera >>> encoder >>> publish`.
infix operator >>> : LinkPrecedence

/// Something that gives media: a node, one of its outputs, or a route that ends in a node.
public protocol Upstream: Sendable {
    /// The nodes so far, up to the one that gives the media.
    var route: Route { get }
}

/// Something that takes media: a node, one of its inputs, or a route that begins with a node.
public protocol Downstream: Sendable {
    /// The input that takes the media.
    var entry: NodeInput { get }
    /// The route that goes on from the entry.
    var route: Route { get }
}

/// One output of a node, such as `file.audio`. A node without a named output gives the first one that fits.
public struct NodeOutput: Upstream {
    let node: NodeHandle
    /// Empty if it is open.
    let port: String

    init(_ node: NodeHandle, _ port: String = "") {
        self.node = node
        self.port = port
    }

    public var route: Route { Route(Composition(node), entry: NodeInput(node), end: self) }
}

/// One input of a node, such as `recorder.video`. A node without a named input takes media at the first one that fits and
/// is free.
public struct NodeInput: Downstream {
    let node: NodeHandle
    /// Empty if it is open.
    let port: String

    init(_ node: NodeHandle, _ port: String = "") {
        self.node = node
        self.port = port
    }

    public var entry: NodeInput { self }
    public var route: Route { Route(Composition(node), entry: self, end: NodeOutput(node)) }
}

extension MediaNode {
    /// An output by the name of the kind's contract.
    package func output(named port: String) -> NodeOutput { NodeOutput(handle, port) }

    /// An input by the name of the kind's contract.
    package func input(named port: String) -> NodeInput { NodeInput(handle, port) }
}

/// Nodes that are linked one after the other. It begins with an input and ends in an output, to which more can be linked.
public struct Route: Upstream, Downstream {
    let composition: Composition
    /// The input at which the route begins.
    public let entry: NodeInput
    let end: NodeOutput

    init(_ composition: Composition, entry: NodeInput, end: NodeOutput) {
        self.composition = composition
        self.entry = entry
        self.end = end
    }

    public var route: Route { self }
}

/// Links the end of a route to an input. Saying the same link twice links once.
public func >>> (source: some Upstream, target: some Downstream) -> Route {
    let (first, second) = (source.route, target.route)
    var composition = first.composition
    composition.add(second.composition)
    composition.link(first.end, to: second.entry)
    return Route(composition, entry: first.entry, end: second.end)
}

// MARK: Values as nodes

/// A capturer of the application begins a route. Each mention of the value is a node of its own; `node` makes a handle.
public func >>> (source: some Capturer, target: some Downstream) -> Route { source.node >>> target }

/// A processor of the application continues a route. Each mention of the value is a node of its own.
public func >>> (source: some Upstream, target: some Processor) -> Route { source >>> target.node }

/// A renderer of the application ends a route. Each mention of the value is a node of its own.
public func >>> (source: some Upstream, target: some Renderer) -> Route { source >>> target.node }

/// A capturer and a processor of the application begin a route.
public func >>> (source: some Capturer, target: some Processor) -> Route { source.node >>> target.node }

/// A capturer and a renderer of the application are a whole route.
public func >>> (source: some Capturer, target: some Renderer) -> Route { source.node >>> target.node }
