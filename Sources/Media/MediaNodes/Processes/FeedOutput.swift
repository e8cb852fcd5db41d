import FrameSocket
import GStreamerKit
import MediaGraph
import Synchronization

/// Passes frames of another process into the graph.
final class FeedOutput: Sendable {
    private struct State {
        /// The last frame's time.
        var last: UInt64 = 0
        var rate: RateLimit
        var isTooFastSaid = false
    }

    let format: FrameFormat
    let name: String
    private let reporter: Reporter
    private let queue: PushQueue
    let pipeline: WeakBox<Pipeline>
    private let codec: VideoCodec?
    private let state: Mutex<State>

    /// `keyframeWanted` is called whenever decoding needs a keyframe. Raw frames and JPEGs need none.
    init(_ instance: NodeInstance, _ format: FrameFormat, keyframeWanted: @escaping @Sendable () -> Void = {}) {
        self.format = format
        pipeline = WeakBox(instance.pipeline)
        codec = VideoCodec(rawValue: format.encoding.name)
        queue = PushQueue(instance, isEncoded: codec != nil, onKeyframeNeeded: keyframeWanted)
        state = Mutex(State(rate: Self.rate(of: format)))
        (name, reporter) = (instance.name, instance.reporter)
        instance.element("source").source.watchBuffers { [reporter, name] _ in reporter.isReady(name) }
    }

    /// Whether the pipeline is paused, so that nothing is expected.
    var isPaused: Bool { pipeline.value?.isPaused == true }

    /// The capture time, later than that of the previous frame, of any feeder.
    private func settled(_ time: UInt64) -> MediaTime {
        state.withLock { state in
            state.last = max(time, state.last + 1)
            return MediaTime(nanoseconds: state.last)
        }
    }

    /// Sets the size of further frames, which are scaled.
    func setSize(width: Int, height: Int) {
        var format = format
        (format.width, format.height) = (width, height)
        queue.source.setFormat(Caps(format.media.pushedCaps))
    }

    /// Passes a raw frame in its own memory. `onReturn` is called once, even if the frame is refused.
    func push(
        _ memory: MappedMemory, _ picture: FrameIntake.Picture, onReturn: @escaping @Sendable () -> Void
    ) -> Bool {
        var isOffered = false
        let isTaken = queue.push(at: settled(picture.captureTime)) { source, timestamp in
            isOffered = true
            return source.push(
                memory, picture.range, picture.format.encoding.rawValue, width: picture.format.width,
                height: picture.format.height, planes: picture.planes.map { ($0.offset, $0.stride) },
                timestamp: timestamp, onReturn: onReturn)
        }
        if !isOffered { onReturn() }
        return isTaken
    }

    /// Passes a frame with its own bytes: an encoded one, or a raw one without gaps.
    func push(_ bytes: [UInt8], at time: UInt64) -> Bool {
        if let codec {
            return queue.push(encoded: bytes.span.bytes, at: settled(time), isKeyframe: codec.isKeyframe(bytes))
        }
        return queue.push(at: settled(time)) { source, timestamp in
            source.push(bytes.span.bytes, timestamp: timestamp, isKeyframe: true)
        }
    }

    /// Another feeder connects: its first encoded frame has to be a keyframe.
    func beginAnew() {
        queue.dropToKeyframe()
        state.withLock { $0.rate = Self.rate(of: format) }
    }

    // MARK: Pacing

    /// Twice the frames that the settings state.
    private static func rate(of format: FrameFormat) -> RateLimit {
        RateLimit(perSecond: format.framesPerSecond * 2, burst: max(format.framesPerSecond, 10), now: FrameFeed.now)
    }

    /// How many seconds to wait before more is read. Nil if it can be read now.
    func delay() -> Double? {
        let (wait, isNews) = state.withLock { state in
            let wait = state.rate.delay(now: FrameFeed.now)
            defer { state.isTooFastSaid = state.isTooFastSaid || wait > 0 }
            return (wait, wait > 0 && !state.isTooFastSaid)
        }
        if isNews {
            let error = FrameSocketError(
                code: "feed.too-fast",
                "More than twice the \(Int(format.framesPerSecond)) frames/s of the node's setting arrive, so some "
                    + "wait. Raise fps, or send fewer frames.")
            warn(error.description)
        }
        return wait > 0 ? max(wait, 0.02) : nil
    }

    /// A frame or another message was read.
    func tookOne() {
        state.withLock { $0.rate.take() }
    }

    func endOfStream() { queue.source.endOfStream() }

    /// Reports a warning about the node.
    func warn(_ message: String) { reporter.warn(name, message) }
}
