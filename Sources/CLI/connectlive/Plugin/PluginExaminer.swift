internal import Foundation
internal import MediaTesting

/// Runs the checks on a plugin's nodes, each node in a process of its own. If the process dies, its check has failed, and
/// another process runs the remaining checks.
struct PluginExaminer {
    let path: String
    /// The names of the checks to run. Empty means all.
    let checks: [String]
    let reopenings: Int
    let settings: [SettingChange]
    let timeout: Double

    /// Nodes without any of the checks are skipped.
    func reports() throws -> [ConformanceReport] {
        let nodes = try listed()
        let tested = nodes.map { (name: $0.name, checks: checks(of: $0)) }.filter { !$0.checks.isEmpty }
        guard !tested.isEmpty else {
            let chosen = checks.isEmpty ? "checks" : "the check \(checks.joined(separator: " or "))"
            let kinds = nodes.map { node in
                "\(node.name) is a " + (node.group?.rawValue ?? "renderer made of elements, without checks")
            }
            throw CommandFailure(
                code: "plugin.not-testable",
                "No node of \(path) has \(chosen): \(kinds.joined(separator: ", ")). Choose other checks.")
        }
        if let stray = settings.first(where: { setting in !tested.contains { $0.name == setting.node } }) {
            throw CommandFailure(
                code: "plugin.not-testable",
                "\(path) has no node \"\(stray.node)\" to test with a setting \(stray.setting). Choose one of "
                    + "\(tested.map(\.name).joined(separator: ", ")).")
        }
        for node in tested {
            // A node that ends the process here does so in a check too, which reports it.
            _ = try answer(request(node.name, [])) { _ in }
        }
        return try tested.map { try report(on: $0.name, $0.checks) }
    }

    private func checks(of node: ExaminationLine.Listed) -> [ConformanceCheck] {
        guard let group = node.group else { return [] }
        return Conformance.checks(for: group).filter { checks.isEmpty || checks.contains($0.name) }
    }

    /// A request to run checks on a node, or to validate its settings.
    private func request(_ node: String, _ checks: ArraySlice<ConformanceCheck>) -> ExaminationRequest {
        ExaminationRequest(
            path: path, node: node, checks: checks.map(\.name), reopenings: reopenings,
            settings: settings.filter { $0.node == node }.reduce(into: [:]) { $0[$1.setting] = $1.written })
    }

    private func listed() throws -> [ExaminationLine.Listed] {
        var nodes: [ExaminationLine.Listed] = []
        if let fate = try answer(ExaminationRequest(path: path), { if case .nodes(let all) = $0 { nodes = all } }) {
            throw CommandFailure(
                code: "plugin.trapped", "Cannot test \(path): \(fate.words("while it was loaded")).")
        }
        return nodes
    }

    /// Passes on the reply. Throws a refusal.
    private func answer(
        _ request: ExaminationRequest, _ onLine: (ExaminationLine) -> Void
    ) throws -> ExaminingProcess.Fate? {
        try ExaminingProcess(request: request, timeout: timeout).run { line in
            if case .refused(let code, let message) = line { throw CommandFailure(code: code, message) }
            onLine(line)
        }
    }

    private func report(on node: String, _ checks: [ConformanceCheck]) throws -> ConformanceReport {
        var examination = Examination(node, checks)
        // Each failed process removes at least one check.
        while !examination.remaining.isEmpty {
            var request = request(node, examination.remaining)
            request.saidBefore = examination.said
            let fate = try answer(request) { line in
                if case .event(let event) = line { examination.learn(event) }
            }
            if let fate { examination.fail(fate) }
        }
        return ConformanceReport(subject: node, results: examination.results)
    }
}

/// The results for one node so far.
private struct Examination {
    private(set) var results: [CheckResult] = []
    /// Errors reported so far. The check `errors` judges all of them, in whichever process it runs.
    private(set) var said: [SaidError] = []
    private let node: String
    private let checks: [ConformanceCheck]
    /// The last step of the running check, and when the check began.
    private var current: (what: String, since: ContinuousClock.Instant)?

    init(_ node: String, _ checks: [ConformanceCheck]) {
        self.node = node
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

    /// Fails the check during which the process ended. Between two checks, that is the next one. After the last, it is
    /// the last one, because its remains ended the process.
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
        Console.line("\(node): \(result.check) \(result.verdict.rawValue)")
    }
}
