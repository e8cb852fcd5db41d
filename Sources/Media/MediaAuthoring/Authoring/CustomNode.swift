/// A kind of node that a program or plugin adds to a registry.
@frozen
public enum CustomNode: Sendable {
    /// A source of frames or audio.
    case capturer(any Capturer.Type)
    /// A node that changes frames in place.
    case processor(any Processor.Type)
    /// A node that consumes frames or audio.
    case renderer(any Renderer.Type)
    /// GStreamer elements as one node.
    case elements(ElementsNode)
}
