import Foundation
import Glibc
import Testing

/// A server of its own on a free port, in a folder of its own.
private final class Server {
    let folder: TemporaryFolder
    let tool: CommandLineTool
    let url: String

    init(_ arguments: [String] = []) throws {
        folder = try TemporaryFolder()
        tool = try CommandLineTool(["serve", "--listen", "127.0.0.1:0"] + arguments, folder: folder)
        let line = try tool.waitForText("Serving rooms at ws://")
        url = String(line.split(separator: " ").last ?? "")
        _ = try tool.waitForText("In a browser")
    }

    var port: Int { Int(url.split(separator: ":").last ?? "") ?? 0 }
}

private func report(_ path: String) throws -> [String: Any] {
    let data = try Data(contentsOf: URL(fileURLWithPath: path))
    return try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
}

@Suite(.serialized) struct CallTests {
    @Test func `the demo shows a call and writes what it measured`() throws {
        let folder = try TemporaryFolder()
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
        #expect(report["width"] as? Int == 1280)
        #expect((report["framesRendered"] as? Int ?? 0) > 60)
        #expect((report["audioSecondsRendered"] as? Double ?? 0) > 2)
        let picture = try Data(contentsOf: URL(fileURLWithPath: folder.file("out/demo/frame.png")))
        #expect(picture.starts(with: [0x89, 0x50, 0x4e, 0x47]))
        #expect(picture.count > 100_000, "a flat picture")
    }

    @Test func `the demo takes the next free port and says so`() throws {
        let server = try Server()
        let folder = try TemporaryFolder()
        let demo = try CommandLineTool(["demo", "--listen", "127.0.0.1:\(server.port)"], folder: folder)
        #expect(try demo.waitForText("is taken").contains(String(server.port)))
        _ = try demo.waitForText("Publishing")
        demo.interrupt()
        #expect(try demo.finish(seconds: 20).status == 0)
    }

    @Test(arguments: ["vp8", "h264"])
    func `on one machine nothing need be typed`(codec: String) throws {
        let server = try Server()
        let mode = try FileManager.default.attributesOfItem(atPath: server.folder.file("connectlive/server.json"))
        #expect(mode[.posixPermissions] as? Int == 0o600)
        let publisher = try CommandLineTool(
            ["publish", "--room", "kitchen", "--test-pattern", "--codec", codec], folder: server.folder)
        let viewer = try CommandLineTool.run(
            [
                "view", "--room", "kitchen", "--seconds", "6", "--report", "r.json", "--snapshot", "s.png",
            ], folder: server.folder, seconds: 40)
        #expect(viewer.status == 0, "\(viewer.error)")
        let report = try report(server.folder.file("r.json"))
        #expect((report["framesRendered"] as? Int ?? 0) > 20)
        #expect(report["latencyMethod"] as? String == "rtcp-sender-report")
        #expect((report["latencyMsP50"] as? Double ?? -1) > 0)
        #expect((report["streams"] as? [[String: Any]])?.count == 2)
        #expect(FileManager.default.fileExists(atPath: server.folder.file("s.png")))
        publisher.interrupt()
        #expect(try publisher.finish(seconds: 20).status == 0)
        server.tool.interrupt()
        #expect(try server.tool.finish(seconds: 20).status == 0)
        #expect(!FileManager.default.fileExists(atPath: server.folder.file("connectlive/server.json")))
    }

    @Test func `a viewer says that it waits and ends with 1 when nothing came`() throws {
        let server = try Server()
        let viewer = try CommandLineTool.run(
            ["view", "--room", "empty", "--seconds", "6"], folder: server.folder, seconds: 40)
        #expect(viewer.status == 1)
        #expect(viewer.error.contains("waiting"))
        #expect(viewer.error.contains("[view.nothing-rendered]"))
    }

