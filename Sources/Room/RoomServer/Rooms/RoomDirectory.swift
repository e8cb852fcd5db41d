internal import PeerIO
internal import PeerLoop
internal import RTP
internal import RoomProtocol
internal import ServerCore

/// The way of signalling to the loop of its room: one hop, from NIO's thread. A connection is bound to the host of the
/// room that it joins. Tokens are checked here, off the loops. Callable on any thread.
final class RoomDirectory: SignallingDelegate {
    private let hosts: [RoomHost]
    let seats: Seats
    private let tokens: AccessTokens

    /// - Parameter hosts: one for each loop of the seats.
    init(hosts: [RoomHost], seats: Seats, tokens: AccessTokens) {
        self.hosts = hosts
        self.seats = seats
        self.tokens = tokens
    }

    func received(_ request: ClientRequest, from connection: SignallingConnection) {
        guard case .join(let join) = request.message else {
            // Without a room, any host refuses the message.
            return (connection.host ?? hosts[0]).received(request, from: connection)
        }
        do throws(RoomError) {
            guard connection.host == nil else {
                throw RoomError(.outOfOrder, "This connection has already joined a room. Open another connection.")
            }
            let seat = try admit(join)
            connection.host = hosts[seat.loop]
            hosts[seat.loop].received(request, from: connection, seat: (seat, of: seats))
        } catch {
            connection.send(.error(Problem(error)), answering: request.id)
            connection.endHandling(hasResponse: true)
        }
    }

    /// Throws if the client may not join, or if the server is full.
    private func admit(_ join: Join) throws(RoomError) -> Seat {
        let room = try RoomName(join.room)
        switch try tokens.scope(of: join.token, now: EventLoop.now) {
        case .everyRoom: return try seats.reserve(in: room)
        case .oneRoom(let allowed):
            guard allowed == room else {
                throw RoomError(.forbidden, "The access token is for the room '\(allowed)', not for '\(room)'.")
            }
            return try seats.reserve(in: room, pageToken: join.token)
        }
    }

    func disconnected(_ connection: SignallingConnection) { connection.host?.disconnected(connection) }

    func findLastMedia(
        from connection: SignallingConnection, then: @escaping @Sendable (MonotonicTime) -> Void
    ) {
        guard let host = connection.host else { return then(.zero) }
        host.findLastMedia(from: connection, then: then)
    }

    func revoked(_ token: String) { for host in hosts { host.revoked(token) } }
}
