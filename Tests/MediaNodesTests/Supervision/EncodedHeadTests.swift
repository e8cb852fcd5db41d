import GStreamerKit
import MediaGraph
import Synchronization
import TestFixtures
import TestSupport
import Testing

@testable import MediaNodes

/// A device that encodes, whose frames a test delivers.
private final class Reel: SourceDevice {
    private struct State {
        var output: SourceOutput?
        var opened = 0
    }

    private let state = Mutex(State())
    /// Whether the device is lost, and stand-ins come, when it delivers nothing for a moment.
    let isWatched: Bool

    init(isWatched: Bool = true) { self.isWatched = isWatched }

    var opened: Int { state.withLock { $0.opened } }

    func deliver(_ frame: [UInt8], ahead seconds: Double = 0) -> Bool {
        deliver(frame, at: GStreamer.now + .seconds(seconds))
    }

    func deliver(_ frame: [UInt8], at time: MediaTime, to track: Int = 0) -> Bool {
        guard let output = state.withLock({ $0.output }), let buffer = MediaBuffer(frame) else { return false }
        return output.deliver(buffer, time, track)
    }

    func name(of candidate: Int) -> String { "reel" }
    func open(_ candidate: Int, for output: SourceOutput) throws(MediaError) {
        state.withLock { ($0.output, $0.opened) = (output, $0.opened + 1) }
    }
    func close() { state.withLock { $0.output = nil } }
    func isThere(_ candidate: Int) -> Bool { true }
    func isAbsence(_ error: MediaError) -> Bool { false }
    var mostAhead: Double { 1 }
    func error(for cause: SourceSupervisor.Cause, _ candidate: Int) -> MediaError {
        MediaError(code: "reel.lost", message: "It stopped.")
    }
}

private struct ReelNode: NodeType, HeadedNode {
    static let reels = Mutex<[String: Reel]>([:])
    /// Running times of the frames that left the heads, in nanoseconds.
    static let times = Mutex<[String: [UInt64]]>([:])
    static let format = MediaFormat(.encodedVideo, "h264", width: EncodedFilm.width, height: EncodedFilm.height)
    static let sound = MediaFormat(.encodedAudio, "pcmu", sampleRate: 8000, channels: 1)
    static let capacity = SourceTrack.Capacity(frames: 100, bytes: 1 << 20)
    let head: SourceHead?

    static let kind = NodeKind(
        "reel", .capturer, "H.264 of a test, and its audio",
        outputs: [
            Port("video", [.encodedVideo], encodings: ["h264"]),
            Port("audio", [.encodedAudio], encodings: ["pcmu"], isRequired: false),
        ])

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var plan = NodePlan(request.node)
        SourceHead.plan(&plan, format, caps: format.pushedCaps, latency: 0, capacity: capacity)
        plan.setOutput("video", format)
        if request.usedOutputs.contains("audio") {
            SourceHead.plan(&plan, sound, caps: "audio/x-mulaw,rate=8000,channels=1", latency: 0, as: "audio-source")
            plan.setOutput("audio", sound)
        }
        return plan
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        let name = instance.name
        let reel = reels.withLock { $0[name] } ?? Reel()
        var limits = SourceSupervisor.Limits()
        (limits.quiet, limits.silent, limits.pause, limits.firstStandIn) = (0.1, 0.3, 0.3, 0.1)
        (limits.fill, limits.firstFrame, limits.shortestBackoff) = (0.02, 5, 0.02)
        if !reel.isWatched {
            (limits.quiet, limits.silent, limits.firstStandIn, limits.firstFrame) = (600, 600, 600, 600)
        }
        instance.element("source").source.watchBuffers { buffer in
            let time = buffer.runningTime ?? 0
            times.withLock { $0[name, default: []].append(time) }
        }
        var outputs = [SourceHead.Output(port: "video", standIn: .freeze(slate: nil), capacity: capacity)]
        if instance.has("audio-source"), let silence = EncodedSilence(sound) {
            outputs.append(.init(port: "audio", element: "audio-source", standIn: .silence(.encoded(silence))))
            instance.element("audio-source").source.watchBuffers { buffer in
                let time = buffer.runningTime ?? 0
                times.withLock { $0["\(name).audio", default: []].append(time) }
            }
        }
        return ReelNode(
            head: SourceHead(
                instance, reel, outputs, isAwaited: false, limits: limits))
    }
}

extension MediaNodesTests {
    /// Heads of devices that encode.
    @Suite struct EncodedHeadTests {
        private func start(
            _ name: String, audio: Bool = false, isWatched: Bool = true, to end: Node = .null("end")
        ) async throws -> (Reel, MediaPipeline, Seen) {
            let reel = Reel(isWatched: isWatched)
            ReelNode.reels.withLock { $0[name] = reel }
            var graph = MediaGraph(nodes: [Node("reel", name: name), end], links: [])
            let input = end.kind == "recorder" ? "video" : "in"
            graph.links.append(
                Link(
                    from: PortReference(node: name, port: "video"), to: PortReference(node: end.name, port: input)))
            if audio {
                graph.nodes.append(.null("quiet"))
                graph.links.append(
                    Link(from: PortReference(node: name, port: "audio"), to: PortReference(node: "quiet", port: "in")))
            }
            let seen = Seen()
            let pipeline = try await MediaPipeline(
                graph, bindings: seen.bindings(of: graph), registry: .builtIn.adding([ReelNode.self]))
            try await pipeline.start()
            await eventually("it is open") { reel.opened == 1 }
            return (reel, pipeline, seen)
        }

        private func times(_ name: String) -> [UInt64] { ReelNode.times.withLock { $0[name] ?? [] } }

