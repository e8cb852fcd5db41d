internal import RoomProtocol

/// A conference: who is in it, and what each hears and sees of the others. On the loop only.
final class Room {
    let name: RoomName
    private var participants: [Participant] = []

    init(_ name: RoomName) { self.name = name }

    var isEmpty: Bool { participants.isEmpty }

    func others(_ participant: Participant) -> [Participant] { participants.filter { $0 !== participant } }

    /// Tells the others, then lets the newcomer hear those who were heard before it.
    func enter(_ participant: Participant) {
        let entered = ServerMessage.participantEntered(ParticipantEntered(participant: participant.info))
        for other in participants { other.connection.send(entered) }
        participants.append(participant)
        fillSlots(of: participant)
    }

    func leave(_ participant: Participant) {
        participants.removeAll { $0 === participant }
        for other in participants {
            var freedSlot = false
            for stream in participant.streams where other.streamEnded(stream) { freedSlot = true }
            if freedSlot { fillSlots(of: other) }
            other.connection.send(.participantLeft(ParticipantReference(participant: participant.id)))
        }
        participant.close()
    }

    func published(_ streams: [PublishedStream], by participant: Participant) {
        for other in others(participant) {
            for stream in streams {
                other.connection.send(
                    .streamPublished(StreamPublished(participant: participant.id, stream: stream.info)))
            }
            fillSlots(of: other)
        }
    }

    /// The video stream with this id that somebody else in the room publishes.
    func video(_ id: Int, for participant: Participant) throws(RoomError) -> PublishedStream {
        let streams = others(participant).flatMap(\.streams)
        guard let stream = streams.first(where: { $0.info.id == id }) else {
            throw RoomError(.noSuchStream, "No other participant of the room publishes a stream \(id).")
        }
        guard stream.codec.media == .video else {
            throw RoomError(
                .noSuchStream, "The stream \(id) is audio: the server fills the audio slots, only video is subscribed.")
        }
        return stream
    }

    /// The four audio slots are kept by the first who ask, in the order in which they published.
    private func fillSlots(of listener: Participant) {
        let audio = others(listener).flatMap(\.streams).filter { $0.codec.media == .audio }
        for stream in audio.sorted(by: { $0.info.id < $1.info.id }) where !listener.isHearing(stream) {
            listener.hear(stream)
        }
    }
}
