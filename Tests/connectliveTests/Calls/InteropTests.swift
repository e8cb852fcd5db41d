import Foundation
import Testing
import TestSupport

/// Starts a script of Tests/interop. Debian's own Python, because only it finds Debian's Python packages.
func interopProgram(_ name: String, _ arguments: [String]) throws -> RunningProgram {
    try RunningProgram("/usr/bin/python3", [script(name)] + arguments, folder: TemporaryFolder())
}

private func script(_ name: String) -> String { Checkout.path("Tests/interop/\(name)") }

/// Other stacks at the other end: scripts in Tests/interop that print one line of JSON, and exit with 0 on success.
private func run(_ name: String, _ arguments: [String], seconds: Double = 90) throws -> [String: Any] {
    try report(of: interopProgram(name, arguments), name, seconds: seconds)
}

private func report(of program: RunningProgram, _ name: String, seconds: Double) throws -> [String: Any] {
    let result = try program.finish(seconds: seconds)
    #expect(result.status == 0, "\(name): \(result.output)\(result.error)")
    let line = result.output.split(separator: "\n").last ?? ""
    return try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
}

/// A browser that publishes its fake camera until another one has seen enough.
private final class PublishingBrowser {
    private let program: RunningProgram
    private let folder = TemporaryFolder()

    init(page: String, frames: Int) throws {
        program = try interopProgram(
            "chromium.py",
            [
                "--page", page, "--seconds", "60", "--until-expected", "--expect-publishing", "\(frames)",
                "--window", "1280x1000", "--then-read", folder.file("end"),
            ])
    }

    /// Ends the browser. Returns its report.
    func finish() throws -> [String: Any] {
        end()
        return try report(of: program, "chromium.py", seconds: 90)
    }

    private func end() { _ = FileManager.default.createFile(atPath: folder.file("end"), contents: nil) }

    /// A test that fails leaves no browser behind, as one whose driver is killed would be.
    deinit {
        end()
        _ = program.wait(seconds: 90) { !program.process.isRunning }
    }
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

extension TestServer {
    /// The page of the room, which joins it.
    fileprivate var room: String { "\(page)?room=r&join=1" }

    /// A program that publishes the test pattern in the room.
    fileprivate func publish(_ arguments: [String] = ["--size", "320x240"]) throws -> CommandLineTool {
        let publisher = try CommandLineTool(["publish", "--room", "r", "--test-pattern"] + arguments, folder: folder)
        _ = try publisher.waitForText("publishing")
        return publisher
    }
}

/// Ends a program, which reports no failure.
private func end(_ program: RunningProgram) throws {
    program.interrupt()
    #expect(try program.finish(seconds: 60).status == 0)
}

/// The report of a browser that opens a page, and leaves it when all expectations of the arguments are met, or after so many
/// seconds.
private func browse(
    _ page: String, for seconds: Int, _ arguments: [String], within limit: Double = 150
) throws -> [String: Any] {
    try run(
        "chromium.py", ["--page", page, "--seconds", "\(seconds)", "--until-expected"] + arguments, seconds: limit)
}

@Suite(.serialized) struct ChromiumTests {
    /// One browser for all checks, because its start takes most of the CPU time.
    @Test func `a browser and our programs see and hear each other, and H264 is shown as well as VP8`() throws {
        let server = try TestServer()
        let camera = try CameraFile.write(CameraFile.comesAndGoes, to: server.folder)
        let publishers = try [
            ["--file", Checkout.clip], ["--test-pattern", "--codec", "h264", "--size", "320x240"],
            ["--camera", camera, "--mic", "none", "--size", "64x48"],
        ].map {
            try CommandLineTool(["publish", "--room", "r"] + $0, folder: server.folder)
        }
        for publisher in publishers { _ = try publisher.waitForText("publishing") }
        let viewer = try CommandLineTool(["view", "--room", "r", "--report", "r.json"], folder: server.folder)
        // More frames than the viewer has to render below.
        let seen = try browse(
            server.room, for: 60,
            [
                "--expect-video-from-others", "2", "--expect-audio", "--expect-publishing", "100", "--expect-srtp",
                "GCM", "--expect-waiting", "camera unplugged, waiting", "--expect-capture-times", "4",
                "--then-lose-camera",
                "--then-refuse",
            ])
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
        #expect(ended.error.contains(" waits: camera unplugged."), "\(ended.error)")
        #expect(ended.error.contains(" is live again."), "\(ended.error)")
        let videos = try rendered("video", in: server.folder.file("r.json"))
        // The browser's camera, and the same again after the page lost it, in one of its layers.
        let cameras = videos.filter { $0["participant"] as? String == seen["participant"] as? String }
        #expect(cameras.allSatisfy { [320, 480, 640].contains($0["width"] as? Int) }, "\(videos)")
        #expect(cameras.count == 2, "\(videos)")
        #expect(cameras.allSatisfy { ($0["framesRendered"] as? Int ?? 0) > 40 }, "\(videos)")
        let sound = try rendered("audio", in: server.folder.file("r.json"))
        #expect(sound.count == 3, "\(sound)")
        // The clip, the pattern, and the browser's fake microphone, which beeps once a second.
        #expect(sound.allSatisfy { ($0["audioSecondsRendered"] as? Double ?? 0) > 0.2 }, "\(sound)")
    }

