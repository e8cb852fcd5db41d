import ChildProcesses
import Dispatch
import FrameSocket
import MediaGraph
import Synchronization

/// A node with a program, which calls these on the node's queue.
protocol ProgramOwner: AnyObject, Sendable {
    /// The descriptors for the next start.
    func wire() throws(MediaError) -> Program.Wiring
    /// The program has ended. Calls `whenTaken` on the queue when all of its output is read.
    func takeRest(_ whenTaken: @escaping @Sendable () -> Void)
    /// All of its output is read. It is the last time if the program is not restarted.
    func programEnded(isLast: Bool, isGood: Bool)
}

/// A node's program, which is restarted when it ends, and whose output is passed on.
///
/// On one queue; `finish` is called from outside of it.
final class Program: Sendable {
    /// Descriptors for a starting program.
    struct Wiring: Sendable {
        /// `descriptors[n]` becomes its descriptor n. If 1 and 2 are nil, they are its output.
        var descriptors: [Int32?]
        var environment: [String: String] = [:]
        /// Keeps the descriptors open until the program has them.
        var keeping: [any AnyObject & Sendable] = []
        /// Called once the program runs.
        var started: @Sendable () -> Void = {}
    }

    /// A program that runs.
    private struct Run {
        let child: ChildProcess
        let words: OutputPipe
        let end: ReadSource
        let listening: ReadSource
    }

    private struct State {
        weak var owner: (any ProgramOwner)?
        var run: Run?
        /// 0 before the first start.
        var startedAt: UInt64 = 0
        /// When it was asked to end.
        var askedAt: UInt64 = 0
        var backoff = Backoff()
        var log: LineLog
        var isRestarted: Bool
        /// Why the graph ends the running program, to restart it. It is reported already.
        var fault: String?
        /// Whether its end was requested.
        var isDismissed = false
        /// Whether it has ended and its remaining output is being read.
        var isTakingRest = false
        /// Whether the end of the frames was reported.
        var isOver = false
        var isStopping = false
    }

    /// Seconds that a program has to end by itself.
    private static let grace = 2.0
    /// How much output is read after its end: the capacity of a pipe. Its children may continue to write.
    private static let mostLastWords = 1 << 16

    let command: [String]
    private let path: String
    private let name: String
    private let queue: DispatchQueue
    private let reporter: Reporter
    private let state: Mutex<State>

    static let commandSetting = SettingContract(
        "command", .text, isRequired: true,
        "The program and its arguments, split like a shell command; no shell runs"
    ).written(
        #"(?:[^'"\\]|\\[\s\S]|'[^']*'|"(?:[^"\\]|\\[\s\S])*")+"#,
        "a program and its arguments, with every quote closed"
    ).example("python3 clock.py")

    static let restartSetting = SettingContract(
        "restart", .flag, default: true,
        "Whether to restart the program when it ends; otherwise the stream ends with it")

    init(_ instance: NodeInstance, queue: DispatchQueue) {
        name = instance.name
        command = CommandWords.split(instance.text("command")) ?? []
        path = ProgramSearch.find(command.first ?? "") ?? ""
        self.queue = queue
        reporter = instance.reporter
        let isRestarted = instance.flag("restart")
        state = Mutex(State(log: LineLog(now: FrameFeed.now), isRestarted: isRestarted))
    }

    /// The words of a command. Throws if it is malformed.
    static func check(_ request: NodeRequest) throws(MediaError) -> [String] {
        guard let words = CommandWords.split(request.text("command")), let first = words.first else {
            throw MediaError(
                code: MediaError.Code.settingUnusable,
                message:
                    "\"\(request.name)\": the command \(request.text("command")) is malformed. Write a program and "
                    + "its arguments, and close its quotes.")
        }
        guard request.environment.program(first) != nil else { throw missing(first) }
        return words
    }

    private static func missing(_ program: String) -> MediaError {
        MediaError(
            code: "process.not-found",
            message: "The program \(program) does not exist or is not executable. Install it, or write its path.")
    }

    /// The program's last output line.
    var lastWords: String? { state.withLock { $0.log.last } }

    private var owner: (any ProgramOwner)? { state.withLock { $0.owner } }
    private var title: String { command.first ?? "" }

    // MARK: Starting

