import FrameSocket
import GStreamerKit
import MediaGraph
import Synchronization

/// Passes frames of another process to the head of its node, while the head has opened that process as its device.
final class FeedOutput: Sendable {
    private struct State {
        /// The head, while the device is open.
        var sink: SourceOutput?
        /// The last frame's time.
        var last: UInt64 = 0
        var rate: RateLimit
        var isTooFastSaid = false
        var pace: PaceMeter
        /// The format of raw frames that are converted.
        var other: (format: FrameFormat, caps: Caps?)?
    }

    let format: FrameFormat
    let name: String
    private let reporter: Reporter
    private let state: Mutex<State>

    init(_ instance: NodeInstance, _ format: FrameFormat) {
        self.format = format
        state = Mutex(State(rate: Self.rate(of: format), pace: PaceMeter(expecting: format.framesPerSecond)))
        (name, reporter) = (instance.name, instance.reporter)
    }

    /// The node's device is opened: frames go to its head from now on.
    func open(_ sink: SourceOutput) { state.withLock { $0.sink = sink } }

    /// Frames that come are refused from now on.
    func close() { state.withLock { $0.sink = nil } }

    private var sink: SourceOutput? { state.withLock { $0.sink } }

    /// Whether the node's device is open.
    var isOpen: Bool { sink != nil }

    func fail(_ error: MediaError) { sink?.fail(error) }
    func end() { sink?.end() }
    func rests(_ rests: Bool) { sink?.rests(rests) }

    // MARK: Frames

    /// Passes a raw frame in its own memory. `onReturn` is called once, even if the frame is refused.
    ///
    /// - Parameter isCopied: whether the memory is needed back at once.
    func push(
        _ memory: MappedMemory, _ picture: FrameIntake.Picture, isCopied: Bool,
        onReturn: @escaping @Sendable () -> Void
    ) -> Bool {
        let frame = MediaBuffer(
            memory, picture.range, picture.format.encoding.rawValue, width: picture.format.width,
            height: picture.format.height, planes: picture.planes.map { ($0.offset, $0.stride) },
            format: caps(picture.format), onReturn: onReturn)
        return (isCopied ? frame?.copied : frame).map { deliver($0, at: picture.captureTime) } ?? false
    }

    /// Passes a frame with its own bytes: an encoded one, or a raw one without gaps.
    func push(_ bytes: [UInt8], at time: UInt64) -> Bool {
        let frame =
            format.encoding.isRaw
            ? MediaBuffer(
                bytes, format.encoding.rawValue, width: format.width, height: format.height,
                planes: format.planes.map { ($0.offset, $0.stride) })
            : MediaBuffer(bytes)
        return frame.map { deliver($0, at: time) } ?? false
    }

    private func deliver(_ frame: MediaBuffer, at time: UInt64) -> Bool {
        // Captured media cannot lie in the future.
        let (sink, settled, pace) = state.withLock { state in
            // Later than the frame before, of any feeder.
            state.last = max(time, state.last + 1)
            return (state.sink, MediaTime(nanoseconds: state.last), state.pace.frame(at: state.last))
        }
        guard let sink, !PushQueue.isAhead(settled) else { return false }
        let isTaken = sink.deliver(frame, settled, 0)
        if let pace { sink.pace(pace) }
        return isTaken
    }

    /// The caps of raw frames of another size or format, which are converted.
    private func caps(_ format: FrameFormat) -> Caps? {
        var stated = self.format
        (stated.encoding, stated.width, stated.height) = (format.encoding, format.width, format.height)
        guard stated != self.format else { return nil }
        return state.withLock { state in
            if let other = state.other, other.format == stated { return other.caps }
            let caps = Caps(stated.media.pushedCaps)
            state.other = (stated, caps)
            return caps
        }
    }

    /// Another feeder connects, or frames were left out: encoded frames pass from the next keyframe on.
    func beginAnew() {
        let sink = state.withLock { state in
            state.rate = Self.rate(of: format)
            state.pace = PaceMeter(expecting: format.framesPerSecond)
            return state.sink
        }
        sink?.interrupt()
    }

    // MARK: Pacing

    /// Twice the frames that the settings state.
    private static func rate(of format: FrameFormat) -> RateLimit {
        RateLimit(perSecond: format.framesPerSecond * 2, burst: max(format.framesPerSecond, 10), now: FrameFeed.now)
    }

    /// How many seconds to wait before more is read. Nil if it can be read now.
    ///
    /// - Parameter guess: names other formats in which the frames would not be too fast. Called once at most.
    func delay(guess: () -> String? = { nil }) -> Double? {
        let (wait, isNews) = state.withLock { state in
            let wait = state.rate.delay(now: FrameFeed.now)
            defer { state.isTooFastSaid = state.isTooFastSaid || wait > 0 }
            return (wait, wait > 0 && !state.isTooFastSaid)
        }
        if isNews {
            let correction =
                guess().map { "its frames have another format, perhaps \($0)" } ?? "correct width, height and format"
            let error = FrameSocketError(
                code: "feed.too-fast",
                "More than twice the \(Int(format.framesPerSecond)) frames/s of the node's setting arrive, so some "
                    + "wait. Raise fps, or send fewer frames. If the program keeps to fps, \(correction)."
            )
            warn(error.description)
        }
        return wait > 0 ? max(wait, 0.02) : nil
    }

    /// A frame or another message was read.
    func tookOne() {
        state.withLock { $0.rate.take() }
    }

    /// Reports a warning about the node.
    func warn(_ message: String) { reporter.warn(name, message) }
}

/// Measures how fast frames come, which the settings only limit.
struct PaceMeter: Sendable {
    private var interval: Double
    private var told: Double
    private var last: UInt64?

    init(expecting rate: Double) {
        interval = 1 / rate
        told = rate
    }

    /// The pace, in frames per second, if it has become another one.
    mutating func frame(at time: UInt64) -> Double? {
        defer { last = time }
        guard let last, time > last else { return nil }
        // A pause counts as two intervals at most, or one would look like a slow program for long.
        let seconds = min(Double(time - last) / 1e9, interval * 2)
        interval += (seconds - interval) / 4
        let pace = 1 / interval
        guard pace < told * 0.75 || pace > told * 1.5 else { return nil }
        told = pace
        return pace
    }
}
