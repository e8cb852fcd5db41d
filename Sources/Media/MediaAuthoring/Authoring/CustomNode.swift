/// A kind of node that a program or plugin adds to a registry: `.capturer(ClockFace.init)`.
///
/// A graph makes a value for each of its nodes, with the kind's function, and then sets its settings. The function may pass
/// objects of the program on: `.capturer { Breathing(canvas: canvas) }`.
@frozen
public enum CustomNode: Sendable {
    /// A source of frames or audio.
    case capturer(any Capturer.Type, make: @Sendable () -> any Capturer)
    /// A node that changes frames in place.
    case processor(any Processor.Type, make: @Sendable () -> any Processor)
    /// A node that consumes frames or audio.
    case renderer(any Renderer.Type, make: @Sendable () -> any Renderer)
    /// GStreamer elements as one node.
    case elements(ElementsNode)

    /// A kind of nodes that capture.
    ///
    /// - Parameter make: returns another value with default settings each time.
    public static func capturer<Node: Capturer>(_ make: @escaping @Sendable () -> Node) -> CustomNode {
        .capturer(Node.self, make: make)
    }

    /// A kind of nodes that change frames.
    ///
    /// - Parameter make: returns another value with default settings each time.
    public static func processor<Node: Processor>(_ make: @escaping @Sendable () -> Node) -> CustomNode {
        .processor(Node.self, make: make)
    }

    /// A kind of nodes that render.
    ///
    /// - Parameter make: returns another value with default settings each time.
    public static func renderer<Node: Renderer>(_ make: @escaping @Sendable () -> Node) -> CustomNode {
        .renderer(Node.self, make: make)
    }
}
