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
        let result = try CommandLineTool.run(
            ["demo", "--seconds", "6", "--listen", "127.0.0.1:0"], folder: folder, seconds: 60)
        #expect(result.status == 0, "\(result.error)")
        #expect(result.output.contains("/?room=demo&join=1"))
        #expect(result.error.contains("frames/s"))
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
        #expect(report["width"] as? Int == 1280)
        // A busy machine encodes fewer frames. The viewer renders all published ones, except for the beginning.
        let (published, rendered) = (report["framesPublished"] as? Int ?? 0, report["framesRendered"] as? Int ?? 0)
        #expect(rendered > 5 && rendered * 2 > published, "\(rendered) of \(published)")
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
            ["publish", "--room", "kitchen", "--test-pattern", "--codec", codec], folder: server.folder)
        let viewer = try CommandLineTool.run(
            [
                "view", "--room", "kitchen", "--seconds", "6", "--report", "r.json", "--snapshot", "s.png",
            ], folder: server.folder, seconds: 40)
        #expect(viewer.status == 0, "\(viewer.error)")
        // Nothing is wrong with a machine without a screen and without sound.
        #expect(!viewer.error.contains("The loudspeaker is away"), "\(viewer.error)")
        let report = try report(server.folder.file("r.json"))
        #expect((report["framesRendered"] as? Int ?? 0) > 20)
        #expect(report["latencyMethod"] as? String == "abs-capture-time")
        #expect(report["latencyIsMeasured"] is Bool)
        #expect((report["latencyMsP50"] as? Double ?? -1) > 0)
        #expect((report["streams"] as? [[String: Any]])?.count == 2)
        #expect(FileManager.default.fileExists(atPath: server.folder.file("s.png")))
        publisher.interrupt()
        #expect(try publisher.finish(seconds: 20).status == 0)
        server.tool.interrupt()
        #expect(try server.tool.finish(seconds: 20).status == 0)
        #expect(!FileManager.default.fileExists(atPath: server.folder.file("connectlive/server.json")))
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
