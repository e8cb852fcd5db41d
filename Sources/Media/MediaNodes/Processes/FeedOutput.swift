import GStreamerKit
import MediaGraph
import Synchronization

/// Passes frames of another process into the graph.
final class FeedOutput: Sendable {
    private struct State {
        /// The last frame's time.
        var last: UInt64 = 0
        var onKeyframeWanted: (@Sendable () -> Void)?
    }

    let picture: FeedPicture
    private let queue: PushQueue
    private let pipeline: WeakPipeline
    private let codec: VideoCodec?
    private let state: Mutex<State>

    init(_ instance: NodeInstance, _ picture: FeedPicture) {
        self.picture = picture
        pipeline = WeakPipeline(instance.pipeline)
        codec = VideoCodec(rawValue: picture.name)
        let output = WeakBox<FeedOutput>()
        queue = PushQueue(instance, isEncoded: codec != nil) { output.value?.wantKeyframe() }
        state = Mutex(State())
        output.set(self)
        let (reporter, name) = (instance.reporter, instance.name)
        instance.element("source").source.onBuffer { _ in
            reporter.isReady(name)
            return .pass
        }
    }

    /// Calls `body` whenever decoding needs a keyframe. Raw frames and JPEGs need none.
    func onKeyframeWanted(_ body: @escaping @Sendable () -> Void) {
        state.withLock { $0.onKeyframeWanted = body }
    }

    private func wantKeyframe() {
        state.withLock { $0.onKeyframeWanted }?()
    }

    /// Whether the pipeline is paused, so that nothing is expected.
    var isPaused: Bool { pipeline.pipeline?.isPaused == true }

    /// The capture time, later than that of the previous frame, of any feeder.
    private func settled(_ time: UInt64) -> MediaTime {
        state.withLock { state in
            state.last = max(time, state.last + 1)
            return MediaTime(nanoseconds: state.last)
        }
    }

    /// Sets the size of further frames, which are scaled.
    func setSize(width: Int, height: Int) {
        queue.change(to: picture.caps(width: width, height: height))
    }

    /// Passes a raw frame in its own memory. `onReturn` is called once, even if the frame is refused.
    func push(
        _ memory: MappedMemory, _ range: Range<Int>, _ layout: PictureLayout, at time: UInt64,
        onReturn: @escaping @Sendable () -> Void
    ) -> Bool {
        var isOffered = false
        let isTaken = queue.push(at: settled(time)) { source, timestamp in
            isOffered = true
            return source.push(memory, range, layout, timestamp: timestamp, onReturn: onReturn)
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
    func beginAnew() { queue.dropToKeyframe() }

    func endOfStream() { queue.endOfStream() }
}
