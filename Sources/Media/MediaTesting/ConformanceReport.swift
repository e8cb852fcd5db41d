/// The result of one check.
public struct CheckResult: Sendable, Hashable, Codable {
    /// The outcome of a check.
    @frozen
    public enum Verdict: String, Sendable, Hashable, Codable {
        /// The node keeps the promise.
        case passed
        /// The node breaks the promise.
        case failed
        /// It does not apply to this node; `words` has the reason.
        case notApplicable = "not-applicable"
    }

    /// The check's name, such as `clock`.
    public let check: String
    /// The requirement in one sentence.
    public let demand: String
    /// The paragraph that explains it, such as `docs/plugin-conformance.md#clock`.
    public let documentation: String
    /// The outcome of the check.
    public let verdict: Verdict
    /// The observation, with figures.
    public let words: String
    /// How long the check took.
    public let seconds: Double

    /// A result of a check of one's own.
    public init(
        check: String, demand: String, documentation: String, verdict: Verdict, words: String, seconds: Double
    ) {
        self.check = check
        self.demand = demand
        self.documentation = documentation
        self.verdict = verdict
        self.words = words
        self.seconds = seconds
    }
}

/// The score of a node, as text and as a value for JSON.
public struct ConformanceReport: Sendable, Hashable, Codable, CustomStringConvertible {
    /// The tested kind.
    public let subject: String
    /// The results, in the order of the checks.
    public private(set) var results: [CheckResult]
    /// How many of the applicable checks passed.
    public private(set) var passed: Int
    /// How many of the checks apply to the node.
    public private(set) var applicable: Int

    /// The score of these results.
    public init(subject: String, results: [CheckResult]) {
        self.subject = subject
        self.results = results
        passed = results.count { $0.verdict == .passed }
        applicable = results.count { $0.verdict != .notApplicable }
    }

    /// Whether nothing failed and at least one check applied.
    public var isPassed: Bool { applicable > 0 && passed == applicable }

    /// The names of the checks that failed.
    public var failures: [String] { results.filter { $0.verdict == .failed }.map(\.check) }

    /// The result of the check with this name. Nil if it was not run.
    public subscript(check: String) -> CheckResult? { results.first { $0.check == check } }

    /// This report with more results.
    public func adding(_ more: [CheckResult]) -> ConformanceReport {
        ConformanceReport(subject: subject, results: results + more)
    }

    /// The score in a line, then a line for each check, with the requirement and its documentation for failed ones.
    public var description: String {
        let longest = results.map(\.check.count).max() ?? 0
        let score = applicable == 0 ? "no check applies" : "\(passed) of \(applicable) checks passed"
        var lines = ["\(subject): \(score)"]
        for result in results {
            let mark =
                switch result.verdict {
                case .passed: "passed"
                case .failed: "FAILED"
                case .notApplicable: "-     "
                }
            let name = result.check + String(repeating: " ", count: longest - result.check.count)
            lines.append("  \(mark)  \(name)  \(result.words)")
            if result.verdict == .failed {
                let margin = String(repeating: " ", count: longest + 12)
                lines.append("\(margin)\(result.demand) See \(result.documentation)")
            }
        }
        return lines.joined(separator: "\n")
    }
}
