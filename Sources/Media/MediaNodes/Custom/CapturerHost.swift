import GStreamerKit
import MediaGraph
import Synchronization

/// Runs a Swift capturer.
enum CapturerHost {
    /// The graph makes a value for each node.
    static func implementation<Kind: Capturer>(
        _ type: Kind.Type, _ make: @escaping @Sendable () -> any Capturer
    ) -> NodeImplementation {
        implementation(Kind.kind(make().contracts), NodeValues<Kind>(madeBy: make))
    }

    /// The program has made the value.
    static func implementation<Kind: Capturer>(_ value: Kind) -> NodeImplementation {
        implementation(Kind.kind(value.contractsOfValue), NodeValues(value))
    }

    private static func implementation<Kind: Capturer>(
        _ kind: NodeKind, _ values: NodeValues<Kind>
    ) -> NodeImplementation {
        NodeImplementation(
            kind: kind,
            plan: { (request) throws(MediaError) in
                let format = try Self.format(of: try values.planned(request.node.settings), request.name)
                var plan = NodePlan(request.node)
                try plan.addPushed(format.media, request.environment)
                if format.media.kind == .encodedVideo { plan.copiesPerFrame = 1 }
                return plan
            },
            activate: { (instance) throws(MediaError) in
                let capturer = try values.begun(instance.plan.node.settings)
                let format = try Self.format(of: capturer, instance.name)
                instance.awaitFirstBuffer(at: instance.element("source").source)
                let sink = PipelineSink(instance, format.media)
                return CapturerNode(
                    capturer: capturer, task: NodeTask(instance), sink: sink, output: CaptureOutput(format, sink))
            })
    }

    private static func format<Kind: Capturer>(
        of capturer: Kind, _ node: String
    ) throws(MediaError) -> Kind.Format {
        let format: Kind.Format
        do {
            format = try capturer.format()
        } catch {
            throw MediaError(thrown: error, by: node)
        }
        try format.media.checkForCapture(node)
        return format
    }
}

extension MediaFormat {
    /// Throws `node.format` for formats that no pipeline can carry.
    func checkForCapture(_ node: String) throws(MediaError) {
        let isPicture = kind == .rawVideo || kind == .encodedVideo
        let isWhole = !isPicture || (width != nil && height != nil && framesPerSecond != nil)
        guard isWhole, isPossible else {
            throw MediaError(
                code: MediaError.Code.nodeFormat,
                message: "\"\(node)\" states the format \(self). Use \(Self.possibilities).", node: node)
        }
    }

    /// Whether a pipeline can carry the format, as far as it is stated.
    var isPossible: Bool {
        let sizes = 1...16_384
        let rates = 0.01...1000.0
        // It becomes part of a GStreamer caps string.
        let isWord = encoding.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "_-".contains($0)) }
        return isWord && !encoding.isEmpty && sizes.contains(width ?? 1) && sizes.contains(height ?? 1)
            && rates.contains(framesPerSecond ?? 1)
    }

    /// The requirements of `isPossible`.
    static let possibilities = "frames with sides of 1 to 16384 pixels, at 0.01 to 1000 frames/s"

    var isRaw: Bool { kind == .rawVideo || kind == .rawAudio }
}

/// A capturer in a pipeline, with its sink.
private struct CapturerNode<Kind: Capturer>: RunningNode {
    let capturer: Kind
    let task: NodeTask
    let sink: PipelineSink
    let output: CaptureOutput<Kind.Format>

    func prepare() {
        // Capture times need the pipeline's running clock. Until then the queue and its closure retain each other;
        // `finish` breaks that cycle if the closure was never called.
        sink.queue.source.whenFirstWanted { [task, capturer, output, sink] in
            task.start {
                try await capturer.capture(into: output)
            } onEnd: {
                sink.end()
            }
        }
    }

    func finish() {
        sink.queue.source.forgetFirstWanted()
        task.stop()
    }

    func set(_ setting: String, to value: SettingValue) throws(MediaError) -> Bool {
        try capturer.set(setting, to: value)
        return true
    }
}

/// Connects a capturer to the pipeline.
private final class PipelineSink: CaptureSink {
    private struct State {
        var pool: (format: PictureFormat, pictures: PicturePool?)?
        /// Whether anything was sent, even if it was dropped.
        var hasGiven = false
        var times = CapturedTimes()
        /// The capturer's stated format.
        var stated: MediaFormat
    }

    let queue: PushQueue
    private let name: String
    private let reporter: Reporter
    /// The planned format.
    private let planned: MediaFormat
    private let state: Mutex<State>
    private let keyframe = AtomicBool()

    init(_ instance: NodeInstance, _ format: MediaFormat) {
        name = instance.name
        reporter = instance.reporter
        planned = format
        state = Mutex(State(stated: format))
        queue = PushQueue(instance, isEncoded: format.kind == .encodedVideo) { [keyframe] in keyframe.raise() }
    }

    var now: MediaTime { GStreamer.now }

    func wait(until time: MediaTime) async throws {
        let now = GStreamer.now
        if time > now { try await Task.sleep(for: .nanoseconds(time.nanoseconds - now.nanoseconds)) }
    }

