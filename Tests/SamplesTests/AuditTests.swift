import Foundation
import Testing

/// `Tests/samples/audit.tsv` judges each item of the API of ConnectLiveSDK 2: its types and members, defaults, error codes and behaviour.
///
/// A line has the item's number, its section, its name, a state and a reason. Change the state with the code.
@Suite struct AuditTests {
    private struct Item {
        let number, section, name, state, reason: String
    }

    private let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()

    private func items() throws -> [Item] {
        let file = tests.appendingPathComponent("samples/audit.tsv")
        return try String(contentsOf: file, encoding: .utf8).split(separator: "\n").dropFirst().map { line in
            let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
            try #require(fields.count == 5, "a line has five fields: \(line)")
            return Item(number: fields[0], section: fields[1], name: fields[2], state: fields[3], reason: fields[4])
        }
    }

    @Test func `every item of the API is judged`() throws {
        let items = try items()
        #expect(items.map { Int($0.number) } == Array(1...483))
        for item in items {
            #expect(["same", "different", "missing", "later"].contains(item.state), "\(item.number)")
            #expect(item.state == "same" || item.reason.count > 1, "\(item.number) has a reason")
            #expect(!item.section.isEmpty && !item.name.isEmpty, "\(item.number)")
        }
        // A reason begins with the row of the page that tells it to users.
        let topics = try differences().map { String($0.split(separator: "|")[0].trimmingCharacters(in: .whitespaces)) }
        #expect(topics.count <= 10)
        for item in items where item.state == "different" {
            #expect(
                topics.contains { item.reason.hasPrefix("\($0): ") }, "\(item.number) names a row of differences.md")
        }
        let counts = Dictionary(grouping: items, by: \.state).mapValues(\.count).sorted { $0.key < $1.key }
        print("The API of ConnectLiveSDK 2: " + counts.map { "\($0.value) \($0.key)" }.joined(separator: ", "))
    }

    /// The rows of docs/differences.md.
    private func differences() throws -> [String] {
        let page = tests.deletingLastPathComponent().appendingPathComponent("docs/differences.md")
        let rows = try String(contentsOf: page, encoding: .utf8).split(separator: "\n").filter { $0.hasPrefix("| ") }
        // Without the head of the table.
        return rows.dropFirst().map(String.init)
    }

    /// The names of the codes in `RoomError.Code`, by their numbers.
    private func codeNames() throws -> [String: [String]] {
        let file = tests.deletingLastPathComponent().appendingPathComponent("Sources/Room/RoomProtocol/RoomError.swift")
        var names: [String: [String]] = [:]
        let source = try String(contentsOf: file, encoding: .utf8)
        for match in source.matches(of: #/static let (\w+) = Self\((-?\d+)\)/#) {
            names["\(match.2)", default: []].append("\(match.1)")
        }
        return names
    }

    /// Whether a text has the number or the name of a code.
    private func mentions(_ code: String, _ names: [String], in text: Substring) -> Bool {
        text.matches(of: #/-?\d+/#).contains { $0.output == code }
            || text.matches(of: #/\.(\w+)/#).contains { match in names.contains { $0 == match.1 } }
    }

    /// A test with its attributes and its body. Nil if there is none of the name.
    private func test(_ name: String, in sources: [String]) -> Substring? {
        for source in sources {
            guard let declaration = source.range(of: "func `\(name)`") else { continue }
            let start = source[..<declaration.lowerBound].range(of: "@Test", options: .backwards)?.lowerBound
            let end = source[declaration.upperBound...].range(of: "@Test")?.lowerBound
            return source[(start ?? source.startIndex)..<(end ?? source.endIndex)]
        }
        return nil
    }

    /// `error-codes.tsv` names a test that raises each code.
    @Test func `a test raises each error code that is the same, and a page names those that are not`() throws {
        var raised: [String: String] = [:]
        let table = try String(contentsOf: tests.appendingPathComponent("samples/error-codes.tsv"), encoding: .utf8)
        for line in table.split(separator: "\n").dropFirst() {
            let fields = line.split(separator: "\t").map(String.init)
            try #require(fields.count == 2 && raised[fields[0]] == nil, "\(line)")
            raised[fields[0]] = fields[1]
        }
        var sources: [String] = []
        let files = FileManager.default.enumerator(at: tests, includingPropertiesForKeys: nil)
        while let file = files?.nextObject() as? URL {
            if file.pathExtension == "swift" { sources.append(try String(contentsOf: file, encoding: .utf8)) }
        }
        let page = tests.deletingLastPathComponent().appendingPathComponent("docs/errors.md")
        let errors = try String(contentsOf: page, encoding: .utf8)
        let rows = try differences().filter { $0.hasPrefix("| Error codes |") || $0.hasPrefix("| Signing in |") }
            .joined()
        let others = Set(rows.matches(of: #/-?\d+/#).map { String($0.output) })
        let codeNames = try codeNames()
        for item in try items() where item.section.hasPrefix("A4") {
            guard let code = item.name.split(separator: " ").first.map(String.init), Int(code) != nil else { continue }
            #expect(item.state != "same" || raised[code] != nil, "\(code)")
            if let name = raised[code] {
                let isRaised = test(name, in: sources).map { mentions(code, codeNames[code] ?? [], in: $0) }
                #expect(isRaised == true, "\(code): \(name)")
            }
            #expect(item.state != "different" || others.contains(code), "\(code)")
            #expect((raised[code] != nil) == errors.contains("\n| \(code) |"), "\(code)")
        }
    }
}
