import Dispatch
import GStreamerKit
public import MediaGraph
import Synchronization

/// Counts the frames that reach a renderer and passes them on.
final class VideoRendererNode: RunningNode {
    private let name: String
    private let counts = Mutex(MediaStatistics.VideoRenderer())
    private let reporter: Reporter
    private let clock: PipelineClock
    private let timestamps: TimestampMap?
    /// Nil if the program does not want the frames.
    private let handOver: (@Sendable (VideoFrame) -> Void)?
    private let shortfall: @Sendable () -> MediaError?
    private let isOptional: Bool
    private let onStop: @Sendable () -> Void

    /// Observes every frame that reaches `element`.
    init(
        _ instance: NodeInstance, at element: String = "sink", handOver: (@Sendable (VideoFrame) -> Void)? = nil,
        shortfall: @escaping @Sendable () -> MediaError? = { nil }, onStop: @escaping @Sendable () -> Void = {}
    ) {
        self.shortfall = shortfall
        self.onStop = onStop
        isOptional = instance.plan.node.isOptional
        name = instance.name
        reporter = instance.reporter
        clock = instance.pipeline.clock
        timestamps = instance.nearest(RTPInputNode.self)?.timestamps
        self.handOver = handOver
        instance.element(element).sink.onFrame { buffer, format in self.take(buffer, format) }
    }

    private func take(_ buffer: borrowing PassingBuffer, _ format: VideoFormat?) {
        counts.withLock { counts in
            counts.framesRendered += 1
            counts.width = format?.width ?? 0
            counts.height = format?.height ?? 0
        }
        reporter.firstFrame(name)
        guard let handOver, let format else { return }
        handOver(
            VideoFrame(
                width: format.width, height: format.height, captureTime: buffer.time,
                rtpTimestamp: buffer.timestamp.flatMap { timestamps?.rtpTimestamp(at: $0) },
                handedOver: clock.now, storage: buffer.keep(as: format)))
    }

    func reportShortfall() {
        guard let error = shortfall() else { return }
        if isOptional { reporter.warn(name, "\(error)") } else { reporter.fallShort(error, name) }
    }

    func stopped() {
        onStop()
    }

    func report(into statistics: inout MediaStatistics, as name: String) {
        statistics.videoRenderers[name] = counts.withLock { $0 }
    }
}

/// Passes each frame to the program.
enum FramesNode: NodeType {
    static let kind = NodeKind(
        "frames", .renderer, "Passes each frame to the program",
        inputs: .rawVideoIn, binding: .frames)

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan { .sink(request) }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        VideoRendererNode(instance, handOver: instance.bound(\.frames))
    }
}

/// Counts video or audio and drops it.
enum NullNode: NodeType {
    static let kind = NodeKind(
        "null", .renderer, "Counts and drops frames or audio of any format",
        inputs: [Port("in", [.rawVideo, .rawAudio, .encodedVideo, .encodedAudio])])

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var plan = NodePlan.sink(request)
        plan.formats["in"] = request.input("in")
        return plan
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        switch instance.plan.formats["in"]?.kind {
        case .rawAudio, .encodedAudio: AudioRendererNode(instance, isAudible: false)
        default: VideoRendererNode(instance)
        }
    }
}