    @Test func `a browser that may use relays alone sees and is seen through the TURN servers that it was told last`()
        throws
    {
        let turn = try TURNServer(secret: "both know it")
        let next = try TURNServer(secret: "both know it")
        let server = try TestServer(
            ["--turn", turn.udp, "--turn", turn.tcp], environment: ["CONNECTLIVE_TURN_SECRET": "both know it"])
        let publisher = try server.publish()
        let seen = try browse(
            server.room, for: 40,
            ["--relay", "--expect-video-from-others", "1", "--expect-publishing", "10", "--then-relay", "\(next.port)"])
        #expect((seen["sessions"] as? [Any])?.count == 2, "\(seen)")
        try end(publisher)
    }

    @Test func `a browser that may not use UDP sees and is seen over the TCP port of the server`() throws {
        let server = try TestServer(["--tcp-port", "0"])
        let publisher = try server.publish()
        let seen = try browse(
            server.room, for: 40,
            [
                "--flag=--webrtc-ip-handling-policy=disable_non_proxied_udp", "--expect-video-from-others", "1",
                "--expect-publishing", "10",
            ])
        let sessions = try #require(seen["sessions"] as? [[String: Any]])
        #expect(sessions.map { $0["protocol"] as? String } == ["tcp", "tcp"], "\(seen)")
        try end(publisher)
    }

    @Test func `over TLS, a browser on a page of another machine publishes its camera, at any prefix`() throws {
        let folder = TemporaryFolder()
        let made = try MadeCertificate.chain(in: folder.path)
        let server = try TestServer(
            ["--listen", "0.0.0.0:0", "--open", "--tls-certificate", made.certificate, "--tls-key", made.key])
        let publisher = try server.publish()
        // By this name, no browser takes the page for one of its own machine. It begins without TLS, and is sent on.
        for scheme in ["https", "http"] {
            let seen = try browse(
                "\(scheme)://rooms.example:\(server.port)/some/prefix/?room=r&join=1", for: 40,
                [
                    "--flag=--host-resolver-rules=MAP rooms.example 127.0.0.1", "--flag=--ignore-certificate-errors",
                    "--expect-video-from-others", "1", "--expect-publishing", "10",
                ])
            #expect((seen["sessions"] as? [Any])?.count == 2, "\(seen)")
        }
        try end(publisher)
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
        let seen = try browse("http://127.0.0.1:\(port)/?room=r&join=1", for: 30, ["--expect-problem", code])
        #expect("\(seen)".contains(sentence), "\(seen)")
    }

    @Test func `a page that is muted tells the others, also those that come later`() throws {
        let server = try TestServer()
        _ = try browse(server.room, for: 40, ["--expect-publishing", "10", "--then-mute"])
    }

    @Test func `a camera that the server refuses costs no microphone, also if the page joins again meanwhile`() throws {
        let server = try TestServer()
        _ = try browse(server.room, for: 40, ["--then-be-refused"])
    }

    /// Simulcast between two browsers. The first one sends 960x540, 480x270 and 240x135.
    /// The viewer begins with the lowest of them, so that the widest tile comes first.
    @Test func `a browser sends three layers, and another one gets the layer that its tile needs`() throws {
        let server = try TestServer()
        let page = server.room
        let publisher = try PublishingBrowser(page: page + "&size=960x540", frames: 100)
        let seen = try browse(
            page, for: 30,
            [
                "--expect-video-from-others", "1",
                "--expect-capture-times", "2", "--then-resize", "600:960,150:240,300:480", "--window", "1280x1000",
            ])
        let frames = try #require(seen["resized"] as? [[String: Int]]).map { $0["frame"] }
        #expect(frames == [960, 240, 480], "\(seen)")
        _ = try publisher.finish()
    }

