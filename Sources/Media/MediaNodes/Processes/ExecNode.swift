import ChildProcesses
import Dispatch
import FrameSocket
import GStreamerKit
package import MediaGraph
import Synchronization

/// A program that writes its frames to its standard output. The capture time of a frame is its complete arrival.
final class ExecNode: NodeType, RunningNode, ProgramOwner {
    private struct State {
        var splitter: StreamSplitter
        var run: Run?
        var isRefused = false
        /// The last fault of the program's output.
        var refusal: MediaError?
        var isStopped = false
    }

    /// The output of the present program.
    private struct Run {
        let pipe: OutputPipe
        let readSource: ReadSource
        /// Waits for frames.
        let watchdog: Watchdog

        /// Reads only on demand from now on.
        func close() {
            watchdog.stop()
            readSource.cancel()
        }
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

    private init(_ instance: NodeInstance) {
        let format = FrameFormat(instance)
        output = FeedOutput(instance, format)
        timeout = instance.number("timeout")
        queue = DispatchQueue(label: "media.exec")
        state = Mutex(State(splitter: StreamSplitter(format)))
        program = Program(instance, queue: queue)
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
            ])

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

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        instance.reporter.await(instance.name)
        return ExecNode(instance)
    }

    func prepare() throws(MediaError) {
        try program.begin(for: self)
    }

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
        let watchdog = Watchdog(limit: timeout, control: queue, pipeline: output.pipeline.value) { [weak self] in
            self?.restartSilent()
        }
        state.withLock { state in
            state.splitter = StreamSplitter(output.format)
            state.run = Run(pipe: pipe, readSource: readSource, watchdog: watchdog)
            state.isRefused = false
        }
        watchdog.feed()
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
            if !isStopped, let seconds = output.delay() { return seconds }
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

    /// The program has ended. Its remaining output in the pipe is read as usual.
    func takeRest(_ whenTaken: @escaping @Sendable () -> Void) {
        state.withLock { $0.run }?.close()
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
        do throws(StreamSplitter.Fault) {
            try state.withLock { (state) throws(StreamSplitter.Fault) in
                try state.splitter.append(bytes) { pictures.append($0) }
            }
        } catch {
            refuse(error)
            program.replace(becauseOf: error.reason)
        }
        for picture in pictures { push(picture) }
    }

    private func refuse(_ fault: StreamSplitter.Fault) {
        let refusal = MediaError(
            code: "process.bad-output",
            message: "The program \(program.command.first ?? "") does not write \(output.format) as stated: "
                + "\(fault.reason). Set format, width and height of the node to those of the program's output, or "
                + "correct the program.")
        output.warn(refusal.description)
        state.withLock { ($0.isRefused, $0.refusal) = (true, refusal) }
    }

    private func push(_ picture: [UInt8]) {
        state.withLock { $0.run }?.watchdog.feed()
        output.tookOne()
        _ = output.push(picture, at: FrameFeed.now)
    }

    func programEnded(isLast: Bool, isGood: Bool) {
        var rest: [[UInt8]] = []
        let (run, lack) = state.withLock { state in
            // A program that failed may have been in the middle of a frame.
            if !state.isRefused, isGood { state.splitter.finish { rest.append($0) } }
            defer { state.run = nil }
            return (state.run, state.isRefused ? nil : state.splitter.lack)
        }
        if let lack { refuse(lack) }
        run?.close()
        for picture in rest { push(picture) }
        if isLast, isGood { output.endOfStream() }
    }

    private func restartSilent() {
        let error = FrameSocketError(
            code: "feed.silent",
            "The program \(program.command.first ?? "") has written no frame for \(Int(timeout)) s and is restarted.")
        output.warn(error.description)
        program.replace(becauseOf: "it has written no frame for \(Int(timeout)) s")
    }

    func prepareToFinish() {
        queue.sync {
            state.withLock { $0.isStopped = true }
            program.requestEnd()
        }
    }

    func finish() {
        queue.sync {
            let run = state.withLock { state in
                defer { state.run = nil }
                state.isStopped = true
                return state.run
            }
            run?.close()
            program.stop(discarding: run?.pipe)
        }
    }

    var stalled: MediaError? {
        state.withLock { $0.refusal } ?? program.stalled
    }
}

/// Frames that a program writes to its standard output: raw frames without gaps, Annex B for H.264, or successive JPEGs.
public struct Exec: MediaNode {
    public var handle: NodeHandle

    /// - Parameters:
    ///   - command: the program and its arguments, split like a shell command; no shell runs.
    ///   - framesPerSecond: the maximum frame rate.
    ///   - format: the program's output, such as `NV12` or `h264`.
    ///   - restarts: whether to restart the program when it ends; otherwise the stream ends with it.
    ///   - timeout: the time without a frame after which the program is restarted.
    public init(
        command: String, width: Int? = nil, height: Int? = nil, framesPerSecond: Double? = nil, format: String? = nil,
        restarts: Bool? = nil, timeout: Duration? = nil
    ) {
        handle = NodeHandle(
            ExecNode.kind,
            [
                "command": command, "width": width, "height": height, "fps": framesPerSecond, "format": format,
                "restart": restarts, "timeout": timeout?.inSeconds,
            ])
    }
}

extension Node {
    /// Frames that a program writes to its standard output.
    package static func exec(
        _ name: String = "exec", command: String, width: Int? = nil, height: Int? = nil,
        framesPerSecond: Double? = nil, format: String? = nil
    ) -> Node {
        Node(
            ExecNode.kind, name,
            [
                "command": command, "width": width, "height": height, "fps": framesPerSecond,
                "format": format,
            ])
    }
}
