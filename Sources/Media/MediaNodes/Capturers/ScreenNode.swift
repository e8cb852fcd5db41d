import Dispatch
import GStreamerKit
import MediaGraph

/// The screen of an X display, a region of it, one of its windows, or a PipeWire node.
struct ScreenNode: NodeType, RunningNode {
    /// X is queried for every frame, and PipeWire repeats the last one each second.
    private static let silenceLimit = 5.0
    /// Milliseconds after which pipewiresrc repeats a frame, because a static screen delivers none.
    private static let repetition = 500
    /// Seconds from the due time of a frame until it is in memory, measured at 1280x720 and 1920x1080.
    private static let copying = 0.001
    /// Seconds for the conversion of a pixel to I420, measured.
    private static let conversion = 2.5e-9

    private let what: String
    private let watchdog: Watchdog
    private let errors: XWatch<Void>?
    private let connection: XWatch<XConnections.Break>?

    static let kind = NodeKind(
        "screen", .capturer, "The screen of an X display, a region or window of it, or a PipeWire node",
        outputs: [Port("video", [.rawVideo], encodings: ["I420"])],
        settings: [
            SettingContract("display", .text, default: "", "X display such as :0 (default: that of the environment)"),
            SettingContract(
                "window", .text, default: "", "Title of a window or part of it, or its number as printed by xwininfo"),
            SettingContract("x", .integer(0...32_767), default: 0, unit: "pixels", "Left edge of the region"),
            SettingContract("y", .integer(0...32_767), default: 0, unit: "pixels", "Top edge of the region"),
            SettingContract(
                "width", .integer(16...8192), unit: "pixels", "Width of the region (default: to the right edge)"),
            SettingContract(
                "height", .integer(16...8192), unit: "pixels", "Height of the region (default: to the bottom edge)"),
            SettingContract("fps", .number(1...240), default: 30, unit: "frames/s", "Frame rate"),
            SettingContract("cursor", .flag, default: true, "Whether to include the mouse pointer"),
            SettingContract(
                "pipewire-node", .text, default: "",
                "Number or name of a PipeWire node to capture instead of a display"),
            SettingContract(
                "pipewire-descriptor", .integer(0...1_048_576),
                "Descriptor of a connection to PipeWire, such as a portal's (default: the user's PipeWire)"),
        ])

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        let node = request.text("pipewire-node")
        return try node.isEmpty ? planX(request) : planPipeWire(node, request)
    }

    private static func planX(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        try request.environment.require("ximagesrc")
        let screen = try request.environment.screen(display: request.text("display"), window: request.text("window"))
        let region = try Region(request, of: screen)
        var properties: [String: SettingValue] = [
            "display-name": .text(screen.display), "show-pointer": .flag(request.flag("cursor")),
            // XDamage saves work but adds waiting: frames arrived 8 ms later.
            "use-damage": false,
            // Also without shared memory: the other way waits for a frame without end, and X servers may end.
            "remote": true,
        ]
        if let window = screen.window { properties["xid"] = .integer(Int(window)) }
        // A whole window has no fixed region, so that changes of its size are followed.
        if !region.isWhole {
            properties["startx"] = .integer(region.x)
            properties["starty"] = .integer(region.y)
            properties["endx"] = .integer(region.x + region.width - 1)
            properties["endy"] = .integer(region.y + region.height - 1)
        }
        var plan = NodePlan(request.node)
        let fps = request.number("fps")
        plan.add("ximagesrc", as: "source", properties)
        plan.appendFilter("video/x-raw,framerate=\(fraction(fps))", as: "rate")
        finish(&plan, region, fps: fps)
        let what = screen.title.map { "window \"\($0)\" of \(screen.display)" } ?? "screen of \(screen.display)"
        plan.notes.append("captures \(region) \(what), \(screen.width)x\(screen.height)")
        plan.notes += region.cropNotes
        if screen.window != nil {
            plan.notes.append("a window that changes its size later is scaled to \(region.width)x\(region.height)")
        }
        plan.notes += screen.notes
        return plan
    }

    private static func planPipeWire(_ node: String, _ request: NodeRequest) throws(MediaError) -> NodePlan {
        try request.environment.require("pipewiresrc")
        let descriptor = request.optionalInteger("pipewire-descriptor")
        let screen = try request.environment.pipeWireScreen(node, descriptor: descriptor)
        let region = try Region(request, of: screen)
        var properties = ScreenSearch.target(node, descriptor)
        properties["keepalive-time"] = .integer(repetition)
        var plan = NodePlan(request.node)
        let fps = request.number("fps")
        plan.add("pipewiresrc", as: "source", properties)
        plan.appendFilter("video/x-raw", as: "raw")
        plan.append("videorate", as: "rate", ["skip-to-first": true])
        if !region.isWhole {
            plan.append("videoconvert", as: "croppable")
            plan.append(
                "videocrop", as: "crop",
                [
                    "left": .integer(region.x), "top": .integer(region.y),
                    "right": .integer(screen.width - region.x - region.width),
                    "bottom": .integer(screen.height - region.y - region.height),
                ])
        }
        finish(&plan, region, fps: fps)
        plan.notes.append(
            "captures \(region) PipeWire node \(node), \(screen.width)x\(screen.height); the program that shares "
                + "the screen decides whether the pointer is included")
        plan.notes += region.cropNotes
        return plan
    }

    /// Frames of one size and format, whatever the source changes to.
    private static func finish(_ plan: inout NodePlan, _ region: Region, fps: Double) {
        let format = MediaFormat.rawVideo(width: region.width, height: region.height, framesPerSecond: fps)
        plan.append("videoconvert", as: "convert")
        // Scaling by one pixel would blur text.
        if !region.surplus.isEmpty { plan.append("videocrop", as: "even", region.surplus) }
        plan.append("videoscale", as: "scale", ["add-borders": true])
        plan.appendFilter(RawFormat.video(format) + ",pixel-aspect-ratio=1/1", as: "format")
        plan.setOutput("video", format)
        plan.latency = copying + conversion * Double(region.width * region.height)
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        guard let source = instance.plan.element("source") else { return nil }
        let (reporter, control, name) = (instance.reporter, instance.control, instance.name)
        let display = source.properties["display-name"]?.text
        let what = display.map { "The X display \($0)" } ?? "PipeWire"
        let watchdog = Watchdog(
            instance, limit: silenceLimit, lost: ScreenFailure.lost(what, "no frame for \(Int(silenceLimit)) s"))
        var errors: XWatch<Void>?
        if let display, let window = source.properties["xid"]?.integer.flatMap({ UInt(exactly: $0) }) {
            let title = XDisplay.window(window, of: display)?.title ?? "\(window)"
            let isChecking = AtomicBool()
            // ximagesrc repeats its last frame when the window is gone; the X server's errors reveal it.
            errors = XErrors.watch {
                guard !isChecking.exchange(true) else { return }
                control.async {
                    if XDisplay.window(window, of: display) == nil {
                        watchdog.stop()
                        reporter.fail(ScreenFailure.closed(title), name)
                    } else {
                        // Minimised or resized: frames will arrive again.
                        control.asyncAfter(deadline: .now() + .milliseconds(250)) { isChecking.lower() }
                    }
                }
            }
        } else {
            XErrors.survive()
        }
        let output = instance.element("source").source
        output.watchBuffers { _ in watchdog.feed() }
        let ended = ScreenFailure.lost(what, "its server has ended")
        // Without its server, ximagesrc repeats the frame in its memory.
        let connection = display.map { instance.watchDisplay($0, at: output, orFail: ended) }
        return ScreenNode(what: what, watchdog: watchdog, errors: errors, connection: connection)
    }

    func finish() {
        watchdog.stop()
    }

    func explain(_ failure: PipelineFailure, missing: String?) -> MediaError? {
        guard failure.path.first?.hasSuffix(".source") == true else { return nil }
        if watchdog.isFed { return ScreenFailure.lost(what, failure.message) }
        return ScreenFailure.unavailable(
            "\(what) cannot be captured: \(failure.message.trimmedSentence)",
            "Check that it runs and that you may read it")
    }
}

