import MediaGraph
import Testing

@testable import RoomClient

/// The graph that is derived from a request. No pipeline runs.
@Suite struct MediaRequestTests {
    private let camera = MediaRequest.camera("serial:7C3F")
    private let both = MediaRequest.Contents(hasVideo: true, hasAudio: true)
    private let silent = MediaRequest.Contents(hasVideo: true, hasAudio: false)

    private func links(
        _ request: MediaRequest, _ contents: MediaRequest.Contents, continuing codec: VideoCodec? = nil
    ) -> [String]? {
        request.graph(contents, continuing: codec)?.links.map { "\($0.from) > \($0.to)" }
    }

    @Test func `a camera feeds the output directly, so that nothing is encoded if nothing has to be`() {
        #expect(links(camera, silent) == ["source > output.video"])
        #expect(
            links(camera, both) == [
                "source > output.video", "microphone > opus-encoder", "opus-encoder > output.audio",
            ])
        #expect(
            links(.file("clip.mp4"), both) == [
                "source > output.video", "source.audio > opus-encoder", "opus-encoder > output.audio",
            ])
    }

    @Test func `a preview is one more consumer, which may fail alone`() {
        var request = camera
        request.isPreviewed = true
        #expect(links(request, silent) == ["source > preview", "source > output.video"])
        #expect(request.graph(silent)?.node("preview")?.isOptional == true)
        #expect(request.graph(silent)?.node("source") == camera.graph(silent)?.node("source"))
    }

    @Test func `layers are a wish of the output, and one is none`() {
        var request = camera
        #expect(request.graph(silent)?.node("output")?.settings["layers"] == nil)
        request.layers = 3
        #expect(request.graph(silent)?.node("output")?.settings["layers"] == 3)
        #expect(links(request, silent) == ["source > output.video"])
    }

    @Test func `a bitrate needs an encoder, with the codec of the stream that it continues`() {
        var request = camera
        request.bitrate = Bitrate(bitsPerSecond: 800_000)
        #expect(links(request, silent) == ["source > encoder", "encoder > output.video"])
        #expect(request.graph(silent)?.node("encoder")?.kind == "vp8-encoder")
        #expect(request.graph(silent, continuing: .h264)?.node("encoder")?.kind == "h264-encoder")
        request.codec = .h264
        #expect(request.graph(silent)?.node("encoder")?.kind == "h264-encoder")
        #expect(request.graph(silent, continuing: .vp8)?.node("encoder")?.kind == "vp8-encoder")
    }

    @Test(
        arguments: [
            (640, 480, true, 1632), (640, 480, false, nil), (640, 480, nil, nil), (1280, 720, true, nil),
            (1280, 720, false, 898), (1280, 720, nil, nil),
        ] as [(Int, Int, Bool?, Int?)])
    func `another definition than that of the size doubles or halves the bitrate`(
        width: Int, height: Int, isHighDefinition: Bool?, kilobits: Int?
    ) {
        let expected = kilobits.map { SettingValue.integer($0 * 1000) }
        for var request in [camera, MediaRequest.testPattern()] {
            (request.width, request.height, request.isHighDefinition) = (width, height, isHighDefinition)
            let graph = request.graph(silent)
            #expect(graph?.node("encoder")?.settings["bitrate"] == expected)
            #expect((graph?.node("output")?.settings["degradation"] == "detail") == (kilobits == 1632))
            request.bitrate = .kilobitsPerSecond(500)
            #expect(request.graph(silent)?.node("encoder")?.settings["bitrate"] == 500_000)
        }
        var film = MediaRequest.file("clip.mp4")
        film.isHighDefinition = isHighDefinition
        var contents = silent
        contents.shape = .init(width: width, height: height, framesPerSecond: 20)
        #expect(film.graph(contents)?.node("encoder")?.settings["bitrate"] == expected)
    }

    @Test(arguments: [(Int.max, 720), (Int.max, Int.max), (1 << 32, 1 << 32)])
    func `a size beyond all limits has a definition, a bitrate and layers`(width: Int, height: Int) {
        #expect(MediaRequest.VideoShape(width: width, height: height, framesPerSecond: 30).isHighDefinition)
        let rate = VideoBitrate.default(width: width, height: height, framesPerSecond: 30)
        #expect(rate == .kilobitsPerSecond(12_000))
        var request = camera
        (request.width, request.height, request.isHighDefinition, request.layers) = (width, height, false, 3)
        #expect(request.graph(silent)?.node("encoder")?.settings["bitrate"] == 4_898_500)
    }

    @Test func `the output accepts the chosen codec, or that of the stream, or any`() {
        func codec(_ request: MediaRequest, _ continuing: VideoCodec? = nil) -> SettingValue? {
            request.graph(silent, continuing: continuing)?.node("output")?.settings["codec"]
        }
        var request = camera
        #expect(codec(request) == nil)
        #expect(codec(request, .h264) == "h264")
        request.codec = .vp8
        #expect(codec(request) == "vp8")
        #expect(codec(request, .h264) == "h264")
    }

    @Test func `settings of the camera reach its node`() {
        var request = camera
        (request.width, request.height, request.failover, request.isMirrored) = (1280, 720, "back", false)
        let settings = request.graph(silent)?.node("source")?.settings
        #expect(
            settings == [
                "device": "serial:7C3F", "width": 1280, "height": 720, "failover": "back", "mirror": false,
            ])
        request.framesPerSecond = 30
        #expect(request.graph(silent)?.node("source")?.settings["fps"] == 30.0)
        #expect(MediaRequest.camera(nil).graph(silent)?.node("source")?.settings["device"] == "auto")
    }

    @Test func `frames of the program have a node with their largest size, beside a microphone`() {
        var request = MediaRequest(source: .bypass)
        (request.width, request.height) = (1280, 720)
        #expect(
            links(request, both) == [
                "source > output.video", "microphone > opus-encoder", "opus-encoder > output.audio",
            ])
        let source = request.graph(silent)?.node("source")
        #expect(source?.kind == "program-frames" && source?.settings == ["width": 1280, "height": 720])
        request.isVideoActive = false
        #expect(links(request, both) == ["microphone > opus-encoder", "opus-encoder > output.audio"])
        #expect(!request.mustHaveCamera(silent))
    }

    @Test func `frames of the program need no camera, and their audio is that of a microphone`() throws {
        var request = MediaRequest(source: .bypass)
        request.position = "front"
        #expect(try request.inspect(isMicrophoneThere: { true }, cameraAt: { $0 }) == both)
        var alone = silent
        alone.notice = MediaRequest.noMicrophone
        #expect(try request.inspect(isMicrophoneThere: { false }) == alone)
        request.hasAudio = false
        #expect(try request.inspect(isMicrophoneThere: { true }) == silent)
    }

    @Test(
        arguments: [
            (nil, true, 90, 90), (nil, false, 90, 270), ("back", false, 90, 90), ("back", true, 90, 270),
            ("front", false, 270, 90), (nil, true, 180, 180), ("back", true, 180, 180), (nil, true, 0, 0),
        ] as [(String?, Bool, Int, Int)])
    func `a camera's frames are turned back, by the side that it faces and by a mirror`(
        camera: String?, isMirrored: Bool, machine: Int, degrees: Int
    ) {
        var request = MediaRequest.camera(camera)
        (request.isMirrored, request.appTurn, request.deviceTurn) = (isMirrored, machine, 90)
        #expect(request.turn(silent) == 0 && links(request, silent) == ["source > output.video"])
        request.rotationType = .app
        #expect(request.turn(silent) == degrees)
        let isTurned = degrees != 0
        #expect(
            links(request, silent)
                == (isTurned ? ["source > rotation", "rotation > output.video"] : ["source > output.video"]))
        #expect(
            request.graph(silent)?.node("rotation")?.settings["degrees"] == (isTurned ? .integer(degrees) : nil))
        let shape = request.shape(silent)
        #expect((shape.width, shape.height) == (degrees % 180 == 0 ? (640, 480) : (480, 640)))
        (request.rotationType, request.appTurn) = (.device, 0)
        #expect(request.turn(silent) % 180 == 90)
        request.source = .testPattern
        #expect(request.turn(silent) == 0)
    }

    @Test func `the camera of a place faces as its name says`() {
        var request = MediaRequest.camera(nil)
        (request.isMirrored, request.rotationType, request.appTurn) = (false, .app, 90)
        var contents = silent
        contents.camera = "serial:7C3F"
        #expect(request.turn(contents) == 270 && request.turn(silent) == 270)
        request.position = "back"
        // A machine with one camera has it at the front.
        #expect(request.turn(contents) == 90 && request.turn(silent) == 270)
        request.position = "front"
        #expect(request.turn(contents) == 270)
    }

    @Test func `a blender is in front of the preview and of the encoder, behind the rotation`() {
        var request = camera
        (request.isBlended, request.isPreviewed, request.rotationType, request.appTurn) = (true, true, .app, 90)
        #expect(
            links(request, silent) == [
                "source > rotation", "rotation > blend", "blend > preview", "blend > output.video",
            ])
    }

    @Test func `media that is not active needs no device`() {
        var request = camera
        request.isVideoActive = false
        #expect(links(request, both) == ["microphone > opus-encoder", "opus-encoder > output.audio"])
        request.isAudioActive = false
        #expect(links(request, both) == nil)
        request = .file("clip.mp4")
        request.isVideoActive = false
        // The file is read for its audio.
        #expect(
            links(request, both) == [
                "source > unseen", "source.audio > opus-encoder", "opus-encoder > output.audio",
            ])
        request.isAudioActive = false
        #expect(links(request, both) == nil)
    }

    @Test func `without a microphone, the video alone is published, with one sentence about it`() throws {
        var request = MediaRequest.camera("fixture:none")
        request.waitsForDevices = true
        func contents(_ isMicrophoneThere: Bool) throws -> MediaRequest.Contents {
            try request.inspect(isMicrophoneThere: { isMicrophoneThere })
        }
        let without = try contents(false)
        #expect(without.hasVideo && !without.hasAudio)
        #expect(
            without.notice
                == "There is no microphone, so only the video is published. To wait for a microphone, name it.")
        #expect(try contents(true) == both)
        request.microphone = .device("later")
        #expect(try contents(false) == both)
        // Audio alone waits.
        (request.microphone, request.hasVideo) = (.automatic, false)
        #expect(try contents(false) == MediaRequest.Contents(hasVideo: false, hasAudio: true))
    }

    @Test func `a place chooses the camera that is bound to it, unless the request names one`() throws {
        func device(_ camera: String?, _ position: String?, bound: [String]) throws -> SettingValue? {
            var request = MediaRequest.camera(camera)
            (request.position, request.waitsForDevices) = (position, true)
            let contents = try request.inspect(isMicrophoneThere: { true }, cameraAt: { bound.contains($0) ? $0 : nil })
            return request.graph(contents)?.node("source")?.settings["device"]
        }
        #expect(try device(nil, "front", bound: []) == "auto")
        #expect(try device(nil, "front", bound: ["back"]) == "auto")
        #expect(try device(nil, "front", bound: ["back", "front"]) == "front")
        #expect(try device(nil, "back", bound: ["back", "front"]) == "back")
        #expect(try device(nil, nil, bound: ["back", "front"]) == "auto")
        #expect(try device("serial:7C3F", "front", bound: ["front"]) == "serial:7C3F")
    }

    @Test func `another place is another origin, so that a running media looks for its camera again`() {
        var request = MediaRequest.camera(nil)
        let origin = request.origin
        request.position = "back"
        #expect(request.origin != origin)
    }

    @Test func `a file is looked for in the current folder, then in those of the application`() {
        var request = MediaRequest.file("clip.mov")
        request.fileFolders = ["/resources", "/program"]
        func found(_ files: String...) -> String { request.foundFile { files.contains($0) } }
        #expect(found("clip.mov", "/resources/clip.mov") == "clip.mov")
        #expect(found("/program/clip.mov", "/resources/clip.mov") == "/resources/clip.mov")
        #expect(found("/program/clip.mov") == "/program/clip.mov")
        #expect(found() == "clip.mov")
        request.file = "/elsewhere/clip.mov"
        #expect(found("/resources//elsewhere/clip.mov") == "/elsewhere/clip.mov")
    }

    @Test func `with audio, a start without the camera succeeds`() {
        var request = camera
        #expect(request.mustHaveCamera(silent) && !request.mustHaveCamera(both))
        request.needsCamera = true
        #expect(request.mustHaveCamera(both))
        request.waitsForDevices = true
        #expect(!request.mustHaveCamera(silent))
    }
}
