import GStreamerKit
public import MediaGraph
import Synchronization

/// Pictures that the program pushes: raw ones behind a queue that drops the oldest, encoded ones behind a queue that drops
/// to the next keyframe and asks for it.
final class BypassNode: NodeType, RunningNode {
    /// Encoded pictures that may wait: half a second at the usual rate.
    private static let encodedCapacity = 15

    private struct State {
        var pushed = 0
        var dropped = 0
        /// Pictures that entered the queue, and those of them that left it.
        var queued = 0
        var left = 0
        /// Encoded pictures are of no use until the next keyframe.
        var needsKeyframe = true
        var askedAt: MediaTime?

        /// Whether it is time to ask for a keyframe, which then counts as asked for.
        mutating func asks() -> Bool {
            let now = GStreamer.now
            guard askedAt.map({ now.seconds(since: $0) >= BypassNode.askInterval }) ?? true else { return false }
            askedAt = now
            return true
        }
    }

    /// Senders are asked no more often.
    private static let askInterval = 0.1

    let name: String
    private let source: PushSource
    private let pipeline: WeakPipeline
    private let reporter: Reporter
    private let codec: VideoCodec?
    private let width: Int
    private let height: Int
    private let state = Mutex(State())

    private init(_ instance: NodeInstance) {
        name = instance.name
        source = PushSource(instance.element("source"))
        pipeline = WeakPipeline(instance.pipeline)
        reporter = instance.reporter
        codec = instance.setting("format")?.text.flatMap(VideoCodec.init(rawValue:))
        width = instance.setting("width")?.integer ?? 0
        height = instance.setting("height")?.integer ?? 0
    }

    static let kind = NodeKind.bypass

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        guard let width = request.integer("width"), let height = request.integer("height"),
            let fps = request.number("fps")
        else { preconditionFailure("the settings of pushed pictures have defaults") }
        var plan = NodePlan(request.node)
        let codec = VideoCodec(rawValue: request.text("format"))
        let size = "width=\(width),height=\(height),framerate=\(fraction(fps))"
        let format =
            codec.map {
                MediaFormat(.encodedVideo, $0.rawValue, width: width, height: height, framesPerSecond: fps)
            } ?? .rawVideo(width: width, height: height, framesPerSecond: fps)
        let (caps, limits): (String, QueuePlan.Limits) =
            switch codec {
            case nil: (RawFormat.video(format), .rawPictures)
            case .vp8: ("video/x-vp8,\(size)", .init(frames: encodedCapacity, rule: .dropToKeyframe))
            case .h264:
                (
                    "video/x-h264,stream-format=byte-stream,alignment=au,\(size)",
                    .init(frames: encodedCapacity, rule: .dropToKeyframe)
                )
            }
        var properties = PushSource.properties
        properties["caps"] = .text(caps)
        if codec == nil {
            properties["max-buffers"] = .integer(limits.frames ?? 0)
            properties["leaky-type"] = "downstream"
        }
        plan.add("appsrc", as: "source", properties)
        plan.queues.append(QueuePlan(element: "source", limits: limits, bytesPerFrame: format.bytesPerFrame))
        if codec == .h264 {
            // Says the profile, and repeats the parameter sets for whoever joins later.
            plan.add("h264parse", as: "parser", ["config-interval": -1])
            plan.addFilter("video/x-h264,stream-format=byte-stream,alignment=au", as: "format")
            plan.link("source", "parser", "format")
        }
        plan.outputs["video"] = ElementPad(codec == .h264 ? "format" : "source")
        plan.formats["video"] = format
        plan.notes.append(
            codec == nil
                ? "the program's pictures go on without being copied when they are frames of ours, else with one copy"
                : "the program's pictures are not decoded here; one copy into the queue each")
        if codec != nil { plan.copiesPerFrame = 1 }
        return plan
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        let node = BypassNode(instance)
        let output = instance.element("source").source
        output.onBuffer { [weak node] _ in
            node?.state.withLock { $0.left += 1 }
            return .pass
        }
        output.onUpstreamEvent { [weak node] event in
            if case .forceKeyUnit = event { node?.askForKeyframe() }
            return .pass
        }
        return node
    }

    /// Raw pictures need no keyframe.
    private func askForKeyframe() {
        if codec != nil, state.withLock({ $0.asks() }) { reporter.keyframeNeeded(name) }
    }

    /// Nanoseconds since the pipeline's start; nil when it is gone or does not run yet.
    private func timestamp(_ time: MediaTime) -> UInt64? {
        guard let base = pipeline.pipeline?.baseTime, base > 0 else { return nil }
        return time.nanoseconds > base ? time.nanoseconds - base : 0
    }

    func push(_ picture: VideoBuffer, width: Int, height: Int, at time: MediaTime) -> Bool {
        state.withLock { $0.pushed += 1 }
        guard codec == nil, width == self.width, height == self.height, let timestamp = timestamp(time),
            source.push(picture, timestamp: timestamp)
        else { return refused() }
        state.withLock { $0.queued += 1 }
        return true
    }

    func push(encoded bytes: [UInt8], at time: MediaTime) -> Bool {
        guard let codec, let timestamp = timestamp(time) else { return refused(counting: true) }
        let isKeyframe = codec.isKeyframe(bytes)
        let isFull = source.waiting >= Self.encodedCapacity
        let (isTaken, asks) = state.withLock { state -> (Bool, Bool) in
            state.pushed += 1
            if isFull { state.needsKeyframe = true } else if isKeyframe { state.needsKeyframe = false }
            return (!state.needsKeyframe, state.needsKeyframe && state.asks())
        }
        if asks { reporter.keyframeNeeded(name) }
        guard isTaken, source.push(bytes, timestamp: timestamp, isKeyframe: isKeyframe) else { return refused() }
        state.withLock { $0.queued += 1 }
        return true
    }

    private func refused(counting: Bool = false) -> Bool {
        state.withLock { state in
            if counting { state.pushed += 1 }
            state.dropped += 1
        }
        return false
    }

    func endOfStream() {
        source.endOfStream()
    }

    var statistics: FrameInput.Statistics {
        let waiting = source.waiting
        return state.withLock { state in
            // What entered the queue, did not leave it and does not wait there was pushed out by a newer picture.
            let pushedOut = max(0, state.queued - state.left - waiting)
            return FrameInput.Statistics(pushed: state.pushed, dropped: state.dropped + pushedOut, waiting: waiting)
        }
    }
}

