internal import Foundation
internal import MediaTesting

/// A sanitizer under which a package's tests run.
enum Sanitizer: String, CaseIterable {
    case address
    case thread

    var check: String { "\(rawValue)-sanitizer" }

    private var demand: String {
        switch self {
        case .address: "The tests make no invalid memory access."
        case .thread: "The tests have no data race."
        }
    }

    /// Runs the tests of a package. A built library cannot be instrumented.
    func result(of path: String, _ say: (String) -> Void) -> CheckResult {
        let began = ContinuousClock.now
        let (verdict, words) = judge(path, say)
        return CheckResult(
            check: check, demand: demand, documentation: "docs/plugin-conformance.md#\(check)", verdict: verdict,
            words: words, seconds: (ContinuousClock.now - began) / .seconds(1))
    }

    private func judge(_ path: String, _ say: (String) -> Void) -> (CheckResult.Verdict, String) {
        guard FileManager.default.fileExists(atPath: "\(path)/Package.swift") else {
            return (.notApplicable, "\(path) is not a package, and a built library cannot be instrumented")
        }
        say("swift test --sanitize=\(rawValue): this builds the package again")
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [
            "swift", "test", "--package-path", path, "--sanitize=\(rawValue)", "--scratch-path",
            "\(path)/.build/\(check)",
        ]
        // XCTest's own runner leaks. Reopening finds a capturer's leaks.
        process.environment = ProcessInfo.processInfo.environment.merging(["ASAN_OPTIONS": "detect_leaks=0"]) { $1 }
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = output
        do {
            try process.run()
        } catch {
            return (.notApplicable, "the tests cannot start: \(error.localizedDescription)")
        }
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        // The status of env if the program does not exist.
        if process.terminationStatus == 127 {
            return (.notApplicable, "the program \"swift\" is not in PATH; install Swift, or add it")
        }
        let lines = text.split(separator: "\n").map(String.init)
        return verdict(on: lines, isGood: process.terminationStatus == 0)
    }

    /// The verdict on the output of the tests.
    func verdict(on lines: [String], isGood: Bool) -> (CheckResult.Verdict, String) {
        if let summary = lines.first(where: { $0.contains("SUMMARY: ") && $0.contains("Sanitizer") }) {
            return (.failed, summary)
        }
        func trimmed(_ line: String) -> String { line.trimmingCharacters(in: .whitespaces.union(.symbols)) }
        if isGood { return (.passed, trimmed(lines.last { $0.contains("Test run with") } ?? lines.last ?? "")) }
        // Swift Testing's form of a failed expectation, and XCTest's.
        let failures = lines.filter { $0.contains(" recorded an issue") || $0.contains(": error: -[") }.map(trimmed)
        guard failures.isEmpty else {
            let more = failures.count > Self.shownFailures ? "; and \(failures.count - Self.shownFailures) more" : ""
            return (
                .failed,
                "the sanitizer found nothing, but the tests failed: "
                    + failures.prefix(Self.shownFailures).joined(separator: "; ") + more
            )
        }
        let last = lines.last { $0.contains("error:") || $0.contains("failed") } ?? lines.last ?? ""
        return (.failed, "the sanitizer found nothing, but the tests did not run to their end: \(trimmed(last))")
    }

    private static let shownFailures = 5
}
