internal import ChildProcesses
internal import Foundation

/// A child process of this program that runs a plugin's code.
struct ExaminingProcess {
    let request: ExaminationRequest
    /// Seconds without a line after which the process is killed.
    let timeout: Double

    private struct Parts {
        let child: ChildProcess
        let answers: OutputPipe
        let words: OutputPipe
    }

    /// How the process ended before it completed its reply.
    struct Fate {
        /// The cause: "it trapped".
        let story: String
        /// Its last output line, or the reason for a trap.
        let lastWords: String?

        /// The complete sentence. `what` is the step at that moment.
        func words(_ what: String) -> String {
            let said = lastWords.map { "; its last output was \"\($0.prefix(300))\"" } ?? ""
            return story + (what.isEmpty ? "" : " \(what)") + said
        }
    }

    /// Runs the process to its end and passes on the lines of its reply. Other output goes to standard error. Returns
    /// nil if the reply is complete.
    func run(_ onLine: (ExaminationLine) throws -> Void) throws -> Fate? {
        let parts: Parts
        do {
            parts = try start()
        } catch let failure as ChildProcess.Failure {
            throw CommandFailure(
                code: "plugin.not-examined",
                "The process that examines \(request.path) cannot start: \(failure.reason). Try again, or end other "
                    + "programs.")
        }
        var answers = LineReader(parts.answers)
        var words = LineReader(parts.words)
        var lastWords = LastWords()
        var isDone = false
        var deadline = ContinuousClock.now + .seconds(timeout)
        while true {
            let left = (deadline - .now) / .seconds(1)
            let ending = Self.wait(for: parts.child, answers, words, seconds: left) ? parts.child.ended : nil
            for text in words.lines(isLast: ending != nil) {
                Console.line(text)
                lastWords.hear(text)
            }
            for text in answers.lines(isLast: false) {
                deadline = .now + .seconds(timeout)
                let line = try JSONDecoder().decode(ExaminationLine.self, from: Data(text.utf8))
                if case .event = line {} else { isDone = true }
                try onLine(line)
            }
            if let ending {
                return isDone && ending.isGood ? nil : Fate(story: ending.story, lastWords: lastWords.line)
            }
            if ContinuousClock.now > deadline {
                parts.child.kill()
                return Fate(story: "it did not reply for \(timeout.formatted()) s", lastWords: lastWords.line)
            }
        }
    }

    /// Waits for output or the end of the process. Returns true if it ended.
    private static func wait(
        for child: ChildProcess, _ answers: LineReader, _ words: LineReader, seconds: Double
    ) -> Bool {
        var asked = [child.endDescriptor, answers.descriptor, words.descriptor].map {
            pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
        }
        _ = poll(&asked, nfds_t(asked.count), Int32(max(0, seconds) * 1000) + 1)
        return asked[0].revents != 0
    }

    private func start() throws -> Parts {
        let (answers, answersEnd) = try OutputPipe.make()
        let (words, wordsEnd) = try OutputPipe.make()
        let text = String(decoding: try JSONEncoder().encode(request), as: UTF8.self)
        let child = try ChildProcess(
            path: "/proc/self/exe", arguments: ["plugin", ExamineCommand.name, text],
            // The reason for a trap is its last output; a backtrace of a hundred lines would hide it.
            environment: ["SWIFT_BACKTRACE": "enable=no"].merging(ChildProcess.inheritedEnvironment) { $1 },
            descriptors: [nil, wordsEnd.number, wordsEnd.number, answersEnd.number])
        // The child's ends of the pipes must stay open until here.
        withExtendedLifetime((answersEnd, wordsEnd)) {}
        return Parts(child: child, answers: answers, words: words)
    }
}

extension ChildProcess.Ending {
    /// The cause of an unexpected end.
    fileprivate var story: String {
        switch self {
        case .exited(let status): "it ended the process with status \(status)"
        case .killed(let signal) where [SIGILL, SIGTRAP, SIGABRT, SIGSEGV, SIGBUS, SIGFPE].contains(signal):
            "it trapped (signal \(signal), \(String(cString: strsignal(signal))))"
        case .killed(let signal):
            "its process was ended (signal \(signal), \(String(cString: strsignal(signal))))"
        }
    }
}

/// The output line that explains the end of a process.
private struct LastWords {
    private(set) var line: String?
    private var isOver = false

    /// Swift prints the reason for a trap, then a stack trace. Problems that it has with the trace are not the reason.
    mutating func hear(_ text: String) {
        if text.hasPrefix("*** Signal ") { isOver = true }
        guard !isOver, !text.allSatisfy(\.isWhitespace), !text.hasPrefix("swift-runtime: ") else { return }
        line = text
        isOver = [": Fatal error", ": Precondition failed", ": Assertion failed"].contains(where: text.contains)
    }
}

/// Splits the output of a pipe into lines.
private struct LineReader {
    private let pipe: OutputPipe
    private var rest: [UInt8] = []
    private var isOver = false

    init(_ pipe: OutputPipe) {
        self.pipe = pipe
    }

    /// The descriptor to poll. -1 after the end of the stream.
    var descriptor: Int32 { isOver ? -1 : pipe.number }

    /// The complete lines received so far, and if `isLast`, also an incomplete one.
    mutating func lines(isLast: Bool) -> [String] {
        reading: while !isOver {
            switch pipe.receive(65_536) {
            case .bytes(let bytes): rest += bytes
            case .nothing: break reading
            case .end: isOver = true
            }
        }
        var lines = rest.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        let begun = lines.popLast() ?? []
        if isLast, !begun.isEmpty { lines.append(begun) }
        let texts = lines.map { String(decoding: $0, as: UTF8.self) }
        rest = isLast ? [] : Array(begun)
        return texts
    }
}
