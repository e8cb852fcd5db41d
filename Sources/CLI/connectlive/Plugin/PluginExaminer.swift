internal import Foundation
internal import MediaTesting

/// Has the capturers of a plugin examined, each in a process of its own: what ends the process has failed a check, and the
/// rest is made in another.
struct PluginExaminer {
    let path: String
    let checks: [ConformanceCheck]
    let reopenings: Int
    let settings: [SettingChange]
    let patience: Double

    /// What is no capturer is left out.
    func reports() throws -> [ConformanceReport] {
        let nodes = try listed()
        let capturers = nodes.filter(\.isCapturer).map(\.name)
        let names = nodes.map(\.name).joined(separator: ", ")
        guard !capturers.isEmpty else {
            throw CommandFailure(
                code: "plugin.no-capturer",
                "\(path) brings no capturer: only capturers can be scored, and it has \(names).")
        }
        if let stray = settings.first(where: { !capturers.contains($0.node) }) {
            throw CommandFailure(
                code: "plugin.no-capturer",
                "\(path) brings no capturer \"\(stray.node)\" whose \(stray.setting) could be set; there are "
                    + "\(capturers.joined(separator: ", ")).")
        }
        for capturer in capturers {
            // One that ends its process here does so in a check too, which tells it.
            _ = try answer(request(capturer, [])) { _ in }
        }
        return try capturers.map(report)
    }

    /// Asks for checks on a capturer, or whether the settings fit it.
    private func request(_ capturer: String, _ checks: ArraySlice<ConformanceCheck>) -> ExaminationRequest {
        ExaminationRequest(
            path: path, capturer: capturer, checks: checks.map(\.name), reopenings: reopenings,
            settings: settings.filter { $0.node == capturer }.reduce(into: [:]) { $0[$1.setting] = $1.written })
    }

    private func listed() throws -> [ExaminationLine.Listed] {
        var nodes: [ExaminationLine.Listed] = []
        if let fate = try answer(ExaminationRequest(path: path), { if case .nodes(let all) = $0 { nodes = all } }) {
            throw CommandFailure(
                code: "plugin.trapped", "\(path) cannot be tested: \(fate.words("while it was loaded")).")
        }
        return nodes
    }

    /// Hands on what is answered; throws what is refused.
    private func answer(
        _ request: ExaminationRequest, _ onLine: (ExaminationLine) -> Void
    ) throws -> ExaminingProcess.Fate? {
        try ExaminingProcess(request: request, patience: patience).run { line in
            if case .refused(let code, let message) = line { throw CommandFailure(code: code, message) }
            onLine(line)
        }
    }

    private func report(on capturer: String) throws -> ConformanceReport {
        var examination = Examination(capturer, checks)
        // A process that fails leaves at least one check less to make.
        while !examination.remaining.isEmpty {
            var request = request(capturer, examination.remaining)
            request.saidBefore = examination.said
            let fate = try answer(request) { line in
                if case .event(let event) = line { examination.learn(event) }
            }
            if let fate { examination.fail(fate) }
        }
        return ConformanceReport(subject: capturer, results: examination.results)
    }
}

/// What is known of a capturer so far.
private struct Examination {
    private(set) var results: [CheckResult] = []
    /// The check `errors` judges this too, in whatever process it is made.
    private(set) var said: [SaidError] = []
    private let capturer: String
    private let checks: [ConformanceCheck]
    /// What was last done to the capturer for the check that is being made, and since when that is made.
    private var current: (what: String, since: ContinuousClock.Instant)?

    init(_ capturer: String, _ checks: [ConformanceCheck]) {
        self.capturer = capturer
        self.checks = checks
    }

    var remaining: ArraySlice<ConformanceCheck> { checks.dropFirst(results.count) }

    mutating func learn(_ event: ConformanceEvent) {
        switch event {
        case .begins: current = ("", .now)
        case .tries(let what): current?.what = what
        case .says(let error): said.append(error)
        case .result(let result):
            current = nil
            add(result)
        }
    }

    /// What ended the process failed the check that was being made. Between two checks it is the next, which could not be
    /// made; behind the last it is the last, which left something behind.
    mutating func fail(_ fate: ExaminingProcess.Fate) {
        if remaining.isEmpty { results.removeLast() }
        guard let check = remaining.first else { return }
        let what = current?.what ?? "outside of the checks"
        let began = current?.since ?? .now
        current = nil
        add(
            CheckResult(
                check: check.name, demand: check.demand, documentation: check.documentation, verdict: .failed,
                words: fate.words(what), seconds: (ContinuousClock.now - began) / .seconds(1)))
    }

    private mutating func add(_ result: CheckResult) {
        results.append(result)
        Console.line("\(capturer): \(result.check) \(result.verdict.rawValue)")
    }
}
