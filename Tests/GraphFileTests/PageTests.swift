import Foundation
import GraphFile
import MediaNodes
import Testing
import TestSupport

/// The Swift code of docs/pipelines.md. The tests of the command line check its YAML and its commands.
@Suite struct PageTests {
    // swift-format-ignore
    private var shown: Composition {
// begin
let pattern = TestPattern(width: 1280, height: 720)
let composition = Composition {
    pattern >>> Window().named("second").optional
    pattern >>> Window()
}
// end
        return composition
    }

    @Test func `the page's Swift compiles, and builds the graph of its JSON`() throws {
        let page = try Checkout.text("docs/pipelines.md")
        let source = try String(contentsOfFile: #filePath, encoding: .utf8)
        let code = try #require(block("swift", of: page))
        #expect(source.contains("// begin\n\(code)// end\n"))
        let json = try #require(block("json", of: page))
        let reading = GraphReading(json.utf8, catalogue: NodeRegistry.builtIn.kinds)
        #expect(reading.problems.isEmpty)
        #expect(try reading.document.graph == shown.graph.settled(with: NodeRegistry.builtIn))
    }

    private func block(_ language: String, of page: String) -> Substring? {
        page.firstRange(of: "```\(language)\n").flatMap { start in
            page[start.upperBound...].firstRange(of: "```").map { page[start.upperBound..<$0.lowerBound] }
        }
    }
}
