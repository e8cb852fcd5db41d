import Foundation
import Testing
import TestSupport

private func script(_ name: String) -> String {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    return root.appendingPathComponent("interop/\(name)").path
}

/// Other stacks at the other end: scripts in Tests/interop that print one line of JSON, and exit with 0 on success.
private func run(_ name: String, _ arguments: [String], seconds: Double = 90) throws -> [String: Any] {
    // Debian's own Python, because only it finds Debian's Python packages.
    let program = try RunningProgram("/usr/bin/python3", [script(name)] + arguments, folder: TemporaryFolder())
    let result = try program.finish(seconds: seconds)
    #expect(result.status == 0, "\(name): \(result.output)\(result.error)")
    let line = result.output.split(separator: "\n").last ?? ""
    return try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
}

/// The streams of a viewer's report that were rendered at least in part.
private func rendered(_ media: String, in path: String) throws -> [[String: Any]] {
    let report = try JSONSerialization.jsonObject(with: Data(contentsOf: URL(fileURLWithPath: path)))
    let streams = try #require((report as? [String: Any])?["streams"] as? [[String: Any]])
    return streams.filter {
        $0["media"] as? String == media
            && ($0["framesRendered"] as? Int ?? 0 > 0 || $0["audioSecondsRendered"] as? Double ?? 0 > 0)
    }
}

@Suite(.serialized) struct ChromiumTests {
    /// One browser for all checks, because its start takes most of the CPU time.
    @Test func `a browser and our programs see and hear each other, and H264 is shown as well as VP8`() throws {
        let server = try TestServer()
        let camera = try CameraFile.write(CameraFile.comesAndGoes, to: server.folder)
        let publishers = try [
            ["--file", clip], ["--test-pattern", "--codec", "h264", "--size", "320x240"],
            ["--camera", camera, "--mic", "none", "--size", "64x48"],
        ].map {
            try CommandLineTool(["publish", "--room", "r"] + $0, folder: server.folder)
        }
        for publisher in publishers { _ = try publisher.waitForText("publishing") }
        let viewer = try CommandLineTool(["view", "--room", "r", "--report", "r.json"], folder: server.folder)
        // More frames than the viewer has to render below.
        let seen = try run(
            "chromium.py",
            [
                "--page", "\(server.page)?room=r&join=1", "--seconds", "60", "--until-expected",
                "--expect-video-from-others", "2", "--expect-audio", "--expect-publishing", "100", "--expect-srtp",
                "GCM", "--expect-waiting", "camera lost, waiting", "--then-lose-camera", "--then-refuse",
            ], seconds: 150)
        #expect((seen["publishing"] as? [String: Any])?["codec"] as? String == "video/VP8")
        let refused = try #require(seen["refused"] as? [String: Any])
        for page in [seen, refused] {
            let codecs = (page["video"] as? [String: Any])?["codecs"] as? [String]
            #expect(codecs?.sorted() == ["video/H264", "video/VP8"], "\(page)")
        }
        #expect((refused["publishing"] as? [String: Any])?["kinds"] as? String == "", "\(refused)")
        viewer.interrupt()
        let ended = try viewer.finish(seconds: 60)
        #expect(ended.status == 0, "\(ended.error)")
        #expect(ended.error.contains(" waits: camera lost."), "\(ended.error)")
        #expect(ended.error.contains(" is live again."), "\(ended.error)")
        let videos = try rendered("video", in: server.folder.file("r.json"))
        // The browser's camera, and the same again after the page lost it.
        let cameras = videos.filter { $0["width"] as? Int == 640 }
        #expect(cameras.count == 2, "\(videos)")
        #expect(cameras.allSatisfy { ($0["framesRendered"] as? Int ?? 0) > 40 }, "\(videos)")
        let sound = try rendered("audio", in: server.folder.file("r.json"))
        #expect(sound.count == 3, "\(sound)")
        // The clip, the pattern, and the browser's fake microphone, which beeps once a second.
        #expect(sound.allSatisfy { ($0["audioSecondsRendered"] as? Double ?? 0) > 0.2 }, "\(sound)")
    }

    @Test(arguments: [
        (["--open"], [], "-11004", "a proxy has to forward the Host header"),
        (
            ["--open"], ["--no-upgrade", "--header", "X-Forwarded-Host: 127.0.0.1:PORT"], "1305",
            "no WebSocket gets through"
        ),
        ([], ["--header", "X-Forwarded-For: 192.0.2.1"], "-11004", "Start it with --open"),
    ])
    func `behind a proxy with a wrong setting, the page says which`(
        serve: [String], proxy: [String], code: String, sentence: String
    ) throws {
        let server = try TestServer(serve)
        let forwarding = try RunningProgram(
            "/usr/bin/python3", [script("rewriting_proxy.py"), "--port", "\(server.port)"] + proxy,
            folder: server.folder)
        let port = try #require(try forwarding.waitForText("listening on").split(separator: " ").last)
        let seen = try run(
            "chromium.py",
            ["--page", "http://127.0.0.1:\(port)/?room=r&join=1", "--seconds", "30", "--until-expected"]
                + ["--expect-problem", code])
        #expect("\(seen)".contains(sentence), "\(seen)")
    }
}

@Suite(.serialized) struct AiortcTests {
    @Test(arguments: ["vp8", "h264"])
    func `an implementation from docs signalling md alone sees a video and is seen`(codec: String) throws {
        let server = try TestServer(["--service-id", "svc", "--service-secret", "a secret"])
        let publisher = try CommandLineTool(
            ["publish", "--room", "r", "--test-pattern", "--codec", codec], folder: server.folder)
        _ = try publisher.waitForText("publishing")
        let viewer = try CommandLineTool(["view", "--room", "r", "--report", "r.json"], folder: server.folder)
        let seen = try run(
            "aiortc_client.py",
            [
                "--server", String(server.page.dropLast()), "--service-id", "svc", "--service-secret", "a secret",
                "--room", "r", "--frames", "60", "--seconds", "40",
            ])
        // This stack supports no other profile, so it gets the fallback.
        #expect((seen["srtpProfile"] as? String)?.contains("CM") == true, "\(seen)")
        viewer.interrupt()
        #expect(try viewer.finish(seconds: 60).status == 0)
        #expect(try rendered("video", in: server.folder.file("r.json")).count == 2)
    }
}
