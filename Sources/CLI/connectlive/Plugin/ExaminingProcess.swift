internal import ChildProcesses
internal import Foundation

/// This program once more, as the process in which a plugin's code runs.
struct ExaminingProcess {
    let request: ExaminationRequest
    /// Seconds without a line after which it is ended.
    let patience: Double

    private struct Parts {
        let child: ChildProcess
        let answers: OutputPipe
        let words: OutputPipe
    }

    /// An end before it had answered all of the request.
    struct Fate {
        /// What became of it: "it trapped".
        let story: String
        /// What it said before, or why it trapped where it said that.
        let lastWords: String?

        /// The whole sentence; `what` was done at that moment.
        func words(_ what: String) -> String {
            let said = lastWords.map { "; its last words were \"\($0.prefix(300))\"" } ?? ""
            return story + (what.isEmpty ? "" : " \(what)") + said
        }
    }

    /// Runs it to its end and hands on its lines as they come; what it says besides goes to standard error. Nil where it
    /// has answered all of the request.
    func run(_ onLine: (ExaminationLine) throws -> Void) throws -> Fate? {
        let parts: Parts
        do {
            parts = try start()
        } catch let failure as ChildProcess.Failure {
            throw CommandFailure(
                code: "plugin.not-examined",
                "The process that examines \(request.path) cannot be started (\(failure.reason)); try again, or end "
                    + "other programs.")
        }
        var answers = LineReader(parts.answers)
        var words = LineReader(parts.words)
        var lastWords = LastWords()
        var isDone = false
        var deadline = ContinuousClock.now + .seconds(patience)
        while true {
            let left = (deadline - .now) / .seconds(1)
            let ending = Self.wait(for: parts.child, answers, words, seconds: left) ? parts.child.ended : nil
            for text in words.lines(isLast: ending != nil) {
                Console.line(text)
                lastWords.hear(text)
            }
            for text in answers.lines(isLast: false) {
                deadline = .now + .seconds(patience)
                let line = try JSONDecoder().decode(ExaminationLine.self, from: Data(text.utf8))
                if case .event = line {} else { isDone = true }
                try onLine(line)
            }
            if let ending {
                return isDone && ending.isGood ? nil : Fate(story: ending.story, lastWords: lastWords.line)
            }
            if ContinuousClock.now > deadline {
                parts.child.kill()
                return Fate(story: "it did not answer for \(patience.formatted()) s", lastWords: lastWords.line)
            }
        }
    }

    /// Waits until there is something to read, or the process has ended: true then.
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
            environment: ChildProcess.inheritedEnvironment,
            descriptors: [nil, wordsEnd.number, wordsEnd.number, answersEnd.number])
        // Until here the program's ends had to stay open.
        withExtendedLifetime((answersEnd, wordsEnd)) {}
        return Parts(child: child, answers: answers, words: words)
    }
}

extension ChildProcess.Ending {
    /// Of a process that should not have ended.
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

/// The line that says why a process ended.
private struct LastWords {
    private(set) var line: String?
    private var isOver = false

    /// Swift says why it traps, and then where it was, in as many lines as there are threads. What it says of its own
    /// trouble with that is no reason.
    mutating func hear(_ text: String) {
        if text.hasPrefix("*** Signal ") { isOver = true }
        guard !isOver, !text.allSatisfy(\.isWhitespace), !text.hasPrefix("swift-runtime: ") else { return }
        line = text
        isOver = [": Fatal error", ": Precondition failed", ": Assertion failed"].contains(where: text.contains)
    }
}

/// Cuts what comes through a pipe into lines.
private struct LineReader {
    private let pipe: OutputPipe
    private var rest: [UInt8] = []
    private var isOver = false

    init(_ pipe: OutputPipe) {
        self.pipe = pipe
    }

    /// What there is to wait for; -1 where nothing more can come.
    var descriptor: Int32 { isOver ? -1 : pipe.number }

    /// The lines that are there, with one that was begun where it is the last.
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
