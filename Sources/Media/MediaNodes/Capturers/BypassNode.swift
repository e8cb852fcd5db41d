import GStreamerKit
public import MediaGraph

/// Frames that the program pushes.
final class BypassNode: NodeType, RunningNode {
    fileprivate let queue: PushQueue
    fileprivate let codec: VideoCodec?
    private let width: Int
    private let height: Int

    private init(_ instance: NodeInstance) {
        codec = VideoCodec(rawValue: instance.text("format"))
        width = instance.integer("width")
        height = instance.integer("height")
        queue = PushQueue(instance, isEncoded: codec != nil) { [reporter = instance.reporter, name = instance.name] in
            reporter.keyframeNeeded(name)
        }
    }

    static let kind = NodeKind(
        "bypass", .capturer, "Frames that the program pushes, raw or encoded, with their capture time",
        outputs: [Port("video", [.rawVideo, .encodedVideo], encodings: ["I420", "vp8", "vp9", "h264"])],
        settings: [
            SettingContract(
                "format", .choice(["raw", "vp8", "vp9", "h264"]), default: "raw",
                "raw is I420; h264 is Annex B, one frame per push, with parameter sets before each keyframe"),
            SettingContract("width", .integer(16...8192), default: 640, unit: "pixels", "Width of the frames"),
            SettingContract("height", .integer(16...8192), default: 480, unit: "pixels", "Height of the frames"),
            SettingContract("fps", .number(1...240), default: 30, unit: "frames/s", "Rate of the pushed frames"),
        ])

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        let (width, height, fps) = (request.integer("width"), request.integer("height"), request.number("fps"))
        var plan = NodePlan(request.node)
        var format = MediaFormat.rawVideo(width: width, height: height, framesPerSecond: fps)
        if let codec = VideoCodec(rawValue: request.text("format")) {
            (format.kind, format.encoding) = (.encodedVideo, codec.rawValue)
            plan.notes.append("the program's frames are passed through encoded, with one copy each")
            plan.copiesPerFrame = 1
        } else {
            plan.notes.append(
                "the program's frames are not copied if they come from this library, otherwise once")
        }
        try plan.addPushed(format, request.environment)
        return plan
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? { BypassNode(instance) }

    func push(_ picture: VideoBuffer, width: Int, height: Int, at time: MediaTime) -> Bool {
        queue.push(at: time) { source, timestamp in
            width == self.width && height == self.height && source.push(picture, timestamp: timestamp)
        }
    }
}

/// The input for a bypass node's frames. Calls may come from any thread, one after the other for each node.
public struct FrameInput: Sendable {
    /// Statistics of the pushed frames.
    public struct Statistics: Sendable, Hashable {
        /// Frames that the application pushed.
        public let pushed: Int
        /// Frames dropped by the queue, or because they did not fit the node or its state.
        public let dropped: Int
        /// Frames that wait in the queue now.
        public let waiting: Int
    }

    let node: BypassNode

    /// Pushes a frame of a graph without copying it. Returns false if it was dropped: it has another size than the
    /// node, the node expects encoded frames, the pipeline is not running, or its time is more than a second after
    /// `MediaTime.now`.
    @discardableResult
    public func push(_ frame: VideoFrame) -> Bool {
        guard let picture = frame.storage as? VideoBuffer else { return false }
        return node.push(picture, width: frame.width, height: frame.height, at: frame.captureTime)
    }

    /// Pushes a raw frame and copies it.
    ///
    /// - Parameters:
    ///   - luma: the Y plane, rows without gaps.
    ///   - chromaBlue: the U plane, at half the width and height.
    ///   - chromaRed: the V plane, at half the width and height.
    /// - Returns: false if the frame was dropped, for the reasons of `push(_:)` or because a plane is too short.
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

    /// Pushes an encoded frame: VP8, or H.264 in Annex B with parameter sets before each keyframe.
    ///
    /// Returns false if it was dropped, for the reasons of `push(_:)` or because a keyframe must come first: at the
    /// start, and after an overflow. The event `keyframeNeeded` then requests one.
    @discardableResult
    public func push(encoded bytes: [UInt8], at time: MediaTime) -> Bool {
        node.queue.push(encoded: bytes.span.bytes, at: time, isKeyframe: node.codec?.isKeyframe(bytes) ?? false)
    }

    /// Ends the stream.
    public func end() {
        node.queue.source.endOfStream()
    }

    /// The counts of the node so far.
    public var statistics: Statistics { node.queue.statistics }
}

extension MediaPipeline {
    /// The input of a bypass node; nil if there is no bypass node with this name.
    package func frameInput(_ node: String) -> FrameInput? {
        find(BypassNode.self, node).map(FrameInput.init)
    }
}

extension MediaTime {
    /// The current time on the clock of capture times.
    public static var now: MediaTime { GStreamer.now }
}

extension VideoCodec {
    /// Whether decoding can begin with this frame.
    func isKeyframe(_ bytes: [UInt8]) -> Bool { EncodedHeader.isKeyframe(bytes.span.bytes, encoding: rawValue) }
}

/// Frames that the program pushes.
public struct Bypass: MediaNode {
    public var handle: NodeHandle

    /// A node for frames of this size in pixels, and of this rate at most.
    ///
    /// - Parameter codec: the codec of the frames; nil for raw I420.
    public init(width: Int, height: Int, framesPerSecond: Double? = nil, codec: VideoCodec? = nil) {
        handle = NodeHandle(
            BypassNode.kind, ["format": codec?.rawValue, "width": width, "height": height, "fps": framesPerSecond])
    }

    /// Takes the frames. It belongs to the node as it runs now, so ask for it again after an edit that replaced the node.
    ///
    /// - Throws: `node.not-running`.
    public var input: FrameInput {
        get throws(MediaError) {
            let (pipeline, name) = try running()
            guard let input = pipeline.frameInput(name) else { throw handle.identity.notRunning(as: name) }
            return input
        }
    }
}

extension Node {
    /// Frames that the program pushes; raw without a codec.
    package static func bypass(
        _ name: String = "bypass", width: Int, height: Int, framesPerSecond: Double? = nil, codec: VideoCodec? = nil
    ) -> Node {
        Node(
            BypassNode.kind, name,
            ["format": codec?.rawValue, "width": width, "height": height, "fps": framesPerSecond])
    }
}
