import Foundation
import Glibc
import Testing
import TestSupport

/// A pipeline that runs as a user would run it.
private final class Run {
    let folder: TemporaryFolder
    let tool: CommandLineTool

    static let pattern = """
        description: Moving bars to nowhere
        chains:
          - - {node: test-pattern, name: source, width: 320, height: 240, fps: 30}
            - {node: vp8-encoder, name: encoder}
            - {node: "null", name: end}
        """

    init(_ graph: String = pattern, _ arguments: [String] = [], in folder: TemporaryFolder? = nil) throws {
        self.folder = folder ?? TemporaryFolder()
        try self.folder.write(graph, to: "graph.yaml")
        tool = try CommandLineTool(["run", "graph.yaml"] + arguments, folder: self.folder)
        _ = try tool.waitForText("Running graph.yaml")
    }

    var path: String { folder.file("connectlive/run-\(tool.process.processIdentifier).sock") }

    func attach() throws -> ControlSocket { try ControlSocket(path) }

    /// Runs another command in the same place.
    func command(_ arguments: String...) throws -> RunningProgram.Result {
        try CommandLineTool.run(arguments, folder: folder)
    }

    func end() throws -> RunningProgram.Result {
        tool.interrupt()
        return try tool.finish(seconds: 20)
    }
}

extension TemporaryFolder {
    func write(_ text: String, to name: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: file(name)))
    }
}

