import Foundation
import Testing

/// What a run tells about how it went: on standard error, and by its exit code.
@Suite(.serialized) struct RunOutcomeTests {
    private func run(_ graph: String, _ arguments: String...) throws -> RunningProgram.Result {
        let folder = try TemporaryFolder()
        try folder.write(graph, to: "graph.yaml")
        return try CommandLineTool.run(["run", "graph.yaml"] + arguments, folder: folder, seconds: 40)
    }

    @Test func `graphs that work show no warnings`() throws {
        let result = try run(
            """
            chains:
              - - {node: file, path: \(clip)}
                - {node: recorder, path: a.mkv}
              - - {node: test-pattern, name: one, width: 160, height: 120}
                - vp9-encoder
                - {node: recorder, name: other, path: b.webm}
              - - {from: file.audio}
                - {to: sum.in1}
              - - {from: one.audio}
                - {to: sum.in2}
              - - {node: audio-mixer, name: sum}
                - {to: recorder.audio}
              - - {from: sum}
                - {to: other.audio}
            """, "--seconds", "1")
        #expect(result.status == 0, "\(result.error)")
        #expect(!result.error.contains("warning)"), "\(result.error)")
    }

    @Test func `a recording that stays empty fails the run`() throws {
        let result = try run(
            """
            chains:
              - - {node: test-pattern, width: 160, height: 120}
                - {node: "null"}
              - - {node: feed, socket: nobody.sock}
                - {node: recorder, path: a.mkv}
            """, "--seconds", "0.3")
        #expect(result.status == 1)
        #expect(result.error.contains("[recording.incomplete]"), "\(result.error)")
    }
}
