package import RTP
package import RoomProtocol

/// What happens in a room, in order, as `RoomEngine` tells it on its loop.
package enum RoomEvent: Sendable {
    /// 33: the server let us in. 66: the descriptions of the down session are exchanged. 100: it is secured.
    case connecting(percent: Int)
    /// In the room; the others and their streams.
    case connected(participant: String, others: [ParticipantInfo])
    case participantEntered(ParticipantInfo)
    /// Gone, with the streams it had.
    case participantLeft(ParticipantInfo)
    case streamPublished(participant: String, StreamInfo)
    /// The server gave the stream a slot: it is heard from now on.
    case audioHeard(participant: String, stream: Int)
    case audioUnheard(participant: String, stream: Int)
    /// Something went wrong and the room goes on.
    case problem(RoomError)
    /// The last event. The error is nil when we left ourselves; else it gives the cause in words, also where the server
    /// ended the room or removed us.
    case ended(Closing.Reason, RoomError?)
}

/// What joining a room needs apart from its name.
package struct RoomOptions: Sendable {
    package var receivers: ReceiverPool
    /// What becomes of each sound that the server gives a slot, by participant and stream; nil ignores it. Called on
    /// the loop.
    package var sound: @Sendable (_ participant: String, _ stream: Int) -> StreamDestination?
    /// From `connect` to the secured down session.
    package var connectDeadline = TimeInterval.milliseconds(9500)
    /// Losses made at the socket boundary, of the up and of the down session, for tests of bad networks.
    package var impairment: LinkImpairment?

    /// - Parameter playsSound: whether remote sound goes to the speaker; it is decoded and measured either way.
    package init(receivers: ReceiverPool = ReceiverPool(), playsSound: Bool = true, impairment: LinkImpairment? = nil) {
        self.receivers = receivers
        sound = { _, _ in .sound(isAudible: playsSound) }
        self.impairment = impairment
    }
}

/// Seeded loss of this client's datagrams (never of STUN), 0...1 each way.
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

/// A stream that we published, with the id that the server gave it.
package struct PublishedStream: Sendable, Equatable {
    package var id: Int
    package var isVideo: Bool
}
