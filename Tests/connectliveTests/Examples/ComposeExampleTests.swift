import Foundation
import TestFixtures
import Testing
import TestSupport

/// The example of a pipeline in Swift, run unchanged.
@Suite struct ComposeExampleTests {
    @Test func `the example composes a pipeline, adds a branch and counts every node's output`() throws {
        let folder = TemporaryFolder()
        let program = try RunningProgram(BuiltPackage.program("compose").path, [], folder: folder)
        let result = try program.finish(seconds: 30)
        #expect(result.status == 0)
        #expect(result.output.contains("adds vp8-encoder, rtp-output"))
        #expect(result.output.contains("a keyframe of"))
        #expect(result.output.contains(/vp8-encoder delivered [1-9]\d* frames/))
    }
}
