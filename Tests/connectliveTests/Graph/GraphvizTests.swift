import Foundation
import Testing
import TestSupport

@testable import connectlive

@Suite(.timeLimit(.minutes(1))) struct GraphvizTests {
    @Test func `a dot that hangs is ended, and the drawing fails`() throws {
        let folder = TemporaryFolder()
        let program = folder.file("dot")
        try "#!/bin/sh\necho $$ > '\(folder.file("number"))'\nexec sleep 1000\n".write(
            toFile: program, atomically: true, encoding: .utf8)
        try #require(chmod(program, 0o700) == 0)
        let failure = #expect(throws: (any Error).self) {
            _ = try Graphviz.svg(of: "digraph {}", with: program, within: 2)
        }
        #expect("\(failure.map { "\($0)" } ?? "")".contains("did not draw this graph within 2 s"))
    }
}