/// Writes one frame to an image file.
enum SnapshotNode: NodeType {
    static let kind = NodeKind(
        "snapshot", .renderer, "Writes one frame to a PNG or JPEG file",
        inputs: .rawVideoIn,
        settings: [
            SettingContract("path", .text, isRequired: true, "The file to write; its extension names the format")
                .written(
                    #"[\s\S]+\.([pP][nN][gG]|[jJ][pP][eE]?[gG])"#, "a path that ends in .png, .jpg or .jpeg"
                ).example("picture.png").naming(.writes),
            SettingContract(
                "frame", .integer(1...1_000_000), default: 1,
                "Number of the frame, from 1; those that stand in for a device that is away do not count"),
        ])

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        let path = request.text("path")
        try request.environment.require(ImageEncoder.Format(path: path).factory)
        if let reason = request.environment.obstacle(toWriting: path) {
            throw FrameImage.unwritable(path, reason)
        }
        return .sink(request)
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        let path = instance.text("path")
        let wanted = instance.integer("frame")
        let counts = Mutex(Counts())
        let (reporter, control, name) = (instance.reporter, instance.control, instance.name)
        // The instance keeps this function.
        let handOver: @Sendable (VideoFrame) -> Void = { [weak instance] frame in
            guard counts.withLock({ $0.frames }) < wanted else { return }
            let heads = instance?.heads ?? []
            let isStandIn = !heads.isEmpty && heads.allSatisfy { $0.isStandIn(at: frame.captureTime) }
            let absence = isStandIn ? heads.firstNonNil(\.absence) : nil
            let number = counts.withLock { $0.take(isStandIn: isStandIn, absence) }
            guard number == wanted else { return }
            // Encoding takes tens of milliseconds, so not on the streaming thread.
            control.async {
                do throws(MediaError) {
                    try FrameImage.write(frame, to: path)
                } catch {
                    reporter.fail(error, name)
                }
            }
        }
        let shortfall: @Sendable () -> MediaError? = {
            let counts = counts.withLock { $0 }
            return counts.frames < wanted ? missing(path, counts, wanted: wanted, node: name) : nil
        }
        return VideoRendererNode(instance, handOver: handOver, shortfall: shortfall)
    }

    /// The frames that a snapshot has received.
    private struct Counts {
        /// Those of the source itself.
        var frames = 0
        var standIns = 0
        /// Why the last stand-in was shown, if that is known.
        var absence: MediaError?

        /// The number of a frame. Nil for a stand-in.
        mutating func take(isStandIn: Bool, _ absence: MediaError?) -> Int? {
            guard isStandIn else {
                frames += 1
                return frames
            }
            standIns += 1
            self.absence = absence ?? self.absence
            return nil
        }
    }

    private static func missing(_ path: String, _ counts: Counts, wanted: Int, node: String) -> MediaError {
        let standIns = counts.standIns == 0 ? "" : " and \(counts.standIns) that stood in for a device that is away"
        let advice =
            counts.standIns == 0
            ? "Run the graph for longer, or choose an earlier frame." : counts.absence?.message ?? "Plug it in."
        return MediaError(
            code: "snapshot.missing",
            message: "The image \(path) was not written: \"\(node)\" received \(counts.frames) frames\(standIns), and "
                + "frame \(wanted) was wanted. \(advice)")
    }
}

extension Pad {
    /// Calls `body` with each buffer, and its format if it is a raw frame.
    func onFrame(_ body: @escaping @Sendable (borrowing PassingBuffer, VideoFormat?) -> Void) {
        let known = Mutex<VideoFormat?>(nil)
        watchEvents { event in
            // The pad does not have the new format yet: it is read with the next frame.
            if case .caps = event { known.withLock { $0 = nil } }
        }
        watchBuffers { buffer in
            let format = known.withLock { $0 } ?? buffer.videoFormat
            known.withLock { $0 = format }
            body(buffer, format)
        }
    }
}

extension NodePlan {
    /// A node that ends in a sink with a probe on its input.
    static func sink(_ request: NodeRequest) -> NodePlan {
        var plan = NodePlan(request.node)
        plan.addSink()
        plan.chain()
        return plan
    }
}

/// Counts from 1.
final class Counter: Sendable {
    private let value = Atomic<Int>(0)

    func next() -> Int {
        value.wrappingAdd(1, ordering: .relaxed).newValue
    }

    var count: Int { value.load(ordering: .relaxed) }
}

/// Passes each frame to a function.
public struct Frames: MediaNode {
    public var handle: NodeHandle

    /// A node that passes frames to a function.
    ///
    /// - Parameter receive: called for each frame, one call after the other, on a GStreamer thread. Return soon and never
    ///   block. To stop the pipeline, start a Task.
    public init(_ receive: @escaping @Sendable (VideoFrame) -> Void) {
        handle = NodeHandle(FramesNode.kind, code: .frames(receive))
    }

    /// The frames that the function got so far.
    ///
    /// - Throws: `node.not-running`.
    public var statistics: MediaStatistics.VideoRenderer {
        get throws(MediaError) { try figures(\.videoRenderers) ?? MediaStatistics.VideoRenderer() }
    }
}

/// Writes one frame to a PNG or JPEG file. Waits for a camera that is away.
public struct Snapshot: MediaNode {
    public var handle: NodeHandle

    /// A node that writes one frame, and drops the others.
    ///
    /// - Parameters:
    ///   - path: the file to write, which ends in .png, .jpg or .jpeg.
    ///   - frame: the number of the frame, counted from 1. Those that stand in for a device that is away do not count.
    public init(path: String, frame: Int? = nil) {
        handle = NodeHandle(SnapshotNode.kind, ["path": path, "frame": frame])
    }
}

/// Counts and drops frames or audio of any format.
public struct Null: MediaNode {
    public var handle: NodeHandle

    /// A node that drops everything.
    public init() { handle = NodeHandle(NullNode.kind) }
}

extension Node {
    /// Passes frames to the function that the program has bound to `name`.
    package static func frames(_ name: String) -> Node {
        Node(FramesNode.kind, name)
    }

    /// Counts and drops video or audio.
    package static func null(_ name: String = "null") -> Node {
        Node(NullNode.kind, name)
    }
}
