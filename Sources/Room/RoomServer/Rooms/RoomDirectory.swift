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
    private let limits: AccessLimits
    private let removals: Removals

    /// - Parameter hosts: one for each loop of the seats.
    init(
        hosts: [RoomHost], seats: Seats, tokens: AccessTokens, limits: AccessLimits = AccessLimits(),
        removals: Removals = Removals()
    ) {
        self.removals = removals
        self.limits = limits
        self.hosts = hosts
        self.seats = seats
        self.tokens = tokens
    }

    func received(_ request: ClientRequest, from connection: SignallingConnection) {
        do throws(RoomError) {
            switch request.message {
            case .join(let join) where connection.host == nil:
                let seat = try admit(join)
                connection.host = hosts[seat.loop]
                hosts[seat.loop].received(request, from: connection, seat: (seat, of: seats))
            case .resume(let resume) where connection.host == nil:
                let removal = { @Sendable [removals] in
                    removals.closing(of: resume.participant, now: EventLoop.now)
                }
                let found = Result { () throws(RoomError) in try self.host(for: resume, of: connection.client) }
                // Asked after the seat, which is freed after the removal is noted.
                if let closing = removal() {
                    connection.close(closing)
                    return connection.endHandling(hasResponse: request.hasResponse)
                }
                let host = try found.get()
                connection.host = host
                var admitted = request
                admitted.mayResume = true
                host.received(admitted, from: connection, removal: removal)
            // Without a room, any host refuses the message. So does the host of one, for messages that come too early.
            default: (connection.host ?? hosts[0]).received(request, from: connection)
            }
        } catch {
            connection.send(.error(Problem(error)), answering: request.id)
            connection.endHandling(hasResponse: true)
        }
    }

    /// The host of a participant. Throws if the client may not be in its room, or has sent too many wrong secrets.
    private func host(for resume: Resume, of client: ClientAddress) throws(RoomError) -> RoomHost {
        let now = EventLoop.now
        try limits.admitGuess(at: resume.participant, from: client, now: now)
        let scope = try tokens.scope(of: resume.token, now: now)
        guard let seat = seats.seat(of: resume.participant) else { throw Rooms.notResumable }
        if case .oneRoom(let allowed) = scope, allowed != seat.room { throw Rooms.notResumable }
        return hosts[seat.loop]
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

    func disconnected(_ connection: SignallingConnection, lost: MonotonicTime?) {
        connection.host?.disconnected(connection, lost: lost)
    }

    func findLastMedia(
        from connection: SignallingConnection, then: @escaping @Sendable (MonotonicTime) -> Void
    ) {
        guard let host = connection.host else { return then(.zero) }
        host.findLastMedia(from: connection, then: then)
    }

    func revoked(_ token: String) { for host in hosts { host.revoked(token) } }
}
