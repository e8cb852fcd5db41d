import Foundation
import TestFixtures
import Testing
import TestSupport

private let folder = Checkout.path("pipelines")

/// Every file of pipelines/ is planned and run unchanged, with only its variables set: the screen is Xvfb,
/// the sound server a private PulseAudio, the network camera GStreamer's RTSP server, and the test pattern replaces a
/// camera. Frames are few and small, so that two slow cores keep up.
@Suite(.serialized) struct ShippedPipelinesTests {
    private static let files = ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [])
        .filter { $0.hasSuffix(".yaml") }.sorted()

    @Test(arguments: files)
    func `a shipped pipeline runs as planned`(file: String) throws {
        let text = try String(contentsOfFile: "\(folder)/\(file)", encoding: .utf8)
        let stage = try Stage(text, name: String(file.dropLast(5)))
        let arguments = ["\(folder)/\(file)"] + stage.settings
        let plan = try stage.run(["plan"] + arguments)
        #expect(plan.status == 0, "\(file): \(plan.output)\(plan.error)")
        let result = try stage.run(["run"] + arguments + ["--seconds", "3", "--report", "report.json"])
        try #require(result.status == 0, "\(file): \(result.output)\(result.error)")
        let report = try JSONDecoder().decode(
            Report.self, from: Data(contentsOf: URL(fileURLWithPath: stage.server.folder.file("report.json"))))
        report.judge(file, said: result.output + result.error)
    }
}

/// A server, and substitutes for hardware and people.
private final class Stage {
    let server: TestServer
    let settings: [String]
    private var environment: [String: String] = [:]
    private var sound: Fixture<SoundServerAnswer>?
    private var display: Fixture<DisplayAnswer>?
    private var camera: Fixture<RTSPServerAnswer>?
    private let companion: CommandLineTool?

    init(_ text: String, name: String) throws {
        server = try TestServer()
        if text.contains("node: microphone") {
            let sound = try Fixture.soundServer()
            environment = sound.answer.environment.filter { $0.key != "XDG_RUNTIME_DIR" }
            self.sound = sound
        }
        if text.contains("node: screen") || text.contains("node: window") {
            let display = try Fixture.display()
            environment["DISPLAY"] = display.answer.display
            self.display = display
        }
        var values = [
            "source": "test-pattern", "second-source": "test-pattern", "camera": "", "second-camera": "", "format": "",
            "width": "320", "height": "240", "small-width": "160", "small-height": "120", "fps": "20",
            "room": name, "display": environment["DISPLAY"] ?? "",
        ]
        // The file selects its own container.
        if let ending = text.firstMatch(of: #/path:-\w+(?<ending>\.\w+)}/#)?.ending {
            values["path"] = server.folder.file("out\(ending)")
        }
        if text.contains("node: rtsp") {
            let camera = try Fixture.rtspServer()
            values["url"] = "\(camera.answer.url)/h264-opus"
            self.camera = camera
        }
        if text.contains("node: file") { values["file"] = try Self.film(in: server.folder) }
        settings = values.sorted { $0.key < $1.key }.filter { text.contains("${\($0.key)") }
            .flatMap { ["--set", "\($0.key)=\($0.value)"] }
        // A viewer needs a publisher, unless the graph itself publishes into the room.
        let watches = text.contains("node: subscribe")
        let isAlone = text.contains("node: test-pattern")
        companion =
            watches && !isAlone
            ? try CommandLineTool(
                ["publish", "--room", name, "--test-pattern", "--size", "320x240", "--fps", "10"],
                folder: server.folder) : nil
        _ = try companion?.waitForText("publishing VP8")
    }

    /// A file with video and audio that is longer than a run, so that it does not loop.
    private static func film(in folder: TemporaryFolder) throws -> String {
        let path = folder.file("film.webm")
        let format = "video/x-raw,width=320,height=240,framerate=10/1"
        let picture = "videotestsrc num-buffers=60 ! \(format) ! vp8enc deadline=1"
        let sound = "audiotestsrc num-buffers=282 ! audio/x-raw,rate=48000,channels=2 ! opusenc"
        try OfflineFilm.write(
            "webmmux name=film ! filesink location=\(path) \(picture) ! film. \(sound) ! film.", in: folder)
        return path
    }

    func run(_ arguments: [String]) throws -> RunningProgram.Result {
        try CommandLineTool.run(arguments, folder: server.folder, environment: environment, seconds: 60)
    }
}

/// What `run --report` writes.
private struct Report: Decodable {
    struct Format: Decodable {
        var encoding: String
        var width: Int?
        var height: Int?
        var framesPerSecond: Double?
    }

    struct Input: Decodable {
        var port: String
        var planned: Format
        var measured: Format
        var latencyMs: Double?
        var frames: Int
        var dropped: Int
        var captured: Int?
    }

    struct Output: Decodable {
        var name: String
        var inputs: [Input]
    }

    struct Count: Decodable {
        var what: String
        var planned: Int
        var measured: Int
    }

    var outputs: [Output]
    var counts: [Count]

    /// The possible number of frames in queues and in an encoder when a sample is taken.
    private static let underWay = 4

    /// Counts match the plan, frames arrive, and only those are missing that a queue counted as dropped. How many that are, the
    /// rate and the latency depend on the machine: `Benchmarks/run pipelines` measures them.
    func judge(_ file: String, said: String) {
        #expect(!outputs.isEmpty, "\(file)")
        for count in counts { #expect(count.measured == count.planned, "\(file): \(count.what)\n\(said)") }
        for output in outputs {
            for input in output.inputs {
                let place = Comment(rawValue: "\(file): \(output.name).\(input.port)\n\(said)")
                #expect(input.measured.encoding == input.planned.encoding, place)
                if let width = input.planned.width { #expect(input.measured.width == width, place) }
                if let height = input.planned.height { #expect(input.measured.height == height, place) }
                #expect(input.frames > 0, place)
                // A busy machine produces less, never more.
                if let rate = input.planned.framesPerSecond {
                    #expect(input.measured.framesPerSecond.map { $0 <= 1.15 * rate } == true, place)
                }
                if let captured = input.captured {
                    #expect(abs(captured - input.dropped - input.frames) <= Self.underWay, place)
                }
                #expect(input.latencyMs ?? -1 >= 0, place)
            }
        }
    }
}