/// The captured region of a screen or window, in pixels. Even, because codecs halve the colours.
private struct Region: CustomStringConvertible {
    let x: Int
    let y: Int
    let width: Int
    let height: Int
    let isWhole: Bool
    /// The edges by which a whole screen of odd size is cropped, as properties of videocrop.
    let surplus: [String: SettingValue]

    init(_ request: NodeRequest, of screen: CapturedScreen) throws(MediaError) {
        x = request.integer("x")
        y = request.integer("y")
        width = (request.optionalInteger("width") ?? screen.width - x) / 2 * 2
        height = (request.optionalInteger("height") ?? screen.height - y) / 2 * 2
        isWhole = x == 0 && y == 0 && !request.isGiven("width") && !request.isGiven("height")
        let edges = [("right", screen.width - width), ("bottom", screen.height - height)]
        surplus = isWhole ? Dictionary(uniqueKeysWithValues: edges.filter { $1 > 0 }.map { ($0, .integer($1)) }) : [:]
        guard width > 0, height > 0, x + width <= screen.width, y + height <= screen.height else {
            throw MediaError(
                code: MediaError.Code.screenBadRegion,
                message:
                    "\"\(request.name)\" captures \(max(width, 0))x\(max(height, 0)) at (\(x), \(y)), outside of "
                    + "\(screen.width)x\(screen.height) pixels. Choose x, y, width and height within them.")
        }
    }

