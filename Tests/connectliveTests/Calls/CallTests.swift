import Foundation
import Glibc
import Testing
import TestSupport

private func report(_ path: String) throws -> [String: Any] {
    let data = try Data(contentsOf: URL(fileURLWithPath: path))
    return try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
}

@Suite(.serialized) struct CallTests {
    @Test func `the demo shows a call and writes its report`() throws {
        let folder = TemporaryFolder()
        let demo = try CommandLineTool(["demo", "--listen", "127.0.0.1:0"], folder: folder)
        _ = try demo.waitForText("frames/s", seconds: 60)
        demo.interrupt()
        let result = try demo.finish(seconds: 20)
        #expect(result.status == 0, "\(result.error)")
        #expect(result.output.contains("/?room=demo&join=1"))
        let report = try report(folder.file("out/demo/report.json"))
        for key in [
            "framesPublished", "framesRendered", "audioSecondsRendered", "width", "height", "firstFrameMs",
            "latencyMsP50", "packetsLost",
        ] {
            #expect(report[key] is NSNumber, "\(key)")
        }
        #expect(report["srtpProfile"] as? String == "AEAD_AES_128_GCM")
        #expect(report["latencyMethod"] as? String == "rtp-timestamp")
        #expect(report["latencyIsMeasured"] as? Bool == true)
        // A busy machine publishes smaller frames.
        let (width, height) = (report["width"] as? Int ?? 0, report["height"] as? Int ?? 0)
        #expect([1280, 960, 640, 480, 320].contains(width) && width * 9 == height * 16, "\(width)x\(height)")
        #expect((report["framesRendered"] as? Int ?? 0) > 5)
        #expect((report["audioSecondsRendered"] as? Double ?? 0) > 0.5)
        let picture = try Data(contentsOf: URL(fileURLWithPath: folder.file("out/demo/frame.png")))
        #expect(picture.starts(with: [0x89, 0x50, 0x4e, 0x47]))
        #expect(picture.count > 100_000, "a flat image")
    }

    @Test func `the demo uses the next free port and prints it`() throws {
        let server = try TestServer()
        let folder = TemporaryFolder()
        let demo = try CommandLineTool(["demo", "--listen", "127.0.0.1:\(server.port)"], folder: folder)
        #expect(try demo.waitForText("is in use").contains(String(server.port)))
        _ = try demo.waitForText("Publishing")
        demo.interrupt()
        #expect(try demo.finish(seconds: 20).status == 0)
    }

    @Test(arguments: ["vp8", "h264", "vp9"])
    func `on one machine no address or key is needed`(codec: String) throws {
        let server = try TestServer()
        let mode = try FileManager.default.attributesOfItem(atPath: server.folder.file("connectlive/server.json"))
        #expect(mode[.posixPermissions] as? Int == 0o600)
        let publisher = try CommandLineTool(
            [
                "publish", "--room", "kitchen", "--test-pattern", "--size", "640x360", "--codec", codec, "--report",
                "p.json",
            ], folder: server.folder)
        let viewer = try CommandLineTool.view(
            ["--room", "kitchen", "--report", "r.json", "--snapshot", "s.png"], folder: server.folder)
        #expect(viewer.status == 0, "\(viewer.error)")
        // Nothing is wrong with a machine without a screen and without sound.
        #expect(!viewer.error.contains("The loudspeaker is away"), "\(viewer.error)")
        let seen = try report(server.folder.file("r.json"))
        #expect((seen["framesRendered"] as? Int ?? 0) > 0)
        #expect(seen["latencyMethod"] as? String == "abs-capture-time")
        #expect(seen["latencyIsMeasured"] is Bool)
        #expect((seen["latencyMsP50"] as? Double ?? -1) > 0)
        #expect((seen["streams"] as? [[String: Any]])?.count == 2)
        #expect(FileManager.default.fileExists(atPath: server.folder.file("s.png")))
        publisher.interrupt()
        #expect(try publisher.finish(seconds: 20).status == 0)
        let sent = try report(server.folder.file("p.json"))
        #expect((sent["framesPublished"] as? Int ?? 0) > 0)
        #expect((sent["connectMs"] as? Double ?? 0) > 0)
        #expect(sent["path"] as? String == "directly over UDP")
        let streams = try #require(sent["streams"] as? [[String: Any]])
        #expect(Set(streams.compactMap { $0["media"] as? String }) == ["audio", "video"])
        #expect(streams.allSatisfy { ($0["packetsSent"] as? Int ?? 0) > 0 && $0["recent"] is [String: Any] })
        server.tool.interrupt()
        #expect(try server.tool.finish(seconds: 20).status == 0)
        #expect(!FileManager.default.fileExists(atPath: server.folder.file("connectlive/server.json")))
    }

