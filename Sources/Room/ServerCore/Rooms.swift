internal import PeerLoop
package import RTP
internal import RoomProtocol

/// The rooms of one loop, as a state machine that is told the time by its loop. It has no socket, thread or clock.
///
/// Messages of clients arrive as values, in order. Everything after that, down to the packets that leave, happens in the
/// same turn. On the loop only.
package final class Rooms {
    /// A line for the server's log.
    package struct Note {
        package var text: String
        package var room: String
        package var participant: String
        package var details: [String: String] = [:]
        package var isWarning = false
    }

    package struct Counts {
        /// A room of several loops counts on each.
        package var rooms: Int
        package var participants: Int
        package var streams: Int
        /// Packets that other parts of the rooms took too slowly.
        package var notPiped: Int
    }

    fileprivate struct Membership {
        let connection: any ClientConnection
        var participant: Participant
        var room: Room
        var admission: Admission
        /// The order of joining.
        var number: Int
    }

    private let settings: SessionSettings
    private let numbers: StreamNumbers
    private let links: LoopLinks
    private let note: (Note) -> Void
    private var rooms: [RoomName: Room] = [:]
    private var members: [ObjectIdentifier: Membership] = [:]
    private var joins = 0
    private var parts = 0
    private var isClosed = false

    /// - Parameters:
    ///   - numbers: the ids of streams, unique among all loops of a server.
    ///   - links: the ways to the other loops, on which a room can have other parts.
    ///   - note: called for each line of the log; has to return immediately.
    package init(
        settings: SessionSettings, numbers: StreamNumbers, links: LoopLinks = .none, note: @escaping (Note) -> Void
    ) {
        self.settings = settings
        self.numbers = numbers
        self.links = links
        self.note = note
    }

    package var counts: Counts {
        Counts(
            rooms: rooms.count, participants: members.count,
            streams: members.values.reduce(0) { $0 + $1.participant.streams.count },
            notPiped: settings.packetsNotPiped)
    }

    /// The packets that all sessions and streams hold, those of other parts of the rooms included.
    package var memory: PacketMemory {
        let own = members.values.reduce(into: PacketMemory()) { $0 += $1.participant.memory }
        return rooms.values.reduce(into: own) { $0 += $1.pipedMemory }
    }

    /// When a frame of a stream was last left out for the client, because its link had no room. `.zero` if none was.
    package func lastLeftOut(of stream: Int, for connection: any ClientConnection) -> MonotonicTime {
        members[ObjectIdentifier(connection)]?.participant.lastLeftOut(of: stream) ?? .zero
    }

    /// When media of the client last arrived. `.zero` if none did.
    package func lastMedia(from connection: any ClientConnection) -> MonotonicTime {
        members[ObjectIdentifier(connection)]?.participant.lastReceived ?? .zero
    }

    /// Ends every participant with a reason, because the server stops. Later ones are refused.
    package func close() {
        isClosed = true
        let closing = Closing(
            reason: .destroyed,
            error: RoomError(.roomReleased, "The server is shutting down. Join the room again when it runs."))
        for member in inOrder { end(member, closing) }
    }

    private var inOrder: [Membership] { members.values.sorted { $0.number < $1.number } }

    /// Removes the participants that joined with a token.
    package func revoke(_ token: String) {
        let closing = Closing(
            reason: .disconnected, error: RoomError(.tokenInvalid, "The access token was signed out."))
        for member in inOrder where member.participant.token == token { end(member, closing) }
    }

    /// The client's connection closed.
    package func disconnected(_ connection: any ClientConnection) {
        guard let member = members.removeValue(forKey: ObjectIdentifier(connection)) else { return }
        member.room.leave(member.participant)
        if member.room.isEmpty {
            member.room.end()
            rooms[member.room.name] = nil
        }
        member.admission.end()
        note(Note(member, "left"))
    }

    private func end(_ member: Membership, _ closing: Closing) {
        disconnected(member.connection)
        member.connection.close(closing)
    }

    // MARK: - Messages

    /// Handles a batch from another loop.
    package func receive(_ batch: PipeBatch) {
        let room = rooms[batch.room]
        if let room, batch.to == nil || batch.to == room.part { return room.receive(batch) }
        // A part that has ended could not reply to parts that it did not know yet.
        guard let part = batch.to, !batch.isFarewell else { return }
        _ = links.send(PipeBatch(room: batch.room, from: part, to: batch.from, [.ended]), batch.from.loop)
    }

    /// Handles a message, and answers it.
    ///
    /// - Parameter admission: of a `join` alone.
    package func handle(
        _ request: ClientRequest, from connection: any ClientConnection, _ admission: Admission? = nil
    ) {
        do throws(RoomError) {
            if let admission, case .join(let join) = request.message {
                try self.join(join, admission, request.id, connection)
                return
            }
            guard let member = members[ObjectIdentifier(connection)] else {
                throw RoomError(.outOfOrder, "The connection has not joined a room. Send 'join' first.")
            }
            try handle(request, member)
        } catch {
            if let admission {
                admission.end()
                connection.didNotJoin()
            }
            connection.send(.error(Problem(error)), answering: request.id)
        }
    }

    private func handle(_ request: ClientRequest, _ member: Membership) throws(RoomError) {
        let participant = member.participant
        let connection = member.connection
        switch request.message {
        case .join: break
        case .publish(let publish):
            guard let offer = try request.description?.get() else { return }
            try member.room.admit(publish)
            let (answer, streams) = try participant.publish(publish, offer: offer, numbered: numbers.next)
            connection.send(.published(answer), answering: request.id)
            member.room.published(streams, by: participant)
            note(Note(member, "published", ["streams": "\(streams.map(\.info.id))"]))
        case .unpublish(let references):
            let streams = try participant.unpublish(references.streams)
            connection.send(.unpublished(references), answering: request.id)
            member.room.unpublished(streams, by: participant)
            note(Note(member, "unpublished", ["streams": "\(streams.map(\.info.id))"]))
        case .setStreamState(let body):
            try set(body.state, of: participant.stream(body.stream), member)
            connection.send(.streamStateSet(StreamReference(stream: body.stream)), answering: request.id)
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
            // A client that reads the answer has left: its place is free.
            disconnected(connection)
            connection.send(.left, answering: request.id)
            connection.end()
        }
    }

    private func set(_ state: StreamState, of stream: PublishedStream, _ member: Membership) throws(RoomError) {
        try state.validate()
        try stream.statePace.admit(now: settings.loop.now)
        try member.room.change(stream, to: state, by: member.participant)
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
        _ join: Join, _ admission: Admission, _ id: Int?, _ connection: any ClientConnection
    ) throws(RoomError) {
        guard !isClosed, !connection.isEnding else {
            throw RoomError(.roomReleased, "The server is closing this connection.")
        }
        let version = try join.negotiatedVersion()
        let participant = try Participant(
            connection: connection, token: join.token, pool: pool(join.receivers), settings: settings)
        do throws(RoomError) {
            try participant.start()
        } catch {
            participant.close()
            throw error
        }
        let present = rooms[admission.room]
        let room = present ?? makePart(of: admission.room)
        joins += 1
        let member = Membership(
            connection: connection, participant: participant, room: room, admission: admission, number: joins)
        watch(member)
        let (others, more) = room.introduction()
        // Its next message may be there before this returns.
        connection.didJoin()
        connection.send(
            .joined(
                Joined(
                    version: version, participant: participant.id, participants: others,
                    iceServers: settings.iceServers(join.token))),
            answering: id)
        for info in more { connection.send(.participantEntered(ParticipantEntered(participant: info))) }
        participant.offer()
        rooms[admission.room] = room
        members[ObjectIdentifier(connection)] = member
        room.enter(participant)
        if present == nil { room.begin() }
        note(Note(member, "joined"))
    }

    /// Sends all participants the STUN and TURN servers again, before their credentials expire.
    package func renewICEServers() {
        for member in inOrder {
            let servers = settings.iceServers(member.participant.token)
            if !servers.isEmpty { member.connection.send(.iceServers(ICEServersRenewed(iceServers: servers))) }
        }
    }

    private func makePart(of room: RoomName) -> Room {
        parts += 1
        return Room(room, part: PartID(loop: links.place, number: parts), links: links, settings: settings)
    }

    private func watch(_ member: Membership) {
        let (room, id) = (member.room.name.text, member.participant.id)
        member.participant.onRefused = { [note] error in
            note(
                Note(
                    text: "media refused", room: room, participant: id, details: ["error": "\(error)"], isWarning: true)
            )
        }
        member.participant.onUnauthenticated = { [note] packets in
            note(
                Note(
                    text: "packets not authenticated", room: room, participant: id, details: ["packets": "\(packets)"],
                    isWarning: true))
        }
        member.participant.onEnded = { [weak self, unowned connection = member.connection] error in
            self?.sessionEnded(error, of: connection)
        }
    }

    /// Sends the client the cause, then closes its connection. Without media, it would remain as a name only.
    private func sessionEnded(_ error: RoomError, of connection: any ClientConnection) {
        guard let member = members[ObjectIdentifier(connection)] else { return }
        end(member, Closing(reason: .disconnected, error: error))
    }

    private func pool(_ asked: ReceiverPool?) -> ReceiverPool {
        let asked = asked ?? ReceiverPool()
        let maximum = min(max(asked.maximum, 0), ReceiverPool().maximum)
        return ReceiverPool(
            initial: min(max(asked.initial, 0), maximum), maximum: maximum, growth: min(max(asked.growth, 1), maximum))
    }
}

extension Rooms.Note {
    fileprivate init(_ member: Rooms.Membership, _ text: String, _ details: [String: String] = [:]) {
        self.init(text: text, room: member.room.name.text, participant: member.participant.id, details: details)
    }
}