/// Where the program pushes the pictures of a bypass node. All calls may come from any thread, in order for one node.
public struct FrameInput: Sendable {
    /// What became of the pictures so far.
    public struct Statistics: Sendable, Hashable {
        public let pushed: Int
        /// By the queue's rule, or because they fit neither the node nor its state.
        public let dropped: Int
        public let waiting: Int
    }

    let node: BypassNode

    /// Pushes a frame that came out of a graph, without copying it. False when it was dropped: it has another size than
    /// the node, the node takes encoded pictures, or the pipeline does not run.
    @discardableResult
    public func push(_ frame: VideoFrame) -> Bool {
        guard let picture = frame.storage as? VideoBuffer else { return false }
        return node.push(picture, width: frame.width, height: frame.height, at: frame.captureTime)
    }

    /// Pushes a raw picture, which is copied: the planes of I420 without gaps, one after the other. False as above, and
    /// where the planes are too short.
    @discardableResult
    public func push(
        luma: [UInt8], chromaBlue: [UInt8], chromaRed: [UInt8], width: Int, height: Int, at time: MediaTime
    )
        -> Bool
    {
        let quarter = (width + 1) / 2 * ((height + 1) / 2)
        guard width > 0, height > 0, luma.count >= width * height, chromaBlue.count >= quarter,
            chromaRed.count >= quarter
        else { return false }
        let picture = VideoBuffer(
            width: width, height: height, luma: luma, chromaBlue: chromaBlue, chromaRed: chromaRed)
        return node.push(picture, width: width, height: height, at: time)
    }

    /// Pushes one encoded picture, of VP8 or (with its parameter sets before a keyframe) of H.264 in Annex B.
    ///
    /// False when it was dropped: before the first keyframe, and from an overflow on until the next. The event
    /// `keyframeNeeded` with the node's name asks for one.
    @discardableResult
    public func push(encoded bytes: [UInt8], at time: MediaTime) -> Bool {
        node.push(encoded: bytes, at: time)
    }

    /// Tells whatever the node feeds that nothing more comes.
    public func end() {
        node.endOfStream()
    }

    public var statistics: Statistics { node.statistics }
}

extension MediaPipeline {
    /// Where to push pictures of a bypass node; nil when there is none of this name.
    public func frameInput(_ node: String) -> FrameInput? {
        find(BypassNode.self, node).map(FrameInput.init)
    }
}

extension MediaTime {
    /// Now, on the clock that every capture time is on.
    public static var now: MediaTime { GStreamer.now }
}

extension VideoCodec {
    /// Whether decoding can begin with this picture.
    func isKeyframe(_ bytes: [UInt8]) -> Bool {
        switch self {
        case .vp8:
            // RFC 6386, section 9.1: the lowest bit of the frame tag is 0 for a keyframe.
            return bytes.first.map { $0 & 1 == 0 } ?? false
        case .h264:
            // Annex B: a slice of an IDR picture (type 5) behind any start code.
            var index = 0
            while index + 3 < bytes.count {
                if bytes[index] == 0, bytes[index + 1] == 0, bytes[index + 2] == 1 {
                    let type = bytes[index + 3] & 0x1f
                    if type == 5 { return true }
                    if (1...4).contains(type) { return false }
                    index += 3
                } else {
                    index += 1
                }
            }
            return false
        }
    }
}
