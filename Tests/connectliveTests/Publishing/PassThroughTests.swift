import Foundation
import TestFixtures
import TestSupport
import Testing

/// `publish` of a camera that encodes.
@Suite struct PassThroughTests {
    private func publish(_ more: [String]) throws -> (server: TestServer, publisher: CommandLineTool) {
        let server = try TestServer()
        let film = try EncodedFilm.h264(30, keyframeEvery: 10)
        let camera = try CameraFile.write(h264: film, to: server.folder)
        let publisher = try CommandLineTool(
            ["publish", "--room", "kitchen", "--camera", camera, "--mic", "none"] + more, folder: server.folder)
        return (server, publisher)
    }

    @Test func `H.264 of the camera passes through, and the status says that nothing is encoded`() throws {
        let (server, publisher) = try publish([])
        let status = try publisher.waitForText("nothing is encoded")
        #expect(status.hasPrefix("publishing H264 64x48 | "))
        _ = try publisher.waitForText("publish sends 64x48 at 30 frames/s: the camera's own H.264")
        let viewer = try CommandLineTool(["view", "--room", "kitchen", "--no-window"], folder: server.folder)
        _ = try viewer.waitForText("H264 64x48")
        for tool in [viewer, publisher] {
            tool.interrupt()
            #expect(try tool.finish(seconds: 20).status == 0)
        }
    }

    @Test(arguments: [(["--codec", "vp8"], "VP8"), (["--bitrate", "200k"], "VP8"), (["--codec", "h264"], "H264")])
    func `the chosen codec and bitrate are obeyed`(_ flags: [String], _ codec: String) throws {
        let (server, publisher) = try publish(flags)
        let status = try publisher.waitForText("publishing \(codec) 64x48")
        #expect(status.contains("frames encoded") == (flags != ["--codec", "h264"]))
        publisher.interrupt()
        #expect(try publisher.finish(seconds: 20).status == 0)
        withExtendedLifetime(server) {}
    }

    @Test func `of two sizes, the larger one passes if it is the camera's own H.264`() throws {
        let server = try TestServer()
        let film = try EncodedFilm.h264(30, keyframeEvery: 10)
        let camera = try CameraFile.write(h264: film, to: server.folder, raw: "32x24")
        let publisher = try CommandLineTool(
            ["publish", "--room", "kitchen", "--camera", camera, "--mic", "none"], folder: server.folder)
        _ = try publisher.waitForText("publishing H264 64x48")
        publisher.interrupt()
        #expect(try publisher.finish(seconds: 20).status == 0)
    }

    @Test func `H.264 that viewers need not decode does not decide the size, and publish says why`() throws {
        let server = try TestServer()
        let film = try EncodedFilm.h264(30, keyframeEvery: 10, profile: "main")
        let camera = try CameraFile.write(h264: film, to: server.folder, raw: "32x24")
        let publisher = try CommandLineTool(
            ["publish", "--room", "kitchen", "--camera", camera, "--mic", "none"], folder: server.folder)
        _ = try publisher.waitForText("Its H.264 in 64x48 does not pass: its profile is Main, and")
        _ = try publisher.waitForText("publishing VP8 32x24")
        publisher.interrupt()
        #expect(try publisher.finish(seconds: 20).status == 0)
    }

    /// A camera with raw frames at 30 frames/s, which is plugged in 5 s after the start if it is late.
    private func rawCamera(_ sizes: String..., in folder: TemporaryFolder, isLate: Bool = false) throws -> String {
        let path = folder.file("raw.json")
        let list = sizes.map { #"{"size":"\#($0)","rates":["30"]}"# }.joined(separator: ",")
        let faults = isLate ? #","faults":[{"fault":"unplugged","at":0,"until":5}]"# : ""
        try """
        {"version":1,"driver":"uvcvideo","card":"Webcam","bus":"usb-0000:00:14.0-5",
         "formats":[{"format":"YUYV","sizes":[\(list)]}]\(faults)}
        """.write(toFile: path, atomically: true, encoding: .utf8)
        return "fixture:" + path
    }

    @Test func `without options, 720p is encoded, and publish says how to get the camera's 1080p`() throws {
        let server = try TestServer()
        let camera = try rawCamera("1280x720", "1920x1080", in: server.folder)
        let publisher = try CommandLineTool(
            ["publish", "--room", "kitchen", "--camera", camera, "--mic", "none"], folder: server.folder)
        _ = try publisher.waitForText(
            "publish sends 1280x720 at 30 frames/s. It leaves out 1920x1080, which costs about 2.3 times as much to encode: "
                + "--size 1920x1080 asks for it")
        _ = try publisher.waitForText("publishing VP8 1280x720")
        publisher.interrupt()
        #expect(try publisher.finish(seconds: 20).status == 0)
    }

    @Test func `a camera that is plugged in later gets its size then`() async throws {
        let server = try TestServer()
        let manager = try NotificationSocket(in: server.folder)
        let camera = try rawCamera("320x240", in: server.folder, isLate: true)
        let publisher = try CommandLineTool(
            ["publish", "--room", "kitchen", "--camera", camera, "--mic", "none", "--forever"], folder: server.folder,
            environment: ["NOTIFY_SOCKET": manager.path])
        try await requireEventually("the size") {
            manager.messages.contains { $0.hasPrefix("STATUS=publishing VP8 320x240") }
        }
        publisher.interrupt()
        #expect(try publisher.finish(seconds: 20).status == 0)
    }
}
