internal import ArgumentParser
internal import Foundation
internal import MediaGraph
internal import MediaTesting

struct PluginTest: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "test", abstract: "Score the capturers of a plugin: make the conformance kit's checks on each.",
        discussion: """
            The capturers run on the real clock, about half a minute each, and in processes of their own: one that traps \
            has failed the check, and the others are made all the same. Of a package the tests are run under the \
            address and the thread sanitizer too, which builds it anew for each.
            Every check is explained in docs/plugin-conformance.md.
            """)

    enum Format: String, ExpressibleByArgument, CaseIterable {
        case text
        case json
    }

    @Argument(
        help: "A shared library, or the folder of a package that was built.", completion: .file())
    var path: String

    @Option(name: .customLong("check"), help: "Make this check only (default: all). May be repeated.")
    var checks: [String] = []

    @Option(help: "How often each capturer is opened and closed in a row.") var reopenings = 500

    @Option(name: .customLong("set"), help: "Test it with CAPTURER.SETTING=VALUE. May be repeated.")
    var settings: [SettingChange] = []

    @Option(help: "How many seconds a capturer may take for one thing that is asked of it before it is ended.")
    var patience = 120.0

    @Option(help: "text for people, json for programs.") var format = Format.text

    func validate() throws {
        let names = Conformance.checks.map(\.name) + Sanitizer.allCases.map(\.check)
        if let unknown = checks.first(where: { !names.contains($0) }) {
            let hint = unknown.nearest(among: names).map { "did you mean \"\($0)\"?" } ?? "there are"
            throw ValidationError(
                "There is no check \"\(unknown)\"; \(hint) \(hint == "there are" ? names.joined(separator: ", ") : "")")
        }
        guard (5...100_000).contains(reopenings) else {
            throw ValidationError("--reopenings takes 5 to 100000, and not \(reopenings).")
        }
        guard (1...86_400).contains(patience) else {
            throw ValidationError("--patience takes 1 to 86400 seconds, and not \(patience).")
        }
    }

    func run() throws {
        let isWanted = { (check: String) in checks.isEmpty || checks.contains(check) }
        let sanitizers = Sanitizer.allCases.filter { isWanted($0.check) }
        var reports: [ConformanceReport] = []
        let wanted = Conformance.checks.filter { isWanted($0.name) }
        if !wanted.isEmpty {
            let examiner = PluginExaminer(
                path: path, checks: wanted, reopenings: reopenings, settings: settings, patience: patience)
            reports += try examiner.reports()
        }
        if !sanitizers.isEmpty {
            guard FileManager.default.fileExists(atPath: path) else {
                throw CommandFailure(
                    code: "plugin.not-found",
                    "There is no \(path); name a shared library, or the folder of a package.")
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
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
            let text = (try? encoder.encode(reports)).map { String(decoding: $0, as: UTF8.self) }
            Console.say(text ?? "[]")
        }
    }
}
