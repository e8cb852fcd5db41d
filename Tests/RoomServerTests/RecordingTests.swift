import Foundation
import RoomFixtures
import RoomProtocol
import ServerCore
import Synchronization
import TestSupport
import Testing

@testable import RoomServer

/// A recorder without files.
private final class Reels: StreamRecorder {
    private final class Reel: RecordingSink {
        let onEnd: () -> Void

        init(onEnd: @escaping () -> Void) { self.onEnd = onEnd }

        let isHalfEmpty = true

        func write(_ packets: RecordedPackets) -> Bool { true }
        func end(_ end: RecordingEnd) { onEnd() }
    }

    private struct State {
        var begun: [RecordedStream] = []
        var ended: [Int] = []
        var failures: [Int: @Sendable (RoomError) -> Void] = [:]
    }

    private let state = Mutex(State())

    var begun: [RecordedStream] { state.withLock { $0.begun } }
    var ended: [Int] { state.withLock { $0.ended } }

    func begin(
        _ stream: RecordedStream, failed: @escaping @Sendable (RoomError) -> Void
    ) throws(RoomError) -> any RecordingSink {
        state.withLock { state in
            state.begun.append(stream)
            state.failures[stream.stream] = failed
        }
        return Reel { [self] in state.withLock { $0.ended.append(stream.stream) } }
    }

    func fail(_ stream: Int) {
        state.withLock { $0.failures[stream] }?(RoomError(.recordingFailed, "The disk is full."))
    }
}

/// The answers to clients that ask for recordings.
@Suite(.serialized) struct RecordingTests {
    private func publish(_ client: RawClient, recorded: Bool = true) throws -> Published {
        var publish = publication([.vp8, .opus])
        for index in publish.streams.indices { publish.streams[index].record = recorded ? true : nil }
        client.sendMessage(.publish(publish), id: 2)
        guard case .published(let published) = try client.message(where: { $0.id == 2 }).message else {
            throw RoomError(.publishRefused, "The server did not publish.")
        }
        return published
    }

    /// The next error without a request.
    private func error(of client: RawClient) throws -> String {
        let message = try client.message { if case .error = $0.message { $0.id == nil } else { false } }
        guard case .error(let problem) = message.message else { return "" }
        return problem.code
    }

    @Test func `a server without a folder publishes, and says that it does not record`() async throws {
        try await withServer { server, grant in
            let (client, _) = try join(server, grant.accessToken)
            #expect(try publish(client).streams.map(\.recording) == [false, false])
            #expect(try error(of: client) == "recording.unavailable")
            // Once for both streams.
            client.sendMessage(.ping, id: 3)
            var errors = 0
            _ = try client.message {
                if case .error = $0.message { errors += 1 }
                return $0.message == .pong
            }
            #expect(errors == 0)
        }
    }

    @Test func `streams are recorded that ask for it, until they end`() async throws {
        let reels = Reels()
        try await withServer(configured: { $0.recorder = reels }) { server, grant in
            let (client, me) = try join(server, grant.accessToken)
            let published = try publish(client)
            #expect(published.streams.map(\.recording) == [true, true])
            let room = try RoomName("kitchen")
            #expect(
                reels.begun
                    == zip(published.streams, [Codec.vp8, .opus]).map {
                        RecordedStream(room: room, participant: me.participant, stream: $0.stream, codec: $1)
                    })
            let (other, _) = try join(server, grant.accessToken)
            #expect(try publish(other, recorded: false).streams.map(\.recording) == [nil, nil])
            #expect(reels.begun.count == 2)
            let streams = published.streams.map(\.stream)
            #expect(try client.refusal(of: .unpublish(StreamReferences(streams: [streams[0]])), id: 3) == nil)
            #expect(reels.ended == [streams[0]])
            client.sendMessage(.leave, id: 4)
            _ = try client.message { $0.id == 4 }
            #expect(reels.ended == streams)
        }
    }

    @Test func `a server that stops ends its recordings`() async throws {
        let reels = Reels()
        try await withServer(configured: { $0.recorder = reels }) { server, grant in
            let (client, _) = try join(server, grant.accessToken)
            _ = try publish(client)
        }
        #expect(reels.ended.count == 2)
    }

    @Test func `a recording that fails is told to its publisher, whose stream goes on`() async throws {
        let reels = Reels()
        try await withServer(configured: { $0.recorder = reels }) { server, grant in
            let (client, _) = try join(server, grant.accessToken)
            let stream = try publish(client).streams[0].stream
            reels.fail(stream)
            #expect(try error(of: client) == "recording.failed")
            let change = SetStream(stream: stream, change: StreamChange(isActive: false))
            #expect(try client.refusal(of: .setStream(change), id: 3) == nil)
            #expect(reels.ended == [stream])
        }
    }

    @Test func `visitors of an open server's page cannot have anything recorded`() async throws {
        let reels = Reels()
        try await withServer(open: true, configured: { $0.recorder = reels }) { server, _ in
            let (_, body) = try RawClient(port: server.port).request(
                "GET /v1/page-token?room=kitchen HTTP/1.1\r\nhost: 127.0.0.1:\(server.port)\r\n")
            let grant = try JSONDecoder().decode(AccessGrant.self, from: Data(body.utf8))
            let (client, _) = try join(server, grant.accessToken)
            #expect(try publish(client).streams.map(\.recording) == [false, false])
            #expect(try error(of: client) == "recording.unavailable")
            #expect(reels.begun.isEmpty)
        }
    }
}
