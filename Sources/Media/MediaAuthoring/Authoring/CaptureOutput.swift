import Synchronization

/// The consumer of a capturer's media: a pipeline or a test. Capturers use ``CaptureOutput`` instead.
public protocol CaptureSink: AnyObject, Sendable {
    /// The current time, on the clock of capture times.
    var now: MediaTime { get }
    /// Waits until `time`. Throws `CancellationError` if the task is cancelled meanwhile.
    func wait(until time: MediaTime) async throws
    /// Passes a frame in the sink's memory to `draw`, then accepts it. Returns false if it dropped the frame.
    ///
    /// - Throws: an error of `draw`, or the reason why the node has to end.
    func takePicture(
        _ format: PictureFormat, at time: MediaTime, _ draw: (inout MutableVideoFrame) throws -> Void
    ) throws -> Bool
    /// Passes a buffer to `fill`, then accepts it. It holds `moments` sample pairs, left and right interleaved.
    ///
    /// - Throws: an error of `fill`, or the reason why the node has to end.
    func takeSound(
        moments: Int, at time: MediaTime, _ fill: (inout MutableSpan<Int16>) throws -> Void
    ) throws -> Bool
    /// Accepts a copy of one encoded frame. Returns false if it dropped the frame.
    ///
    /// - Throws: the reason why the node has to end.
    func takeEncoded(_ bytes: RawSpan, at time: MediaTime, isKeyframe: Bool) throws -> Bool
    /// Announces the format of the frames that follow.
    ///
    /// - Throws: `graph.format-clash` if a node downstream does not accept the format.
    func change(to format: MediaFormat) throws
    /// Whether a keyframe was requested since the last call.
    func takeKeyframeRequest() -> Bool
}

/// Where a capturer sends its media.
///
/// It stamps frames with their capture time, and paces those that the program draws. Downstream never blocks it: a queue
/// that is full drops its oldest frame.
///
/// | media | paced by the output | paced by a device |
/// |---|---|---|
/// | raw frames, ``PictureFormat`` | `draw` | `send(at:_:)` |
/// | audio, ``SoundFormat`` | `fill` | `send(_:at:)` |
/// | encoded frames, ``EncodedPictureFormat`` | `nextMoment`, then `send` | `send(_:at:isKeyframe:)` |
///
/// Call it from the capturer's own thread. Each call throws `CancellationError` once the graph stops.
public struct CaptureOutput<Format: CaptureFormat>: Sendable {
    private let sink: any CaptureSink
    private let state: CaptureState<Format>

    /// An output for a sink, such as a test's. A graph makes that of each capturer itself.
    public init(_ format: Format, _ sink: any CaptureSink) {
        self.sink = sink
        state = CaptureState(format)
    }

    /// The current format: the planned one, or that of the last `change(to:)`.
    public var format: Format { state.format }

    /// Changes the size or frame rate, from the next frame on.
    ///
    /// Throws `graph.format-clash` if the pixel format or codec differs from the planned one, or if a node downstream does
    /// not accept the size. The format is then unchanged.
    public func change(to format: Format) throws {
        try Task.checkCancellation()
        try sink.change(to: format.media)
        state.change(to: format)
    }

    /// The current time, on the clock of capture times: `CLOCK_MONOTONIC`.
    public var now: MediaTime { sink.now }

    /// Waits until `time` on the clock of capture times, for a device that has to be polled.
    /// - Throws: `CancellationError` when the capturer is cancelled meanwhile.
    public func wait(until time: MediaTime) async throws {
        try Task.checkCancellation()
        try await sink.wait(until: time)
    }

    /// Waits until the next frame or audio buffer is due. Skips those whose time has passed.
    fileprivate func next(_ interval: (Format) -> (units: UInt64, perSecond: UInt64)) async throws -> MediaTime {
        try Task.checkCancellation()
        let due = state.due(now: sink.now, interval)
        try await sink.wait(until: due)
        try Task.checkCancellation()
        return due
    }

    fileprivate func admit(_ rate: Double) throws {
        try Task.checkCancellation()
        try state.admit(now: sink.now, rate)
    }

    fileprivate var target: any CaptureSink { sink }
}

extension CaptureOutput where Format == PictureFormat {
    /// Waits until the next frame is due at the format's frame rate, and calls `body` to draw it.
    ///
    /// The frame is stamped with the time at which it was due. Its planes are memory of the pipeline, passed on without a
    /// copy; they hold old content, so draw every pixel. A machine that is too slow skips frames.
    ///
    /// - Throws: `CancellationError` once the graph stops, and errors of `body`.
    public func draw(_ body: (inout MutableVideoFrame) throws -> Void) async throws {
        let due = try await next { (1_000_000, UInt64(($0.framesPerSecond * 1_000_000).rounded())) }
        _ = try target.takePicture(format, at: due, body)
    }

    /// Calls `body` to write a frame that was captured at `time`, and sends it. For devices with a pace of their own.
    ///
    /// Never waits. Throws `node.flood` for far more frames than the format states.
    /// - Parameters:
    ///   - time: the capture time on `now`'s clock; the current time if it is nil. A time that does not increase is
    ///     replaced by the current time. A time over a second in the future ends the node with `node.time`.
    ///   - body: writes the planes, which are memory of the pipeline with old content.
    /// - Returns: false if the frame was dropped, because downstream is too slow.
    @discardableResult
    public func send(
        at time: MediaTime? = nil, _ body: (inout MutableVideoFrame) throws -> Void
    ) throws -> Bool {
        try admit(format.framesPerSecond)
        return try target.takePicture(format, at: time ?? now, body)
    }
}

