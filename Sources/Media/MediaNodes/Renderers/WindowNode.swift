import Dispatch
import GStreamerKit
public import MediaGraph

/// Shows frames in their own window.
enum WindowNode: NodeType {
    static let kind = NodeKind(
        "window", .renderer, "Shows frames in a window",
        inputs: .rawVideoIn,
        settings: [SettingContract("title", .text, default: "Video", "Title of the window")])

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        guard let factory = request.environment.windowSink() else { throw unavailable }
        var plan = NodePlan(request.node)
        plan.addQueue(as: "queue", .rawPictures, holding: request.input("in"))
        plan.add("videoscale", as: "scale")
        plan.add("videoconvert", as: "convert")
        plan.add(factory, as: "sink", ["sync": false, "async": false, "qos": false])
        plan.chain()
        return plan
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        setTitle(instance.text("title"), after: instance.element("queue"))
        let display = DisplaySystem.isX(instance.element("sink").factory) ? DisplaySystem.x : nil
        let watch = display.map { instance.watchDisplay($0, at: instance.element("queue").source, orFail: lost($0)) }
        // Counts the frames that reach the sink and are shown, not those that the queue drops.
        return VideoRendererNode(instance, at: "convert", onStop: { withExtendedLifetime(watch) {} })
    }

    /// Sets the title with the first frame, because a title sent before the stream has begun is lost.
    static func setTitle(_ title: String, after element: Element) {
        let isSent = AtomicBool()
        element.source.watchBuffers { buffer in
            if !isSent.exchange(true) { buffer.pushTitle(title) }
        }
    }

    /// A sink with an open display. It must be added to a pipeline or closed.
    static func openSink() throws(MediaError) -> Element {
        guard let sink = DisplaySystem.openWindowSink() else { throw unavailable }
        return sink
    }

    private static var unavailable: MediaError {
        let reason =
            DisplaySystem.isNamed
            ? "the display that DISPLAY or WAYLAND_DISPLAY names cannot be opened" : "there is no display"
        return MediaError(
            code: MediaError.Code.windowUnavailable,
            message: "No window can be opened: \(reason). Run it in a desktop session, or without a window.")
    }

    private static func lost(_ display: String) -> MediaError {
        MediaError(
            code: MediaError.Code.windowClosed,
            message: "The window closed because the server of the X display \(display) ended. Check that it runs, and "
                + "start again.")
    }

    static let closed = MediaError(code: MediaError.Code.windowClosed, message: "The window was closed.")
}

extension NodeInstance {
    /// Fails the node with `error` when the server of an X display ends. A lost display gets no further calls: `output`
    /// then passes no buffer.
    func watchDisplay(
        _ display: String, at output: Pad, orFail error: MediaError
    ) -> XWatch<XConnections.Break> {
        let isLost = AtomicBool()
        output.onBuffer { _ in isLost.value ? .drop : .pass }
        return XConnections.watch(display) { [reporter, control, name] in
            isLost.raise()
            control.async { reporter.fail(error, name) }
        }
    }
}

/// Shows frames in a window of an X display.
public struct Window: MediaNode {
    public var handle: NodeHandle

    /// A window with a title. Nil means `Video`.
    public init(title: String? = nil) { handle = NodeHandle(WindowNode.kind, ["title": title]) }

    /// The frames that were shown so far.
    ///
    /// - Throws: `node.not-running`.
    public var statistics: MediaStatistics.VideoRenderer {
        get throws(MediaError) { try figures(\.videoRenderers) ?? MediaStatistics.VideoRenderer() }
    }
}
