import Cameras
import Foundation
import GStreamerKit
import MediaGraph
import TestFixtures
import TestSupport
import Testing

@testable import MediaNodes

/// A pipeline with a recorded camera that encodes, in real time. It is recorded, and perhaps shows the frames.
private final class EncodingRun: Sendable {
    private static let requests = """
        {"identifier": 10029541, "title": "Force Key Frame", "kind": "button", "minimum": 0, "maximum": 0, "standard": 0}
        """
    let seen = Seen()
    let pipeline: MediaPipeline
    private let recording: String
    // Removed with this object; nothing else uses it.
    private nonisolated(unsafe) let folder = TemporaryFolder()

    init(
        _ format: FourCC, _ frames: [[UInt8]], _ faults: [CameraFixture.Fault],
        _ settings: [String: SettingValue] = [:],
        takesRequests: Bool = false, isShown: Bool = false, into recording: String = "own.mkv"
    ) async throws {
        self.recording = folder.file(recording)
        var fixture = try CameraFixture(
            json: """
                {"version": 1, "driver": "uvcvideo", "card": "Webcam", "bus": "usb-0000:00:14.0-1",
                 "formats": [{"format": "\(format)", "sizes": [{"size": "64x48", "rates": ["30"]}]}],
                 "controls": [\(takesRequests ? Self.requests : "")]}
                """)
        fixture.faults = faults
        fixture.frames = frames.map { .init(format: format, size: FrameSize(64, 48), data: $0) }
        let file = folder.file("camera.json")
        try fixture.json.write(toFile: file, atomically: true, encoding: .utf8)
        let given: [String: SettingValue] = ["device": .text("fixture:\(file)"), "width": 64, "height": 48]
        let camera = Node("camera", settings: given.merging(settings) { $1 })
        let recorder = Node("recorder", name: "disk", settings: ["path": .text(self.recording)])
        let graph = MediaGraph {
            if isShown {
                Chain {
                    camera
                    Tee { Node.frames("view") }
                    recorder
                }
            } else {
                Chain {
                    camera
                    recorder
                }
            }
        }
        pipeline = try await MediaPipeline(graph, bindings: seen.bindings(of: graph))
    }

    var status: SourceStatus? { pipeline.statistics.sources["camera"] }
    var recorded: Int { pipeline.statistics.recorders["disk"]?.frames ?? 0 }
    /// Kinds of the nodes that the planner inserted.
    var inserted: [String] { pipeline.plan.nodes.filter { $0.adapts != nil }.map(\.node.kind) }
    var events: [String] { seen.deviceEvents }
    var warnings: [String] {
        seen.events.all.compactMap { if case .warning(_, let message) = $0 { message } else { nil } }
    }

    /// Runs until the camera was away, is back, and has delivered some frames.
    func untilReturn() async throws {
        try await pipeline.start()
        await eventually("the return") { self.events.last == "returned" }
        let count = recorded
        await eventually("frames") { self.recorded > count + 20 }
        await pipeline.stop()
    }

    func decoded(_ decoder: String = "avdec_h264", _ parser: String = "h264parse") throws -> CheckedDecoding {
        try CheckedDecoding(recording, decoder: decoder, parser: parser)
    }
}

extension CheckedDecoding {
    /// The brightness of the stand-ins, and of the frames after them. The first stand-in came so long after the frame
    /// before it; nothing says that of the others.
    fileprivate func split(after gap: Double, standIns count: Int) -> (standIns: [Double], frames: [Double]) {
        let times = pictures.map(\.time)
        let first = zip(times, times.dropFirst()).map { $1 - $0 }.firstIndex { $0 > gap }.map { $0 + 1 } ?? times.count
        let brightness = pictures.dropFirst(first).map(\.brightness)
        return (Array(brightness.prefix(count)), Array(brightness.dropFirst(count)))
    }
}

extension MediaNodesTests {
    /// Cameras whose own encoding passes through: over losses, without a codec.
    @Suite struct EncodingCameraTests {
        private func isNear(_ one: Double, _ frame: Int) -> Bool {
            abs(one - Double(EncodedFilm.brightness(frame))) < 4
        }

        /// Whether the film begins again, and goes on. A busy machine loses some of its frames.
        private func isBeginning(_ frames: [Double]) -> Bool {
            guard let first = frames.first, let most = frames.prefix(15).max() else { return false }
            return isNear(first, 0) && most > Double(EncodedFilm.brightness(4))
        }

