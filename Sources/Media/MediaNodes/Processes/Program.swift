import ChildProcesses
import Dispatch
import FrameSocket
import MediaGraph
import Synchronization

/// A node with a program, which calls these on the node's queue.
protocol ProgramOwner: AnyObject, Sendable {
    /// The descriptors for the next start.
    func wire() throws(MediaError) -> Program.Wiring
    /// The program has ended by itself. Calls `whenTaken` on the queue when all of its output is read.
    func takeRest(_ whenTaken: @escaping @Sendable () -> Void)
    /// All of its output is read.
    ///
    /// - Parameters:
    ///   - isGood: whether it ended with 0, or was asked to end.
    ///   - story: `process.ended`, with its status and its last output.
    func programEnded(isGood: Bool, _ story: MediaError)
}

/// A node's program, whose output is passed on. The node's head decides when it starts, and when it starts again.
///
/// On one queue. `start` and `stop` are called from outside of it, and `stop` blocks until the program has ended.
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
        /// Counts the starts and stops, so that the end of an earlier program is recognized.
        var round = 0
        /// When it was asked to end.
        var askedAt: UInt64 = 0
        var log: LineLog
        /// Why the graph ends the running program. It is reported already.
        var fault: String?
        /// Whether its end was requested by the application.
        var isDismissed = false
    }

    /// Seconds that a program has to end by itself.
    private static let grace = 2.0
    /// Seconds that the end of a graph waits for one that is being ended already.
    static let patience = 0.5
    /// How much output is read at once: the capacity of a pipe. After the program's end, its children may continue to write.
    private static let mostWords = 1 << 16

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
        "Whether to restart the program when it ends; otherwise the stream ends with it, and a failure ends the node")

    init(_ instance: NodeInstance, queue: DispatchQueue) {
        name = instance.name
        command = CommandWords.split(instance.text("command")) ?? []
        path = ProgramSearch.find(command.first ?? "") ?? ""
        self.queue = queue
        reporter = instance.reporter
        state = Mutex(State(log: LineLog(now: FrameFeed.now)))
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

    private var title: String { command.first ?? "" }

    // MARK: Starting

    /// Starts the program.
    func start(for owner: any ProgramOwner) throws(MediaError) {
        try queue.sync { Result { () throws(MediaError) in try begin(for: owner) } }.get()
    }

    private func begin(for owner: any ProgramOwner) throws(MediaError) {
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
        let listening = ReadSource(words.number, of: words, on: queue) { [weak self] in self?.listen(words) }
        let ending = ReadSource(child.endDescriptor, of: child, on: queue) { [weak self] in self?.ended() }
        state.withLock { state in
            state.owner = owner
            state.run = Run(child: child, words: words, end: ending, listening: listening)
            (state.fault, state.askedAt) = (nil, 0)
            state.round += 1
        }
        // The program's ends had to stay open until here.
        withExtendedLifetime((end, wiring)) {}
        wiring.started()
    }

    // MARK: Its output

    /// Reads until nothing is left, up to a limit.
    private func listen(_ words: OutputPipe) {
        var left = Self.mostWords
        while left > 0 {
            switch words.receive(min(left, 4096)) {
            case .nothing: return
            case .end:
                state.withLock { $0.run }?.listening.cancel()
                return
            case .bytes(let bytes):
                let (lines, fault) = state.withLock { ($0.log.append(bytes, now: FrameFeed.now), $0.fault) }
                for line in lines { tell(line, unlessItRepeats: fault) }
                left -= bytes.count
            }
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
        listen(run.words)
        run.end.cancel()
        run.listening.cancel()
        let (rest, fault, owner, round) = state.withLock { state in
            state.run = nil
            return (state.log.takeLine(), state.fault, state.owner, state.round)
        }
        if let rest { tell(rest, unlessItRepeats: fault) }
        owner?.takeRest { [weak self] in self?.settle(ending, of: round) }
    }

    /// All output of the program is read.
    private func settle(_ ending: ChildProcess.Ending, of round: Int) {
        let (isDismissed, last, owner) = state.withLock { state in
            (state.isDismissed, state.log.last, state.round == round ? state.owner : nil)
        }
        let story = "The program \(title) \(ending)" + (last.map { "; its last output was \"\($0)\"" } ?? "")
        owner?.programEnded(
            isGood: ending.isGood || isDismissed,
            MediaError(code: "process.ended", message: "\(story). Run it by hand to see why."))
    }

    /// The graph ends the program for this reason, which is reported already.
    func note(fault: String) { state.withLock { $0.fault = $0.fault ?? fault } }

    /// The program is about to end, or should be. Calls `body` on the queue if it has not ended after a grace period.
    func awaitEnd(_ body: @escaping @Sendable () -> Void) {
        guard let child = state.withLock({ $0.run })?.child else { return }
        queue.asyncAfter(deadline: .now() + Self.grace) { [weak self] in
            if let self, state.withLock({ $0.run })?.child === child { body() }
        }
    }

    /// The application asked the program to end, and it does not start again. Returns whether it runs.
    func dismiss() -> Bool {
        state.withLock { state in
            state.isDismissed = true
            return state.run != nil
        }
    }

    var isDismissed: Bool { state.withLock { $0.isDismissed } }

    /// Asks the program to end. Called on the queue.
    func requestEnd() {
        let child = state.withLock { state in
            if state.askedAt == 0 { state.askedAt = FrameFeed.now }
            return state.run?.child
        }
        child?.askToEnd()
    }

    /// Ends the program and waits for that, for 2 s and for its kernel. Its output meanwhile, also to `output`, is
    /// discarded. Called on the queue.
    func stop(discarding output: OutputPipe? = nil) {
        requestEnd()
        let (run, askedAt) = state.withLock { state in
            defer { state.run = nil }
            state.round += 1
            return (state.run, state.askedAt)
        }
        guard let run else { return }
        run.end.cancel()
        let left = Self.grace - Double(FrameFeed.now - askedAt) / 1e9
        _ = run.child.end(within: max(0, left), discarding: [run.words] + (output.map { [$0] } ?? []))
        run.listening.cancel()
    }

    /// The error before the first frame.
    func silent(_ timeout: Double) -> MediaError {
        MediaError(
            code: "process.silent",
            message: "The program \(title) sent no frame within \(timeout.short) s"
                + (lastWords.map { "; its last output was \"\($0)\"" } ?? " and printed nothing")
                + ". Run it by hand to see why.")
    }

    /// The error after a frame.
    func paused(_ timeout: Double) -> MediaError {
        MediaError(
            code: "feed.silent",
            message:
                "The program \(title) has sent no frame for \(timeout.short) s and is restarted. Raise timeout if it "
                + "needs longer.")
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

extension DispatchQueue {
    /// Runs `body` on the queue. Returns after it, or after so many seconds.
    func run(within seconds: Double, _ body: @escaping @Sendable () -> Void) {
        let isDone = DispatchSemaphore(value: 0)
        async {
            body()
            isDone.signal()
        }
        _ = isDone.wait(timeout: .now() + seconds)
    }
}
