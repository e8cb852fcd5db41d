package import RoomProtocol

/// A client's signalling connection, as its rooms see it. Each message is sent whole and in order.
package protocol ClientConnection: AnyObject {
    var place: ClientPlace { get }
    /// Whether the connection is closing, so that the client can no longer join.
    var isEnding: Bool { get }
    /// Queues a message. `id` is the request that it answers.
    func send(_ message: ServerMessage, answering id: Int?)
    /// The client has joined a room.
    func didJoin()
    /// The client could not join, and may join another room.
    func didNotJoin()
    /// The client sent a wrong secret for a participant, which exists.
    func didGuess(at participant: String)
    /// Sends the reason, then closes.
    func close(_ closing: Closing)
    /// Closes after the queued messages.
    func end()
}

extension ClientConnection {
    func send(_ message: ServerMessage) { send(message, answering: nil) }
}

/// Where a client runs, as far as its signalling connection shows.
package enum ClientPlace: Sendable {
    /// On this machine.
    case here
    /// On this machine under a name of its own, such as Debian's 127.0.1.1, or behind a proxy on this machine.
    case unknown
    case elsewhere
}

/// The permission to join a room, which the server's limits count until it ends.
package struct Admission {
    package let room: RoomName
    /// Whether the client may have its streams recorded.
    package let mayRecord: Bool
    /// Called once with the id of the participant, if it could join.
    package let begin: (String) -> Void
    /// Called once: the participant left, or could not join.
    package let end: () -> Void

    package init(
        room: RoomName, mayRecord: Bool = true, begin: @escaping (String) -> Void = { _ in },
        end: @escaping () -> Void
    ) {
        self.room = room
        self.mayRecord = mayRecord
        self.begin = begin
        self.end = end
    }
}