    @Test(arguments: [[], ["--forever"]])
    func `a command that did not enter its room in its time fails with one sentence`(flags: [String]) throws {
        let server = try TestServer()
        // Nothing answers there, so media has no way.
        let result = try CommandLineTool.run(
            ["publish", "--room", "r", "--test-pattern", "--seconds", "2", "--ice-policy", "relay"]
                + ["--turn", "turn:127.0.0.1:9?transport=udp"] + flags, folder: server.folder,
            environment: ["CONNECTLIVE_TURN_USER": "ada", "CONNECTLIVE_TURN_PASSWORD": "lovelace"], seconds: 60)
        #expect(result.status == 1, "\(result.error)")
        let said = result.error.split(separator: "\n").filter { $0.hasPrefix("connectlive: ") }
        #expect(said.count == 1 && said.first?.hasSuffix("[room.not-entered]") == true, "\(result.error)")
    }

    @Test func `a server that is not there is named with the way to wait for it`() throws {
        let folder = TemporaryFolder()
        for command in ["publish", "view"] {
            let source = command == "publish" ? ["--test-pattern"] : []
            let result = try CommandLineTool.run(
                [command, "--room", "r", "--server", "ws://127.0.0.1:1", "--service-id", "home"]
                    + ["--service-secret", "x"] + source, folder: folder)
            #expect(result.status == 1)
            let sentence = result.error.split(separator: "\n").last ?? ""
            #expect(sentence.contains("With --forever, the command waits for the server. [1305]"), "\(result.error)")
        }
        let wrong = try CommandLineTool.run(
            ["view", "--room", "r", "--server", "rtmp://x", "--service-id", "home", "--service-secret", "x"],
            folder: folder)
        #expect(wrong.status == 1 && !wrong.error.contains("--forever"), "\(wrong.error)")
        let unnamed = try CommandLineTool.run(["view", "--room", "r"], folder: folder)
        #expect(unnamed.error.contains("--service-secret") && unnamed.error.contains("[1103]"), "\(unnamed.error)")
    }

    @Test func `a viewer's snapshot of a camera that is away fails with the reason, and writes no slate`() throws {
        let server = try TestServer()
        let camera = try CameraFile.write([.init("unplugged", at: 0)], to: server.folder)
        let publisher = try CommandLineTool(
            ["publish", "--room", "kitchen", "--camera", camera, "--mic", "none", "--forever"], folder: server.folder)
        _ = try publisher.waitForText("Connected to the room")
        let viewer = try CommandLineTool.run(
            ["view", "--room", "kitchen", "--seconds", "5", "--snapshot", "s.png", "--report", "r.json"],
            folder: server.folder, seconds: 40)
        #expect(viewer.status == 1)
        #expect(try report(server.folder.file("r.json"))["framesRendered"] as? Int ?? 0 > 0)
        #expect(viewer.error.contains("[snapshot.missing]"), "\(viewer.error)")
        #expect(viewer.error.contains("showed its source. Video"), "\(viewer.error)")
        #expect(viewer.error.contains("waits: waiting for the camera."), "\(viewer.error)")
        #expect(!FileManager.default.fileExists(atPath: server.folder.file("s.png")))
        publisher.interrupt()
        _ = try publisher.finish(seconds: 20)
    }

    @Test func `a viewer without video reports that it waits, and exits with 1`() throws {
        let server = try TestServer()
        let viewer = try CommandLineTool.run(
            ["view", "--room", "empty", "--seconds", "6"], folder: server.folder, seconds: 40)
        #expect(viewer.status == 1)
        #expect(viewer.error.contains("waiting"))
        #expect(viewer.error.contains("[view.nothing-rendered]"))
    }

    @Test func `without a return, a server that vanishes ends the others with a message within ten seconds`() throws {
        let server = try TestServer()
        let publisher = try CommandLineTool(
            ["publish", "--room", "r", "--test-pattern", "--reconnect-seconds", "0"], folder: server.folder)
        _ = try publisher.waitForText("publishing VP8")
        kill(server.tool.process.processIdentifier, SIGKILL)
        let result = try publisher.finish(seconds: 12)
        #expect(result.status == 1)
        #expect(result.error.contains("[1312]"), "\(result.error)")
    }
}
