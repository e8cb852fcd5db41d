import PeerLoop

@testable import RoomProtocol
@testable import ServerCore

extension SessionSettings {
    /// Of rooms in which nobody opens a session.
    static func withoutSessions(on loop: Loop) -> SessionSettings {
        SessionSettings(loop: loop) { _, _ throws(RoomError) in
            throw RoomError(.serverFull, "This test opens no session.")
        }
    }
}

/// A part of a room to which another part has reported a participant with one video, stream 7.
func partOfRoom(informedBy other: PartID, on loop: Loop) throws -> Room {
    let room = Room(
        try RoomName("kitchen"), part: PartID(loop: 0, number: 1),
        links: LoopLinks(place: 0, others: { _ in [] }, send: { _, _ in true }), settings: .withoutSessions(on: loop))
    let info = ParticipantInfo(id: "p-1", streams: [StreamInfo(id: 7, media: .video, codec: "VP8", extraValue: "")])
    room.receive(PipeBatch(room: room.name, from: other, to: nil, [.introduction([info])]))
    return room
}
