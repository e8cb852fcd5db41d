import MediaTesting
import Testing

@testable import connectlive

@Suite struct SanitizerTests {
    private let begin = "◇ Test \"draws\" started."
    private let issue = "✘ Test \"draws\" recorded an issue at DrawTests.swift:9:9: Expectation failed: (1 → 1) == 2"

    @Test func `a race is named, also if a test fails`() {
        let race = "SUMMARY: ThreadSanitizer: data race Racing.swift:12 in closure"
        let (verdict, words) = Sanitizer.thread.verdict(on: [begin, issue, race], isGood: false)
        #expect(verdict == .failed && words == race)
    }

    @Test func `a failed test is distinguished from a race, with its failed expectations`() {
        let end = "✘ Test run with 1 test in 0 suites failed after 0.1 seconds with 1 issue."
        let (verdict, words) = Sanitizer.thread.verdict(on: [begin, issue, end], isGood: false)
        #expect(verdict == .failed)
        #expect(words == "the sanitizer found nothing, but the tests failed: \(issue.dropFirst(2))")
        let many = Sanitizer.address.verdict(on: Array(repeating: issue, count: 7), isGood: false).1
        #expect(many.hasSuffix("; and 2 more"), "\(many)")
    }

    @Test func `tests that do not build are distinguished from failed ones`() {
        let error = "/p/A.swift:1:1: error: cannot find 'b' in scope"
        let (verdict, words) = Sanitizer.address.verdict(on: [error, "build done"], isGood: false)
        #expect(verdict == .failed)
        #expect(words == "the sanitizer found nothing, but the tests did not run to their end: \(error)")
    }
}
