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

    var opened: Int { state.withLock { $0.opened } }

    func deliver(_ frame: [UInt8], ahead seconds: Double = 0) -> Bool {
        guard let output = state.withLock({ $0.output }), let buffer = MediaBuffer(frame) else { return false }
        return output.deliver(buffer, GStreamer.now + .seconds(seconds), 0)
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

private struct ReelNode: NodeType, RunningNode {
    static let reels = Mutex<[String: Reel]>([:])
    /// Running times of the frames that left the heads, in nanoseconds.
    static let times = Mutex<[String: [UInt64]]>([:])
    static let format = MediaFormat(.encodedVideo, "h264", width: EncodedFilm.width, height: EncodedFilm.height)
    static let capacity = SourceTrack.Capacity(frames: 100, bytes: 1 << 20)
    let head: SourceHead

    static let kind = NodeKind(
        "reel", .capturer, "H.264 of a test", outputs: [Port("video", [.encodedVideo], encodings: ["h264"])])

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var plan = NodePlan(request.node)
        SourceHead.plan(&plan, format, caps: format.pushedCaps, latency: 0, capacity: capacity)
        plan.setOutput("video", format)
        return plan
    }

    static func activate(_ instance: NodeInstance) throws(MediaError) -> (any RunningNode)? {
        let name = instance.name
        var limits = SourceSupervisor.Limits()
        (limits.quiet, limits.silent, limits.pause, limits.firstStandIn) = (0.1, 0.3, 0.3, 0.1)
        (limits.fill, limits.firstFrame, limits.shortestBackoff) = (0.02, 5, 0.02)
        instance.element("source").source.watchBuffers { buffer in
            let time = buffer.runningTime ?? 0
            times.withLock { $0[name, default: []].append(time) }
        }
        return ReelNode(
            head: SourceHead(
                instance, reels.withLock { $0[name] } ?? Reel(),
                [.init(port: "video", standIn: .freeze(slate: nil), capacity: capacity)], isAwaited: false,
                limits: limits))
    }

    func prepare() { head.prepare() }
    func finish() { head.finish() }
    func report(into statistics: inout MediaStatistics, as name: String) { statistics.sources[name] = head.status }
}

extension MediaNodesTests {
    /// Heads of devices that encode.
    @Suite struct EncodedHeadTests {
        private func start(_ name: String) async throws -> (Reel, MediaPipeline, Seen) {
            let reel = Reel()
            ReelNode.reels.withLock { $0[name] = reel }
            let graph = MediaGraph {
                Chain {
                    Node("reel", name: name)
                    Node.null("end")
                }
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

        @Test func `a burst passes whole, and times ahead of now stay as they are`() async throws {
            let frames = try EncodedFilm.h264(60, keyframeEvery: 60)
            let (reel, pipeline, _) = try await start("burst")
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
