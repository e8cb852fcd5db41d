import Foundation
import Glibc
import TestFixtures
import Testing
import TestSupport

private let pipeline = Checkout.path("pipelines/file-to-room.yaml")

/// `run` with a publish node that receives less than its graph describes.
@Suite(.serialized) struct SilentFileTests {
    /// Writes six seconds of VP8 without audio.
    private static func silentFilm(in folder: TemporaryFolder) throws -> String {
        let path = folder.file("silent.mkv")
        try OfflineFilm.write(
            "videotestsrc num-buffers=60 ! video/x-raw,width=320,height=240,framerate=10/1 "
                + "! vp8enc deadline=1 ! matroskamux ! filesink location=\(path)", in: folder)
        return path
    }

    /// The frames of the only output that the report describes, by input.
    private static func frames(_ folder: TemporaryFolder) throws -> [String: Int] {
        struct Report: Decodable {
            struct Output: Decodable { var inputs: [Input] }
            struct Input: Decodable {
                var port: String
                var frames: Int
            }
            var outputs: [Output]
        }
        let data = try Data(contentsOf: URL(fileURLWithPath: folder.file("report.json")))
        let inputs = try #require(try JSONDecoder().decode(Report.self, from: data).outputs.first).inputs
        return Dictionary(uniqueKeysWithValues: inputs.map { ($0.port, $0.frames) })
    }

    @Test(arguments: [true, false])
    func `a file without audio publishes its video`(loop: Bool) throws {
        let server = try TestServer(["--verbose"])
        let film = try Self.silentFilm(in: server.folder)
        let result = try CommandLineTool.run(
            [
                "run", pipeline, "--set", "file=\(film)", "--set", "loop=\(loop)", "--set", "room=odd",
                "--report", "report.json",
            ] + (loop ? ["--seconds", "3"] : []), folder: server.folder, seconds: 40)
        #expect(result.status == 0, "\(result.output)\(result.error)")
        let said = (result.output + result.error).split(separator: "\n").filter { $0.contains("without audio") }
        #expect(said.count == 1, "\(result.output)\(result.error)")
        let frames = try Self.frames(server.folder)
        #expect(frames["video"] ?? 0 > 0 && frames["audio"] == 0, "\(frames)")
        server.tool.interrupt()
        let log = try server.tool.finish(seconds: 20)
        #expect((log.output + log.error).contains("publish"), "\(log.output)\(log.error)")
    }

    @Test func `a recording without audio names the file that has none`() throws {
        let folder = TemporaryFolder()
        let film = try Self.silentFilm(in: folder)
        try folder.write(
            """
            chains:
              - - {node: file, name: film, path: \(film), loop: false}
                - {node: recorder, path: out.mkv}
              - - {from: film.audio}
                - {to: recorder.audio}
            """, to: "graph.yaml")
        let result = try CommandLineTool.run(["run", "graph.yaml"], folder: folder, seconds: 40)
        #expect(result.status == 1)
        let reason = "The recording out.mkv has no audio: \"film\" plays \(film), which has no audio."
        #expect(result.error.contains(reason) && result.error.contains("[recording.incomplete]"), "\(result.error)")
    }

    @Test func `a run that published nothing reports it and exits with 1`() throws {
        // Connections to it are never answered.
        let deaf = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(deaf) }
        try #require(listen(deaf, 5) == 0)
        var address = sockaddr_in()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        _ = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(deaf, $0, &size) }
        }
        let port = address.sin_port.byteSwapped
        let folder = TemporaryFolder()
        try folder.write(
            """
            chains:
              - - {node: test-pattern, width: 320, height: 240, fps: 10, frames: 3}
                - vp8-encoder
                - {node: publish, room: odd, server: "ws://127.0.0.1:\(port)", service-id: any, token: any}
            """, to: "graph.yaml")
        let result = try CommandLineTool.run(
            ["run", "graph.yaml", "--report", "report.json"], folder: folder, seconds: 40)
        #expect(result.status == 1, "\(result.output)\(result.error)")
        #expect(result.error.contains("Nothing was published"), "\(result.error)")
        #expect(result.error.contains("[1441]"), "\(result.error)")
        #expect(try Self.frames(folder) == ["video": 3])
    }
}