    /// Starts the program, from outside of the queue.
    func begin(for owner: any ProgramOwner) throws(MediaError) {
        state.withLock { $0.owner = owner }
        try queue.sync { Result { () throws(MediaError) in try start() } }.get()
    }

    private func start() throws(MediaError) {
        guard let owner else { throw Reporter.stopped }
        let wiring = try owner.wire()
        let (words, end, child): (OutputPipe, OwnedDescriptor, ChildProcess)
        do throws(ChildProcess.Failure) {
            (words, end) = try OutputPipe.make()
            var descriptors = wiring.descriptors
            while descriptors.count < 3 { descriptors.append(nil) }
            for number in 1...2 where descriptors[number] == nil { descriptors[number] = end.number }
            child = try ChildProcess(
                path: path, arguments: Array(command.dropFirst()),
                environment: ChildProcess.inheritedEnvironment.merging(wiring.environment) { $1 },
                descriptors: descriptors)
        } catch {
            throw MediaError(
                code: "process.not-started",
                message: "The program \(title) cannot be started: \(error.reason). Check that it runs by hand.")
        }
        let listening = ReadSource(words.number, of: words, on: queue) { [weak self] in _ = self?.listen(words) }
        let ending = ReadSource(child.endDescriptor, of: child, on: queue) { [weak self] in self?.ended() }
        state.withLock { state in
            state.run = Run(child: child, words: words, end: ending, listening: listening)
            state.startedAt = FrameFeed.now
            state.fault = nil
        }
        // The program's ends had to stay open until here.
        withExtendedLifetime((end, wiring)) {}
        wiring.started()
    }

    // MARK: Its output

    /// Returns how many bytes were read.
    private func listen(_ words: OutputPipe) -> Int {
        switch words.receive(4096) {
        case .nothing: return 0
        case .end:
            state.withLock { $0.run }?.listening.cancel()
            return 0
        case .bytes(let bytes):
            let (lines, fault) = state.withLock { ($0.log.append(bytes, now: FrameFeed.now), $0.fault) }
            for line in lines { tell(line, unlessItRepeats: fault) }
            return bytes.count
        }
    }

    /// A feeder that is refused usually prints the reason that the graph has reported.
    private func tell(_ line: String, unlessItRepeats fault: String?) {
        if let fault, line.contains(fault) { return }
        reporter.warn(name, line)
    }

    // MARK: Its end

    private func ended() {
        guard let run = state.withLock({ $0.run }), let ending = run.child.ended else { return }
        var left = Self.mostLastWords
        while left > 0 {
            let count = listen(run.words)
            if count == 0 { break }
            left -= count
        }
        run.end.cancel()
        run.listening.cancel()
        let (startedAt, rest, fault) = state.withLock { state in
            (state.run, state.isTakingRest) = (nil, true)
            return (state.startedAt, state.log.takeLine(), state.fault)
        }
        if let rest { tell(rest, unlessItRepeats: fault) }
        let seconds = Double(FrameFeed.now - startedAt) / 1e9
        owner?.takeRest { [weak self] in self?.settle(ending, after: seconds) }
    }

    /// All output of the program is read.
    private func settle(_ ending: ChildProcess.Ending, after seconds: Double) {
        let (isStopping, isDismissed, isRestarted, last, fault) = state.withLock { state in
            state.isTakingRest = false
            if !state.isRestarted { state.isOver = true }
            return (state.isStopping, state.isDismissed, state.isRestarted, state.log.last, state.fault)
        }
        if isStopping { return }
        owner?.programEnded(isLast: !isRestarted, isGood: ending.isGood || isDismissed)
        let story =
            fault.map { "The graph ended the program \(title): \($0.trimmedSentence)" }
            ?? "The program \(title) \(ending)" + (last.map { "; its last output was \"\($0)\"" } ?? "")
        guard isRestarted else {
            if !ending.isGood, !isDismissed {
                reporter.fail(MediaError(code: "process.ended", message: "\(story). Run it by hand to see why."), name)
            }
            return
        }
        restart(after: seconds, fault == nil ? story : nil)
    }

