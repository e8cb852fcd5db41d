import Foundation
import Testing
import TestSupport

/// docs/frame-socket.md shows the example that other tests run.
@Suite struct PageTests {
    @Test func `the program on the page is the example, and fits on a page`() throws {
        let example = try Checkout.text("examples/frame-socket/clock.py")
        #expect(try Checkout.text("docs/frame-socket.md").contains("```python\n\(example)```\n"))
        #expect(example.split(separator: "\n", omittingEmptySubsequences: false).count <= 64)
    }
}