    @Test func `a server that vanishes ends the others with a sentence within ten seconds`() throws {
        let server = try Server()
        let publisher = try CommandLineTool(["publish", "--room", "r", "--test-pattern"], folder: server.folder)
        _ = try publisher.waitForText("publishing VP8")
        kill(server.tool.process.processIdentifier, SIGKILL)
        let result = try publisher.finish(seconds: 12)
        #expect(result.status == 1)
        #expect(result.error.contains("[1312]"), "\(result.error)")
    }
}

@Suite(.serialized) struct BadInputTests {
    @Test func `a missing file is refused before anybody is connected`() throws {
        let result = try CommandLineTool.run(
            ["publish", "--room", "r", "--file", "nothing.mp4"], folder: TemporaryFolder())
        #expect(result.status == 1)
        #expect(result.error.contains("nothing.mp4"))
        #expect(result.error.contains("[file.not-found]"))
    }

    @Test func `a file without video is refused before anybody is connected`() throws {
        let folder = try TemporaryFolder()
        // A second of silence as a WAV file.
        let samples = [UInt8](repeating: 0, count: 16000)
        func little(_ value: Int, _ bytes: Int) -> [UInt8] { (0..<bytes).map { UInt8(value >> ($0 * 8) & 255) } }
        let wave =
            Array("RIFF".utf8) + little(36 + samples.count, 4) + Array("WAVEfmt ".utf8) + little(16, 4) + little(1, 2)
            + little(1, 2) + little(8000, 4) + little(16000, 4) + little(2, 2) + little(16, 2) + Array("data".utf8)
            + little(samples.count, 4) + samples
        try Data(wave).write(to: URL(fileURLWithPath: folder.file("sound.wav")))
        let result = try CommandLineTool.run(["publish", "--room", "r", "--file", "sound.wav"], folder: folder)
        #expect(result.status == 1)
        #expect(result.error.contains("[file.no-video]"), "\(result.error)")
    }

    @Test func `an absent camera is refused before anybody is connected`() throws {
        let result = try CommandLineTool.run(
            ["publish", "--room", "r", "--camera", "/dev/video77"], folder: TemporaryFolder())
        #expect(result.status == 1)
        #expect(result.error.contains("/dev/video77"))
        #expect(result.error.contains("[camera.absent]"), "\(result.error)")
    }

    @Test func `without a server, or with one that is not there, there is a sentence`() throws {
        let folder = try TemporaryFolder()
        let none = try CommandLineTool.run(["view", "--room", "r"], folder: folder)
        #expect(none.status == 1)
        #expect(none.error.contains("[1103]"), "\(none.error)")
        let unreachable = try CommandLineTool.run(
            ["view", "--room", "r", "--server", "ws://127.0.0.1:1", "--service-id", "a", "--service-secret", "b"],
            folder: folder, seconds: 12)
        #expect(unreachable.status == 1)
        #expect(unreachable.error.contains("[1305]"), "\(unreachable.error)")
        #expect(unreachable.error.contains("127.0.0.1:1"))
    }

    @Test func `a wrong secret is refused`() throws {
        let server = try Server()
        let result = try CommandLineTool.run(
            ["view", "--room", "r", "--service-secret", "wrong"], folder: server.folder)
        #expect(result.status == 1)
        #expect(result.error.contains("[-11003]"), "\(result.error)")
    }

    @Test func `a taken port is refused`() throws {
        let server = try Server()
        let result = try CommandLineTool.run(
            ["serve", "--listen", "127.0.0.1:\(server.port)"], folder: TemporaryFolder())
        #expect(result.status == 1)
        #expect(result.error.contains("[server.port-in-use]"), "\(result.error)")
    }

    @Test func `a report that cannot be written is refused at the beginning`() throws {
        let result = try CommandLineTool.run(
            ["view", "--room", "r", "--report", "/nowhere/r.json"], folder: TemporaryFolder())
        #expect(result.status == 1)
        #expect(result.error.contains("[file.unwritable]"), "\(result.error)")
    }
}
