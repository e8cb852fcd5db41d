import RTP
import RoomProtocol
import Testing

@testable import RoomServer

@Suite(.serialized) struct NewBeginningTests {
    /// A publisher and somebody who watches; both are closed at the end.
    private func withStream(
        first: UInt16, log: LogLines = LogLines(),
        _ body: @Sendable @escaping (RoomServer, AccessGrant, Int, SteadyClient, SteadyClient) throws -> Void
    ) async throws {
        try await withServer(configured: { $0.log = log.logger }) { server, grant in
            let publisher = try SteadyClient(server, grant.accessToken)
            defer { publisher.close() }
            let stream = try publisher.publish(first: first)
            let viewer = try SteadyClient(server, grant.accessToken)
            defer { viewer.close() }
            try viewer.watch(stream)
            try #require(viewer.receives(20, of: 0))
            try body(server, grant, stream, publisher, viewer)
        }
    }

    /// The order of sequence numbers is the order of frames, and nothing is missing between them.
    private func check(_ frames: [SteadyClient.Frame]) {
        #expect(frames.first?.isKeyframe == true)
        for (before, after) in zip(frames, frames.dropFirst()) {
            #expect(after.sequenceNumber.distance(from: before.sequenceNumber) == 1)
            #expect(after.timestamp.isNewer(than: before.timestamp))
            if after.source != before.source { #expect(after.isKeyframe) }
        }
    }

    @Test func `a publisher that begins anew is seen again at a keyframe, also by those who join later`() async throws {
        try await withStream(first: 30_000) { server, grant, stream, publisher, viewer in
            let asked = publisher.requests
            publisher.beginAnew(0x2222, step: -20_000)
            #expect(viewer.receives(20, of: 1))
            #expect(publisher.requests > asked)
            publisher.beginAnew(0x3333, step: 30_000)
            #expect(viewer.receives(20, of: 2))
            check(viewer.received)
            let later = try SteadyClient(server, grant.accessToken)
            defer { later.close() }
            try later.watch(stream)
            #expect(later.receives(20, of: 2))
            check(later.received)
        }
    }

    @Test func `a publisher whose packets SRTP refuses is told so, and asked for a keyframe`() async throws {
        let log = LogLines()
        try await withStream(first: 40_000, log: log) { _, _, stream, publisher, _ in
            let asked = publisher.requests
            publisher.loseCount()
            let refusal = try publisher.line.message { if case .error = $0.message { true } else { false } }
            guard case .error(let problem) = refusal.message else { return }
            #expect(problem.error.code == .streamRefused)
            #expect(problem.message.contains("stream \(stream) "))
            // The server requests at most one keyframe a second.
            #expect(publisher.wait { $0.keyframeRequests > asked })
        }
        // The server writes its log until it has stopped.
        let line = log.all.first { $0.hasPrefix("warning media refused ") }
        #expect(line?.contains("The server refuses stream") == true)
    }
}
