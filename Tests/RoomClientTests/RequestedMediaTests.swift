import Cameras
import Foundation
import MediaGraph
import MediaNodes
import RoomProtocol
import TestFixtures
import TestSupport
import Testing

@testable import RoomClient

/// Local media whose request changes while it is published, as a room notices it.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct RequestedMediaTests {
    private let folder = TemporaryFolder()

    /// A camera that encodes, with all of what keeps its encoding from passing turned off.
    private func encodingCamera(_ name: String = "encoding.json") throws -> MediaRequest {
        let film = try EncodedFilm.h264(30, keyframeEvery: 10)
        var request = MediaRequest.camera(try CameraFile.write(h264: film, to: folder, name))
        (request.width, request.height, request.isMirrored, request.microphone) = (64, 48, false, .none)
        return request
    }

    private func rawCamera(_ faults: [CameraFile.Fault] = [], _ name: String = "raw.json") throws -> String {
        try CameraFile.write(faults, to: folder, name)
    }

    private struct Scene {
        let capture: LocalCapture
        let engine: RoomEngine
        let witness: StreamWitness
    }

    /// Publishes the request in a room, with a participant who watches.
    private func publish(
        _ request: MediaRequest, media: StreamMedia = .video, _ body: (Scene) async throws -> Void
    ) async throws {
        try await RoomStage.run { stage in
            let witness = StreamWitness(of: media)
            let viewer = try await witness.enter(stage)
            let capture = LocalCapture(request)
            let engine = try await StreamWitness().enter(stage)
            _ = try await engine.publish(capture)
            if media == .video { try await witness.watch(viewer) }
            do {
                try await body(Scene(capture: capture, engine: engine, witness: witness))
            } catch {
                await capture.stop()
                throw error
            }
            await capture.stop()
            engine.disconnect()
            viewer.disconnect()
        }
    }

    private func video(_ scene: Scene) async throws -> RoomStatistics.Published {
        try #require(await scene.engine.statistics.published.first(where: \.isVideo))
    }

    @Test func `H.264 of the camera passes, and is decoded for a preview alone while there is one`() async throws {
        try await publish(try encodingCamera()) { scene in
            try await scene.witness.more()
            #expect(scene.capture.plan?.videoCodecs == [])
            let published = try await video(scene)
            #expect(published.codec == "H264" && !published.isEncoded)
            #expect((published.width, published.height) == (64, 48))
            for _ in 0..<2 {
                let frames = Collected<Int>()
                let sink = scene.capture.preview.add { frames.append($0.width) }
                try await requireEventually("a preview") { frames.count > 5 }
                #expect(scene.capture.plan?.videoCodecs == ["video-decoder"])
                #expect(Set(frames.all) == [64])
                try await scene.witness.more()
                scene.capture.preview.remove(sink)
                try await requireEventually("no decoder") { scene.capture.plan?.videoCodecs == [] }
                let count = frames.count
                try await scene.witness.more()
                #expect(frames.count <= count + 1)
            }
            let seen = scene.witness.seen
            #expect(seen.isOneStream())
            #expect(seen.states.isEmpty)
        }
    }

    @Test func `the chosen codec is obeyed, and a bitrate changes while it is encoded`() async throws {
        var request = try encodingCamera()
        request.codec = .vp8
        try await publish(request) { scene in
            try await scene.witness.more()
            #expect(scene.capture.plan?.videoCodecs == ["vp8-encoder"])
            #expect(try await video(scene).codec == "VP8")
            for rate in [200_000, 90_000] {
                try await scene.capture.change { $0.bitrate = Bitrate(bitsPerSecond: rate) }
                #expect(scene.capture.encoderStatistics.targetBitsPerSecond == rate)
                try await scene.witness.more()
            }
            #expect(try await video(scene).isEncoded)
            #expect(scene.witness.seen.isOneStream())
        }
    }

    @Test func `another camera, mirroring and another size continue the stream`() async throws {
        let (request, raw) = (try encodingCamera(), try rawCamera())
        try await publish(request) { scene in
            try await scene.witness.more()
            try await scene.capture.change { $0.isMirrored = true }
            // The stream keeps its codec.
            #expect(scene.capture.plan?.videoCodecs == ["h264-encoder"])
            try await scene.witness.more()
            try await scene.capture.change { $0.camera = raw }
            try await scene.witness.more()
            try await scene.capture.change { ($0.width, $0.height) = (32, 24) }
            try await requireEventually("the size") { try await video(scene).width == 32 }
            try await scene.witness.more()
            try await scene.capture.change { $0 = request }
            #expect(scene.capture.plan?.videoCodecs == [])
            try await scene.witness.more()
            let seen = scene.witness.seen
            #expect(seen.isOneStream())
            #expect(!seen.states.contains { $0 != .live })
        }
    }

    @Test func `a camera that cannot be opened leaves the running one as it was`() async throws {
        let busy = try rawCamera([.init("noBandwidth", at: 0)])
        try await publish(try encodingCamera()) { scene in
            let camera = scene.capture.requested.camera
            for (name, code) in [(busy, "camera.bandwidth"), ("serial:NONE", "camera.absent")] {
                let error = await #expect(throws: RoomError.self) {
                    try await scene.capture.change { $0.camera = name }
                }
                #expect(error?.code.name == code)
            }
            #expect(scene.capture.requested.camera == camera)
            try await scene.witness.more()
            #expect(scene.capture.plan?.videoCodecs == [])
            let seen = scene.witness.seen
            #expect(seen.isOneStream() && seen.states.isEmpty)
        }
    }

    @Test func `of changes at the same time, only the impossible one fails`() async throws {
        try await publish(try encodingCamera()) { scene in
            let capture = scene.capture
            async let slow: Void = capture.change { $0.isMirrored = true }
            try await requireEventually("the first one") { capture.requested.isMirrored }
            async let rate: Void = capture.change { $0.bitrate = Bitrate(bitsPerSecond: 200_000) }
            let missing = Task { try await capture.change { $0.camera = "serial:NONE" } }
            async let back: Void = capture.change { $0.isMirrored = false }
            try await slow
            try await rate
            try await back
            await #expect(throws: RoomError.self) { try await missing.value }
            #expect(capture.requested.bitrate?.bitsPerSecond == 200_000 && !capture.requested.isMirrored)
            // A camera that stays, because the bitrate came last, delivers its own H.264, which is decoded then.
            #expect(capture.plan?.videoCodecs.contains("h264-encoder") == true)
            try await scene.witness.more()
            #expect(scene.witness.seen.isOneStream())
        }
    }

    /// Waits until the room has more of the audio.
    private func moreSound(_ engine: RoomEngine) async throws {
        func sent() async -> Int { await engine.statistics.published.first { !$0.isVideo }?.framesSent ?? 0 }
        let before = await sent()
        try await requireEventually("more audio") { await sent() > before + 20 }
    }

    @Test func `published audio continues when video that is not published changes its codec`() async throws {
        var request = MediaRequest.testPattern()
        (request.width, request.height, request.hasVideo) = (64, 64, false)
        try await publish(request, media: .audio) { scene in
            try await scene.capture.change { $0.hasVideo = true }
            for codec in [VideoCodec.h264, .vp8] {
                try await scene.capture.change { $0.codec = codec }
                #expect(scene.capture.plan?.videoCodecs == ["\(codec.rawValue)-encoder"])
                try await moreSound(scene.engine)
                #expect(scene.capture.streamState(of: .audio) == .live)
            }
            #expect(scene.witness.seen.streams.count == 1 && scene.witness.seen.ended == 0)
        }
    }

    @Test func `audio that a room has taken without the video continues when the video changes its codec`() async throws
    {
        try await RoomStage.run { stage in
            var request = MediaRequest.testPattern()
            (request.width, request.height, request.codec) = (64, 64, .h264)
            let capture = LocalCapture(request)
            let engine = try await StreamWitness().enter(stage)
            var tracks = try await capture.publish().filter { $0.codec == .opus }
            _ = try await engine.publish(tracks.map { Publication($0) })
            tracks = []
            try await moreSound(engine)
            try await capture.change { $0.codec = .vp8 }
            #expect(capture.plan?.videoCodecs == ["vp8-encoder"])
            try await moreSound(engine)
            await capture.stop()
            engine.disconnect()
        }
    }

    @Test func `media that starts again after a stop continues its stream`() async throws {
        try await publish(try encodingCamera()) { scene in
            try await scene.witness.more()
            await scene.capture.stop()
            try await requireEventually("the state") { scene.witness.seen.states == [.waiting("stopped")] }
            try await scene.capture.start()
            try await scene.witness.more()
            try await requireEventually("the state") { scene.witness.seen.states.last == .live }
            #expect(scene.witness.seen.isOneStream(within: 20))
        }
    }

    /// The values that a camera has, which may be open elsewhere.
    private func controls(_ camera: String, _ names: String...) throws -> [Int] {
        let opened = try CameraSystem.machine.open(camera, mayReserve: false)
        defer { opened.device.close() }
        let controls = try opened.device.controls()
        return try names.map { name in
            try opened.device.value(of: try #require(controls.first { $0.name == name }))
        }
    }

    @Test func `controls of the camera change while it stays open, and a refused one changes nothing`() async throws {
        let camera = try CameraFile.writeAdjustable(to: folder)
        var request = MediaRequest.camera(camera)
        (request.width, request.height, request.microphone) = (64, 48, .none)
        request.cameraControls = "brightness=10"
        let capture = LocalCapture(request)
        try await capture.start()
        #expect(try controls(camera, "brightness", "contrast") == [10, 3])
        let plan = try #require(capture.plan)
        try await capture.change { $0.cameraControls = "brightness=20,contrast=9" }
        #expect(try controls(camera, "brightness", "contrast") == [20, 9])
        for refused in ["contrast=10", "zoom=1"] {
            let error = await #expect(throws: RoomError.self) {
                try await capture.change { $0.cameraControls = refused }
            }
            #expect(error?.code.name == "camera.control")
            #expect(capture.requested.cameraControls == "brightness=20,contrast=9")
        }
        #expect(try controls(camera, "brightness", "contrast") == [20, 9])
        // Only the setting has changed, and the source has not opened its camera again.
        let change = GraphChange(from: plan, to: try #require(capture.plan))
        #expect("\(change)" == "sets source.controls")
        #expect(capture.statistics.sources["source"]?.losses == 0)
        try await capture.change { $0.cameraControls = nil }
        #expect(try controls(camera, "brightness", "contrast") == [128, 3])
        await capture.stop()
    }

    @Test func `media does not start with a control that its camera refuses`() async throws {
        var request = MediaRequest.camera(try CameraFile.writeAdjustable(to: folder))
        (request.width, request.height, request.microphone) = (64, 48, .none)
        request.cameraControls = "contrast=10"
        let capture = LocalCapture(request)
        let error = await #expect(throws: RoomError.self) { try await capture.start() }
        #expect(error?.code.name == "camera.control")
        try await capture.change { $0.cameraControls = "contrast=9" }
        try await capture.start()
        await capture.stop()
    }

    @Test func `media whose source has ended starts again, or goes on with another source`() async throws {
        var request = MediaRequest.testPattern(frames: 5)
        (request.width, request.height) = (64, 64)
        let (capture, ends) = (LocalCapture(request), Collected<Bool>())
        capture.observe(as: ends, failed: { _ in }, ended: { ends.append(true) })
        for round in 1...2 {
            try await capture.start()
            try await requireEventually("the end") { ends.count == round }
        }
        try await capture.change { $0.patternFrames = 0 }
        try await requireEventually("more frames") { capture.encoderStatistics.encoded > 10 }
        await capture.stop()
        #expect(ends.count == 2)
    }

    @Test func `a view of media that has ended, or could not start, starts nothing`() async throws {
        var request = MediaRequest.testPattern(frames: 5)
        (request.width, request.height) = (64, 64)
        let (capture, ends) = (LocalCapture(request), Collected<Bool>())
        capture.observe(as: ends, failed: { _ in }, ended: { ends.append(true) })
        try await capture.start()
        try await requireEventually("the end") { ends.count == 1 }
        let sink = capture.preview.add { _ in }
        capture.preview.remove(sink)
        _ = capture.preview.add { _ in }
        try await requireEventually("the end of the work") { capture.isSettled }
        #expect(capture.plan?.source.node("preview") == nil)
        try await capture.start()
        #expect(capture.plan?.source.node("preview") != nil)
        try await requireEventually("the second end") { ends.count == 2 }
        await capture.stop()
    }

    @Test func `a stop during a change keeps the change for the next start`() async throws {
        var request = MediaRequest.testPattern()
        (request.width, request.height) = (64, 64)
        let capture = LocalCapture(request)
        for _ in 0..<5 {
            try await capture.change { [request] in $0 = request }
            try await capture.start()
            let sink = capture.preview.add { _ in }
            let change = Task { try await capture.change { $0.isAudioActive = false } }
            try await requireEventually("the change") { !capture.requested.isAudioActive }
            await capture.stop()
            try await change.value
            #expect(!capture.requested.isAudioActive)
            try await capture.start()
            let nodes = try #require(capture.plan?.source)
            #expect(nodes.node("preview") != nil && !nodes.nodes.contains { $0.kind == "opus-encoder" })
            await capture.stop()
            capture.preview.remove(sink)
        }
    }

    @Test func `video that cannot begin, and media that has ended, are not live`() async throws {
        var request = MediaRequest.testPattern()
        (request.width, request.height, request.isVideoActive) = (64, 64, false)
        try await publish(request, media: .audio) { scene in
            #expect(scene.capture.streamState(of: .video) == .waiting("video off"))
            let busy = try rawCamera([.init("noBandwidth", at: 0)])
            await #expect(throws: RoomError.self) {
                try await scene.capture.change { ($0.source, $0.camera, $0.isVideoActive) = (.camera, busy, true) }
            }
            #expect(scene.capture.streamState(of: .video) == .waiting("video off"))
            #expect(scene.capture.streamState(of: .audio) == .live)
            try await scene.capture.change { ($0.isVideoActive, $0.patternFrames) = (true, 5) }
            try await requireEventually("the end") { scene.capture.streamState(of: .video) == .waiting("ended") }
            #expect(scene.capture.streamState(of: .audio) == .waiting("ended"))
        }
    }

    /// A camera whose first frame takes 3 s.
    private func slowCamera() throws -> String {
        let path = folder.file("slow.json")
        let text = """
            {"version":1,"driver":"uvcvideo","card":"Webcam","bus":"usb-0000:00:14.0-3","timing":{"firstFrame":3},
             "formats":[{"format":"YUYV","sizes":[{"size":"64x48","rates":["30"]}]}]}
            """
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        return "fixture:" + path
    }

    @Test func `a stop during a change to a slow camera keeps the change`() async throws {
        let slow = try slowCamera()
        var request = MediaRequest.camera(try rawCamera())
        (request.width, request.height, request.microphone) = (64, 48, .none)
        let capture = LocalCapture(request)
        try await capture.start()
        let change = Task { try await capture.change { $0.camera = slow } }
        try await requireEventually("the change") { capture.requested.camera == slow }
        await capture.stop()
        try await change.value
        #expect(capture.requested.camera == slow && !capture.isRunning)
    }

    @Test func `a change to a slow camera returns when the camera delivers`() async throws {
        let slow = try slowCamera()
        var request = MediaRequest.camera(try rawCamera())
        (request.width, request.height, request.microphone) = (64, 48, .none)
        let capture = LocalCapture(request)
        try await capture.start()
        try await capture.change { $0.camera = slow }
        let source = try #require(capture.statistics.sources["source"])
        #expect(source.state == .streaming)
        await capture.stop()
    }

    @Test func `media that no room has chooses its codec anew when it starts again`() async throws {
        var raw = try encodingCamera()
        raw.camera = try rawCamera()
        let capture = LocalCapture(raw)
        try await capture.start()
        #expect(capture.plan?.videoCodecs == ["vp8-encoder"])
        await capture.stop()
        let encoding = try encodingCamera()
        try await capture.change { $0 = encoding }
        try await capture.start()
        #expect(capture.plan?.videoCodecs == [])
        await capture.stop()
    }

    @Test func `media is published in two rooms at a time, and in one when the other has ended`() async throws {
        try await RoomStage.run { stage in
            let capture = LocalCapture(try encodingCamera())
            var (witnesses, viewers, engines): ([StreamWitness], [RoomEngine], [RoomEngine]) = ([], [], [])
            for room in ["one", "two"] {
                witnesses.append(StreamWitness())
                viewers.append(try await witnesses.last!.enter(stage, room))
                engines.append(try await StreamWitness().enter(stage, room))
                _ = try await engines.last!.publish(capture)
                try await witnesses.last!.watch(viewers.last!)
            }
            for witness in witnesses { try await witness.more() }
            engines[0].disconnect()
            try await requireEventually("the end in the first room") { witnesses[0].seen.ended > 0 }
            try await witnesses[1].more()
            #expect(witnesses[1].seen.isOneStream())
            await capture.stop()
            for engine in viewers + [engines[1]] { engine.disconnect() }
        }
    }

    @Test func `a camera that is lost and returns while a preview comes and goes costs no stream`() async throws {
        var request = try encodingCamera()
        let film = try EncodedFilm.h264(30, keyframeEvery: 10)
        request.camera = try CameraFile.write(h264: film, CameraFile.comesAndGoes, to: folder)
        try await publish(request) { scene in
            try await requireEventually("the loss") { scene.witness.seen.states.last == .waiting("camera unplugged") }
            let frames = Collected<Bool>()
            let sink = scene.capture.preview.add { _ in frames.append(true) }
            try await requireEventually("the return") { scene.witness.seen.states.last == .live }
            try await requireEventually("a preview") { frames.count > 5 }
            scene.capture.preview.remove(sink)
            try await scene.witness.more()
            let seen = scene.witness.seen
            #expect(seen.states.prefix(2) == [.waiting("camera unplugged"), .live])
            #expect(seen.isOneStream(within: 10))
        }
    }

    @Test func `video and audio that are turned off wait, and continue their streams`() async throws {
        var request = MediaRequest.testPattern()
        (request.width, request.height) = (64, 64)
        try await publish(request) { scene in
            try await scene.witness.more()
            try await scene.capture.change { $0.isVideoActive = false }
            try await requireEventually("the state") { scene.witness.seen.states.last == .waiting("video off") }
            #expect(scene.capture.streamState(of: .audio) == .live)
            try await scene.capture.change { $0.isAudioActive = false }
            #expect(!scene.capture.isRunning)
            #expect(scene.capture.streamState(of: .audio) == .waiting("audio off"))
            try await scene.capture.change { ($0.isVideoActive, $0.isAudioActive) = (true, true) }
            try await requireEventually("the state") { scene.witness.seen.states.last == .live }
            try await scene.witness.more()
            #expect(scene.witness.seen.isOneStream(within: 20))
        }
    }

    @Test func `picture ids of VP8 go on over another size, an interruption and a restart`() async throws {
        var request = MediaRequest.testPattern()
        (request.width, request.height, request.codec) = (64, 64, .vp8)
        try await publish(request) { scene in
            try await scene.witness.more()
            try await scene.capture.change { ($0.width, $0.height) = (96, 64) }
            try await scene.witness.more()
            try await scene.capture.change { $0.isVideoActive = false }
            try await scene.capture.change { $0.isVideoActive = true }
            try await scene.witness.more()
            await scene.capture.stop()
            try await scene.capture.start()
            try await scene.witness.more()
            let pictures = scene.witness.seen.pictures
            #expect(pictures.count > 20)
            #expect(zip(pictures, pictures.dropFirst()).allSatisfy { ($1 &- $0) & 0x7fff == 1 }, "\(pictures)")
        }
    }

    @Test func `video that is off when it is published has the codec that its camera would give`() async throws {
        for (codec, isMirrored) in [("H264", false), ("VP8", true)] {
            var request = try encodingCamera()
            (request.isVideoActive, request.hasAudio, request.isMirrored) = (false, false, isMirrored)
            let capture = LocalCapture(request)
            let tracks = try await capture.publish()
            #expect(tracks.map(\.codec.rawValue) == [codec])
            try await capture.change { $0.isVideoActive = true }
            #expect(capture.plan?.videoCodecs == (isMirrored ? ["vp8-encoder"] : []))
            await capture.stop()
        }
    }

    @Test func `the codec changes while no room has the video`() async throws {
        var request = try encodingCamera()
        request.codec = .vp8
        let capture = LocalCapture(request)
        try await capture.start()
        #expect(capture.plan?.videoCodecs == ["vp8-encoder"])
        try await capture.change { $0.codec = .h264 }
        #expect(capture.plan?.videoCodecs == ["h264-encoder"])
        let tracks = try await capture.publish()
        #expect(tracks.map(\.codec.rawValue) == ["H264"])
        await capture.stop()
    }

    @Test func `video that is off from the start is published, and begins later`() async throws {
        var request = MediaRequest.testPattern()
        (request.width, request.height, request.isVideoActive) = (64, 64, false)
        try await publish(request) { scene in
            #expect(scene.witness.seen.packets == 0)
            try await scene.capture.change { $0.isVideoActive = true }
            try await scene.witness.more()
            #expect(scene.witness.seen.isOneStream())
        }
    }

    @Test func `a camera that is missing costs the video, not the sound`() async throws {
        let fixture = try Fixture.soundServer()
        let environment = EnvironmentOverride(fixture.answer.environment.mapValues { $0 })
        defer { withExtendedLifetime(environment) {} }
        var request = MediaRequest.camera("serial:NONE")
        (request.width, request.height, request.microphone) = (64, 48, .device("speaker.monitor"))
        let camera = try rawCamera()
        try await publish(request) { scene in
            let events = Collected<String>()
            scene.capture.observe(
                as: events, failed: { _ in },
                device: { media, event in
                    if case .deviceWaiting(_, let cause) = event { events.append("\(media) \(cause.code)") }
                })
            #expect(events.all == ["video camera.absent"])
            await #expect(throws: RoomError.self) { try await scene.capture.change { $0.needsCamera = true } }
            #expect(scene.capture.streamState(of: .audio) == .live)
            try await requireEventually("the state") {
                scene.witness.seen.states == [.waiting("waiting for the camera")]
            }
            try await scene.capture.change { $0.camera = camera }
            try await requireEventually("the state") { scene.witness.seen.states.last == .live }
            #expect(scene.capture.statistics.rtpOutputs["output.audio"]?.packets ?? 0 > 0)
            let late = Collected<StreamMedia>()
            scene.capture.observe(as: late, failed: { _ in }, device: { media, _ in late.append(media) })
            #expect(late.all == [])
            #expect(scene.witness.seen.isOneStream())
        }
    }
}