    var description: String { isWhole ? "the whole" : "\(width)x\(height) at (\(x), \(y)) of the" }

    var cropNotes: [String] {
        let lines = [("right", "column"), ("bottom", "row")].filter { surplus[$0.0] != nil }
        guard !lines.isEmpty else { return [] }
        let words = lines.map { "the \($0) \($1)" }.joined(separator: " and ")
        return ["\(words) \(lines.count == 1 ? "is" : "are") cropped to an even size, \(width)x\(height)"]
    }
}

/// The screen of an X display, a region or window of it, or a PipeWire node.
public struct Screen: MediaNode {
    /// A region of the display, in pixels.
    public struct Region: Sendable, Hashable {
        /// The left edge, in pixels from that of the display.
        public var x: Int
        /// The top edge, in pixels from that of the display.
        public var y: Int
        /// In pixels. Nil means up to the right edge.
        public var width: Int?
        /// In pixels. Nil means down to the bottom edge.
        public var height: Int?

        /// A region in pixels. The whole display by default.
        public init(x: Int = 0, y: Int = 0, width: Int? = nil, height: Int? = nil) {
            (self.x, self.y, self.width, self.height) = (x, y, width, height)
        }
    }

    public var handle: NodeHandle

    /// A screen of an X display, or a part of it.
    ///
    /// - Parameters:
    ///   - display: an X display such as `:0`; nil for that of the environment.
    ///   - window: the title of a window or part of it, or its number as printed by `xwininfo`.
    ///   - showsPointer: whether to include the mouse pointer.
    public init(
        display: String? = nil, window: String? = nil, region: Region? = nil, framesPerSecond: Double? = nil,
        showsPointer: Bool? = nil
    ) {
        handle = NodeHandle(
            ScreenNode.kind,
            [
                "display": display, "window": window, "x": region?.x, "y": region?.y, "width": region?.width,
                "height": region?.height, "fps": framesPerSecond, "cursor": showsPointer,
            ])
    }

    /// A screen that a PipeWire node delivers.
    ///
    /// - Parameters:
    ///   - pipewireNode: the number or name of a PipeWire node.
    ///   - pipewireDescriptor: a connection to PipeWire, which stays open while the node runs; nil for the user's PipeWire.
    public init(pipewireNode: String, pipewireDescriptor: Int? = nil, framesPerSecond: Double? = nil) {
        handle = NodeHandle(
            ScreenNode.kind,
            ["pipewire-node": pipewireNode, "pipewire-descriptor": pipewireDescriptor, "fps": framesPerSecond])
    }

    /// The screen that the user chose in a dialog of the desktop.
    ///
    /// - Parameter shared: a screen or window that the user has chosen. It is shared until the last node of it has ended.
    public init(_ shared: SharedScreen, framesPerSecond: Double? = nil) {
        handle = NodeHandle(
            ScreenNode.kind,
            [
                "pipewire-node": "\(shared.portal.node)", "pipewire-descriptor": Int(shared.portal.descriptor),
                "fps": framesPerSecond,
            ], code: .retained(shared))
    }
}
