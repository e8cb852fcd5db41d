import PeerIO
import RTP
import RoomFixtures
import RoomProtocol
import Testing
import TestSupport

@testable import RoomServer

/// Rooms that are on two loops of a server.
@Suite(.serialized) struct SpreadRoomTests {
    @Test func `media of a room flows between its two loops`() async throws {
        try await withMedia(configured: { ($0.threads, $0.roomLoopSize) = (2, 2) }) { server, grant, loop in
            let publisher = try MediaClient(server, grant, loop: loop)
            let (up, streams) = try await publisher.publish()
            var clients = [publisher]
            var downs: [LoopBound<MediaSession>] = []
            for _ in 0..<3 {
                let viewer = try MediaClient(server, grant, loop: loop)
                clients.append(viewer)
                downs.append(try await viewer.watch())
                // The first participant of a loop gets to know those of the other one a moment later.
                while try viewer.raw.refusal(of: .subscribe(ViewOfStream(stream: streams[0])), id: 5) == "1328" {}
            }
            #expect(server.directory.seats.taken == [2, 2])
            let isFlowing = await eventually {
                await onLoop(loop) { [downs] in
                    if up.value.isSecured { up.value.send(next: 1, keyframe: up.value.keyframeRequests > 0) }
                    return downs.allSatisfy { $0.value.received.count >= 50 }
                }
            }
            #expect(isFlowing)
            // The publisher leaves, and a viewer of the other loop gets to know it.
            publisher.raw.sendMessage(.leave, id: 9)
            _ = try publisher.raw.message { $0.id == 9 }
            _ = try clients[3].raw.message {
                $0.message == .participantLeft(ParticipantReference(participant: publisher.participant))
            }
            for client in clients { await client.close() }
        }
    }

    @Test func `participants of one room on both loops hear each other`() async throws {
        try await withServer(configured: { ($0.threads, $0.roomLoopSize) = (2, 1) }) { server, grant in
            let (ada, _) = try join(server, grant.accessToken)
            let first = try ada.publish([.opus])
            let (grace, me) = try join(server, grant.accessToken)
            #expect(server.directory.seats.taken == [1, 1])
            try expect(first[0], heardBy: grace)
            let second = try grace.publish([.opus])
            try expect(second[0], heardBy: ada)
            grace.sendMessage(.unpublish(StreamReferences(streams: second)), id: 5)
            _ = try ada.message {
                $0.message == .streamUnpublished(StreamUnpublished(participant: me.participant, stream: second[0]))
            }
        }
    }

    private func expect(_ stream: Int, heardBy client: RawClient) throws {
        _ = try client.message {
            guard case .receiverAssigned(let body) = $0.message, body.stream == stream else { return false }
            return body.mid == "0"
        }
    }

    @Test func `participants of both loops know all others, whoever leaves`() async throws {
        try await withServer(configured: { ($0.threads, $0.roomLoopSize) = (2, 5) }) { server, grant in
            var clients: [(client: RawClient, joined: Joined)] = []
            for _ in 0..<12 { clients.append(try join(server, grant.accessToken)) }
            #expect(server.directory.seats.taken == [6, 6])
            for client in clients.prefix(5) {
                client.client.sendMessage(.leave, id: 2)
                _ = try client.client.message { $0.id == 2 }
            }
            // One of each loop: the sixth stays on the first, and the others are on the second.
            let (late, joined) = try join(server, grant.accessToken)
            var known = Set(joined.participants.map(\.id))
            while known.count < 7 {
                guard case .participantEntered(let body) = try late.message(where: \.isEntered).message else { break }
                known.insert(body.participant.id)
            }
            #expect(known == Set(clients.dropFirst(5).map(\.joined.participant)))
        }
    }
}

extension Envelope where Message == ServerMessage {
    fileprivate var isEntered: Bool { if case .participantEntered = message { true } else { false } }
}
