internal import ArgumentParser
internal import ConnectLiveSDK
internal import EmbeddedFiles
internal import Foundation
internal import MediaGraph
internal import MediaNodes
internal import RoomClient
internal import RoomServer

struct DemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Show a complete call: a room server, a publisher, a viewer, and a page for your browser.",
        discussion:
            "Publishes the first camera and microphone, or the bundled clip if there is no camera. Nothing needs to "
            + "be configured: the service key is created for this run.")

    @Option(
        help: "Address and port of the server. 0.0.0.0 lets browsers on other machines join (default: 127.0.0.1:7880).",
        transform: { try ListenAddress($0) })
    var listen = ListenAddress(host: "127.0.0.1", port: ListenAddress.defaultPort)

    @OptionGroup var length: SecondsFlag

    @Option(
        help:
            "Video codec: vp8, h264 or vp9 (default: H.264 that the camera delivers or hardware encodes, otherwise vp8)."
    )
    var codec: CodecFlag?

    @Option(help: "Publish this file instead of the camera or the bundled clip.") var file: String?

    @Option(name: .customLong("room"), help: "Room of the call.") var roomName = "demo"

    @Option(help: "Folder for report.json and frame.png.") var out = "out/demo"

    @Flag(help: "Do not open a window.") var noWindow = false

    func validate() throws { try RoomFlag.check(roomName) }

    func run() async throws {
        let interruption = Interruption()
        try FileManager.default.createDirectory(atPath: out, withIntermediateDirectories: true)
        let server = try await startServer()
        // Without the file, the call is the same, but other commands do not find it.
        let announcement = try? ServerAnnouncement(of: server)
        defer {
            announcement?.end()
            Demo.removeClip()
        }
        if announcement != nil {
            Console.say("In another terminal: \(CommandLine.arguments[0]) publish --room \(roomName) --test-pattern")
        }
        do {
            try await call(on: server, interruption)
        } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    private func startServer() async throws -> RoomServer {
        // An address other than loopback means that browsers on other machines may join.
        let isOpen = !listen.isLoopback
        var configuration = Serving.configuration(listen, service: .development(), isOpen: isOpen, isVerbose: false)
        configuration.portsTried = 50
        let server = try await RoomServer.start(configuration)
        if server.port != listen.port, listen.port != 0 {
            Console.say("Port \(listen.port) is in use. The server listens on \(server.port).")
        }
        let query = "?room=\(roomName)&join=1"
        for line in Serving.pageLines(listen, [], port: server.port, isOpen: isOpen, query: query) {
            Console.say(line)
        }
        return server
    }

    private func call(on server: RoomServer, _ interruption: Interruption) async throws {
        let key = server.configuration.service
        let (code, message) = await ConnectLive.signIn(
            serviceId: key.id, serviceSecret: key.secret, endpoint: server.url)
        guard code == 0 else { throw Failure(code: code, message) }
        var config = Config()
        config.mediaOptions.videoCodec = codec?.codec
        let source = try Demo.chooseSource(file: file, &config.mediaOptions)
        guard let media = try await LocalSource.start(config, until: interruption) else { return }
        Console.say("Publishing \(source).")
        let result = await Result { try await meet(media, config, interruption) }
        await media.stop()
        try result.get()
    }

    private func meet(_ media: any LocalMedia, _ config: Config, _ interruption: Interruption) async throws {
        let guest = Guest(.seconds(config.reconnectSeconds), endsOnProblem: true)
        let stage = ConnectLive.createRoom(config: config, delegate: guest)
        guest.enter(stage, named: roomName)
        try stage.publish(media)
        let screen = try Screen(title: "connectlive demo", hasWindow: !noWindow)
        let audience = Audience(screen: screen, only: nil, .seconds(config.reconnectSeconds))
        let seat = ConnectLive.createRoom(config: Config(), delegate: audience.guest)
        audience.enter(seat, named: roomName)
        let status = Task {
            await StatusLine.run(
                news: RoomNews(outgoing: { await stage.statistics() }, incoming: { await seat.statistics() })
            ) {
                StatusLine.demo(viewer: await seat.statistics(), publisher: await stage.statistics())
            }
        }
        let ended = await Result {
            try await audience.stay(until: interruption, seconds: length.seconds, alsoWatching: guest)
        }
        status.cancel()
        await status.value
        let published = await stage.statistics()
        stage.disconnect()
        try? await guest.untilEnded()
        await screen.close()
        try ended.get()
        let report = Report(viewer: audience.lastStatistics, publisher: published)
        try Demo.conclude(
            report, frame: screen.snapshot, folder: out,
            mustHear: length.seconds != nil && published.published.contains { !$0.isVideo },
            mustSee: length.seconds != nil)
    }
}

/// The demo's source and its end.
private enum Demo {
    /// Sets the source and returns its description.
    static func chooseSource(file: String?, _ options: inout LocalMediaOptions) throws -> String {
        if let file {
            options.source = .file
            options.fileName = file
            return file
        }
        if let camera = Devices.firstCamera() {
            options.source = .camera
            options.cameraDevice = camera.path
            options.isMirror = false
            let microphone = Devices.firstMicrophone()
            return "\(camera.name)"
                + (microphone.map { " and \($0.name)" } ?? ", without audio: no microphone was found")
        }
        options.source = .file
        options.fileName = try writeClip()
        return
            "the bundled clip in a loop (no camera was found): Big Buck Bunny, (c) 2008 Blender Foundation, CC BY 3.0"
    }

    /// Writes the clip inside the binary to a file, because GStreamer reads files. It exists while the demo runs.
    private static func writeClip() throws -> String {
        let path = clipPath
        try Data(EmbeddedFiles.demoClip).write(to: URL(fileURLWithPath: path))
        return path
    }

    static func removeClip() { try? FileManager.default.removeItem(atPath: clipPath) }

    private static let clipPath =
        FileManager.default.temporaryDirectory.appendingPathComponent("connectlive-demo-\(getpid()).mp4").path

    static func conclude(_ report: Report, frame: VideoFrame?, folder: String, mustHear: Bool, mustSee: Bool) throws {
        try report.writeJSON(to: folder + "/report.json")
        if let frame { try FrameImage.write(frame, to: folder + "/frame.png") }
        Console.say(
            "Rendered \(report.framesRendered ?? 0) frames and \(Int(report.audioSecondsRendered ?? 0)) s of audio. \(folder) "
                + "has the report."
        )
        guard report.framesRendered ?? 0 > 0 || !mustSee else {
            throw CommandFailure(
                code: "view.nothing-rendered", "The demo rendered no frame. \(folder)/report.json has the counters.")
        }
        guard report.audioSecondsRendered ?? 0 > 0 || !mustHear else {
            throw CommandFailure(
                code: "view.nothing-heard", "The demo received no audio. \(folder)/report.json has the counters.")
        }
    }
}
