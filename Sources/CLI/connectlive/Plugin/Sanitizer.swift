internal import Foundation
internal import MediaTesting

/// What a package's own tests are run under.
enum Sanitizer: String, CaseIterable {
    case address
    case thread

    var check: String { "\(rawValue)-sanitizer" }

    private var demand: String {
        switch self {
        case .address: "Its tests touch no memory that is not theirs."
        case .thread: "Its tests have no data race."
        }
    }

    /// Runs the tests of a package. What is no package cannot be built anew.
    func result(of path: String, _ say: (String) -> Void) -> CheckResult {
        let began = ContinuousClock.now
        let (verdict, words) = judge(path, say)
        return CheckResult(
            check: check, demand: demand, documentation: "docs/plugin-conformance.md#\(check)", verdict: verdict,
            words: words, seconds: (ContinuousClock.now - began) / .seconds(1))
    }

    private func judge(_ path: String, _ say: (String) -> Void) -> (CheckResult.Verdict, String) {
        guard FileManager.default.fileExists(atPath: "\(path)/Package.swift") else {
            return (.notApplicable, "\(path) is no package: what is built already cannot be looked into")
        }
        say("swift test --sanitize=\(rawValue): this builds the package anew")
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [
            "swift", "test", "--package-path", path, "--sanitize=\(rawValue)", "--scratch-path",
            "\(path)/.build/\(check)",
        ]
        // XCTest's own runner leaks; what a capturer leaves behind is found by opening it 500 times.
        process.environment = ProcessInfo.processInfo.environment.merging(["ASAN_OPTIONS": "detect_leaks=0"]) { $1 }
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = output
        do {
            try process.run()
        } catch {
            return (.notApplicable, "nothing can be started: \(error.localizedDescription)")
        }
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        // What env answers where there is no such program.
        if process.terminationStatus == 127 {
            return (.notApplicable, "there is no program \"swift\"; install Swift, or add it to PATH")
        }
        let lines = text.split(separator: "\n").map(String.init)
        if let summary = lines.first(where: { $0.contains("SUMMARY: ") && $0.contains("Sanitizer") }) {
            return (.failed, summary)
        }
        guard process.terminationStatus == 0 else {
            let last = lines.last { $0.contains("error:") || $0.contains("failed") } ?? lines.last ?? ""
            return (.failed, "its tests do not pass: \(last)")
        }
        let count = lines.last { $0.contains("Test run with") } ?? lines.last ?? ""
        return (.passed, count.trimmingCharacters(in: .whitespaces.union(.symbols)))
    }
}
