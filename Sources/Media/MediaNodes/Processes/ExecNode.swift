import ChildProcesses
import Dispatch
import FrameSocket
import GStreamerKit
import MediaGraph
import Synchronization

/// A program that writes its frames to its standard output. The capture time of a frame is its complete arrival.
final class ExecNode: NodeType, SelfHeadedNode, ProgramOwner {
    private struct State {
        var splitter: StreamSplitter
        /// Nil for encoded frames, whose ends are marked.
        var rhythm: FrameRhythm?
        var run: Run?
        /// When the first and the last bytes of the present program arrived.
        var arrivals: (first: UInt64, last: UInt64)?
        var isRefused = false
        /// The last fault of the program's output.
        var refusal: MediaError?
        var isStopped = false

        /// For how long bytes of the present program arrived, in seconds.
        var seconds: Double { arrivals.map { Double($0.last - $0.first) / 1e9 } ?? 0 }
    }

    /// The output of the present program.
    private struct Run {
        let pipe: OutputPipe
        let readSource: ReadSource
    }

    /// Capacity of the pipe: most of a raw frame, so that the program does not wait for every 64 KiB.
    private static let pipeCapacity = 1 << 20
    /// Reads before other work on the queue gets its turn.
    private static let batch = 16

    private let output: FeedOutput
    private let queue: DispatchQueue
    private let timeout: Double
    private let state: Mutex<State>
    private let program: Program
    private let isRestarted: Bool
    private let hasDelivered = AtomicBool()
    let heldHead = HeldHead()

    private init(_ instance: NodeInstance) {
        let format = FrameFormat(instance)
        output = FeedOutput(instance, format)
        timeout = instance.number("timeout")
        queue = DispatchQueue(label: "media.exec")
        state = Mutex(
            State(splitter: StreamSplitter(format), rhythm: format.encoding.isRaw ? FrameRhythm(format) : nil))
        program = Program(instance, queue: queue)
        isRestarted = instance.flag("restart") && instance.text("away") != "end"
        heldHead.hold(
            SourceHead(
                instance, self, [.video(of: instance)], withoutDevice: isRestarted ? .goesOn : .ends,
                limits: FedSource.limits(format, timeout: timeout)))
    }

    private static let writtenFormats = FrameFormat.names.filter { $0 != "vp8" }

    static let kind = NodeKind(
        "exec", .capturer, "A program that writes frames to its standard output",
        outputs: FrameFormat.output(writtenFormats),
        settings: [Program.commandSetting]
            + FrameFormat.settings(
                writtenFormats,
                "The program's output: raw frames without gaps, Annex B for h264, or successive JPEGs")
            + [
                Program.restartSetting,
                FrameFormat.timeoutSetting("Timeout for frames, after which the program is restarted"),
            ] + FedSource.settings)

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        let words = try Program.check(request)
        let format = FrameFormat(request)
        var plan = try format.plan(request)
        plan.notes.append(
            "runs \(words[0]) and reads its output; frames that are too fast for the graph are dropped, and the "
                + "program blocks only if it writes more than twice as many as fps")
        if format.encoding == .h264 {
            plan.notes.append(
                "a frame of H.264 is complete when the next begins, so each is one frame late")
            plan.latency = 1 / request.number("fps")
        }
        // From the pipe, and into a buffer.
        plan.copiesPerFrame = 2
        return plan
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? { ExecNode(instance) }

    func wire() throws(MediaError) -> Program.Wiring {
        let (pipe, end): (OutputPipe, OwnedDescriptor)
        do throws(ChildProcess.Failure) {
            (pipe, end) = try OutputPipe.make(capacity: Self.pipeCapacity)
        } catch {
            throw MediaError(
                code: "process.not-started",
                message:
                    "A pipe for the program's output cannot be created: \(error.reason). Close programs with many "
                    + "open files.")
        }
        return Program.Wiring(
            descriptors: [nil, end.number], keeping: [end], started: { [weak self] in self?.begin(pipe) })
    }

    private func begin(_ pipe: OutputPipe) {
        output.beginAnew()
        let readSource = ReadSource(pipe.number, of: pipe, on: queue) { [weak self] in self?.read() }
        state.withLock { state in
            state.splitter = StreamSplitter(output.format)
            state.rhythm?.restart()
            state.run = Run(pipe: pipe, readSource: readSource)
            state.arrivals = nil
            state.isRefused = false
        }
    }

    private func read() {
        var most = Int.max
        guard let seconds = read(&most), seconds > 0 else { return }
        state.withLock { $0.run }?.readSource.hold(seconds: seconds)
    }

    /// Reads a batch of at most `most` bytes, and subtracts them. Returns the seconds until the next read, because the
    /// program may write too much; nil if nothing is left.
    private func read(_ most: inout Int) -> Double? {
        for _ in 0..<Self.batch where most > 0 {
            let (run, isStopped, appetite) = state.withLock { ($0.run, $0.isStopped, $0.splitter.appetite) }
            guard let run else { return nil }
            // A program that is to end is not blocked by its remaining output, which is discarded.
            if !isStopped, let seconds = output.delay(guess: { self.guessFromPace() }) { return seconds }
            switch run.pipe.receive(appetite) {
            case .bytes(let bytes):
                if !isStopped { take(bytes) }
                most -= bytes.count
            case .nothing: return nil
            case .end:
                run.readSource.cancel()
                return nil
            }
        }
        return most > 0 ? 0 : nil
    }

    /// The formats of frames that would be as fast as stated.
    private func guessFromPace() -> String? {
        guard output.format.encoding.isRaw else { return nil }
        return state.withLock { RawSizeGuess(output.format).formats(at: $0.splitter.bytes, in: $0.seconds) }
    }

