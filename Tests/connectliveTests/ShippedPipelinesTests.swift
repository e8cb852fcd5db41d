import Foundation
import TestFixtures
import Testing

private let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("pipelines").path

/// Every file of pipelines/ is validated, planned and run as it stands, with values for its variables alone: screens are
/// under Xvfb, sound is a private PulseAudio's, the network camera is GStreamer's RTSP server, and where a camera is
/// asked for the test pattern stands in. Pictures are small and few, so that two slow cores keep up.
@Suite(.serialized) struct ShippedPipelinesTests {
    private static let files = ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [])
        .filter { $0.hasSuffix(".yaml") }.sorted()

    @Test(arguments: files)
    func `a shipped pipeline does what its plan says`(file: String) throws {
        let text = try String(contentsOfFile: "\(folder)/\(file)", encoding: .utf8)
        let stage = try Stage(text, name: String(file.dropLast(5)))
        let arguments = ["\(folder)/\(file)"] + stage.settings
        for command in ["validate", "plan"] {
            let result = try stage.run([command] + arguments)
            #expect(result.status == 0, "\(command) \(file): \(result.output)\(result.error)")
        }
        let (result, starved, stalls) = try stage.measure(
            ["run"] + arguments + ["--seconds", "6", "--report", "report.json"])
        try #require(result.status == 0, "\(file): \(result.output)\(result.error)")
        let report = try JSONDecoder().decode(
            Report.self, from: Data(contentsOf: URL(fileURLWithPath: stage.server.folder.file("report.json"))))
        report.judge(file, said: result.output + result.error, starvedFor: starved, stalls: stalls)
    }
}

/// A server, and what a pipeline meets in place of hardware and people.
private final class Stage {
    let server: TestServer
    let settings: [String]
    private var environment: [String: String] = [:]
    private let sound: Fixture<SoundServerAnswer>
    private let display: Fixture<DisplayAnswer>
    private var camera: Fixture<RTSPServerAnswer>?
    private let companion: CommandLineTool?

    init(_ text: String, name: String) throws {
        server = try TestServer()
        sound = try Fixture.soundServer()
        environment = sound.answer.environment.filter { $0.key != "XDG_RUNTIME_DIR" }
        display = try Fixture.display()
        environment["DISPLAY"] = display.answer.display
        var values = [
            "source": "test-pattern", "second-source": "test-pattern", "camera": "", "second-camera": "", "format": "",
            "width": "320", "height": "240", "small-width": "160", "small-height": "120", "fps": "10",
            "room": name, "display": environment["DISPLAY"] ?? "",
        ]
        // The container is the one that the file chooses.
        if let ending = text.firstMatch(of: #/path:-\w+(?<ending>\.\w+)}/#)?.ending {
            values["path"] = server.folder.file("out\(ending)")
        }
        if text.contains("node: rtsp") {
            let camera = try Fixture.rtspServer()
            values["url"] = "\(camera.answer.url)/h264-opus"
            self.camera = camera
        }
        // How long a mixer waits hangs on when its inputs began, within a frame: shorter frames, less left to chance.
        if text.contains("node: mixer") { values["fps"] = "25" }
        if text.contains("node: file") { values["file"] = try Self.film(in: server.folder) }
        settings = values.sorted { $0.key < $1.key }.filter { text.contains("${\($0.key)") }
            .flatMap { ["--set", "\($0.key)=\($0.value)"] }
        // Whoever watches a room needs somebody in it, unless the graph publishes its own picture there.
        let watches = text.contains("node: subscribe")
        let isAlone = text.contains("node: test-pattern")
        companion =
            watches && !isAlone
            ? try CommandLineTool(
                ["publish", "--room", name, "--test-pattern", "--size", "320x240", "--fps", "10"],
                folder: server.folder) : nil
        _ = try companion?.waitForText("publishing VP8")
    }

    /// Picture and sound, longer than a run, so that it does not begin again meanwhile.
    private static func film(in folder: TemporaryFolder) throws -> String {
        let path = folder.file("film.webm")
        let format = "video/x-raw,width=320,height=240,framerate=10/1"
        let picture = "videotestsrc num-buffers=120 ! \(format) ! vp8enc deadline=1"
        let sound = "audiotestsrc num-buffers=563 ! audio/x-raw,rate=48000,channels=2 ! opusenc"
        let words = "-q webmmux name=film ! filesink location=\(path) \(picture) ! film. \(sound) ! film."
        let program = try RunningProgram(
            "/usr/bin/gst-launch-1.0", words.split(separator: " ").map(String.init), folder: folder)
        let result = try program.finish(seconds: 60)
        try #require(result.status == 0, "\(result.output)\(result.error)")
        return path
    }

