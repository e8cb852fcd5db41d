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
}