@Suite(.serialized) struct RunTests {
    @Test func `a run shows each output and ends with the planned and measured values`() throws {
        let run = try Run(Run.pattern, ["--seconds", "7", "--report", "report.json"])
        let result = try run.tool.finish(seconds: 40)
        #expect(result.status == 0, "\(result.error)")
        let line = #/end +vp8 320x240 +\d+\.\d frames\/s +\d+ kbit\/s +\d+ dropped +latency \d/#
        #expect(result.error.contains(line), "\(result.error)")
        #expect(result.output.contains(#/PLANNED +MEASURED/#))
        #expect(result.output.contains(#/encodes +1 +1/#), "\(result.output)")
        let report = try #require(
            try JSONSerialization.jsonObject(
                with: Data(contentsOf: URL(fileURLWithPath: run.folder.file("report.json")))) as? [String: Any])
        #expect((report["outputs"] as? [[String: Any]])?.first?["name"] as? String == "end")
        #expect((report["counts"] as? [[String: Any]])?.isEmpty == false)
    }

    @Test func `the report of a camera that is away at the end has the plan that ran`() throws {
        let folder = TemporaryFolder()
        try folder.write(
            #"""
            {"version": 1, "driver": "d", "card": "Webcam", "bus": "usb-1",
             "formats": [{"format": "NV12", "sizes": [{"size": "64x48", "rates": ["30"]}]}],
             "faults": [{"fault": "corrupt", "at": 0, "until": 0.5}, {"fault": "unplugged", "at": 2}]}
            """#, to: "camera.json")
        let graph = """
            chains:
              - - {node: camera, name: camera, device: "fixture:camera.json", width: 64, height: 48, fps: 30}
                - {node: "null", name: end}
            """
        let run = try Run(graph, ["--seconds", "3.5", "--report", "report.json"], in: folder)
        let result = try run.tool.finish(seconds: 40)
        #expect(result.status == 0, "\(result.error)")
        #expect(result.error.contains("camera lost its device"), "\(result.error)")
        #expect(result.output.contains(#/end +NV12 64x48/#), "\(result.output)")
        #expect(result.output.contains(#/camera, damaged +0 +\d/#), "\(result.output)")
        let report = try String(contentsOfFile: folder.file("report.json"), encoding: .utf8)
        #expect(report.contains(#/"damaged" : [1-9]/#), "\(report)")
    }

    @Test func `a run says that it waits for a camera and continues with another, and its control socket says why`()
        throws
    {
        let folder = TemporaryFolder()
        let other = try CameraFile.write([.init("unplugged", at: 0, until: 4)], to: folder, "other.json")
        let camera = try CameraFile.write([.init("unplugged", at: 0)], to: folder)
        let run = try Run(
            """
            chains:
              - - {node: camera, device: "\(camera)", failover: "\(other)", width: 64, height: 48, fps: 30}
                - {node: "null", name: end}
            """, in: folder)
        let socket = try run.attach()
        socket.send(#"{"do":"watch","every":0.1}"#)
        func source(_ state: String) throws -> [String: Any] {
            while true {
                let line = try #require(try socket.receive(), "the connection was closed")
                let nodes = (line["statistics"] as? [String: Any])?["nodes"] as? [[String: Any]] ?? []
                let source = nodes.first { $0["node"] as? String == "camera" }?["source"] as? [String: Any]
                if let source, source["state"] as? String == state { return source }
            }
        }
        let waiting = try source("waiting")
        #expect([camera, other].contains(waiting["device"] as? String), "\(waiting)")
        #expect((waiting["cause"] as? String)?.contains("camera.json") == true, "\(waiting)")
        let wait = try run.tool.waitForText("camera waits for its device: ")
        #expect(wait.hasSuffix("[camera.absent]"), "\(wait)")
        _ = try run.tool.waitForText("camera continues with \(other)")
        let replaced = try source("failed over")
        #expect(replaced["device"] as? String == other && replaced["cause"] == nil, "\(replaced)")
        #expect(try run.end().status == 0)
    }

    @Test func `two running pipelines are told apart with the option that names one`() throws {
        let first = try Run()
        let second = try Run(in: first.folder)
        let result = try first.command("set", "encoder.bitrate=1000000")
        #expect(result.status == 1)
        #expect(result.error.contains("Choose one by its process number with --to: "), "\(result.error)")
        _ = try second.end()
        _ = try first.end()
    }

    @Test func `an omitted optional node is reported at the start, with its reason and code`() throws {
        let run = try Run(
            Run.pattern.replacing(
                "- {node: vp8", with: "- tee: [{node: window, name: preview, optional: true}]\n    - {node: vp8"))
        let line = try run.tool.waitForText("Running without preview: ")
        #expect(line.contains("display") && line.hasSuffix("[window.unavailable]"), "\(line)")
        #expect(try run.end().status == 0)
    }

    @Test func `the end of a graph ends the run`() throws {
        let run = try Run(Run.pattern.replacing("fps: 30", with: "fps: 30, frames: 30"))
        #expect(try run.tool.finish(seconds: 20).status == 0)
    }

    @Test func `a killed process leaves playable recordings`() throws {
        let graph = """
            chains:
              - - {node: test-pattern, name: pattern, width: 320, height: 240, fps: 30}
                - tee: [{node: recorder, name: mkv, path: a.mkv}]
                - tee: [{node: recorder, name: mp4, path: a.mp4}]
                - {node: recorder, name: webm, path: a.webm}
              - - {from: pattern.audio}
                - tee: [{to: mkv.audio}]
                - tee: [{to: mp4.audio}]
                - {to: webm.audio}
            """
        let run = try Run(graph)
        let names = ["a.mkv", "a.mp4", "a.webm"]
        func kilobytes(_ name: String) -> Int {
            let attributes = try? FileManager.default.attributesOfItem(atPath: run.folder.file(name))
            return (attributes?[.size] as? Int ?? 0) / 1000
        }
        // At least three seconds on a machine that keeps up: 64 kbit/s of audio and about 100 of video.
        let deadline = ContinuousClock.now + .seconds(30)
        while names.contains(where: { kilobytes($0) < 60 }), ContinuousClock.now < deadline { usleep(20_000) }
        kill(run.tool.process.processIdentifier, SIGKILL)
        _ = try run.tool.finish(seconds: 20)
        for name in names {
            let reading = """
                chains:
                  - - {node: file, name: recording, path: \(name), loop: false}
                    - {node: snapshot, path: \(name).png, frame: 1}
                  - [{from: recording.audio}, {node: "null", name: heard}]
                """
            try run.folder.write(reading, to: "reading.yaml")
            let result = try run.command("run", "reading.yaml")
            #expect(result.status == 0, "\(name): \(result.error)")
            #expect(FileManager.default.fileExists(atPath: run.folder.file("\(name).png")), "\(name)")
        }
    }

    @Test func `a failure ends the run with its code`() throws {
        let graph = """
            chains:
              - - test-pattern
                - {node: publish, name: stage, room: r, server: "ws://127.0.0.1:1", service-id: a, service-secret: b}
            """
        let result = try Run(graph).tool.finish(seconds: 20)
        #expect(result.status == 1)
        #expect(result.error.contains("\"stage\": The server ws://127.0.0.1:1"), "\(result.error)")
        #expect(result.error.contains("[1305]"))
        #expect(result.error.contains("Check the address, and that a room server runs there."), "\(result.error)")
    }

    @Test func `a node without a server or a key is reported with the missing setting`() throws {
        for (given, lack) in [
            ("", "set server, service-id and service-secret of the node, or CONNECTLIVE_SERVER, "),
            (", server: \"ws://127.0.0.1:1\"", "set service-id and service-secret of the node, or CONNECTLIVE_SERVICE"),
        ] {
            let result = try Run("chains: [[test-pattern, {node: publish, room: r\(given)}]]").tool.finish(seconds: 20)
            #expect(result.status == 1)
            #expect(result.error.contains(lack) && result.error.contains("[1103]"), "\(result.error)")
        }
    }

    @Test func `a graph with a feed node prints its socket, which exists`() throws {
        let graph = """
            chains:
              - - {node: feed, name: screen, width: 320, height: 240}
                - {node: "null", name: end}
            """
        let run = try Run(graph)
        let path = run.folder.file("connectlive/feed-screen.sock")
        _ = try run.tool.waitForText("screen waits for a feeder at \(path)")
        // The message appears before the socket exists.
        let deadline = ContinuousClock.now + .seconds(20)
        while !FileManager.default.fileExists(atPath: path), ContinuousClock.now < deadline { usleep(20_000) }
        #expect(FileManager.default.fileExists(atPath: path))
        #expect(try run.end().status == 0)
    }

    @Test func `a program with the wrong frame size fails the start of a node that ends with it, with that reason`()
        throws
    {
        let folder = TemporaryFolder()
        try folder.write(
            """
            import sys, time
            sys.stdout.buffer.write(b'\\xff\\xd8\\xff\\xc0\\0\\x0b\\x08\\0\\x10\\0\\x10\\1\\1\\x11\\0\\xff\\xd9' * 9)
            sys.stdout.flush()
            time.sleep(100)
            """, to: "wrong.py")
        let graph = "chains: [[{node: exec, command: python3 wrong.py, format: mjpeg, away: end}, 'null']]"
        let result = try Run(graph, in: folder).tool.finish(seconds: 30)
        let last = result.error.split(separator: "\n").last ?? ""
        #expect(result.status == 1 && last.contains("16x16"), "\(result.error)")
        #expect(last.contains("Set format, width and height of the node"), "\(result.error)")
        #expect(last.hasSuffix("[process.bad-output]"), "\(result.error)")
    }

    @Test func `a file that stops responding is named at the end, and does not block it`() throws {
        let folder = TemporaryFolder()
        #expect(mkfifo(folder.file("pipe"), 0o600) == 0)
        let pipe = open(folder.file("pipe"), O_RDWR)
        defer { close(pipe) }
        #expect(write(pipe, [UInt8](repeating: 0, count: 4096), 4096) == 4096)
        let graph = """
            chains:
              - - {element: filesrc, name: stuck, location: pipe}
                - {element: fakesink, name: nowhere}
              - [test-pattern, {node: "null", name: end}]
            """
        let run = try Run(graph, in: folder)
        _ = try run.tool.waitForText(" frames/s ")
        let result = try run.end()
        #expect(result.status == 0)
        #expect(result.error.contains("\"stuck\" could not be closed within 10 s"), "\(result.error)")
    }

    @Test func `secrets work but are never shown, and a shown graph can be applied again`() throws {
        let server = try TestServer(["--service-id", "svc", "--service-secret", "hush-hush"])
        let address = String(server.page.dropLast()).replacing("http://", with: "ws://")
        let graph = """
            chains:
              - - {node: test-pattern, width: 320, height: 240, fps: 30}
                - {node: publish, room: r, server: "\(address)", service-id: svc, service-secret: "${key}"}
            """
        let run = try Run(graph, ["--set", "key=hush-hush"])
        let socket = try run.attach()
        func ask(_ request: String) throws -> [String: Any] {
            let answer = try socket.ask("{\"do\":\(request)}")
            return try #require(answer["result"] as? [String: Any], "\(answer)")
        }
        while try ask("\"status\"")["state"] as? String == "prepared" {}
        for request in ["graph", "plan"] {
            let text = "\(try ask("\"\(request)\""))"
            #expect(!text.contains("hush") && text.contains("service-secret"), "\(text)")
        }
        for arguments in [
            ["graph", "--live"], ["graph", "--live", "--format", "yaml"],
            ["plan", "graph.yaml", "--set", "key=hush-hush"],
            ["plan", "graph.yaml", "--set", "key=hush-hush", "--format", "json"],
            ["validate", "graph.yaml", "--set", "key=hush-hush"],
        ] {
            let result = try CommandLineTool.run(arguments, folder: run.folder)
            #expect(result.status == 0, "\(arguments): \(result.error)")
            #expect(!result.output.contains("hush") && !result.error.contains("hush"), "\(arguments)")
        }
        let shown = try JSONSerialization.data(withJSONObject: try ask("\"graph\""))
        let applied = try ask("\"apply\",\"graph\":\(String(decoding: shown, as: UTF8.self))")
        #expect(applied["changes"] as? [String] == [])
        #expect(try run.end().status == 0)
    }

    @Test func `planning errors are reported before anything starts`() throws {
        let folder = TemporaryFolder()
        try folder.write("chains: [[{node: camera, device: /dev/video77, away: end}, 'null']]", to: "graph.yaml")
        for command in ["run", "plan"] {
            let result = try CommandLineTool.run([command, "graph.yaml"], folder: folder)
            #expect(result.status == 1)
            #expect(
                result.error.contains("/dev/video77") && result.error.contains("[camera.absent]"), "\(result.error)")
            #expect(result.error.contains("graph.yaml:1:18: "), "\(result.error)")
            #expect(!result.output.contains("Running"))
        }
    }

    @Test func `an audio level is shown by top and in the report`() throws {
        let graph = """
            chains:
              - - {node: test-pattern, name: source, width: 64, height: 64, fps: 10}
                - {node: "null", name: end}
              - - {from: source.audio}
                - {node: level, name: meter}
                - {node: "null", name: sound}
            """
        let run = try Run(graph, ["--report", "report.json"])
        let top = try run.command("top", "--every", "0.5", "--seconds", "0.5")
        #expect(top.output.contains(#/meter +S16LE, -\d+\.\d, -\d+\.\d dBFS/#), "\(top.output)")
        #expect(top.output.contains(#/source .* audio \d+\.\d, video \d+\.\d/#), "\(top.output)")
        let result = try run.end()
        #expect(result.output.contains(#/meter, level +-\d+\.\d, -\d+\.\d dBFS/#), "\(result.output)")
        let report = try String(contentsOfFile: run.folder.file("report.json"), encoding: .utf8)
        #expect(report.contains("\"meters\""), "\(report)")
    }

    @Test func `an edit to a camera that is not there or delivers nothing is made, with a warning`() throws {
        let folder = TemporaryFolder()
        let camera = try CameraFile.write([], to: folder)
        let refused = try CameraFile.write([.init("noBandwidth", at: 0)], to: folder, "refused.json")
        func graph(_ device: String) -> String {
            """
            chains:
              - - {node: camera, name: front, device: "\(device)", width: 64, height: 48}
                - {node: "null", name: end}
            """
        }
        let run = try Run(graph(camera), in: folder)
        let socket = try run.attach()
        func state() throws -> String? {
            (try socket.ask(#"{"do":"status"}"#)["result"] as? [String: Any])?["state"] as? String
        }
        while try state() == "prepared" {}
        try folder.write(graph("serial:NOPE"), to: "other.yaml")
        let result = try run.command("apply", "other.yaml")
        #expect(result.status == 0 && result.output.contains("replaced front (camera)"), "\(result.error)")
        let line = "warning: front waits for its device: The camera serial:NOPE is not plugged in"
        #expect(result.error.contains(line), "\(result.error)")
        try folder.write(graph(refused), to: "other.yaml")
        let silent = try run.command("apply", "other.yaml")
        #expect(silent.status == 0 && silent.error.contains("warning: front waits for its device: "), "\(silent.error)")
        let returned = try run.command("apply", "graph.yaml")
        #expect(returned.status == 0 && !returned.error.contains("warning"), "\(returned.error)")
        #expect(try run.end().status == 0)
    }

    @Test func `an impossible edit is reported with the line of its node`() throws {
        let run = try Run()
        let socket = try run.attach()
        func state() throws -> String? {
            (try socket.ask(#"{"do":"status"}"#)["result"] as? [String: Any])?["state"] as? String
        }
        while try state() == "prepared" {}
        try run.folder.write("chains: [[{node: camera, device: /dev/video77, away: end}, 'null']]", to: "other.yaml")
        let result = try run.command("apply", "other.yaml")
        #expect(
            result.error.contains("other.yaml:1:18: ") && result.error.contains("[camera.absent]"), "\(result.error)")
        #expect(try run.end().status == 0)
    }

    @Test func `top shows its statistics at the end of a time shorter than its interval`() throws {
        let run = try Run()
        let short = try run.command("top", "--seconds", "0.4")
        #expect(short.status == 0)
        #expect(short.output.contains(#/encoder +vp8 320x240/#), "\(short.output)")
        _ = try run.end()
    }

    @Test func `a plan is a page, or JSON`() throws {
        let folder = TemporaryFolder()
        try folder.write(Run.pattern, to: "graph.yaml")
        let text = try CommandLineTool.run(["plan", "graph.yaml"], folder: folder)
        #expect(text.status == 0, "\(text.error)")
        for words in ["Moving bars to nowhere", "vp8enc", "encodes", "drops the oldest", "Latency from capture"] {
            #expect(text.output.contains(words), "\(words)")
        }
        let json = try CommandLineTool.run(["plan", "graph.yaml", "--format", "json"], folder: folder)
        let report = try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any]
        #expect(report?["encodes"] as? [String] == ["encoder"])
        #expect((report?["latencyMs"] as? [String: Any])?["end"] as? Double ?? 0 > 0)
    }
}

@Suite(.serialized) struct ControlSocketTests {
    @Test func `only the user who runs it can attach, and no files remain`() throws {
        let run = try Run()
        let files = FileManager.default
        #expect(try files.attributesOfItem(atPath: run.path)[.posixPermissions] as? Int == 0o600)
        #expect(
            try files.attributesOfItem(atPath: run.folder.file("connectlive"))[.posixPermissions] as? Int == 0o700)
        #expect(try run.end().status == 0)
        #expect(!files.fileExists(atPath: run.path))
    }

    @Test func `the next command removes the sockets of dead processes`() throws {
        let run = try Run()
        kill(run.tool.process.processIdentifier, SIGKILL)
        run.tool.process.waitUntilExit()
        #expect(FileManager.default.fileExists(atPath: run.path))
        let result = try run.command("top")
        #expect(result.status == 1)
        #expect(result.error.contains("[control.none-running]"), "\(result.error)")
        #expect(!FileManager.default.fileExists(atPath: run.path))
    }

    @Test func `only the commands that watch offer to watch a server if no pipeline runs`() throws {
        let folder = TemporaryFolder()
        let top = try CommandLineTool.run(["top"], folder: folder)
        let set = try CommandLineTool.run(["set", "encoder.bitrate=300000"], folder: folder)
        #expect(top.error.contains("'connectlive top --server'"), "\(top.error)")
        #expect(set.error.contains("[control.none-running]") && !set.error.contains("--server"), "\(set.error)")
    }

    @Test func `with several pipelines one has to be named`() throws {
        let first = try Run()
        let second = try Run(in: first.folder)
        let result = try first.command("set", "encoder.bitrate=300000")
        #expect(result.status == 1)
        #expect(result.error.contains("[control.several-running]"), "\(result.error)")
        #expect(result.error.contains("\(second.tool.process.processIdentifier)"))
        let named = try first.command(
            "set", "encoder.bitrate=300000", "--to", "\(second.tool.process.processIdentifier)")
        #expect(named.status == 0, "\(named.error)")
        _ = try (first.end(), second.end())
    }

    @Test func `requests get replies with their numbers`() throws {
        let run = try Run()
        let socket = try run.attach()
        let status = try socket.ask(#"{"id":7,"do":"status"}"#)
        #expect(status["id"] as? Int == 7)
        let result = status["result"] as? [String: Any]
        #expect(result?["pid"] as? Int == Int(run.tool.process.processIdentifier))
        #expect(result?["file"] as? String == "graph.yaml")
        let graph = try socket.ask(#"{"do":"graph"}"#)["result"] as? [String: Any]
        #expect(
            (graph?["nodes"] as? [[String: Any]])?.compactMap { $0["name"] as? String } == ["source", "encoder", "end"])
        let plan = try socket.ask(#"{"do":"plan"}"#)["result"] as? [String: Any]
        #expect((plan?["nodes"] as? [Any])?.count == 3)
        _ = try run.end()
    }

    @Test func `any input gets a reply with a code, and the pipeline continues`() throws {
        let run = try Run()
        let socket = try run.attach()
        for line in [
            "][", "[]", "7", "null", "\"do\"", "{}", #"{"do":7}"#, #"{"do":"set"}"#, #"{"do":"watch","every":0}"#,
            #"{"do":"watch","every":"x"}"#, #"{"do":"apply"}"#, #"{"do":"apply","graph":[]}"#,
            #"{"do":"apply","graph":{"nodes":[],"links":[]},"deadline":-1}"#, #"{"do":"set","node":"a","setting":"b"}"#,
            #"{"id":"x","do":"status"}"#, String(repeating: "[", count: 100_000),
            #"{"do":"status","id":\#(String(repeating: "9", count: 400))}"#, "\u{0}\u{1}",
        ] {
            #expect(try socket.refusal(of: line) == "control.malformed", "\(line.prefix(60))")
        }
        socket.send([0xff, 0xfe, 0x00, 0x0a])
        #expect(try socket.receive()?["error"] != nil)
        #expect(try socket.refusal(of: #"{"do":"dance"}"#) == "control.unknown-request")
        #expect(try socket.refusal(of: #"{"do":"set","node":"nobody","setting":"x","value":1}"#) == "graph.invalid")
        let misspelt = try socket.ask(#"{"do":"set","node":"encodr","setting":"bitrate","value":500000}"#)
        #expect(
            (misspelt["error"] as? [String: Any])?["message"] as? String
                == "There is no node \"encodr\"; did you mean \"encoder\"?", "\(misspelt)")
        #expect(
            try socket.refusal(of: #"{"do":"set","node":"encoder","setting":"bitrate","value":-5}"#) == "graph.invalid")
        #expect(
            try socket.refusal(of: #"{"do":"set","node":"source","setting":"width","value":640}"#)
                == "graph.setting-fixed")
        #expect(
            try socket.refusal(of: #"{"do":"apply","graph":{"nodes":[{"kind":"dance"}],"links":[]}}"#)
                == "graph.invalid")
        let links = #"[{"from":{"node":"a","port":"out"},"to":{"node":"a","port":"in"}}]"#
        #expect(
            try socket.refusal(of: #"{"do":"apply","graph":{"nodes":[{"kind":"scale","name":"a"}],"links":\#(links)}}"#)
                == "graph.invalid")
        #expect(try socket.ask(#"{"do":"status"}"#)["result"] != nil)
        #expect(try run.end().status == 0)
    }

    @Test func `a line without end ends its connection, and no other`() throws {
        let run = try Run()
        let (greedy, other) = (try run.attach(), try run.attach())
        greedy.send([UInt8](repeating: UInt8(ascii: "x"), count: 3 * 1024 * 1024))
        let answer = try greedy.receive()
        #expect((answer?["error"] as? [String: Any])?["code"] as? String == "control.too-long")
        #expect(try greedy.receive() == nil)
        #expect(try other.ask(#"{"do":"status"}"#)["result"] != nil)
        _ = try run.end()
    }

    @Test func `more than thirty-two connections are refused`() throws {
        let run = try Run()
        let attached = try (0..<32).map { _ in try run.attach() }
        for socket in attached { #expect(try socket.ask(#"{"do":"status"}"#)["result"] != nil) }
        let late = try run.attach()
        #expect((try late.receive()?["error"] as? [String: Any])?["code"] as? String == "control.busy")
        #expect(try late.receive() == nil)
        _ = try run.end()
    }

    @Test func `a client that watches without reading blocks nothing`() throws {
        let run = try Run()
        let (sleeper, reader) = (try run.attach(), try run.attach())
        sleeper.send(#"{"do":"watch","every":0.1}"#)
        // The responses to all of these do not fit into any buffer.
        sleeper.send(Array(String(repeating: "{\"do\":\"plan\"}\n", count: 2000).utf8))
        reader.send(#"{"do":"watch","every":0.1}"#)
        var looks: [[String: Any]] = []
        while looks.count < 20 {
            let line = try #require(try reader.receive())
            if let statistics = line["statistics"] as? [String: Any] { looks.append(statistics) }
        }
        func frames(_ look: [String: Any]?) -> Int {
            (look?["nodes"] as? [[String: Any]])?.first { $0["node"] as? String == "end" }?["framesIn"] as? Int ?? 0
        }
        #expect(frames(looks.last) > frames(looks.first) + 20)
        _ = try run.end()
    }

    @Test func `attached clients are notified of the end and its cause`() throws {
        let run = try Run()
        let socket = try run.attach()
        _ = try socket.ask(#"{"do":"status"}"#)
        #expect(try run.end().status == 0)
        #expect(try socket.receive()?["event"] as? String == "ended")
        #expect(try socket.receive() == nil)
    }

    @Test func `set changes a property without documented live changes, with a note`() throws {
        let run = try Run(
            Run.pattern.replacing("- {node: vp8", with: "- {element: identity, name: pass}\n    - {node: vp8"))
        let explained = try run.command("nodes", "element:identity")
        #expect(explained.output.contains("live changes are undocumented"))
        let set = try run.command("set", "pass.sleep-time=1", "encoder.bitrate=300000")
        #expect(set.status == 0, "\(set.error)")
        #expect(
            set.output == """
                Set pass.sleep-time. The element does not document live changes to this property; check \
                that it took effect.
                Set encoder.bitrate to 300000.

                """, "\(set.output)")
        #expect(try run.end().status == 0)
    }

    @Test(arguments: ["source.width=640", "encoder.bitrate=-5", "nobody.bitrate=300000"])
    func `set applies no change if one of them is refused`(refused: String) throws {
        let run = try Run()
        let set = try run.command("set", "encoder.bitrate=310k", refused)
        #expect(set.status == 1, "\(set.output)\(set.error)")
        let before = try run.command("graph", "--live", "--format", "yaml")
        #expect(before.status == 0 && !before.output.contains("310000"), "\(before.output)\(before.error)")
        #expect(try run.command("set", "encoder.bitrate=310k", "encoder.bitrate=320k").status == 0)
        let after = try run.command("graph", "--live", "--format", "yaml")
        #expect(after.output.contains("320000"), "\(after.output)")
        _ = try run.end()
    }

    @Test func `top shows each node; apply and set change the running pipeline`() throws {
        let run = try Run()
        let top = try run.command("top", "--every", "0.5", "--seconds", "3")
        #expect(top.status == 0, "\(top.error)")
        #expect(top.output.contains(#/encoder +vp8 320x240 +\d+\.\d +\d+\.\d/#), "\(top.output)")
        let live = try run.command("graph", "--live")
        #expect(live.status == 0, "\(live.error)")
        #expect(live.output.contains("graph.yaml, running") && live.output.contains("frames/s"), "\(live.output)")
        let file = try run.command("graph", "--live", "--format", "yaml")
        #expect(file.output.hasPrefix("description: \"Moving bars to nowhere\"\n"), "\(file.output)")
        #expect(try run.command("set", "encoder.bitrate=300000").status == 0)
        let wrong = try run.command("set", "source.width=640")
        #expect(wrong.status == 1 && wrong.error.contains("[graph.setting-fixed]"), "\(wrong.error)")
        try run.folder.write(
            Run.pattern.replacing("- {node: vp8", with: "- tee: [{node: 'null', name: more}]\n    - {node: vp8"),
            to: "more.yaml")
        let added = try run.command("apply", "more.yaml")
        #expect(added.output.contains("added more (null)"), "\(added.output)\(added.error)")
        #expect(try run.command("apply", "more.yaml").output.contains("Nothing changed"))
        let removed = try run.command("apply", "graph.yaml")
        #expect(removed.output.contains("removed more"), "\(removed.output)\(removed.error)")
        _ = try run.end()
    }
}