    /// The first browser sends 640x360 and 320x180 as spatial layers of one stream, because VP9 of three takes too
    /// long on a busy machine of two cores.
    @Test func `a browser sends VP9 in spatial layers, and another browser and our viewer get what they need of them`()
        throws
    {
        let server = try TestServer()
        let page = server.room
        // Twice the frames that our viewer has to render.
        let publisher = try PublishingBrowser(page: page + "&size=640x360&codec=vp9", frames: 200)
        let viewer = try CommandLineTool(["view", "--room", "r", "--report", "r.json"], folder: server.folder)
        let seen = try browse(
            page, for: 40,
            [
                "--expect-video-from-others", "1",
                "--then-resize", "150:320,600:640,200:320", "--window", "1280x1000",
            ])
        let frames = try #require(seen["resized"] as? [[String: Int]]).map { $0["frame"] }
        #expect(frames == [320, 640, 320], "\(seen)")
        let published = try publisher.finish()
        #expect((published["publishing"] as? [String: Any])?["codec"] as? String == "video/VP9", "\(published)")
        viewer.interrupt()
        let view = try viewer.finish(seconds: 60)
        #expect(view.status == 0)
        let video = try rendered("video", in: server.folder.file("r.json")).first {
            $0["participant"] as? String == published["participant"] as? String
        }
        #expect((video?["framesRendered"] as? Int ?? 0) > 100, "\(String(describing: video))")
        #expect(video?["codec"] as? String ?? "VP9" == "VP9", "\(String(describing: video))")
        // A busy machine may cost the publisher its upper layer. Then it has told so, and the viewer names it as the cause.
        let sender = try #require(published["participant"] as? String)
        let isExplained = view.error.split(separator: "\n").contains {
            $0.contains(" of \(sender): its publisher") && $0.contains(": 320x180")
        }
        #expect(video?["width"] as? Int == 640 || isExplained, "\(String(describing: video)), \(view.error)")
    }

    /// In make soak for two minutes, to the end of which they stay together.
    @Test func `a browser plays sound and picture together, though the network delays the picture`() throws {
        let server = try TestServer()
        let publisher = try server.publish()
        let seconds = Soak.isOn ? 120 : 25
        let seen = try browse(
            server.room, for: 30,
            [
                "--expect-video-from-others", "1", "--expect-audio", "--delay-video", "300", "--then-listen",
                "\(seconds)",
            ], within: Double(seconds + 95))
        let heard = try #require(seen["heardAfterSeen"] as? [[Double]])
        // The delays have settled after 15 s.
        for begin in stride(from: 15.0, through: Double(seconds) - 10, by: 10) {
            let late = heard.filter { (begin..<begin + 10).contains($0[0]) }.map { $0[1] }.sorted()
            try #require(late.count >= 5, "\(begin) s: \(heard)")
            #expect(abs(late[late.count / 2]) <= 45, "\(begin) s: \(heard)")
        }
        try end(publisher)
    }

    /// Chromium drops a tenth of what it receives, by a setting of its own, and the page believes in losses of what it sends.
    @Test func `a browser on a link with losses sends and hears audio with copies, and leaves silence out`() throws {
        let server = try TestServer()
        let publisher = try server.publish()
        let viewer = try CommandLineTool(["view", "--room", "r", "--report", "r.json"], folder: server.folder)
        let seen = try browse(
            server.room + "&dtx=1", for: 60,
            [
                "--expect-audio",
                "--expect-publishing", "10", "--expect-redundancy", "50", "--report-loss", "0.1",
                "--then-watch", "8",
                "--flag=--force-fieldtrials=WebRTC-FakeNetworkReceiveConfig/loss_percent:10,queue_delay_ms:20/",
            ])
        viewer.interrupt()
        let ended = try viewer.finish(seconds: 60)
        #expect(ended.status == 0, "\(ended.error)")
        let sound = try rendered("audio", in: server.folder.file("r.json"))
        let browser = sound.first { $0["participant"] as? String == seen["participant"] as? String }
        // It beeps once a second. For the last 8 s, all of its packets had copies.
        #expect(browser?["audioSecondsRendered"] as? Double ?? 0 > 1.6, "\(sound)")
        try end(publisher)
    }

    @Test func `a browser resumes after its WebSocket broke, and restarts ICE, unseen by others`() throws {
        let server = try TestServer(["--verbose"])
        let publisher = try server.publish([])
        let seen = try browse(
            server.room, for: 60, ["--expect-video-from-others", "1", "--expect-publishing", "30", "--then-roam"])
        #expect(seen["ok"] as? Bool == true, "\(seen)")
        try end(publisher)
    }

