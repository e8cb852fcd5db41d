import MediaGraph
import MediaNodes
import Testing

@testable import RoomClient

/// A board with libcamera: `hardware` is the encoder that it has, which may lack its driver.
private struct Board: PlanEnvironment {
    var hardware: Set<String> = ["v4l2h264enc"]
    var lacksDriver = false
    var film = MediaFileInfo(
        path: "film.webm", width: 854, height: 480, framesPerSecond: 25, hasAudio: false, duration: 10)

    func hasElement(_ factory: String) -> Bool {
        !factory.hasSuffix("enc") || ["vp8enc", "x264enc", "opusenc"].contains(factory) || hardware.contains(factory)
    }
    func canOpen(_ factory: String) -> Bool { !(lacksDriver && hardware.contains(factory)) }
    func package(ofElement factory: String) -> String { factory }
    func camera(_ device: String) throws(MediaError) -> CameraChoice {
        throw MediaError(code: MediaError.Code.cameraAbsent, message: "There is no camera \(device).")
    }
    func file(_ path: String) throws(MediaError) -> MediaFileInfo { film }
    func windowSink() -> String? { nil }
    func soundSink() -> String? { nil }
    func soundSource() -> String? { nil }
    func secondsPerFrame(_ element: ElementPlan, _ format: MediaFormat) -> Double { 0 }
}

/// The codec of local media for which nobody has chosen one, planned with a made-up registry. No such board runs these
/// tests.
@Suite struct PreferredCodecTests {
    private let silent = MediaRequest.Contents(hasVideo: true, hasAudio: false)

    private func plan(_ request: MediaRequest, on board: Board) throws -> GraphPlan {
        let graph = try #require(request.graph(silent, preferring: .preferred(on: board)))
        let registry = NodeRegistry.builtIn.adding([PublishNode.feeding(OutgoingStreams())])
        return try Planner(registry, board).plan(graph)
    }

    /// The elements that encode video.
    private func encoders(_ request: MediaRequest, on board: Board = Board()) throws -> [String] {
        try plan(request, on: board).nodes.flatMap(\.elements).map(\.factory).filter { $0.hasSuffix("enc") }
    }

    @Test func `a board's camera is encoded by the board, without a conversion`() throws {
        var request = MediaRequest.camera("libcamera")
        (request.width, request.height, request.isMirrored) = (1280, 720, false)
        #expect(try encoders(request) == ["v4l2h264enc"])
        let plan = try plan(request, on: Board())
        #expect(plan.node("source")?.formats["video"]?.encoding == "NV12")
        #expect(!plan.nodes.contains { $0.node.kind == "convert" })
    }

    @Test func `without usable hardware for H.264, video is VP8`() throws {
        let request = MediaRequest.testPattern()
        #expect(try encoders(request, on: Board(hardware: [])) == ["vp8enc"])
        #expect(try encoders(request, on: Board(lacksDriver: true)) == ["vp8enc"])
        #expect(try encoders(request, on: Board(hardware: ["v4l2vp8enc"])) == ["v4l2vp8enc"])
    }

    @Test func `a chosen codec, and that of a stream, are kept`() throws {
        var request = MediaRequest.testPattern()
        request.codec = .vp8
        #expect(try encoders(request) == ["vp8enc"])
        request.codec = .h264
        #expect(try encoders(request, on: Board(hardware: [])) == ["x264enc"])
    }

    @Test func `a bitrate alone does not change the codec`() throws {
        var request = MediaRequest.testPattern()
        request.bitrate = Bitrate(bitsPerSecond: 500_000)
        #expect(try encoders(request) == ["v4l2h264enc"])
        #expect(try encoders(request, on: Board(hardware: [])) == ["vp8enc"])
    }

    @Test func `a file of an odd size is VP8, because H.264 needs an even one`() throws {
        let request = MediaRequest.file("film.webm")
        var board = Board()
        #expect(try encoders(request, on: board) == ["v4l2h264enc"])
        board.film = MediaFileInfo(
            path: "film.webm", width: 853, height: 480, framesPerSecond: 25, hasAudio: false, duration: 10)
        #expect(try encoders(request, on: board) == ["vp8enc"])
    }

    @Test func `a publish node of a graph prefers the board's encoder too`() throws {
        let graph = MediaGraph {
            Chain {
                Node.testPattern("pattern")
                Node("publish", name: "room", settings: ["room": "kitchen", "server": "ws://127.0.0.1:7880"])
            }
        }
        let encoders = try [Board(), Board(hardware: [])].map { board in
            try Planner(RoomNodes.registry, board).plan(graph).nodes.map(\.node.kind).filter { $0.hasSuffix("encoder") }
        }
        #expect(encoders == [["h264-encoder"], ["vp8-encoder"]])
    }
}
