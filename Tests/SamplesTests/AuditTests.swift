import Foundation
import Testing
import TestSupport

/// `Tests/samples/audit.tsv` judges each item of the API of ConnectLiveSDK 2: its types and members, defaults, error codes and behaviour.
///
/// A line has the item's number, its section, its name, a state and a reason. Change the state with the code.
@Suite struct AuditTests {
    private struct Item {
        let number, section, name, state, reason: String
    }

    private func items() throws -> [Item] {
        try Checkout.text("Tests/samples/audit.tsv").split(separator: "\n").dropFirst().map { line in
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
        let rows = try Checkout.text("docs/differences.md").split(separator: "\n").filter { $0.hasPrefix("| ") }
        // Without the head of the table.
        return rows.dropFirst().map(String.init)
    }
}
