package import RoomProtocol

/// Events of a room, in order, as reported by `RoomConnection` on its loop.
package enum RoomEvent: Sendable {
    /// 33: the server accepted the join. 66: the descriptions of the down session are exchanged. 100: it is secured.
    case connecting(percent: Int)
    /// The room was joined. Includes the other participants and their streams.
    case connected(participant: String, others: [ParticipantInfo])
    case participantEntered(ParticipantInfo)
    /// A participant left, and its streams ended.
    case participantLeft(ParticipantInfo)
    case streamPublished(participant: String, StreamInfo)
    /// A participant ended one of its streams, and stays.
    case streamUnpublished(participant: String, StreamInfo)
    /// The state or attributes of another participant's stream changed. Includes the new ones, and those that changed.
    case streamChanged(participant: String, StreamInfo, StreamChange)
    /// Another participant sent a text of the application.
    case userMessage(UserMessage)
    /// The server does not grant the subscription of a video again, to a client that joined again.
    case subscriptionEnded(participant: String, stream: Int, RoomError)
    /// Why a subscribed video arrives worse than it could be has changed.
    case qualityChanged(participant: String, stream: Int, RoomStatistics.Received.Limitation?)
    /// The server assigned the audio stream to a receiver, so it is heard.
    case audioHeard(participant: String, stream: Int)
    case audioUnheard(participant: String, stream: Int)
    /// The loudspeaker that plays the audio of the room was lost, returned and the like.
    case loudspeaker(LoudspeakerEvent)
    /// The server is lost, for the reason in the error, and the connection tries to return. Calls wait meanwhile.
    case reconnecting(attempt: Int, RoomError)
    /// The server accepted another `join`, so this client has another id. Others may see its streams before `reconnected`.
    case joinedAgain(participant: String)
    /// The connection is back. After it joined again, earlier events report the participants and streams that are new or gone.
    case reconnected(Return)
    /// No media reaches the server, or arrives from it. The connection looks for another way.
    case mediaInterrupted(MediaInterruption)
    /// Media flows again, after this time, and goes this way. Also after an interruption that was too short to be reported.
    case mediaRestored(seconds: Double, way: RoomStatistics.Path? = nil)
    /// Streams of this client have other ids, because it joined again as another participant: the new one of each former one.
    /// One that is missing has ended.
    case republished(participant: String, [Int: Int])
    /// At each `ConnectionOptions.statisticsInterval` from `connected` on.
    case statistics(RoomStatistics)
    /// An error that does not end the room.
    case problem(RoomError)
    /// The last event. The error is nil if the client itself left. Otherwise it has the cause, also if the server ended
    /// the room or removed the client.
    case ended(Closing.Reason, RoomError?)
}

/// An event of the loudspeaker of a room. Without it, audio is dropped in real time.
package enum LoudspeakerEvent: Sendable {
    /// It is not there, or cannot be opened. It is opened as soon as it can be.
    case waiting(RoomError)
    /// It was lost. It is opened again as soon as it can be.
    case lost(RoomError)
    /// It plays again.
    case returned
}

/// A stream that this client publishes, with its id from the server.
package struct PublishedStream: Sendable, Equatable {
    package var id: Int
    package var isVideo: Bool

    package init(id: Int, isVideo: Bool) {
        self.id = id
        self.isVideo = isVideo
    }
}