    /// The program has ended. Its remaining output in the pipe is read as usual.
    func takeRest(_ whenTaken: @escaping @Sendable () -> Void) {
        state.withLock { $0.run }?.readSource.cancel()
        takeRest(Self.pipeCapacity, whenTaken)
    }

    /// `most` is how many bytes may still be the program's. Its children may continue to write.
    private func takeRest(_ most: Int, _ whenTaken: @escaping @Sendable () -> Void) {
        var left = most
        guard let seconds = read(&left) else { return whenTaken() }
        queue.asyncAfter(deadline: .now() + seconds) { [weak self, left] in self?.takeRest(left, whenTaken) }
    }

    private func take(_ bytes: [UInt8]) {
        // Nothing after invalid output is read, because the program is about to be ended.
        if state.withLock({ $0.isRefused }) { return }
        var pictures: [[UInt8]] = []
        var fault: StreamSplitter.Fault?
        var other: (length: Int, formats: String)?
        do throws(StreamSplitter.Fault) {
            try state.withLock { (state) throws(StreamSplitter.Fault) in
                let now = FrameFeed.now
                state.arrivals = (state.arrivals?.first ?? now, now)
                other = state.rhythm?.take(bytes.count, at: now)
                try state.splitter.append(bytes) { pictures.append($0) }
            }
        } catch {
            fault = error
        }
        for picture in pictures { push(picture) }
        if let fault { output.fail(refuse(fault)) }
        if let other {
            let reason =
                "it writes \(other.length) bytes at a time, and a frame has \(output.format.bytesPerFrame); they would be "
                + other.formats
            output.warn(badOutput(reason).description)
        }
    }

    private func badOutput(_ reason: String) -> MediaError {
        MediaError(
            code: "process.bad-output",
            message: "The program \(program.command.first ?? "") does not write \(output.format) as stated: "
                + "\(reason). Set format, width and height of the node to those of the program's output, or "
                + "correct the program.")
    }

    /// Returns the error, which is reported.
    @discardableResult
    private func refuse(_ fault: StreamSplitter.Fault) -> MediaError {
        let refusal = badOutput(fault.reason)
        output.warn(refusal.description)
        program.note(fault: fault.reason)
        state.withLock { ($0.isRefused, $0.refusal) = (true, refusal) }
        return refusal
    }

    private func push(_ picture: [UInt8]) {
        output.tookOne()
        if output.push(picture, at: FrameFeed.now) { hasDelivered.raise() }
    }

    func programEnded(isGood: Bool, _ story: MediaError) {
        var rest: [[UInt8]] = []
        let (run, lack) = state.withLock { state in
            // A program that failed or was asked to end may have been in the middle of a frame.
            if !state.isRefused, isGood, !state.isStopped { state.splitter.finish { rest.append($0) } }
            defer { state.run = nil }
            return (state.run, state.isRefused ? nil : state.splitter.lack(after: state.seconds))
        }
        let refusal = lack.map { refuse($0) }
        run?.readSource.cancel()
        for picture in rest { push(picture) }
        if isGood, !isRestarted { output.end() } else { output.fail(refusal ?? story) }
    }

    func prepareToFinish() {
        state.withLock { $0.isStopped = true }
        // A program that does not end keeps the queue busy.
        queue.run(within: Program.patience) { self.program.requestEnd() }
    }

    var stalled: MediaError? {
        state.withLock { $0.refusal } ?? program.silent(timeout)
    }
}

extension ExecNode: SourceDevice {
    func name(of candidate: Int) -> String { program.command.first ?? "" }

    func open(_ candidate: Int, for output: SourceOutput) throws(MediaError) {
        self.output.open(output)
        try program.start(for: self)
    }

    func close() {
        output.close()
        queue.sync {
            let run = state.withLock { state in
                defer { state.run = nil }
                return state.run
            }
            run?.readSource.cancel()
            program.stop(discarding: run?.pipe)
        }
    }

    /// Nothing but its frames tells.
    func isThere(_ candidate: Int) -> Bool { false }

    func isAbsence(_ error: MediaError) -> Bool { false }

    /// A program has 2 s to end.
    var closingLimit: Double { 5 }

    var closingProblem: String { "The program \(name(of: 0)) does not end." }

    func error(for cause: SourceSupervisor.Cause, _ candidate: Int) -> MediaError {
        hasDelivered.value ? program.paused(timeout) : program.silent(timeout)
    }
}

/// Frames that a program writes to its standard output: raw frames without gaps, Annex B for H.264, or successive JPEGs.
public struct Exec: MediaNode {
    public var handle: NodeHandle

    /// A program by its command line.
    ///
    /// - Parameters:
    ///   - command: the program and its arguments, split like a shell command; no shell runs.
    ///   - framesPerSecond: the maximum frame rate.
    ///   - format: the program's output, such as `NV12` or `h264`.
    ///   - restarts: whether to restart the program when it ends; otherwise the stream ends with it.
    ///   - timeout: the time without a frame after which the program is restarted.
    public init(
        command: String, width: Int? = nil, height: Int? = nil, framesPerSecond: Double? = nil, format: String? = nil,
        restarts: Bool? = nil, timeout: Duration? = nil, away: Camera.Away? = nil, slateText: String? = nil,
        slateImage: String? = nil
    ) {
        handle = NodeHandle(
            ExecNode.kind,
            [
                "command": command, "width": width, "height": height, "fps": framesPerSecond, "format": format,
                "restart": restarts, "timeout": timeout?.inSeconds, "away": away, "slate-text": slateText,
                "slate-image": slateImage,
            ])
    }
}