        @Test func `the camera's H.264 passes without a codec, repeats its last keyframe while away, and goes on`()
            async throws
        {
            let film = try EncodedFilm.h264(30, keyframeEvery: 10)
            let run = try await EncodingRun("H264", film, [.init(.unplugged, at: 1.5, until: 4.5)])
            #expect(run.inserted.isEmpty && run.pipeline.plan.node("camera")?.formats["video"]?.encoding == "h264")
            try await run.untilReturn()
            #expect(run.events == ["lost camera.lost", "returned"] && run.status?.standIns ?? 0 >= 2)
            let decoded = try run.decoded()
            #expect(decoded.problems.isEmpty)
            #expect(decoded.pictures.count == run.recorded && decoded.frames == run.recorded)
            // One a second, and then the first frame of the camera.
            let (standIns, frames) = decoded.split(after: 0.7, standIns: run.status?.standIns ?? 0)
            let shown = try #require(standIns.first)
            #expect(standIns.allSatisfy { $0 == shown } && [0, 10, 20].contains { isNear(shown, $0) }, "\(standIns)")
            #expect(isBeginning(frames), "\(frames)")
        }

        @Test(arguments: [("own.mkv", "constrained-baseline"), ("own.mkv", "main"), ("own.mp4", "main")])
        func `a slate for H.264 is encoded once, and the camera's keyframe ends it`(
            recording: String, profile: String
        ) async throws {
            let film = try EncodedFilm.h264(30, keyframeEvery: 10, profile: profile)
            let run = try await EncodingRun(
                "H264", film, [.init(.unplugged, at: 1.5, until: 5.5)], ["away": "slate"], into: recording)
            #expect(run.pipeline.plan.node("camera")?.device?.slate.map(\.factory).contains("x264enc") == true)
            try await run.untilReturn()
            let decoded = try run.decoded()
            #expect(decoded.problems.isEmpty && run.seen.failures.isEmpty, "\(decoded.problems) \(run.seen.failures)")
            #expect(decoded.pictures.count == run.recorded)
            let dark = decoded.pictures.filter { $0.brightness < 80 }
            #expect(dark.count >= 2 && Set(dark.map(\.brightness)).count == 1)
            let frames = decoded.split(after: 0.7, standIns: run.status?.standIns ?? 0).frames
            #expect(isBeginning(frames), "\(frames)")
        }

        /// A camera that takes over, whose film begins bright.
        private func other(_ format: String, _ frames: [[UInt8]], in folder: TemporaryFolder) throws -> String {
            let data = frames.map {
                #"{"format":"\#(format)","size":"64x48","data":"\#(Data($0).base64EncodedString())"}"#
            }
            let path = folder.file("other.json")
            let text = """
                {"version":1,"driver":"uvcvideo","card":"Other","bus":"usb-0000:00:14.0-2",
                 "formats":[{"format":"\(format)","sizes":[{"size":"64x48","rates":["30"]}]}],
                 "frames":[\(data.joined(separator: ","))]}
                """
            try text.write(toFile: path, atomically: true, encoding: .utf8)
            return "fixture:" + path
        }

        @Test func `a camera without H.264 goes on with a promised stream of H.264: its frames are encoded`()
            async throws
        {
            let folder = TemporaryFolder()
            let raw = try other("YUYV", [], in: folder)
            let run = try await EncodingRun(
                "H264", try EncodedFilm.h264(30, keyframeEvery: 10), [.init(.unplugged, at: 1.5, until: 300)],
                ["format": "h264", "failover": .text(raw)])
            try await run.pipeline.start()
            await eventually("the other camera") { run.status?.state == .failedOver }
            let count = run.recorded
            await eventually("frames") { run.recorded > count + 20 }
            await run.pipeline.stop()
            #expect(run.warnings.count { $0.contains("Its YUY2 in 64x48 is encoded here.") } == 1, "\(run.warnings)")
            let decoded = try run.decoded()
            #expect(decoded.problems.isEmpty && decoded.pictures.count == run.recorded)
        }

        @Test func `a camera that has only H.264 goes on with a promised raw stream: it is decoded`() async throws {
            let folder = TemporaryFolder()
            let film = try EncodedFilm.h264(30, keyframeEvery: 10)
            let encoding = try other("H264", film, in: folder)
            let run = try await EncodingRun(
                "YUYV", [], [.init(.unplugged, at: 1.5, until: 300)], ["failover": .text(encoding)], isShown: true)
            try await run.pipeline.start()
            await eventually("the other camera") { run.status?.state == .failedOver }
            let count = run.seen.pictures.count
            await eventually("frames") { run.seen.pictures.count > count + 20 }
            await run.pipeline.stop()
            #expect(run.seen.failures.isEmpty)
            // The film gets brighter from frame to frame.
            #expect(Set(run.seen.pictures.all.suffix(20).map { Int($0.brightness) }).count > 5)
        }

