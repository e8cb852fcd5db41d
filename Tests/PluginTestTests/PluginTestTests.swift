import Foundation
import MediaTesting
import TestFixtures
import Testing
import TestSupport

/// `connectlive plugin test` on packages like those of authors. Serialized, because times are judged.
@Suite(.serialized, .timeLimit(.minutes(14))) struct PluginTestTests {
    private struct Answer {
        let status: Int32
        let output: String
        let error: String
    }

    /// The program of this build.
    private func connectlive(
        _ arguments: String..., checks: [String] = [], environment: [String: String] = [:]
    ) throws -> Answer {
        let process = Process()
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.executableURL = BuiltPackage.program("connectlive")
        process.arguments = arguments + checks.flatMap { ["--check", $0] }
        process.standardInput = FileHandle.nullDevice
        let output = Pipe()
        process.standardOutput = output
        // Written to a file, which never blocks: the location of a trap takes many lines.
        let errors = FileManager.default.temporaryDirectory.appendingPathComponent("errors-\(UUID().uuidString)")
        try Data().write(to: errors)
        defer { try? FileManager.default.removeItem(at: errors) }
        process.standardError = try FileHandle(forWritingTo: errors)
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        let error = try String(contentsOf: errors, encoding: .utf8)
        return Answer(status: process.terminationStatus, output: text, error: error)
    }

    private func reports(_ answer: Answer) throws -> [ConformanceReport] {
        try JSONDecoder().decode([ConformanceReport].self, from: Data(answer.output.utf8))
    }

    @Test func `the sanitizers find faults in a package that are invisible from outside`() throws {
        let bench = try Workbench("Tests/broken-plugin")
        let answer = try connectlive(
            "plugin", "test", bench.package.path, "--check", "address-sanitizer", "--check", "thread-sanitizer",
            "--format", "json"
        )
        #expect(answer.status == 1, "\(answer.error)")
        let report = try #require(try reports(answer).first)
        #expect(report.failures == ["address-sanitizer", "thread-sanitizer"], "\(report)")
        #expect(report["address-sanitizer"]?.words.contains("Overrunning.swift") == true, "\(report)")
        #expect(report["thread-sanitizer"]?.words.contains("Racing.swift") == true, "\(report)")
    }

    @Test func `the example packages are clean under both sanitizers`() throws {
        let bench = try Workbench("examples/clock-face")
        let answer = try connectlive(
            "plugin", "test", bench.package.path, "--check", "address-sanitizer", "--check", "thread-sanitizer",
            "--format", "json"
        )
        #expect(answer.status == 0, "\(answer.error)")
        let report = try #require(try reports(answer).first)
        #expect(report.isPassed && report.applicable == 2, "\(report)")
    }

    @Test func `a node that traps or hangs fails that check, and the others still run`() throws {
        let bench = try Workbench("Tests/broken-plugin")
        try bench.build()
        let answer = try connectlive(
            "plugin", "test", bench.package.path, "--timeout", "5", "--format", "json", "--set",
            "hanging.is-asked=false",
            checks: ["formats", "failure-while-starting", "format-change", "settings", "errors", "sizes"])
        #expect(answer.status == 1, "\(answer.error)")
        let reports = try reports(answer)
        try #require(reports.map(\.subject) == ["trapping", "hanging", "overstepping"], "\(answer.error)")
        let trapping = reports[0]
        #expect(trapping.results.count == 5 && trapping.passed == 2, "\(trapping)")
        #expect(trapping.failures == ["format-change", "settings", "errors"], "\(trapping)")
        let changed = try #require(trapping["format-change"]).words
        #expect(changed.hasPrefix("it trapped (signal "), "\(changed)")
        #expect(changed.contains("when shade became 235; its last output was"), "\(changed)")
        #expect(changed.hasSuffix("There is nothing as bright as 235\""), "\(changed)")
        let set = try #require(trapping["settings"]).words
        #expect(set.contains("with every = 0") && set.hasSuffix("Fatal error: Division by zero\""), "\(set)")
        // The reporting process has ended.
        #expect(trapping["errors"]?.words.contains("[trapping.title]") == true, "\(trapping)")
        #expect(!answer.error.contains("*** Program crashed"), "\(answer.error)")
        let hanging = reports[1]
        #expect(hanging.failures == ["settings"] && hanging.results.count == 5, "\(hanging)")
        #expect(hanging["settings"]?.words == "it did not reply for 5 s with is-asked = true", "\(hanging)")
        let overstepping = reports[2]
        #expect(overstepping.failures == ["sizes"] && overstepping.results.count == 5, "\(overstepping)")
        let sized = try #require(overstepping["sizes"]).words
        #expect(sized.contains("with frames of 1x1; its last output was"), "\(sized)")
        #expect(sized.hasSuffix("There is half a pixel of chroma\""), "\(sized)")
    }

    @Test(arguments: [
        ("nobody.every=1", "Choose one of trapping, hanging. [plugin.not-testable]"),
        ("trapping.evry=1", "has no setting \"evry\"; did you mean \"every\"? [graph.invalid]"),
        ("trapping.every=101", "\"trapping\": every is 101, outside 0 to 100. [graph.invalid]"),
        ("trapping.every=1", "\"hanging\" needs the setting \"is-asked\"; set it with --set hanging.is-asked=VALUE."),
    ])
    func `invalid and missing settings are refused before any check runs`(
        set: String, words: String
    ) throws {
        let bench = try Workbench("Tests/broken-plugin")
        try bench.build()
        let answer = try connectlive("plugin", "test", bench.package.path, "--set", set, checks: ["formats"])
        #expect(answer.status == 1 && answer.error.contains(words), "\(answer.error)")
        #expect(!answer.error.contains(": formats "), "\(answer.error)")
    }

    @Test func `a plugin that traps while it loads gets a message`() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("dead-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let source = "void abort(void); int connectlive_plugin_Dead(void) { abort(); }"
        try source.write(to: folder.appendingPathComponent("dead.c"), atomically: true, encoding: .utf8)
        let media = Checkout.path(".build/debug")
        try BuiltPackage.run(
            "clang",
            ["-shared", "-fPIC", "-o", "dead.so", "dead.c", "-L\(media)", "-Wl,--no-as-needed", "-lMediaAuthoring"],
            in: folder)
        let path = folder.appendingPathComponent("dead.so").path
        let answer = try connectlive("plugin", "test", path, checks: ["formats"])
        #expect(answer.status == 1 && answer.output.isEmpty, "\(answer.output)")
        let end = "it trapped (signal 6, Aborted) while it was loaded. [plugin.trapped]\n"
        #expect(answer.error.hasSuffix(end), "\(answer.error)")
        let missing = try connectlive("plugin", "test", path + "-not", checks: ["formats"])
        #expect(missing.status == 1 && missing.error.contains("[plugin.not-found]"), "\(missing.error)")
    }

    @Test func `a capturer made of elements is tested in a pipeline, with its settings`() throws {
        let bench = try Workbench("examples/desktop-region")
        try bench.build()
        let fixture = try Fixture.display()
        let answer = try connectlive(
            "plugin", "test", bench.package.path, "--set", "desktop-region.display=\(fixture.answer.display)",
            "--reopenings", "20", "--format", "json", checks: Conformance.checks(for: .capturer).map(\.name))
        let report = try #require(try reports(answer).first, "\(answer.error)")
        #expect(answer.status == 0 && report.isPassed, "\(report)")
        // On a busy machine, the check `clock` reports that it does not apply.
        let silent = Set(report.results.filter { $0.verdict == .notApplicable }.map(\.check)).subtracting(["clock"])
        #expect(silent == ["slow-consumer", "vanishing"], "\(report)")
    }

    @Test func `a processor and a renderer of one plugin are tested, each by its own checks`() throws {
        let bench = try Workbench("examples/darkroom")
        try bench.build()
        let answer = try connectlive(
            "plugin", "test", bench.package.path, "--reopenings", "20", "--format", "json",
            checks: ["speed", "gaps", "live-settings", "reopening"])
        #expect(answer.status == 0, "\(answer.error)")
        let reports = try reports(answer)
        try #require(reports.map(\.subject) == ["negative", "light-meter"], "\(answer.error)")
        #expect(reports[0].results.map(\.check) == ["speed", "live-settings", "reopening"], "\(reports[0])")
        // A debug build may be too slow to judge.
        #expect(reports[0].failures.isEmpty && reports[0].passed >= 2, "\(reports[0])")
        #expect(reports[1].results.map(\.check) == ["gaps", "live-settings", "reopening"], "\(reports[1])")
        #expect(reports[1].isPassed && reports[1].passed == 3, "\(reports[1])")
        let none = try connectlive("plugin", "test", bench.package.path, checks: ["clock"])
        let reason = "has the check clock: negative is a processor, light-meter is a renderer."
        #expect(none.status == 1 && none.error.contains("\(reason) Choose other checks. [plugin.not-testable]"))
    }

    @Test func `an unknown check gets a suggestion, and a file is not a package`() throws {
        let unknown = try connectlive("plugin", "test", "clip.so", "--check", "clocks")
        #expect(unknown.status == 2)
        #expect(unknown.error.contains("did you mean \"clock\"?"), "\(unknown.error)")
        let file = try connectlive("plugin", "test", #filePath, "--check", "address-sanitizer")
        #expect(file.status == 0, "\(file.error)")
        #expect(file.output.contains("PluginTestTests.swift is not a package"), "\(file.output)")
        let missing = try connectlive("plugin", "test", "clip.so", "--check", "address-sanitizer")
        #expect(missing.status == 1 && missing.error.contains("[plugin.not-found]"), "\(missing.error)")
    }

    @Test func `without Swift the sanitizers do not apply, and the package does not fail`() throws {
        let package = Checkout.path("examples/clock-face")
        let answer = try connectlive(
            "plugin", "test", package, checks: ["address-sanitizer"], environment: ["PATH": "/nonexistent"])
        #expect(answer.status == 0, "\(answer.error)")
        #expect(answer.output.contains("install Swift"), "\(answer.output)")
    }
}