    func run(_ arguments: [String]) throws -> RunningProgram.Result {
        try CommandLineTool.run(arguments, folder: server.folder, environment: environment, seconds: 60)
    }

    /// Runs to the end, and tells for how many seconds all that takes part in it was kept from the processor.
    func measure(
        _ arguments: [String]
    ) throws -> (RunningProgram.Result, starved: Double, stalls: [Starvation.Stretch]) {
        let tool = try CommandLineTool(arguments, folder: server.folder, environment: environment)
        let programs = [tool, server.tool, companion].compactMap { $0?.process.processIdentifier }
        let starvation = Starvation(of: programs + [sound.answer.process])
        let result = try tool.finish(seconds: 60)
        return (result, starvation.end(), starvation.stretches)
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
        var plannedLatencyMs: Double
        var latencyMs: Double?
        var frames: Int
        var dropped: Int
        var captured: Int?

        var isSound: Bool { ["opus", "aac", "S16LE", "pcmu", "pcma"].contains(planned.encoding) }
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

    /// Milliseconds that no plan can tell apart on a machine that does other things too.
    private static let floor = 15.0

    /// Seconds that somebody has to be held up for everything's being later by as much.
    private static let stall = 0.05
    /// Sound that goes missing in one piece: 20 ms are the longest that come at a time.
    private static let pieceOfSound = 0.02
    /// Pictures that may be under way, each at its own place, when a look is taken: in queues, and in an encoder.
    private static let underWay = 4

    /// What can be counted is equal; latency is within half of what was planned.
    ///
    /// Nothing is thrown away but for want of a processor: not more than programs were kept from it, which is next to
    /// nothing on a machine that does nothing else. What a mixer makes of several streams lacks what each of them lost;
    /// what a stall held up is late by as much.
    func judge(_ file: String, said: String, starvedFor starved: Double, stalls: [Starvation.Stretch]) {
        let longestStall = stalls.map(\.lost).filter { $0 >= Self.stall }.max() ?? 0
        #expect(!outputs.isEmpty, "\(file)")
        for count in counts { #expect(count.measured == count.planned, "\(file): \(count.what)\n\(said)") }
        for output in outputs {
            for input in output.inputs {
                let place = "\(file): \(output.name).\(input.port)\n\(said)"
                #expect(input.measured.encoding == input.planned.encoding, "\(place)")
                if let width = input.planned.width { #expect(input.measured.width == width, "\(place)") }
                if let height = input.planned.height { #expect(input.measured.height == height, "\(place)") }
                if let rate = input.planned.framesPerSecond, let measured = input.measured.framesPerSecond {
                    // What was dropped had come. A screen leaves out what it was not let draw, and does not count it.
                    let span = Double(input.frames) / measured
                    let given = Double(input.frames + input.dropped) / span
                    #expect(
                        measured <= 1.15 * rate && given >= 0.85 * rate - rate * starved / span, "\(given): \(place)")
                } else {
                    #expect(input.planned.framesPerSecond == nil, "\(place)")
                }
                let piece = input.isSound ? Self.pieceOfSound : 1 / (input.measured.framesPerSecond ?? 10)
                // Of pictures that several were made into, it is not known where they set out.
                let streams = input.captured == nil && !input.isSound ? 2.0 : 1.0
                #expect(
                    Double(input.dropped) * piece <= streams * starved,
                    "\(input.dropped) were dropped, kept from the processor for \(starved) s: \(place)")
                if let captured = input.captured {
                    #expect(
                        abs(captured - input.dropped - input.frames) <= Self.underWay,
                        "\(captured) captured, \(input.dropped) dropped, \(input.frames) came: \(place)")
                }
                guard let measured = input.latencyMs else {
                    Issue.record("no latency was measured: \(place)")
                    continue
                }
                #expect(
                    abs(measured - input.plannedLatencyMs) <= max(Self.floor, 0.5 * input.plannedLatencyMs)
                        + longestStall * 1000, "\(place)")
            }
        }
    }
}