extension CaptureOutput where Format == SoundFormat {
    private static var blockMoments: Int { 480 }

    /// Waits until the next 10 ms of audio are due, and calls `body` to write 960 samples: 480 pairs of left and right.
    ///
    /// - Throws: `CancellationError` once the graph stops, and errors of `body`.
    public func fill(_ body: (inout MutableSpan<Int16>) throws -> Void) async throws {
        let due = try await next { _ in (480, 48_000) }
        _ = try target.takeSound(moments: Self.blockMoments, at: due, body)
    }

    /// Sends audio. For devices with a pace of their own; never waits.
    /// - Parameters:
    ///   - samples: left and right, alternating.
    ///   - time: when the first sample was captured, on `now`'s clock; the current time if it is nil.
    /// - Returns: false if the audio was dropped, because downstream is too slow.
    /// - Throws: `CancellationError` once the graph stops; `node.flood` for far more audio than real time.
    @discardableResult
    public func send(_ samples: [Int16], at time: MediaTime? = nil) throws -> Bool {
        guard samples.count > 1 else { return true }
        try admit(1000)
        return try target.takeSound(moments: samples.count / 2, at: time ?? now) { block in
            for index in 0..<min(block.count, samples.count) { block[index] = samples[index] }
        }
    }
}

extension CaptureOutput where Format == EncodedPictureFormat {
    /// Waits until the next frame is due at the format's frame rate. Returns that time.
    ///
    /// - Throws: `CancellationError` once the graph stops.
    public func nextMoment() async throws -> MediaTime {
        try await next { (1_000_000, UInt64(($0.framesPerSecond * 1_000_000).rounded())) }
    }

    /// Sends a copy of one encoded frame. Never waits.
    ///
    /// Throws `node.format` if the frame's header contradicts the format or `isKeyframe`, and for an H.264 B-frame.
    /// - Parameters:
    ///   - bytes: one whole frame. H.264 is Annex B, with parameter sets before each keyframe.
    ///   - time: when the frame was captured, on `now`'s clock; the current time if it is nil.
    ///   - isKeyframe: whether a decoder can start with this frame; true for every JPEG.
    /// - Returns: false if the frame was dropped: it precedes the first keyframe, or follows a dropped frame without a
    ///   keyframe in between.
    /// - Throws: as for bytes in a span.
    @discardableResult
    public func send(_ bytes: RawSpan, at time: MediaTime? = nil, isKeyframe: Bool) throws -> Bool {
        try admit(format.framesPerSecond)
        return try target.takeEncoded(bytes, at: time ?? now, isKeyframe: isKeyframe)
    }

    /// Sends one encoded frame from an array.
    ///
    /// - Throws: as for bytes in a span.
    @discardableResult
    public func send(_ bytes: [UInt8], at time: MediaTime? = nil, isKeyframe: Bool) throws -> Bool {
        try send(bytes.span.bytes, at: time, isKeyframe: isKeyframe)
    }

    /// Whether a keyframe was requested since the last call.
    public func takeKeyframeRequest() -> Bool { target.takeKeyframeRequest() }
}

/// When a capturer's next frame is due, and how many it has sent.
private final class CaptureState<Format: CaptureFormat>: Sendable {
    private struct State {
        var format: Format
        /// When the first frame of this format was due, and how many have been due since.
        var start: MediaTime?
        var index: UInt64 = 0
        /// How much was sent in the current second.
        var secondBegan: MediaTime?
        var sent = 0
    }

    /// More than this many times the stated rate is a flood, not a burst.
    private static var tolerance: Double { 4 }

    private let state: Mutex<State>

    init(_ format: Format) {
        state = Mutex(State(format: format))
    }

    var format: Format { state.withLock { $0.format } }

    func change(to format: Format) {
        state.withLock { state in
            state.format = format
            state.start = nil
        }
    }

    /// When the next frame is due. Counted from the first one, so that rounding errors do not add up.
    func due(now: MediaTime, _ interval: (Format) -> (units: UInt64, perSecond: UInt64)) -> MediaTime {
        state.withLock { state in
            let (units, perSecond) = interval(state.format)
            let period = Double(units) * 1e9 / Double(max(perSecond, 1))
            guard let start = state.start else {
                state.start = now
                state.index = 1
                return now
            }
            // Skips the frames that are late by more than one interval.
            let elapsed = UInt64(max(0, Double(now.nanoseconds &- start.nanoseconds) / period))
            if now > start, elapsed > state.index + 1 { state.index = elapsed }
            let due = UInt64((Double(state.index) * period).rounded())
            state.index += 1
            return MediaTime(nanoseconds: start.nanoseconds + due)
        }
    }

    /// Counts a frame that the capturer paced itself. Throws `node.flood` if there are far too many.
    func admit(now: MediaTime, _ rate: Double) throws {
        let limit = max(rate * Self.tolerance, 100)
        let isFlood = state.withLock { state in
            if let began = state.secondBegan, now.seconds(since: began) < 1 {
                state.sent += 1
            } else {
                state.secondBegan = now
                state.sent = 1
            }
            return Double(state.sent) > limit
        }
        guard isFlood else { return }
        throw MediaError(
            code: MediaError.Code.nodeFlood,
            message: "The capturer sent more than \(Int(limit)) frames within a second, but its format states "
                + "\(rate) per second. Send each frame once, or let draw() wait for the next one.")
    }
}