        @Test func `a camera that has only H.264 is mirrored after decoding`() async throws {
            let run = try await EncodingRun(
                "H264", try EncodedFilm.h264(30, keyframeEvery: 10), [], ["mirror": true], isShown: true)
            #expect(run.pipeline.plan.node("camera")?.device?.elements.map(\.name).contains("decoder") == true)
            try await run.pipeline.start()
            await eventually("frames") { run.seen.pictures.count > 20 }
            await run.pipeline.stop()
            #expect(run.seen.failures.isEmpty)
        }

        @Test func `a camera of H.264 that comes late begins with a slate`() async throws {
            let film = try EncodedFilm.h264(30, keyframeEvery: 10)
            let run = try await EncodingRun(
                "H264", film, [.init(.unplugged, at: 0, until: 3.5)], ["format": "h264", "fps": 30], isShown: true)
            #expect(run.inserted == ["video-decoder"])
            try await run.untilReturn()
            #expect(run.events == ["waiting camera.absent", "returned"] && run.seen.failures.isEmpty)
            let pictures = run.seen.pictures.all
            #expect(pictures.first?.brightness ?? 255 < 80 && pictures.last?.brightness ?? 0 >= 98)
            let decoded = try run.decoded()
            #expect(decoded.problems.isEmpty && decoded.pictures.count == run.recorded)
        }

        @Test func `the camera's JPEG passes without a codec, repeats while away, and goes on`() async throws {
            let film = try EncodedFilm.jpeg(30)
            let run = try await EncodingRun("MJPG", film, [.init(.unplugged, at: 1.5, until: 3)])
            #expect(run.inserted.isEmpty && run.pipeline.plan.node("camera")?.formats["video"]?.encoding == "mjpeg")
            try await run.untilReturn()
            #expect(run.events == ["lost camera.lost", "returned"] && run.status?.standIns ?? 0 > 3)
            let decoded = try run.decoded("jpegdec", "jpegparse")
            #expect(decoded.problems.isEmpty && decoded.pictures.count == run.recorded)
            // Each frame of the film has another brightness.
            let shown = decoded.pictures.map(\.brightness)
            let repeats = zip(shown, shown.dropFirst()).split { $0 != $1 }.map(\.count).max() ?? 0
            #expect(repeats >= 3 && shown.last != shown.dropLast().last, "\(shown)")
        }

        @Test func `after a pause, a keyframe is requested from a camera that takes requests`() async throws {
            // Without a request, it would never send another keyframe.
            let film = try EncodedFilm.h264(300, keyframeEvery: 300)
            let run = try await EncodingRun("H264", film, [.init(.silent, at: 1.5, until: 3.3)], takesRequests: true)
            try await run.pipeline.start()
            await eventually("a stand-in") { run.status?.standIns ?? 0 > 0 }
            await run.streams()
            let count = run.recorded
            await eventually("frames") { run.recorded > count + 20 }
            await run.pipeline.stop()
            #expect(run.status?.losses == 0 && run.warnings.isEmpty)
            let decoded = try run.decoded()
            #expect(decoded.problems.isEmpty && decoded.pictures.count == run.recorded)
            let frames = decoded.split(after: 0.7, standIns: run.status?.standIns ?? 0).frames
            #expect(isBeginning(frames), "\(frames)")
        }

        @Test func `a camera that takes no requests for keyframes is named once`() async throws {
            let film = try EncodedFilm.h264(30, keyframeEvery: 30)
            let run = try await EncodingRun("H264", film, [.init(.silent, at: 1.5, until: 3.3)])
            try await run.pipeline.start()
            await eventually("a stand-in") { run.status?.standIns ?? 0 > 0 }
            await run.streams()
            let count = run.recorded
            await eventually("frames") { run.recorded > count + 20 }
            await run.pipeline.stop()
            #expect(run.warnings.count { $0.contains("accepts no requests for keyframes") } == 1)
            let decoded = try run.decoded()
            #expect(decoded.problems.isEmpty && decoded.pictures.count == run.recorded)
            let frames = decoded.split(after: 0.7, standIns: run.status?.standIns ?? 0).frames
            #expect(isBeginning(frames), "\(frames)")
        }

        @Test func `a camera whose loss ends the node passes its H.264 too`() async throws {
            let film = try EncodedFilm.h264(30, keyframeEvery: 10)
            let run = try await EncodingRun("H264", film, [.init(.failing, at: 2)], ["away": "end"])
            #expect(run.inserted.isEmpty)
            try await run.pipeline.start()
            await eventually("the failure") { run.events == ["failed camera.lost"] }
            await run.pipeline.stop()
            let decoded = try run.decoded()
            #expect(decoded.problems.isEmpty && decoded.pictures.count > 10)
        }
    }
}

extension EncodingRun {
    fileprivate func streams() async { await eventually("it streams") { self.status?.state == .streaming } }
}