    @Test(arguments: ["freeze", "slate"])
    func `a browser decodes a camera's own H264 without a pause while that is unplugged and back`(away: String) throws {
        let server = try TestServer()
        let camera = try EncodingCamera(in: server.folder)
        let graph = server.folder.file("camera.yaml")
        try """
        chains:
          - - {node: camera, device: "fixture:\(camera.file)", width: 320, height: 240, away: \(away)}
            - {node: publish, room: r}
        """.write(toFile: graph, atomically: true, encoding: .utf8)
        let plan = try CommandLineTool.run(["plan", graph], folder: server.folder)
        #expect(plan.output.contains("h264 320x240 at 30 frames/s: no encode, decode or conversion"), "\(plan.output)")
        let publisher = try CommandLineTool(["run", graph], folder: server.folder)
        // Longer than from one loss to the next.
        let seen = try browse(
            server.room, for: 60, ["--expect-video-from-others", "1", "--then-watch", "\(EncodingCamera.period + 3)"])
        _ = try publisher.waitForText("has its device again", seconds: 1)
        let watched = try #require(seen["watched"] as? [String: Any])
        #expect((watched["ssrcs"] as? [Int])?.count == 1, "\(watched)")
        #expect(watched["framesDecoded"] as? Int ?? 0 > 100, "\(watched)")
        #expect(watched["longestPause"] as? Double ?? 99 < 3, "\(watched)")
        try end(publisher)
    }
}

/// A recorded camera that encodes the test pattern, and is unplugged again and again.
private struct EncodingCamera {
    /// From one loss to the next, and how long it lasts, in seconds.
    static let (period, away) = (12, 5)
    let file: String

    init(in folder: TemporaryFolder) throws {
        let film = folder.file("film.h264")
        try OfflineFilm.write(
            "videotestsrc num-buffers=60 pattern=ball ! video/x-raw,format=I420,width=320,height=240,framerate=30/1 "
                + "! x264enc tune=zerolatency sliced-threads=false key-int-max=30 "
                + "! video/x-h264,profile=constrained-baseline,stream-format=byte-stream ! filesink location=\(film)",
            in: folder)
        let frames = Self.frames(of: Array(try Data(contentsOf: URL(fileURLWithPath: film))))
        try #require(frames.count == 60)
        let camera: [String: Any] = [
            "version": 1, "driver": "uvcvideo", "card": "Webcam", "bus": "usb-0000:00:14.0-1",
            "formats": [
                ["format": "H264", "sizes": [["size": "320x240", "rates": ["30"]]]],
                ["format": "YUYV", "sizes": [["size": "320x240", "rates": ["30"]]]],
            ],
            "frames": frames.map { ["format": "H264", "size": "320x240", "data": Data($0).base64EncodedString()] },
            "faults": (1..<20).map { round in
                ["fault": "unplugged", "at": round * Self.period, "until": round * Self.period + Self.away]
            },
        ]
        file = folder.file("camera.json")
        try JSONSerialization.data(withJSONObject: camera).write(to: URL(fileURLWithPath: file))
    }

    /// The access units of a stream in Annex B with one slice a frame: each ends with its slice (types 1 and 5).
    private static func frames(of stream: [UInt8]) -> [[UInt8]] {
        let starts = stream.indices.dropLast(3).filter { Array(stream[$0..<$0 + 3]) == [0, 0, 1] }
        var frames: [[UInt8]] = []
        var frame: [UInt8] = []
        for (place, start) in starts.enumerated() {
            let end = place + 1 < starts.count ? starts[place + 1] : stream.count
            frame += [0] + stream[start..<end]
            guard [1, 5].contains(stream[start + 3] & 0x1f) else { continue }
            frames.append(frame)
            frame = []
        }
        return frames
    }
}

@Suite(.serialized) struct AiortcTests {
    @Test(arguments: ["vp8", "h264"])
    func `an implementation from docs signalling md alone sees a video and is seen`(codec: String) throws {
        let server = try TestServer(["--service-id", "svc", "--service-secret", "a secret"])
        let publisher = try server.publish(["--codec", codec])
        let viewer = try CommandLineTool(["view", "--room", "r", "--report", "r.json"], folder: server.folder)
        let seen = try run(
            "aiortc_client.py",
            [
                "--server", String(server.page.dropLast()), "--service-id", "svc", "--service-secret", "a secret",
                "--room", "r", "--frames", "150", "--seconds", "40",
            ])
        // This stack supports no other profile, so it gets the fallback.
        #expect((seen["srtpProfile"] as? String)?.contains("CM") == true, "\(seen)")
        try end(publisher)
        try end(viewer)
        let videos = try rendered("video", in: server.folder.file("r.json"))
        // It sends reports alone, of which the server makes capture times.
        #expect(videos.map { $0["latencyMethod"] as? String } == ["abs-capture-time", "abs-capture-time"], "\(videos)")
    }
}
