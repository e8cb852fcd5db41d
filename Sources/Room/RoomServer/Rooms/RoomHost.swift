internal import Logging
internal import NIOWebSocket
internal import PeerIO
internal import RTP
internal import RoomProtocol

/// The rooms of one event loop. An actor pinned to the loop: messages arrive from NIO's threads through the loop's
/// queue, in order. Everything after that, down to the sockets, happens on the loop without a hop.
actor RoomHost {
    private struct Membership {
        var participant: Participant
        var room: Room
        var seat: Seat
    }

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private let log: LogQueue
    private let seats: Seats
    private let numbers: StreamNumbers
    private let makeSettings: @Sendable (EventLoop) -> SessionSettings
    private lazy var settings = makeSettings(loop)
    private var rooms: [RoomName: Room] = [:]
    private var members: [SignallingConnection: Membership] = [:]
    private var isClosed = false

    init(
        loop: EventLoop, log: LogQueue, seats: Seats, numbers: StreamNumbers,
        makeSettings: @escaping @Sendable (EventLoop) -> SessionSettings
    ) {
        self.loop = loop
        self.log = log
        self.seats = seats
        self.numbers = numbers
        self.makeSettings = makeSettings
    }

    // MARK: - From NIO's threads

    /// - Parameter seat: of a `join` alone.
    nonisolated func received(
        _ request: ClientRequest, from connection: SignallingConnection, seat: Seat? = nil
    ) {
        let isTaken = loop.execute {
            self.assumeIsolated { $0.handle(request, from: connection, seat) }
            connection.endHandling(hasResponse: request.hasResponse)
        }
        guard !isTaken else { return }
        // A message that cannot be queued must not be lost silently, so the connection ends.
        if let seat { seats.free(seat) }
        connection.end(.unexpectedServerError)
    }

    nonisolated func disconnected(_ connection: SignallingConnection) {
        // Never lost, however long the loop's queue is: an actor's job is always accepted, and runs after the queued
        // ones.
        if !loop.execute({ self.assumeIsolated { $0.remove(connection) } }) { Task { await self.remove(connection) } }
    }

    nonisolated func findLastMedia(
        from connection: SignallingConnection, then: @escaping @Sendable (MonotonicTime) -> Void
    ) {
        loop.execute { self.assumeIsolated { then($0.members[connection]?.participant.lastReceived ?? .zero) } }
    }

    nonisolated func revoked(_ token: String) {
        if !loop.execute({ self.assumeIsolated { $0.end(token) } }) { Task { await self.end(token) } }
    }

    var busiestTurn: TurnCounts { loop.busiest }

    /// See `SessionSettings.portCounts`.
    var portCounts: (sessions: Int, pairs: Int)? { settings.portCounts }

    var statistics: ServerStatistics.Loop {
        ServerStatistics.Loop(
            rooms: rooms.count, participants: members.count,
            streams: members.values.reduce(0) { $0 + $1.participant.streams.count }, loop: loop,
            port: settings.portStatistics)
    }

    /// Ends every participant with a reason, because the server stops. Later ones are refused.
    func close() {
        isClosed = true
        let closing = Closing(
            reason: .destroyed,
            error: RoomError(.roomReleased, "The server is shutting down. Join the room again when it runs."))
        for connection in Array(members.keys) {
            remove(connection)
            connection.close(closing)
        }
    }

    /// Closes the port of all media, in a later turn than `close()`.
    func closePort() { settings.close() }

    // MARK: - On the loop

    private func handle(_ request: ClientRequest, from connection: SignallingConnection, _ seat: Seat?) {
        do throws(RoomError) {
            if let seat, case .join(let join) = request.message {
                try self.join(join, seat, request.id, connection)
                return
            }
            guard let member = members[connection] else {
                throw RoomError(.outOfOrder, "The connection has not joined a room. Send 'join' first.")
            }
            try handle(request, from: connection, member)
        } catch {
            if let seat {
                seats.free(seat)
                // The client may join another room.
                connection.host = nil
            }
            connection.send(.error(Problem(error)), answering: request.id)
        }
    }

    private func handle(
        _ request: ClientRequest, from connection: SignallingConnection, _ member: Membership
    ) throws(RoomError) {
        let participant = member.participant
        switch request.message {
        case .join: break
        case .publish(let publish):
            guard let offer = try request.description?.get() else { return }
            try member.room.admit(publish)
            let (answer, streams) = try participant.publish(publish, offer: offer, numbered: numbers.next)
            connection.send(.published(answer), answering: request.id)
            member.room.published(streams, by: participant)
            log.write("published", metadata(member, ["streams": "\(streams.map(\.info.id))"]))
        case .answer(let description):
            guard let answer = try request.description?.get() else { return }
            try participant.answer(description, answer)
        case .candidate(let candidate): participant.addCandidate(candidate)
        case .subscribe(let reference):
            let stream = try member.room.video(reference.stream, for: participant)
            let subscribed = try participant.subscribe(stream)
            connection.send(.subscribed(subscribed), answering: request.id)
        case .unsubscribe(let reference):
            try unsubscribe(reference, member)
            connection.send(.unsubscribed(reference), answering: request.id)
        case .ping: connection.send(.pong, answering: request.id)
        case .leave:
            connection.send(.left, answering: request.id)
            remove(connection)
            connection.end(.normalClosure)
        }
    }

    /// Accepts a stream that ended meanwhile, because it is unsubscribed already.
    private func unsubscribe(_ reference: StreamReference, _ member: Membership) throws(RoomError) {
        let hasGone = numbers.hasIssued(reference.stream) && !member.room.hasStream(reference.stream)
        guard !hasGone else { return }
        let stream = try member.room.video(reference.stream, for: member.participant)
        guard member.participant.unsubscribe(stream) else {
            throw RoomError(.notSubscribed, "Stream \(reference.stream) is not subscribed.")
        }
    }

    private func join(
        _ join: Join, _ seat: Seat, _ id: Int?, _ connection: SignallingConnection
    ) throws(RoomError) {
        guard !isClosed, !connection.isEnding else {
            throw RoomError(.roomReleased, "The server is closing this connection.")
        }
        let name = seat.room
        let participant = try Participant(
            connection: connection, token: join.token, pool: pool(join.receivers), settings: settings)
        do throws(RoomError) {
            try participant.start()
        } catch {
            participant.close()
            throw error
        }
        participant.onRefused = { [log, id = participant.id] error in
            let metadata: Logger.Metadata = ["room": "\(name.text)", "participant": "\(id)", "error": "\(error)"]
            log.write("media refused", metadata, level: .warning)
        }
        participant.onUnauthenticated = { [log, id = participant.id] packets in
            log.write(
                "packets not authenticated",
                ["room": "\(name.text)", "participant": "\(id)", "packets": "\(packets)"], level: .warning)
        }
        let room = rooms[name] ?? Room(name)
        let (others, more) = room.introduction()
        connection.send(
            .joined(Joined(version: Signalling.version, participant: participant.id, participants: others)),
            answering: id)
        for info in more { connection.send(.participantEntered(ParticipantEntered(participant: info))) }
        participant.offer()
        participant.onEnded = { [weak self] error in self?.assumeIsolated { $0.sessionEnded(error, of: connection) } }
        rooms[name] = room
        members[connection] = Membership(participant: participant, room: room, seat: seat)
        connection.didJoin()
        room.enter(participant)
        log.write("joined", metadata(members[connection], [:]))
    }

    private func remove(_ connection: SignallingConnection) {
        guard let member = members.removeValue(forKey: connection) else { return }
        member.room.leave(member.participant)
        if member.room.isEmpty { rooms[member.room.name] = nil }
        seats.free(member.seat)
        log.write("left", metadata(member, [:]))
    }

    /// Sends the client the cause, then closes its connection. Without media, it would remain as a name only.
    private func sessionEnded(_ error: RoomError, of connection: SignallingConnection) {
        guard members[connection] != nil else { return }
        remove(connection)
        connection.close(Closing(reason: .disconnected, error: error))
    }

    private func end(_ token: String) {
        let closing = Closing(
            reason: .disconnected, error: RoomError(.tokenInvalid, "The access token was signed out."))
        for (connection, member) in members where member.participant.token == token {
            remove(connection)
            connection.close(closing)
        }
    }

    private func pool(_ asked: ReceiverPool?) -> ReceiverPool {
        let asked = asked ?? ReceiverPool()
        let maximum = min(max(asked.maximum, 0), ReceiverPool().maximum)
        return ReceiverPool(
            initial: min(max(asked.initial, 0), maximum), maximum: maximum, growth: min(max(asked.growth, 1), maximum))
    }

    private func metadata(_ member: Membership?, _ more: Logger.Metadata) -> Logger.Metadata {
        var metadata = more
        metadata["room"] = "\(member?.room.name.text ?? "")"
        metadata["participant"] = "\(member?.participant.id ?? "")"
        return metadata
    }
}
