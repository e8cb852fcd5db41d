package import GStreamerKit
package import MediaGraph
import Synchronization

/// Where a program passes the frames that it captures. It outlives the pipelines whose nodes deliver them: while there are
/// none, frames are dropped.
package final class FrameEntrance: Sendable {
    package struct Counts: Sendable, Equatable {
        package var pushed = 0
        /// Frames that no node took: none ran, or they came faster than its rate.
        package var dropped = 0
    }

    private struct State {
        var nodes: [ProgramFramesNode] = []
        var times = ProgramTimes()
        /// The newest frame, for a node that opens shortly after it.
        var latest: (picture: Picture, degrees: Int, arrival: MediaTime)?
        var counts = Counts()
    }

    private let state = Mutex(State())

    package init() {}

    package var counts: Counts { state.withLock { $0.counts } }

    /// The kind of the nodes that deliver the frames of this entrance.
    package var node: NodeImplementation {
        NodeImplementation(
            kind: ProgramFramesNode.kind, plan: { request throws(MediaError) in try ProgramFramesNode.plan(request) },
            activate: { instance throws(MediaError) in ProgramFramesNode(instance, self) })
    }

    /// Passes a frame to the running nodes. Callable on any thread. Copies a frame that has to be turned, and no other one.
    ///
    /// - Parameters:
    ///   - degrees: how far to turn the frame clockwise, so that it is upright: 0, 90, 180 or 270.
    ///   - time: on any clock; nil for now.
    package func push(_ picture: Picture, turning degrees: Int = 0, at time: MediaTime?) {
        let (asleep, former) = state.withLock { state in
            let now = GStreamer.now
            let settled = state.times.settle(time, now: now)
            state.counts.pushed += 1
            var (upright, isTaken): (Picture?, Bool) = (nil, false)
            for node in state.nodes where node.admits(settled) {
                upright = upright ?? (degrees == 0 ? picture : picture.turned(clockwise: degrees))
                if let upright, node.deliver(upright, at: settled) { isTaken = true }
            }
            if !isTaken { state.counts.dropped += 1 }
            let former = state.latest
            if let upright {
                state.latest = (upright, 0, now)
            } else {
                state.latest = (picture, degrees, now)
            }
            return (state.nodes.filter { !$0.isOpen }, former)
        }
        // Released without the lock.
        withExtendedLifetime(former) {}
        for node in asleep { node.head?.appeared() }
    }

    /// The newest frame, upright, if it has arrived within so many seconds.
    fileprivate func latest(within seconds: Double) -> Picture? {
        state.withLock { state in
            guard let (picture, degrees, arrival) = state.latest, GStreamer.now.seconds(since: arrival) <= seconds
            else {
                return nil
            }
            return degrees == 0 ? picture : picture.turned(clockwise: degrees)
        }
    }

    fileprivate func add(_ node: ProgramFramesNode) { state.withLock { $0.nodes.append(node) } }

    fileprivate func remove(_ node: ProgramFramesNode) { state.withLock { $0.nodes.removeAll { $0 === node } } }
}

/// Delivers the frames that the program passes to an entrance: I420 in their own shape, in at most the size of the settings.
/// While none come, the last one stands in.
final class ProgramFramesNode: NodeType, SelfHeadedNode {
    /// Seconds without a frame after which the program counts as away.
    private static let patience = 5.0

    static let kind = NodeKind(
        "program-frames", .capturer, "Frames of any size that the program captures",
        outputs: [Port("video", [.rawVideo], encodings: ["I420"])],
        settings: [
            SettingContract(
                "width", .integer(16...8192), default: 640, unit: "pixels", "Largest width, or height if upright"),
            SettingContract(
                "height", .integer(16...8192), default: 480, unit: "pixels", "Largest height, or width if upright"),
            SettingContract("fps", .number(1...240), default: 20, unit: "frames/s", "Highest frame rate"),
        ] + FedSource.settings)

    private struct State {
        /// The head, while it has opened the program as its device.
        var sink: SourceOutput?
        var pace: FramePace
        var meter: PaceMeter
        /// That of the frames of one size.
        var format: (encoding: String, width: Int, height: Int, caps: Caps)?
    }

    let heldHead = HeldHead()
    private let entrance: FrameEntrance
    private let rate: Double
    private let state: Mutex<State>

