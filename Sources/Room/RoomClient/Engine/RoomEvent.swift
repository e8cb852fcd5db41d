package import RTP
package import RoomProtocol

/// Events of a room, in order, as reported by `RoomEngine` on its loop.
package enum RoomEvent: Sendable {
    /// 33: the server accepted the join. 66: the descriptions of the down session are exchanged. 100: it is secured.
    case connecting(percent: Int)
    /// The room was joined. Includes the other participants and their streams.
    case connected(participant: String, others: [ParticipantInfo])
    case participantEntered(ParticipantInfo)
    /// A participant left, and its streams ended.
    case participantLeft(ParticipantInfo)
    case streamPublished(participant: String, StreamInfo)
    /// The server assigned the audio stream to a receiver, so it is heard.
    case audioHeard(participant: String, stream: Int)
    case audioUnheard(participant: String, stream: Int)
    /// An error that does not end the room.
    case problem(RoomError)
    /// The last event. The error is nil if the client itself left. Otherwise it has the cause, also if the server ended
    /// the room or removed the client.
    case ended(Closing.Reason, RoomError?)
}

/// Options of a room connection.
package struct RoomOptions: Sendable {
    package var receivers: ReceiverPool
    /// Returns the destination of an audio stream that the server assigned, by participant and stream. Nil ignores it.
    /// Called on the loop.
    package var sound: @Sendable (_ participant: String, _ stream: Int) -> StreamDestination?
    /// From `connect` to the secured down session.
    package var connectDeadline = TimeInterval.milliseconds(9500)
    /// Loss at the sockets of the up and the down session, for tests of bad networks.
    package var impairment: LinkImpairment?

    /// - Parameter playsSound: whether to play remote audio. It is decoded and measured either way.
    package init(receivers: ReceiverPool = ReceiverPool(), playsSound: Bool = true, impairment: LinkImpairment? = nil) {
        self.receivers = receivers
        sound = { _, _ in .sound(isAudible: playsSound) }
        self.impairment = impairment
    }
}

/// Seeded loss of this client's datagrams except STUN, 0...1 in each direction.
package struct LinkImpairment: Sendable {
    package var seed: UInt64
    package var outgoingLoss: Double
    package var incomingLoss: Double

    package init(seed: UInt64, outgoingLoss: Double, incomingLoss: Double) {
        self.seed = seed
        self.outgoingLoss = outgoingLoss
        self.incomingLoss = incomingLoss
    }
}

/// A stream that this client publishes, with its id from the server.
package struct PublishedStream: Sendable, Equatable {
    package var id: Int
    package var isVideo: Bool
}
