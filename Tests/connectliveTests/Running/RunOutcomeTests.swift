import Foundation
import Glibc
import MediaNodes
import Testing
import TestSupport

@testable import MediaGraph
@testable import connectlive

/// The outcome of a run: on standard error, and by its exit code.
@Suite(.serialized) struct RunOutcomeTests {
    private func run(_ graph: String, _ arguments: String...) throws -> RunningProgram.Result {
        let folder = TemporaryFolder()
        try folder.write(graph, to: "graph.yaml")
        return try CommandLineTool.run(["run", "graph.yaml"] + arguments, folder: folder, seconds: 40)
    }

    @Test func `the program or feeder of a node is called so, and not a device`() {
        let nodes = ["camera", "exec", "process", "feed"].map { NodePlan(Node($0)) }
        let plan = GraphPlan(source: MediaGraph(nodes: [], links: []), nodes: nodes, links: [])
        func words(_ event: MediaEvent) -> String? { RunCommand.words(of: event, in: plan) }
        let cause = MediaError(code: "x.y", message: "Why.")
        #expect(words(.deviceLost(node: "camera", cause: cause))?.hasPrefix("camera lost its device and") == true)
        #expect(words(.deviceLost(node: "exec", cause: cause))?.hasPrefix("exec lost its program and") == true)
        #expect(words(.deviceReturned(node: "process")) == "process has its program again")
        #expect(words(.deviceWaiting(node: "feed", cause: cause))?.hasPrefix("feed waits for its feeder: ") == true)
        #expect(words(.deviceReturned(node: "gone")) == "gone has its device again")
    }

