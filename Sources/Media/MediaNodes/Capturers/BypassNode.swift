import GStreamerKit
public import MediaGraph

/// Frames that the program pushes.
final class BypassNode: NodeType, RunningNode {
    let name: String
    fileprivate let queue: PushQueue
    fileprivate let codec: VideoCodec?
    private let width: Int
    private let height: Int

    private init(_ instance: NodeInstance) {
        name = instance.name
        codec = instance.setting("format")?.text.flatMap(VideoCodec.init(rawValue:))
        width = instance.setting("width")?.integer ?? 0
        height = instance.setting("height")?.integer ?? 0
        queue = PushQueue(instance, isEncoded: codec != nil) { [reporter = instance.reporter, name] in
            reporter.keyframeNeeded(name)
        }
    }

    static let kind = NodeKind.bypass

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        guard let width = request.integer("width"), let height = request.integer("height"),
            let fps = request.number("fps")
        else { preconditionFailure("the settings of pushed frames have defaults") }
        var plan = NodePlan(request.node)
        if let codec = VideoCodec(rawValue: request.text("format")) {
            try plan.addPushed(
                MediaFormat(.encodedVideo, codec.rawValue, width: width, height: height, framesPerSecond: fps),
                request.environment)
            plan.notes.append("the program's frames are passed through encoded, with one copy each")
            plan.copiesPerFrame = 1
        } else {
            try plan.addPushed(
                .rawVideo(width: width, height: height, framesPerSecond: fps), request.environment)
            plan.notes.append(
                "the program's frames are not copied if they come from this library, otherwise once")
        }
        return plan
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? { BypassNode(instance) }

    func push(_ picture: VideoBuffer, width: Int, height: Int, at time: MediaTime) -> Bool {
        queue.push(at: time) { source, timestamp in
            width == self.width && height == self.height && source.push(picture, timestamp: timestamp)
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
    /// the node, the node takes encoded pictures, the pipeline does not run, or its time lies more than a second ahead of
    /// `MediaTime.now`.
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
    /// False when it was dropped: before the first keyframe, from an overflow on until the next, and as above. The event
    /// `keyframeNeeded` with the node's name asks for one.
    @discardableResult
    public func push(encoded bytes: [UInt8], at time: MediaTime) -> Bool {
        node.queue.push(encoded: bytes.span.bytes, at: time, isKeyframe: node.codec?.isKeyframe(bytes) ?? false)
    }

    /// Tells whatever the node feeds that nothing more comes.
    public func end() {
        node.queue.endOfStream()
    }

    public var statistics: Statistics { node.queue.statistics }
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
    /// Whether decoding can begin with this frame.
    func isKeyframe(_ bytes: [UInt8]) -> Bool { EncodedHeader.isKeyframe(bytes.span.bytes, encoding: rawValue) }
}