        @Test func `a device whose next keyframe is far is not lost after a gap`() async throws {
            let frames = try EncodedFilm.h264(10, keyframeEvery: 10)
            let (reel, pipeline, seen) = try await start("long-gop")
            func status() -> SourceStatus? { pipeline.statistics.sources["long-gop"] }
            #expect(reel.deliver(frames[0]))
            await eventually("a gap") { status()?.standIns ?? 0 > 0 }
            // As long as three times the limit of silence.
            let end = ContinuousClock.now + .seconds(1)
            await eventually("dependent frames") {
                #expect(!reel.deliver(frames[1]))
                return ContinuousClock.now > end
            }
            #expect(reel.opened == 1 && status()?.losses == 0 && status()?.state == .silent)
            #expect(reel.deliver(frames[0]))
            #expect(status()?.state == .streaming)
            await pipeline.stop()
            #expect(seen.failures.isEmpty && seen.deviceEvents.isEmpty)
        }

        @Test func `frames that are displayed in another order are recorded in the order of their decoding`()
            async throws
        {
            let folder = TemporaryFolder()
            let film = try EncodedFilm.reordered(24, keyframeEvery: 24)
            #expect(film.map(\.number) != film.map(\.number).sorted())
            let path = folder.file("film.mp4")
            let (reel, pipeline, seen) = try await start(
                "reordered", isWatched: false, to: .recorder("disk", path: path))
            let begin = GStreamer.now
            for frame in film {
                #expect(reel.deliver(frame.bytes, at: begin + .seconds(Double(frame.number) / 30)))
            }
            await eventually("all") { pipeline.statistics.recorders["disk"]?.frames ?? 0 >= film.count }
            await pipeline.stop()
            #expect(seen.failures.isEmpty)
            let recording = DecodedRecording(path)
            #expect(recording.problem == nil)
            let steps = zip(recording.times, recording.times.dropFirst()).map { $1 - $0 }.prefix(film.count - 1)
            #expect(steps.count == film.count - 1 && steps.allSatisfy { abs($0 - 1.0 / 30) < 0.002 }, "\(steps)")
        }

        /// A packet of G.711.
        private static let packet = [UInt8](repeating: 0x10, count: 160)

        @Test func `audio that stays away alone is silence, and returns at its own time`() async throws {
            let film = try EncodedFilm.h264(1, keyframeEvery: 1)
            let (reel, pipeline, seen) = try await start("mute", audio: true)
            func sound() -> [UInt64] { times("mute.audio") }
            func play(_ isMuted: Bool, until condition: () -> Bool) async {
                var next = GStreamer.now
                await eventually("enough") {
                    #expect(reel.deliver(film[0], at: .now))
                    while !isMuted, next <= .now {
                        _ = reel.deliver(Self.packet, at: next, to: 1)
                        next = next + .seconds(0.02)
                    }
                    return condition()
                }
            }
            await play(false) { sound().count >= 10 }
            let before = sound().count
            await play(true) { sound().count >= before + 100 }
            await play(false) { !pipeline.statistics.sources.isEmpty && Self.isInTime(sound(), pipeline) }
            #expect(pipeline.statistics.sources["mute"]?.losses == 0 && reel.opened == 1)
            await pipeline.stop()
            let steps = zip(sound(), sound().dropFirst()).map { Double($1 - $0) / 1e6 }
            #expect(steps.allSatisfy { (10...45).contains($0) }, "\(steps.filter { !(10...45).contains($0) })")
            #expect(seen.failures.isEmpty && seen.deviceEvents.isEmpty)
        }

        /// Whether the last audio is that of now, and no silence, which lags behind.
        private static func isInTime(_ sound: [UInt64], _ pipeline: MediaPipeline) -> Bool {
            guard let last = sound.last else { return false }
            let base = pipeline.graph.context.pipeline.baseTime
            return GStreamer.now.nanoseconds < base + last + 100_000_000
        }

        @Test func `a device whose video stays away is not lost while its audio goes on`() async throws {
            let film = try EncodedFilm.h264(1, keyframeEvery: 1)
            let (reel, pipeline, seen) = try await start("blind", audio: true)
            func status() -> SourceStatus? { pipeline.statistics.sources["blind"] }
            #expect(reel.deliver(film[0]))
            // Three times the limit of silence.
            let end = ContinuousClock.now + .seconds(1)
            await eventually("audio alone") {
                _ = reel.deliver(Self.packet, at: .now, to: 1)
                return ContinuousClock.now > end
            }
            #expect(status()?.losses == 0 && reel.opened == 1 && status()?.state == .silent)
            #expect(status()?.standIns ?? 0 > 0)
            #expect(reel.deliver(film[0]))
            #expect(status()?.state == .streaming)
            await pipeline.stop()
            #expect(seen.failures.isEmpty && seen.deviceEvents.isEmpty)
        }

        @Test func `a burst passes whole, and times ahead of now stay as they are`() async throws {
            let frames = try EncodedFilm.h264(60, keyframeEvery: 60)
            let (reel, pipeline, _) = try await start("burst", isWatched: false)
            // Faster than their rate, as after a stall.
            for (number, frame) in frames.enumerated() {
                #expect(reel.deliver(frame, ahead: Double(number) / 100))
            }
            await eventually("all") { times("burst").count >= 60 }
            let first = times("burst").prefix(60)
            let steps = zip(first, first.dropFirst()).map { Double($1) - Double($0) }
            #expect(steps.allSatisfy { $0 >= 9e6 }, "\(steps)")
            await pipeline.stop()
        }
    }
}
