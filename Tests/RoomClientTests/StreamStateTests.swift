import MediaGraph
import MediaNodes
import RoomProtocol
import TestSupport
import Testing

@testable import RoomClient

/// The states of streams whose camera goes and returns.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct StreamStateTests {
    private func graph(_ stage: RoomStage, _ camera: String, _ source: String = "camera") -> MediaGraph {
        MediaGraph {
            Chain {
                Node.camera(device: camera, width: 64, height: 64, framesPerSecond: 30)
                Node.null("end")
            }
            Chain {
                Node.testPattern("pattern", width: 64, height: 64)
                Node.null("rest")
            }
            Chain(from: source) {
                Node.videoEncoder("encoder", codec: .vp8)
                Node("publish", settings: stage.settings(room: "room").mapValues { .text($0) })
            }
        }
    }

    @Test func `a camera that is lost and returns waits and is live for the room, in one stream`() async throws {
        try await RoomStage.run { stage in
            let (witness, folder) = (StreamWitness(), TemporaryFolder())
            let engine = try await witness.enter(stage)
            let camera = try CameraFile.write(CameraFile.comesAndGoes, to: folder)
            let pipeline = try await MediaPipeline(graph(stage, camera), registry: RoomNodes.registry)
            try await pipeline.start()
            try await witness.watch(engine)
            try await requireEventually(within: 30, "the return") { witness.seen.states.count >= 2 }
            let before = witness.seen.packets
            try await requireEventually("more packets") { witness.seen.packets > before + 20 }
            let seen = witness.seen
            await pipeline.stop()
            engine.disconnect()
            #expect(seen.states.prefix(2) == [.waiting("camera unplugged"), .live])
            #expect(seen.streams.count == 1 && seen.ended == 0)
            #expect(seen.ssrcs.count == 1)
        }
    }

    @Test func `a stream is live when an edit feeds it from another source, and waits when the camera feeds it again`()
        async throws
    {
        try await RoomStage.run { stage in
            let (witness, folder) = (StreamWitness(), TemporaryFolder())
            let engine = try await witness.enter(stage)
            let camera = try CameraFile.write([.init("unplugged", at: 3)], to: folder)
            let pipeline = try await MediaPipeline(graph(stage, camera), registry: RoomNodes.registry)
            try await pipeline.start()
            try await requireEventually("the loss") { witness.seen.states == [.waiting("camera unplugged")] }
            try await pipeline.apply(graph(stage, camera, "pattern"), within: 8)
            try await requireEventually("the pattern") { witness.seen.states.last == .live }
            try await pipeline.apply(graph(stage, camera), within: 8)
            try await requireEventually("the camera") { witness.seen.states.last == .waiting("camera unplugged") }
            let seen = witness.seen
            await pipeline.stop()
            engine.disconnect()
            #expect(seen.states.count == 3)
            #expect(seen.streams.count == 1 && seen.ended == 0)
        }
    }

    @Test func `a graph that starts without its camera publishes a stream that waits`() async throws {
        try await RoomStage.run { stage in
            let (witness, folder) = (StreamWitness(), TemporaryFolder())
            let engine = try await witness.enter(stage)
            let camera = try CameraFile.write([.init("unplugged", at: 0)], to: folder)
            let pipeline = try await MediaPipeline(graph(stage, camera), registry: RoomNodes.registry)
            try await pipeline.start()
            try await requireEventually("the state") { witness.seen.states == [.waiting("waiting for the camera")] }
            await pipeline.stop()
            engine.disconnect()
        }
    }

    @Test(arguments: [
        ("camera.absent", "waiting for the camera"), ("camera.lost", "camera unplugged"),
        ("camera.busy", "camera in use elsewhere"),
        ("camera.undecodable", "camera sends frames that cannot be decoded"),
        ("camera.bandwidth", "camera not working"), ("microphone.lost", "microphone unplugged"),
        ("element.failed", "source not working"), ("", "source not working"),
        ("process.ended", "program ended"), ("process.silent", "program not working"),
        ("feed.absent", "waiting for the feeder"), ("feed.lost", "feeder gone"), ("feed.silent", "source not working"),
    ])
    func `the text of a state names the kind of device, and nothing of the message`(code: String, text: String) throws {
        let absence = MediaError(code: code, message: "/dev/video0 of Ada's desk")
        #expect(StreamState(absence: absence) == .waiting(text))
    }

    /// The options of a capture of a camera without audio, and the events of its device.
    private func capture(_ options: MediaRequest) -> (capture: LocalCapture, events: Collected<String>) {
        var options = options
        (options.microphone, options.width, options.height) = (.none, 64, 48)
        let (capture, events) = (LocalCapture(options), Collected<String>())
        capture.observe(
            as: events, failed: { events.append("failed \($0.code)") }, ended: {},
            device: { [weak capture] media, event in
                let name =
                    switch event {
                    case .deviceLost(_, let cause): "lost \(cause.code)"
                    case .deviceReturned: "returned"
                    case .deviceFailedOver: "failed over"
                    default: "\(event)"
                    }
                events.append("\(media) \(name), \(capture?.streamState(of: media) == .live ? "live" : "waiting")")
            })
        return (capture, events)
    }

    @Test func `a capture goes on when its camera is lost, and does not start without it`() async throws {
        let folders = [TemporaryFolder(), TemporaryFolder()]
        let camera = try CameraFile.write(CameraFile.comesAndGoes, to: folders[0])
        let (capture, events) = self.capture(MediaRequest.camera(camera))
        try await capture.start()
        await eventually("the return") { events.count >= 2 }
        await capture.stop()
        #expect(events.all.prefix(2) == ["video lost camera.lost, waiting", "video returned, live"])

        let busy = try CameraFile.write([.init("noBandwidth", at: 0)], to: folders[1])
        let refusing = self.capture(MediaRequest.camera(busy)).capture
        let refused = await #expect(throws: RoomError.self) { try await refusing.start() }
        #expect(refused?.code.name == "camera.bandwidth")
    }

    @Test func `another camera takes over for the one that a capture lost`() async throws {
        let folders = [TemporaryFolder(), TemporaryFolder()]
        let camera = try CameraFile.write([.init("unplugged", at: 3)], to: folders[0])
        var options = MediaRequest.camera(camera)
        options.failover = try CameraFile.write([], to: folders[1])
        let (capture, events) = self.capture(options)
        try await capture.start()
        await eventually("the other camera") { events.all.last == "video failed over, live" }
        await capture.stop()
        #expect(!events.all.contains { $0.contains("failed camera") })
    }
}
