import RoomProtocol
import Testing

@testable import ClientCore

/// A client that the server no longer knows, and that joins again.
@Suite struct RejoinTests {
    private func participant(_ id: String, stream: Int) -> ParticipantInfo {
        ParticipantInfo(
            id: id, streams: [StreamInfo(id: stream, media: .video, codec: "VP8", extraValue: "", state: .live)])
    }

    @Test func `participants of a large room that are announced after 'joined' have not left`() async throws {
        try await onLoop { loop in
            let client = try Client(loop)
            client.enter()
            for (index, id) in ["p-2", "p-3", "p-4"].enumerated() {
                client.connection.handle(
                    .participantEntered(ParticipantEntered(participant: participant(id, stream: 7 + index))))
            }
            let before = client.events.count
            client.connection.isRejoining = true
            client.connection.rejoined(
                Joined(version: 1, participant: "p-9", participants: [participant("p-2", stream: 7)]))
            client.connection.handle(
                .participantEntered(ParticipantEntered(participant: participant("p-3", stream: 8))))
            #expect(client.left.isEmpty && client.unpublished.isEmpty)
            // The server offers when it has announced all.
            client.connection.handle(.iceServers(ICEServersRenewed(iceServers: [])))
            #expect(client.left == ["p-4"] && client.unpublished.isEmpty)
            #expect(client.connection.others.map(\.id) == ["p-2", "p-3"])
            #expect(client.events.count == before + 1)
            client.connection.drop()
        }
    }
}
