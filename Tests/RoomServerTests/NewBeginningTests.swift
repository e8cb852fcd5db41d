import PeerIO
import PeerLoop
import RTP
import RoomFixtures
import RoomProtocol
import Testing
import TestSupport

@testable import RoomServer

@Suite(.serialized) struct NewBeginningTests {
    /// A publisher whose frames flow, and a viewer.
    private struct Scene {
        let server: RoomServer
        let grant: AccessGrant
        let loop: EventLoop
        let publisher: MediaClient
        let stream: Int
        let up: LoopBound<MediaSession>
        let source: LoopBound<FrameSource>
        let down: LoopBound<MediaSession>

        var requests: Int { get async { await onLoop(loop) { [up] in up.value.keyframeRequests } } }

        /// Whether 20 frames of this source, or of a later one, arrive.
        func receives(_ source: Int, on session: LoopBound<MediaSession>) async -> Bool {
            await eventually {
                await onLoop(loop) { session.value.frames.count { $0.source >= source } >= 20 }
            }
        }
    }

    private func withStream(
        first: UInt16, log: LogLines = LogLines(), _ body: @Sendable @escaping (Scene) async throws -> Void
    ) async throws {
        try await withMedia(configured: { $0.log = log.logger }) { server, grant, loop in
            let publisher = try MediaClient(server, grant, loop: loop)
            let (up, streams) = try await publisher.publish(midExtension: FrameSource.midExtension)
            try #require(await eventually { await onLoop(loop) { up.value.isSecured } })
            let source = await onLoop(loop) { LoopBound(FrameSource(up.value, loop: loop, first: first), loop: loop) }
            let viewer = try MediaClient(server, grant, loop: loop)
            let down = try await viewer.watch()
            try viewer.subscribe(streams[0])
            let scene = Scene(
                server: server, grant: grant, loop: loop, publisher: publisher, stream: streams[0], up: up,
                source: source, down: down)
            let result: Result<Void, any Error>
            do {
                try #require(await scene.receives(0, on: down))
                try await body(scene)
                result = .success(())
            } catch { result = .failure(error) }
            await onLoop(loop) { source.value.stop() }
            await publisher.close()
            await viewer.close()
            try result.get()
        }
    }

    /// The order of sequence numbers is the order of frames, and no number is missing.
    private func check(_ session: LoopBound<MediaSession>) async {
        let frames = await onLoop(session.loop) { session.value.frames }
        #expect(frames.first?.isKeyframe == true)
        for (before, after) in zip(frames, frames.dropFirst()) {
            #expect(after.sequenceNumber.distance(from: before.sequenceNumber) == 1)
            #expect(after.timestamp.isNewer(than: before.timestamp))
            if after.source != before.source { #expect(after.isKeyframe) }
        }
    }

    @Test func `a restarted publisher is visible again at a keyframe, also to later subscribers`() async throws {
        try await withStream(first: 30_000) { scene in
            let (asked, source) = (await scene.requests, scene.source)
            await onLoop(scene.loop) { source.value.beginAnew(0x2222, step: -20_000) }
            #expect(await scene.receives(1, on: scene.down))
            #expect(await scene.requests > asked)
            await onLoop(scene.loop) { source.value.beginAnew(0x3333, step: 30_000) }
            #expect(await scene.receives(2, on: scene.down))
            await check(scene.down)
            let later = try MediaClient(scene.server, scene.grant, loop: scene.loop)
            let down = try await later.watch()
            try later.subscribe(scene.stream)
            #expect(await scene.receives(2, on: down))
            await check(down)
            await later.close()
        }
    }

    @Test func `a publisher whose packets SRTP refuses gets an error and a keyframe request`() async throws {
        let log = LogLines()
        try await withStream(first: 40_000, log: log) { scene in
            let (asked, source) = (await scene.requests, scene.source)
            await onLoop(scene.loop) { source.value.loseCount() }
            let refusal = try scene.publisher.raw.message { if case .error = $0.message { true } else { false } }
            guard case .error(let problem) = refusal.message else { return }
            #expect(problem.error.code == .streamRefused)
            #expect(problem.message.contains("stream \(scene.stream) "))
            // The server requests at most one keyframe a second.
            #expect(await eventually { await scene.requests > asked })
        }
        // The server writes its log until it has stopped.
        let line = log.all.first { $0.hasPrefix("warning media refused ") }
        #expect(line?.contains("The server refuses stream") == true)
        #expect(log.all.contains { $0.hasPrefix("warning packets not authenticated") })
    }
}