    /// - Parameter story: the reason, unless it is reported already
    private func restart(after seconds: Double, _ story: String?) {
        let delay = state.withLock { $0.backoff.delay(afterRunning: seconds, chance: .random(in: 0...1)) }
        if let story {
            let tenths = Double(Int(delay * 10 + 0.5)) / 10
            let error = MediaError(code: "process.ended", message: "\(story). It restarts in \(tenths) s.")
            reporter.warn(name, error.description)
        }
        queue.asyncAfter(deadline: .now() + delay) { [weak self] in self?.startAgain() }
    }

    private func startAgain() {
        guard state.withLock({ !$0.isStopping && $0.isRestarted && $0.run == nil }) else { return }
        do throws(MediaError) {
            try start()
        } catch {
            restart(after: 0, "\(error.message)")
        }
    }

    /// The end of a message about a fault for which the program is replaced.
    var consequence: String {
        "The graph ends the program \(title)" + (state.withLock { $0.isRestarted } ? " and restarts it." : ".")
    }

    /// Ends a program that misbehaves or is done. It is restarted. Called on the queue.
    ///
    /// - Parameter fault: the reason, which is reported already. If nil, its end is reported
    func replace(becauseOf fault: String? = nil) {
        let run = state.withLock { state in
            if state.run != nil { state.fault = state.fault ?? fault }
            return state.run
        }
        guard let child = run?.child else { return }
        child.askToEnd()
        later(child) { $0.kill() }
    }

    /// The program is about to end, or should be. Ends it after a grace period.
    func awaitEnd() {
        guard let child = state.withLock({ $0.run })?.child else { return }
        later(child) { [weak self] _ in self?.replace() }
    }

    /// The program was asked to end and is not restarted. Called on the queue.
    func dismiss() {
        let isOverNow = state.withLock { state in
            (state.isRestarted, state.isDismissed) = (false, true)
            // A program that waits for its restart has ended already.
            guard state.run == nil, state.startedAt > 0, !state.isTakingRest, !state.isStopping, !state.isOver else {
                return false
            }
            state.isOver = true
            return true
        }
        if isOverNow { owner?.programEnded(isLast: true, isGood: true) }
        awaitEnd()
    }

    private func later(_ child: ChildProcess, _ body: @escaping @Sendable (ChildProcess) -> Void) {
        queue.asyncAfter(deadline: .now() + Self.grace) { [weak self] in
            guard let self, state.withLock({ $0.run })?.child === child else { return }
            body(child)
        }
    }

    /// Asks the program to end. Called on the queue.
    func requestEnd() {
        let child = state.withLock { state in
            state.isStopping = true
            if state.askedAt == 0 { state.askedAt = FrameFeed.now }
            return state.run?.child
        }
        child?.askToEnd()
    }

    /// Ends the program and waits for that. Its output meanwhile, also to `output`, is discarded. Called on the queue.
    func stop(discarding output: OutputPipe? = nil) {
        requestEnd()
        let (run, askedAt) = state.withLock { state in
            defer { state.run = nil }
            return (state.run, state.askedAt)
        }
        guard let run else { return }
        run.end.cancel()
        let left = Self.grace - Double(FrameFeed.now - askedAt) / 1e9
        _ = run.child.end(within: max(0, left), discarding: [run.words] + (output.map { [$0] } ?? []))
        run.listening.cancel()
    }
}

/// Splits a program's output into lines, and limits their number.
struct LineLog: Sendable {
    private static let longest = 500

    private var line: [UInt8] = []
    private var words: LogLimit
    private(set) var last: String?

    init(now: UInt64) {
        words = LogLimit(perSecond: 5, burst: 20, now: now)
    }

    mutating func append(_ bytes: [UInt8], now: UInt64) -> [String] {
        var lines: [String] = []
        for byte in bytes {
            guard byte == 0x0a else {
                if line.count < Self.longest { line.append(byte) }
                continue
            }
            guard let text = takeLine(), let leftOut = words.admit(now: now) else { continue }
            lines += leftOut > 0 ? ["(\(leftOut) lines omitted)", text] : [text]
        }
        return lines
    }

    /// The line so far, without control characters for a terminal. Nil if it is empty. At the end of the program, text
    /// without a line end is a line too.
    mutating func takeLine() -> String? {
        let text = String(decoding: line.filter { $0 >= 0x20 && $0 != 0x7f || $0 == 0x09 }, as: UTF8.self)
        line = []
        guard !text.isEmpty else { return nil }
        last = text
        return text
    }
}
