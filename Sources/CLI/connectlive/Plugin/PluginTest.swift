internal import ArgumentParser
internal import Foundation
internal import MediaGraph
internal import MediaTesting

struct PluginTest: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "test", abstract: "Run the conformance checks on a plugin's nodes and print a score.",
        discussion: """
            Each node takes about ten seconds of real time and runs in a process of its own. If the process \
            dies, that check has failed and the others still run. For a package, its tests also run under the address \
            and the thread sanitizer, which builds it once for each.
            docs/plugin-conformance.md explains every check.
            """)

    enum Format: String, ExpressibleByArgument, CaseIterable {
        case text
        case json
    }

    @Argument(
        help: "A shared library, or the folder of a built package.", completion: .file())
    var path: String

    @Option(
        name: .customLong("check"),
        help: ArgumentHelp(
            "Run this check only, such as pacing (default: all). Repeatable. The checks: "
                + "\(PluginTest.checkNames.joined(separator: ", ")).",
            valueName: "check"))
    var checks: [String] = []

    @Option(help: "How often to open and close each node.") var reopenings = 500

    @Option(name: .customLong("set"), help: "Set a setting for the test: NODE.SETTING=VALUE. Repeatable.")
    var settings: [SettingChange] = []

    @Option(help: "Seconds without progress after which a node's process is killed.")
    var timeout = 120.0

    @Option(help: "Output format: text or json.") var format = Format.text

    private static var checkNames: [String] {
        var names: [String] = []
        for name in Conformance.Group.allCases.flatMap(Conformance.checks).map(\.name) + Sanitizer.allCases.map(\.check)
        where !names.contains(name) {
            names.append(name)
        }
        return names
    }

    func validate() throws {
        let names = Self.checkNames
        if let unknown = checks.first(where: { !names.contains($0) }) {
            let hint =
                unknown.nearest(among: names).map { "did you mean \"\($0)\"?" }
                ?? "choose one of \(names.joined(separator: ", "))."
            throw ValidationError("There is no check \"\(unknown)\"; \(hint)")
        }
        guard (5...100_000).contains(reopenings) else {
            throw ValidationError("--reopenings must be 5 to 100000, not \(reopenings).")
        }
        guard (1...86_400).contains(timeout) else {
            throw ValidationError("--timeout must be 1 to 86400 seconds, not \(timeout).")
        }
    }

    func run() throws {
        let isWanted = { (check: String) in checks.isEmpty || checks.contains(check) }
        let sanitizers = Sanitizer.allCases.filter { isWanted($0.check) }
        var reports: [ConformanceReport] = []
        if checks.isEmpty || checks.contains(where: { !Sanitizer.allCases.map(\.check).contains($0) }) {
            let examiner = PluginExaminer(
                path: path, checks: checks, reopenings: reopenings, settings: settings, timeout: timeout)
            reports += try examiner.reports()
        }
        if !sanitizers.isEmpty {
            guard FileManager.default.fileExists(atPath: path) else {
                throw CommandFailure(
                    code: "plugin.not-found",
                    "\(path) does not exist. Name a shared library, or the folder of a package.")
            }
            let results = sanitizers.map { $0.result(of: path) { Console.line($0) } }
            reports.append(ConformanceReport(subject: path, results: results))
        }
        show(reports)
        if reports.contains(where: { !$0.failures.isEmpty }) { throw ExitCode.failure }
    }

    private func show(_ reports: [ConformanceReport]) {
        switch format {
        case .text: Console.say(reports.map(\.description).joined(separator: "\n\n"))
        case .json:
            Console.say((try? reports.prettyJSON()) ?? "[]")
        }
    }
}
