import GStreamerKit
import MediaGraph

/// Shows pictures in a window of their own.
enum WindowNode {
    static func build(_ node: ResolvedNode, in assembly: Assembly) throws(MediaError) {
        let sink = try openSink()
        let queue = try assembly.element(
            "queue", of: node,
            ["leaky": "downstream", "max-size-buffers": 2, "max-size-bytes": 0, "max-size-time": 0, "silent": true])
        let scale = try assembly.element("videoscale", of: node)
        let convert = try assembly.element("videoconvert", of: node)
        assembly.adopt(sink, of: node)
        try assembly.link(queue, scale, convert, sink)
        setTitle(node.text("title"), after: queue)
        // What reaches the sink is shown; what the queue drops is not.
        let running = VideoRendererNode(node, in: assembly, handOver: nil, explain: Self.explain)
        running.watch(convert)
        assembly.accept("in", of: node, into: queue)
    }

    /// A title sent before the stream has begun is lost: it goes with the first picture.
    static func setTitle(_ title: String, after element: Element) {
        let isSent = Flag()
        element.source.onBuffer { buffer in
            if !isSent.exchange(true) { buffer.pushTitle(title) }
            return .pass
        }
    }

    /// A sink that has its display open. It must go to a pipeline or be closed.
    static func openSink() throws(MediaError) -> Element {
        if let sink = DisplaySystem.openWindowSink() { return sink }
        let reason =
            DisplaySystem.isNamed
            ? "the display that DISPLAY or WAYLAND_DISPLAY names cannot be opened" : "there is no display"
        throw MediaError(
            code: MediaError.Code.windowUnavailable,
            message: "No window can be opened: \(reason); run it in a desktop session, or without a window.")
    }

    static func explain(_ failure: PipelineFailure) -> MediaError? {
        guard failure.kind == .windowClosed else { return nil }
        return MediaError(code: MediaError.Code.windowClosed, message: "The window was closed.")
    }
}