    fileprivate init(_ instance: NodeInstance, _ entrance: FrameEntrance) {
        self.entrance = entrance
        rate = instance.number("fps")
        state = Mutex(State(pace: FramePace(framesPerSecond: rate), meter: PaceMeter(expecting: rate)))
        let (width, height) = (instance.integer("width"), instance.integer("height"))
        FrameBound(width, height).follow(instance.element("convert"), instance.element("size"))
        var limits = SourceSupervisor.Limits()
        (limits.quiet, limits.firstStandIn) = (0.5, 0.2)
        limits.longestPaced = Self.patience
        limits = limits.paced(rate)
        (limits.silent, limits.pause, limits.firstFrame) = (Self.patience, Self.patience, Self.patience)
        // A frame tells.
        (limits.poll, limits.shortestBackoff, limits.longestBackoff) = (1, 0, 0)
        heldHead.hold(SourceHead(instance, self, [.video(of: instance)], isAwaited: false, limits: limits))
        entrance.add(self)
    }

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        let format = MediaFormat.rawVideo(
            width: request.integer("width"), height: request.integer("height"), framesPerSecond: request.number("fps"))
        var plan = NodePlan(request.node)
        SourceHead.plan(&plan, format, caps: format.pushedCaps, latency: 0)
        var device = DevicePlan(name: "the program", wish: "\(format)")
        if request.text("away") != "end" { device.slate = try Slate.plan(request, format) }
        plan.device = device
        plan.add("videoconvertscale", as: "convert", ["add-borders": false])
        plan.add("capsfilter", as: "size", ["caps": .text(FrameBound.caps(format.width ?? 0, format.height ?? 0))])
        plan.link("source", "convert", "size")
        plan.outputs["video"] = ElementPad("size")
        plan.formats["video"] = format
        plan.notes.append("frames have the shape that the program gives them, in at most this size")
        return plan
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        preconditionFailure("the kind needs an entrance")
    }

    /// The program may begin at any time.
    var mayStayEmpty: Bool { true }

    func finish() {
        entrance.remove(self)
        heldHead.finish()
    }

    fileprivate var isOpen: Bool { state.withLock { $0.sink != nil } }

    /// Whether a frame of this time is wanted.
    fileprivate func admits(_ time: MediaTime) -> Bool {
        state.withLock { $0.sink != nil && $0.pace.admits(time.nanoseconds) }
    }

    /// Passes a frame on. Returns whether it was taken.
    fileprivate func deliver(_ picture: Picture, at time: MediaTime, to first: SourceOutput? = nil) -> Bool {
        let (sink, caps, pace) = state.withLock { state -> (SourceOutput?, Caps, Double?) in
            let format = format(of: picture, &state)
            return (first ?? state.sink, format, state.meter.frame(at: time.nanoseconds))
        }
        guard let sink, let frame = MediaBuffer(picture, format: caps) else { return false }
        let isTaken = sink.deliver(frame, time, 0)
        if let pace { sink.pace(pace) }
        return isTaken
    }

    private func format(of picture: Picture, _ state: inout State) -> Caps {
        if let format = state.format, format.width == picture.width, format.height == picture.height,
            format.encoding == picture.pixelFormat
        {
            return format.caps
        }
        let format = MediaFormat.rawVideo(
            picture.pixelFormat, width: picture.width, height: picture.height, framesPerSecond: rate)
        let caps = Caps(format.pushedCaps)
        state.format = (picture.pixelFormat, picture.width, picture.height, caps)
        return caps
    }
}

extension ProgramFramesNode: SourceDevice {
    func name(of candidate: Int) -> String { "the program" }

    func open(_ candidate: Int, for output: SourceOutput) throws(MediaError) {
        guard let latest = entrance.latest(within: Self.patience) else { throw error(for: .silent, candidate) }
        state.withLock { $0.pace = FramePace(framesPerSecond: rate) }
        // Before any newer frame.
        _ = deliver(latest, at: GStreamer.now, to: output)
        state.withLock { $0.sink = output }
    }

    func close() { state.withLock { $0.sink = nil } }

    /// Nothing but its frames tells.
    func isThere(_ candidate: Int) -> Bool { false }

    func isAbsence(_ error: MediaError) -> Bool { error.code == MediaError.Code.bypassSilent }

    func error(for cause: SourceSupervisor.Cause, _ candidate: Int) -> MediaError {
        MediaError(
            code: MediaError.Code.bypassSilent,
            message: "The program has passed no frame for \(Self.patience.short) s. Pass one at least that often.")
    }
}

extension Node {
    /// Frames that the program passes to the entrance of the registry's kind.
    package static func programFrames(_ name: String, width: Int, height: Int, framesPerSecond: Double?) -> Node {
        Node(ProgramFramesNode.kind, name, ["width": width, "height": height, "fps": framesPerSecond])
    }
}

/// The largest size of frames whose shape may change, also between upright and wide ones.
struct FrameBound: Sendable {
    /// The smallest side: encoders take no less.
    private static let least = 16

    let long: Int
    let short: Int

    init(_ width: Int, _ height: Int) { (long, short) = (max(width, height), min(width, height)) }

    static func caps(_ width: Int, _ height: Int) -> String {
        "video/x-raw,format=I420,width=\(width),height=\(height),pixel-aspect-ratio=1/1"
    }

    /// The size in which frames of a size are delivered: the same, or the largest one of the same shape that lies within.
    /// Sides are even, because not every encoder takes odd ones.
    func size(of width: Int, _ height: Int) -> (width: Int, height: Int) {
        let isWide = width >= height
        let (boundWidth, boundHeight) = isWide ? (long, short) : (short, long)
        let factor = min(1, Double(boundWidth) / Double(width), Double(boundHeight) / Double(height))
        func even(_ side: Int) -> Int {
            max(Self.least, Int((Double(side) * factor).rounded(factor < 1 ? .toNearestOrEven : .down)) & ~1)
        }
        return (even(width), even(height))
    }

    /// Sets the caps of a filter behind a scaler whenever the frames change their size.
    func follow(_ scaler: Element, _ filter: Element) {
        // Before the scaler sees the caps of the frames that follow.
        let isChanging = AtomicBool()
        scaler.sink.watchEvents { event in
            guard case .caps(let caps) = event, let format = caps.structures.first,
                let width = format.integer("width"), let height = format.integer("height")
            else { return }
            let (newWidth, newHeight) = size(of: width, height)
            _ = isChanging.exchange(true)
            _ = filter.trySet("caps", .text(Self.caps(newWidth, newHeight)))
            _ = isChanging.exchange(false)
        }
        // The source keeps its format.
        scaler.sink.onUpstreamEvent { event in
            if case .reconfigure = event, isChanging.value { return .drop }
            return .pass
        }
    }
}