    func takePicture(
        _ format: PictureFormat, at time: MediaTime, _ draw: (inout MutableVideoFrame) throws -> Void
    ) throws -> Bool {
        let time = try settled(time)
        guard let pool = pool(for: format) else {
            throw MediaError(
                code: MediaError.Code.nodeFormat,
                message: "\"\(name)\" states \(format.media), for which no frame can be drawn.", node: name)
        }
        let isTaken = try queue.push(at: time) { source, timestamp in
            try source.push(from: pool, timestamp: timestamp, at: time, draw)
        }
        return took(isTaken)
    }

    func takeSound(
        moments: Int, at time: MediaTime, _ fill: (inout MutableSpan<Int16>) throws -> Void
    ) throws -> Bool {
        let time = try settled(time)
        return took(
            try queue.push(at: time) { source, timestamp in
                try source.push(samples: moments * 2, timestamp: timestamp, fill)
            })
    }

    func takeEncoded(_ bytes: RawSpan, at time: MediaTime, isKeyframe: Bool) throws -> Bool {
        let stated = state.withLock { $0.stated }
        if let fault = EncodedHeader.fault(of: bytes, as: stated, isKeyframe: isKeyframe) {
            throw MediaError(
                code: MediaError.Code.nodeFormat,
                message: "\"\(name)\" states \(stated) but sent another format: \(fault). Correct its format() or its "
                    + "frames.",
                node: name)
        }
        return took(queue.push(encoded: bytes, at: try settled(time), isKeyframe: isKeyframe))
    }

    /// Size and rate may change. Pixel format and codec may not: the plan has inserted the conversions, and nodes
    /// without one accept only the planned format.
    func change(to format: MediaFormat) throws {
        try format.checkForCapture(name)
        guard format.kind == planned.kind, format.encoding == planned.encoding else {
            throw clash(format, "the graph was planned with \(planned.encoding), and only size and rate may change")
        }
        let caps = Caps(format.pushedCaps)
        guard queue.source.peerTakes(caps) else {
            throw clash(format, "the next node does not accept it; put a scale or rate node downstream")
        }
        queue.source.setFormat(caps)
        state.withLock { $0.stated = format }
    }

    private func clash(_ format: MediaFormat, _ why: String) -> MediaError {
        MediaError(
            code: MediaError.Code.formatClash,
            message: "\"\(name)\" cannot change to \(format) while it runs: \(why).", node: name)
    }

    /// The capture time to use. One that goes back is replaced by the arrival time, which is reported once. Throws
    /// `node.time` for a time of another clock.
    private func settled(_ stated: MediaTime) throws(MediaError) -> MediaTime {
        guard !PushQueue.isAhead(stated) else {
            throw MediaError(
                code: MediaError.Code.nodeTime,
                message:
                    "\"\(name)\" sent a frame stamped \(Int(stated.seconds(since: now))) s in the future. Take "
                    + "timestamps from output.now (CLOCK_MONOTONIC).",
                node: name)
        }
        let (time, isNews) = state.withLock { $0.times.settle(stated, now: now) }
        if isNews {
            let milliseconds = max(0, Int(time.milliseconds(since: stated)))
            let error = MediaError(
                code: MediaError.Code.nodeTime,
                message: "\"\(name)\" sent a capture time \(milliseconds) ms before the previous one. The arrival "
                    + "time replaces such times. Send increasing times.",
                node: name)
            reporter.warn(name, error.description)
        }
        return time
    }

    func takeKeyframeRequest() -> Bool { keyframe.exchange(false) }

    /// The capturer returned.
    func end() {
        if state.withLock({ $0.hasGiven }) { return queue.source.endOfStream() }
        let frame = planned.kind == .rawVideo || planned.kind == .encodedVideo ? "a frame" : "audio"
        reporter.fail(
            MediaError(
                code: "node.ended",
                message:
                    "\"\(name)\" ended without sending \(frame). Check whether its settings name an empty source, and "
                    + "throw an error from capture() instead of returning."),
            name)
    }

    private func took(_ isTaken: Bool) -> Bool {
        state.withLock { $0.hasGiven = true }
        return isTaken
    }

    private func pool(for format: PictureFormat) -> PicturePool? {
        state.withLock { state in
            if let pool = state.pool, pool.format == format { return pool.pictures }
            let pictures = PicturePool(Caps(format.media.pushedCaps))
            state.pool = (format, pictures)
            return pictures
        }
    }
}

/// Keeps a node's capture times increasing. Receives the time.
struct CapturedTimes: Sendable {
    private var last: UInt64 = 0
    private var isReported = false

    /// The time to use: the stated one, or the arrival time if the stated one is not later than the previous one.
    /// `isNews` is true for the first replaced time.
    mutating func settle(_ stated: MediaTime, now: MediaTime) -> (time: MediaTime, isNews: Bool) {
        guard stated.nanoseconds <= last else {
            last = stated.nanoseconds
            return (stated, false)
        }
        last = max(now.nanoseconds, last + 1)
        defer { isReported = true }
        return (MediaTime(nanoseconds: last), !isReported)
    }
}