    @Test func `a quality that rises while a graph runs is told as such`() {
        let plan = GraphPlan(source: MediaGraph(nodes: [], links: []), nodes: [], links: [])
        let now = VideoQuality(width: 640, height: 360, limitation: .processor)
        let event = MediaEvent.qualityChanged(node: "encoder", now)
        #expect(RunCommand.words(of: event, in: plan) == "encoder: the processor is too slow: 640x360")
        #expect(
            RunCommand.words(of: event, in: plan, before: VideoQuality(width: 320, height: 180, limitation: .processor))
                == "encoder: quality rose: 640x360 (before: 320x180); not full yet, because the processor is too slow")
    }

    @Test func `working graphs print no warnings`() throws {
        let result = try run(
            """
            chains:
              - - {node: file, path: \(Checkout.clip)}
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

    @Test func `a run says that its server is lost, and that it is back`() throws {
        var server: TestServer? = try TestServer(["--service-id", "home", "--service-secret", Self.secret])
        let port = try #require(server?.port)
        let folder = TemporaryFolder()
        try folder.write(
            """
            chains:
              - - {node: test-pattern, width: 160, height: 120}
                - node: publish
                  room: kitchen
                  server: ws://127.0.0.1:\(port)
                  service-id: home
                  service-secret: \(Self.secret)
            """, to: "graph.yaml")
        let run = try CommandLineTool(["run", "graph.yaml"], folder: folder)
        _ = try run.waitForText("publish  vp8 160x120")
        server?.tool.interrupt()
        _ = try run.waitForText("publish: The connection to the server is lost; trying again for 120 s. (")
        #expect(try server?.tool.finish(seconds: 20).status == 0)
        server = try TestServer(
            ["--listen", "127.0.0.1:\(port)", "--service-id", "home", "--service-secret", Self.secret])
        _ = try run.waitForText("s, as another participant: p-")
        run.interrupt()
        #expect(try run.finish(seconds: 20).status == 0)
    }

    private static let secret = "a secret of at least thirty-two bytes"

    @Test func `an empty recording fails the run`() throws {
        let result = try run(
            """
            chains:
              - - {node: test-pattern, width: 160, height: 120}
                - {node: "null"}
              - - {node: feed, socket: nobody.sock, away: end}
                - {node: recorder, path: a.mkv}
            """, "--seconds", "0.3")
        #expect(result.status == 1)
        #expect(result.error.contains("[recording.incomplete]"), "\(result.error)")
    }

    /// A recording to the path that SIGINT ends once `isDone` holds.
    private func record(
        to path: String, settings: String = "", in folder: TemporaryFolder, until isDone: () -> Bool,
        then body: () throws -> Void = {}
    ) throws -> RunningProgram.Result {
        try folder.write(
            """
            chains:
              - - {node: test-pattern, width: 160, height: 120}
                - h264-encoder
                - {node: recorder, path: '\(path)'\(settings)}
            """, to: "graph.yaml")
        let tool = try CommandLineTool(["run", "graph.yaml", "--quiet"], folder: folder)
        _ = try tool.waitForText("Running")
        let isRecorded = tool.wait(seconds: 20, for: isDone)
        #expect(isRecorded)
        try body()
        tool.interrupt()
        return try tool.finish(seconds: 40)
    }

    private func size(_ path: String) -> Int {
        (try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int) ?? 0
    }

    @Test func `a recording whose end cannot be written fails the run`() throws {
        let folder = TemporaryFolder()
        let parts = folder.file("parts")
        try FileManager.default.createDirectory(atPath: parts, withIntermediateDirectories: false)
        let result = try record(to: "parts/a.m3u8", settings: ", segment: 60", in: folder) {
            access("\(parts)/a-00000.ts", F_OK) == 0
        } then: {
            try FileManager.default.removeItem(atPath: parts)
        }
        #expect(result.status == 1)
        #expect(result.error.contains("[file.unwritable]"), "\(result.error)")
    }

    @Test func `a recording has every character of its path, also those of formats of C`() throws {
        let folder = TemporaryFolder()
        let result = try record(to: "100%s %n.m3u8", in: folder) {
            access(folder.file("100%s %n-00000.ts"), F_OK) == 0
        }
        #expect(result.status == 0, "\(result.error)")
        #expect(size(folder.file("100%s %n.m3u8")) > 0)
    }

    @Test func `a run that plans, and waits for a file, ends at the first interruption`() throws {
        let folder = TemporaryFolder()
        let pipe = folder.file("pipe.png")
        #expect(mkfifo(pipe, 0o600) == 0)
        try folder.write(
            """
            chains:
              - - {node: test-pattern, width: 160, height: 120}
                - {element: gdkpixbufoverlay, location: pipe.png}
                - {node: "null"}
            """, to: "graph.yaml")
        let tool = try CommandLineTool(["run", "graph.yaml"], folder: folder)
        // Writes nothing, so that the run waits for it.
        var writer: Int32 = -1
        defer { close(writer) }
        let isWaiting = tool.wait(seconds: 20) {
            writer = open(pipe, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
            return writer >= 0
        }
        #expect(isWaiting)
        tool.interrupt()
        #expect(try tool.finish(seconds: 20).status != 0)
    }

    @Test func `a run under nohup outlives its terminal`() throws {
        let folder = TemporaryFolder()
        try folder.write(
            """
            chains:
              - - {node: test-pattern, width: 160, height: 120}
                - {node: "null"}
            """, to: "graph.yaml")
        let tool = try RunningProgram("/usr/bin/nohup", [CommandLineTool.path, "run", "graph.yaml"], folder: folder)
        _ = try tool.waitForText("Running")
        kill(tool.process.processIdentifier, SIGHUP)
        tool.interrupt()
        // Had it ended the run, the interruption would have been the second signal, which ends the process with 130.
        let result = try tool.finish(seconds: 20)
        #expect(result.status == 0, "\(result.error)")
    }

    @Test func `a run whose terminal closes ends in order, though shell and kernel both send SIGHUP`() throws {
        let folder = TemporaryFolder()
        try folder.write(
            """
            chains:
              - - {node: test-pattern, width: 160, height: 120}
                - {node: "null"}
            """, to: "graph.yaml")
        let tool = try CommandLineTool(["run", "graph.yaml"], folder: folder)
        _ = try tool.waitForText("Running")
        // Many, because two that are pending together count as one.
        let hasEnded = tool.wait(seconds: 20) {
            guard tool.process.isRunning else { return true }
            kill(tool.process.processIdentifier, SIGHUP)
            return false
        }
        #expect(hasEnded)
        let result = try tool.finish(seconds: 20)
        #expect(result.status == 0, "\(result.error)")
    }

    @Test func `a snapshot whose frame never arrives fails the run`() throws {
        let result = try run(
            """
            chains:
              - - {node: test-pattern, width: 160, height: 120}
                - {node: snapshot, path: late.png, frame: 100000}
            """, "--seconds", "0.3")
        #expect(result.status == 1)
        #expect(result.error.contains("[snapshot.missing]"), "\(result.error)")
    }

    @Test(arguments: [nil, 4])
    func `a snapshot waits for its camera, and fails the run if the camera does not come`(arrives: Double?) throws {
        let folder = TemporaryFolder()
        let camera = try CameraFile.write([.init("unplugged", at: 0, until: arrives)], to: folder)
        try folder.write(
            """
            chains:
              - - {node: camera, device: "\(camera)", width: 64, height: 48}
                - {node: snapshot, path: shot.png}
            """, to: "graph.yaml")
        let result = try CommandLineTool.run(
            ["run", "graph.yaml", "--seconds", arrives == nil ? "6" : "10"], folder: folder, seconds: 40)
        let isWritten = FileManager.default.fileExists(atPath: folder.file("shot.png"))
        #expect(isWritten == (arrives != nil), "\(result.error)")
        #expect(result.status == (isWritten ? 0 : 1), "\(result.error)")
        #expect(result.error.contains("camera waits for its device: "), "\(result.error)")
        guard arrives == nil else { return }
        #expect(result.error.contains("[snapshot.missing]") && result.error.contains("camera.json"), "\(result.error)")
        #expect(result.error.contains(#/received 0 frames and \d+ that stood in for a device/#), "\(result.error)")
    }

    @Test(arguments: ["./graph.yaml", "a.mkv"])
    func `a report over a file of the run is refused`(path: String) throws {
        let result = try run(
            """
            chains:
              - - {node: test-pattern, width: 160, height: 120}
                - {node: recorder, path: a.mkv}
            """, "--seconds", "0.3", "--report", path)
        #expect(result.status == 1)
        #expect(result.error.contains("[file.conflict]"), "\(result.error)")
    }
}
