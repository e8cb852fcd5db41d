import Foundation
import Testing
import TestSupport

/// `docs/samples.md` names the test of each sample of the original documentation.
@Suite struct SampleListTests {
    private struct Row {
        let document: String
        let number: Int
        let test: String
    }

    private func rows() throws -> [Row] {
        let page = try Checkout.text("docs/samples.md")
        return page.matches(of: #/(?m)^\| (guide|controls|README) (\d+) \|.*\| `?([^`|]+?)`? \|$/#).compactMap {
            match in
            Int(match.2).map { Row(document: "\(match.1)", number: $0, test: "\(match.3)") }
        }
    }

    /// The Swift files of the samples, by their names.
    private func sources() throws -> [String: String] {
        let folder = Checkout.folder.appending(path: "Tests/samples/Shared")
        var sources: [String: String] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) where name.hasSuffix(".swift") {
            sources[name] = try String(contentsOf: folder.appendingPathComponent(name), encoding: .utf8)
        }
        return sources
    }

    /// The numbers in the words of a test's name, by document: `guide 1 to 3, README 7`.
    private func numbers(in name: String) -> [String: Set<Int>] {
        var (numbers, document): ([String: Set<Int>], String) = ([:], "")
        for match in name.matches(of: #/(guide|controls|README)|(\d+) to (\d+)|(\d+)/#) {
            if let named = match.1 { document = "\(named)" }
            if let first = match.2.flatMap({ Int($0) }), let last = match.3.flatMap({ Int($0) }), first <= last {
                numbers[document, default: []].formUnion(first...last)
            }
            if let one = match.4.flatMap({ Int($0) }) { numbers[document, default: []].insert(one) }
        }
        return numbers
    }

    /// The body of a test whose name begins with these documents and numbers, and the helpers before the tests of its file.
    private func code(of test: String, in sources: [String: String]) -> String? {
        for source in sources.values {
            guard let start = source.range(of: "func `\(test): ")?.lowerBound else { continue }
            let rest = source[start...]
            let helpers = source[..<(source.range(of: "@Test")?.lowerBound ?? source.startIndex)]
            let body = rest[..<(rest.range(of: "@Test")?.lowerBound ?? rest.endIndex)]
            return "\(helpers)\(body)"
        }
        return nil
    }

    /// The functions of a document's samples, by number: `s7And11Config` is of two.
    private func functions(of document: String, in sources: [String: String]) -> [Int: [String]] {
        let files = ["guide": ["Guide.swift"], "README": ["Readme.swift"]]
        let names = files[document] ?? ["Controls.swift", "ScreenShareSamples.swift"]
        var functions: [Int: [String]] = [:]
        for source in names.compactMap({ sources[$0] }) {
            for match in source.matches(of: #/func (s(\d+)(?:And(\d+))?[A-Z]\w*)\(/#) {
                for number in [match.2, match.3].compactMap({ $0.flatMap { Int($0) } }) {
                    functions[number, default: []].append("\(match.1)")
                }
            }
        }
        return functions
    }

    @Test(arguments: [("guide", 1...42), ("controls", 1...13), ("README", 0...44)])
    func `each sample has a test that calls it`(document: String, all: ClosedRange<Int>) throws {
        let sources = try sources()
        let rows = try rows().filter { $0.document == document }
        #expect(rows.map(\.number) == Array(all))
        let functions = functions(of: document, in: sources)
        let stage = try #require(sources["SampleStage.swift"])
        for row in rows {
            // It draws on a screen of iOS.
            if document == "guide", row.number == 8 {
                #expect(row.test == "-")
                continue
            }
            #expect(numbers(in: row.test)[document]?.contains(row.number) == true, "\(row)")
            guard let code = code(of: row.test, in: sources) else {
                Issue.record("no test is named \(row.test)")
                continue
            }
            for function in functions[row.number] ?? [] {
                #expect(code.contains(".\(function)") || stage.contains(".\(function)"), "\(function) in \(row.test)")
            }
        }
    }
}
