import Synchronization

/// Where a capturer's media goes: a pipeline, or a test of the capturer.
public protocol CaptureSink: AnyObject, Sendable {
    /// The clock that capture times are on.
    var now: MediaTime { get }
    /// Returns at `time`. Throws `CancellationError` when the task is cancelled meanwhile.
    func wait(until time: MediaTime) async throws
    /// Lets `draw` fill a picture of the format, in memory of the sink's own, and takes it. False when it was dropped.
    func takePicture(
        _ format: PictureFormat, at time: MediaTime, _ draw: (inout MutableVideoFrame) throws -> Void
    ) throws -> Bool
    /// Lets `fill` write sound of so many moments (interleaved stereo), and takes it.
    func takeSound(
        moments: Int, at time: MediaTime, _ fill: (inout MutableSpan<Int16>) throws -> Void
    ) throws -> Bool
    /// Takes one encoded picture; the bytes are copied.
    func takeEncoded(_ bytes: RawSpan, at time: MediaTime, isKeyframe: Bool) throws -> Bool
    /// What comes from now on has another format.
    func change(to format: MediaFormat) throws
    /// Whether somebody asked for a keyframe since this was last asked.
    func takeKeyframeRequest() -> Bool
}

/// The way out of a capturer: paces, stamps, and never makes it wait for who comes behind.
public struct CaptureOutput<Format: CaptureFormat>: Sendable {
    private let sink: any CaptureSink
    private let state: CaptureState<Format>

    public init(_ format: Format, _ sink: any CaptureSink) {
        self.sink = sink
        state = CaptureState(format)
    }

    /// What is given now.
    public var format: Format { state.format }

    /// Gives another format from now on: of another size or rate. Throws `graph.format-clash` for another pixel format or
    /// codec than the graph was planned with, and where whoever comes behind cannot take it; the format is as before then.
    public func change(to format: Format) throws {
        try Task.checkCancellation()
        try sink.change(to: format.media)
        state.change(to: format)
    }

    /// Now, on the clock of capture times.
    public var now: MediaTime { sink.now }

    /// Waits until the next picture or block is due; those that were missed are left out.
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
    /// Waits until the next picture is due, by the format's rate, and lets `body` draw it. It is stamped with the moment
    /// at which it was due.
    ///
    /// The planes lie in memory that goes on as it is, without a copy, and hold whatever was there before.
    public func draw(_ body: (inout MutableVideoFrame) throws -> Void) async throws {
        let due = try await next { (1_000_000, UInt64(($0.framesPerSecond * 1_000_000).rounded())) }
        _ = try target.takePicture(format, at: due, body)
    }

    /// Lets `body` draw a picture that was captured at `time`, now if not given. Returns at once: for devices with a
    /// pace of their own. False when whoever comes behind was too slow for it.
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

    /// Waits until the next 10 ms of sound are due and lets `body` write their 480 moments, left and right in turn.
    public func fill(_ body: (inout MutableSpan<Int16>) throws -> Void) async throws {
        let due = try await next { _ in (480, 48_000) }
        _ = try target.takeSound(moments: Self.blockMoments, at: due, body)
    }

    /// Gives sound that was captured at `time` (its beginning), left and right in turn. Returns at once.
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
    /// Waits until the next picture is due, by the format's rate.
    public func nextMoment() async throws -> MediaTime {
        try await next { (1_000_000, UInt64(($0.framesPerSecond * 1_000_000).rounded())) }
    }

    /// Gives one encoded picture that was captured at `time`. Returns at once. False when it was dropped: before the
    /// first keyframe, and from an overflow on until the next.
    @discardableResult
    public func send(_ bytes: RawSpan, at time: MediaTime? = nil, isKeyframe: Bool) throws -> Bool {
        try admit(format.framesPerSecond)
        return try target.takeEncoded(bytes, at: time ?? now, isKeyframe: isKeyframe)
    }

    /// Gives one encoded picture; see above.
    @discardableResult
    public func send(_ bytes: [UInt8], at time: MediaTime? = nil, isKeyframe: Bool) throws -> Bool {
        try send(bytes.span.bytes, at: time, isKeyframe: isKeyframe)
    }

    /// Whether somebody asked for a keyframe since this was last asked.
    public func takeKeyframeRequest() -> Bool { target.takeKeyframeRequest() }
}

/// Where a capturer stands in time.
private final class CaptureState<Format: CaptureFormat>: Sendable {
    private struct State {
        var format: Format
        /// When the first picture of this format was due, and how many were due since.
        var start: MediaTime?
        var index: UInt64 = 0
        /// What was sent in the running second.
        var secondBegan: MediaTime?
        var sent = 0
    }

    /// More than this many times what the format says is a flood, not a burst.
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

    /// When the next is due. Computed from the start by whole numbers, so that nothing adds up.
    func due(now: MediaTime, _ interval: (Format) -> (units: UInt64, perSecond: UInt64)) -> MediaTime {
        state.withLock { state in
            let (units, perSecond) = interval(state.format)
            let period = Double(units) * 1e9 / Double(max(perSecond, 1))
            guard let start = state.start else {
                state.start = now
                state.index = 1
                return now
            }
            // What has been missed by more than one is left out.
            let elapsed = UInt64(max(0, Double(now.nanoseconds &- start.nanoseconds) / period))
            if now > start, elapsed > state.index + 1 { state.index = elapsed }
            let due = UInt64((Double(state.index) * period).rounded())
            state.index += 1
            return MediaTime(nanoseconds: start.nanoseconds + due)
        }
    }

    /// Counts something that was sent without being asked for. Throws `node.flood` for far too much of it.
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
            message: "More than \(Int(limit)) pictures or blocks came within a second, but the format says \(rate) a "
                + "second; send what is captured once, or let draw() wait for the next.")
    }
}
