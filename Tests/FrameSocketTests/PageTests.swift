import Foundation
import Testing

/// docs/frame-socket.md shows the example that other tests run.
@Suite struct PageTests {
    private static let projectFolder = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    private func text(_ path: String) throws -> String {
        try String(contentsOf: Self.projectFolder.appendingPathComponent(path), encoding: .utf8)
    }

    @Test func `the program on the page is the example, and fits on a page`() throws {
        let example = try text("examples/frame-socket/clock.py")
        #expect(try text("docs/frame-socket.md").contains("```python\n\(example)```\n"))
        #expect(example.split(separator: "\n", omittingEmptySubsequences: false).count <= 64)
    }
}
