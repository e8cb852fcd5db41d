internal import PeerLoop
package import RTP
package import RoomProtocol

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
        let line: ClientLine
        var participant: Participant
        var room: Room
        var admission: Admission
        /// The order of joining.
        var number: Int
        /// When the participant leaves, unless its client resumes. Armed while it has no connection.
        let departure: LoopTimer

        var id: String { participant.id }
    }

    private let settings: SessionSettings
    private let numbers: StreamNumbers
    private let links: LoopLinks
    private let note: (Note) -> Void
    private var rooms: [RoomName: Room] = [:]
    /// By the participant's id.
    private var members: [String: Membership] = [:]
    /// The participant of each connection.
    private var connected: [ObjectIdentifier: String] = [:]
    private var joins = 0
    private var parts = 0
    private var isClosed = false

    /// - Parameters:
    ///   - numbers: the ids of streams, unique among all loops of a server.
    ///   - links: the ways to the other loops, on which a room can have other parts.
    ///   - record: begins the recording of a stream. `recordingFailed` tells its failure. Nil if the server records nothing.
    ///   - note: called for each line of the log; has to return immediately.
    package init(
        settings: SessionSettings, numbers: StreamNumbers, links: LoopLinks = .none,
        record: ((RecordedStream) throws(RoomError) -> any RecordingSink)? = nil, note: @escaping (Note) -> Void
    ) {
        self.settings = settings
        settings.record = record
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

    /// The layers of the streams with simulcast that participants of this loop publish, by rank.
    package var layers: [ServerStatistics.Layer] {
        var all: [ServerStatistics.Layer] = []
        for member in members.values {
            for stream in member.participant.streams where stream.hasLayers { stream.count(into: &all) }
        }
        return all
    }

    /// When a frame of a stream was last left out for the client, because its link had no room. `.zero` if none was.
    package func lastLeftOut(of stream: Int, for connection: any ClientConnection) -> MonotonicTime {
        member(of: connection)?.participant.lastLeftOut(of: stream) ?? .zero
    }

    /// When media of the client last arrived. `.zero` if none did.
    package func lastMedia(from connection: any ClientConnection) -> MonotonicTime {
        member(of: connection)?.participant.lastReceived ?? .zero
    }

    /// Whether there is a participant with this id, with a connection or without.
    package func has(_ participant: String) -> Bool { members[participant] != nil }

    private func member(of connection: any ClientConnection) -> Membership? {
        connected[ObjectIdentifier(connection)].flatMap { members[$0] }
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

    // MARK: - Administration

    /// The rooms that have participants of this loop, with those.
    package var list: [RoomList.Room] {
        Dictionary(grouping: inOrder, by: \.room.name).map { name, members in
            RoomList.Room(
                name: name.text,
                participants: members.map { member in
                    RoomList.Participant(
                        id: member.id, streams: member.participant.streams.count,
                        recordings: settings.record.map { _ in member.participant.streams.count(where: \.isRecorded) },
                        isConnected: member.line.connection != nil)
                })
        }
    }

    /// Ends the participants of a room, or one of them, with a reason.
    ///
    /// - Parameter onRemoval: called for each before it is told
    package func end(
        _ room: RoomName, only participant: String? = nil, _ closing: Closing, onRemoval: (String) -> Void
    ) {
        if participant == nil { rooms[room]?.isEnding = true }
        for member in inOrder where member.room.name == room && participant ?? member.id == member.id {
            onRemoval(member.id)
            end(member, closing)
        }
    }

    /// The client's connection closed.
    ///
    /// - Parameter lost: when the client was last there, if it did not close the connection and may resume. Nil if it
    ///   has left.
    package func disconnected(_ connection: any ClientConnection, lost: MonotonicTime? = nil) {
        guard let member = member(of: connection) else { return }
        guard let lost, member.line.isResumable else { return remove(member) }
        connected[ObjectIdentifier(connection)] = nil
        member.line.detach(now: settings.loop.now)
        member.departure.arm(at: max(settings.loop.now, max(lost, member.participant.lastReceived) + settings.grace))
        note(Note(member, "connection lost"))
    }

    /// - Parameter reason: for the log. Nil leaves it to the caller.
    private func remove(_ member: Membership, because reason: String? = nil) {
        members[member.id] = nil
        if let connection = member.line.connection { connected[ObjectIdentifier(connection)] = nil }
        member.departure.disarm()
        member.line.end()
        member.room.leave(member.participant)
        if member.room.isEmpty {
            member.room.end()
            rooms[member.room.name] = nil
        }
        member.admission.end()
        note(Note(member, "left", reason.map { ["reason": $0] } ?? [:]))
    }

    private func end(_ member: Membership, _ closing: Closing) {
        remove(member)
        member.line.connection?.close(closing)
    }

    /// How many times the grace period media alone keeps a participant.
    private static let longestStay = Int64(4)

    /// The client has not resumed in time. One whose media flows is there, and gets more time.
    private func expire(_ id: String) {
        guard let member = members[id], let since = member.line.absentSince else { return }
        let end = min(
            member.participant.lastReceived + settings.grace, since + settings.grace * Self.longestStay)
        guard end <= settings.loop.now else { return member.departure.arm(at: end) }
        remove(member, because: "did not resume")
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
        if let member = member(of: connection) { return answer(request, member) }
        do throws(RoomError) {
            if let refusal = request.refusal { throw refusal.error }
            if let admission, case .join(let join) = request.message {
                return try self.join(join, admission, request.id, connection)
            }
            if request.mayResume, case .resume(let resume) = request.message {
                return try self.resume(resume, request.id, connection)
            }
            throw RoomError(.outOfOrder, "The connection has not joined a room. Send 'join' first.")
        } catch {
            admission?.end()
            // A client that cannot resume may join.
            if admission != nil || request.mayResume { connection.didNotJoin() }
            connection.send(.error(Problem(error)), answering: request.id)
        }
    }

    private func answer(_ request: ClientRequest, _ member: Membership) {
        do throws(RoomError) {
            guard let refusal = request.refusal else {
                member.line.received(request.message)
                return try handle(request, member)
            }
            member.line.receivedUnreadable()
            if !refusal.isUnknownNotification { throw refusal.error }
        } catch {
            member.line.send(.error(Problem(error)), answering: request.id)
        }
    }

    private func handle(_ request: ClientRequest, _ member: Membership) throws(RoomError) {
        let participant = member.participant
        let connection = member.line
        switch request.message {
        case .join, .resume:
            throw RoomError(.outOfOrder, "This connection has already joined a room. Open another connection.")
        case .ack(let body): try connection.acknowledged(body.received)
        case .publish(let publish):
            guard let offer = try request.description?.get() else { return }
            try member.room.admit(publish)
            var (answer, streams) = try participant.publish(publish, offer: offer, numbered: numbers.next)
            var problems = participant.record(publish, streams, in: member.room.name, &answer)
            if let problem = member.room.speakers.limitAlwaysOn(streams) { problems.append(problem) }
            connection.send(.published(answer), answering: request.id)
            for problem in problems { connection.send(.error(Problem(problem))) }
            member.room.published(streams, by: participant)
            note(Note(member, "published", ["streams": "\(streams.map(\.info.id))"]))
        case .unpublish(let references):
            let streams = try participant.unpublish(references.streams)
            connection.send(.unpublished(references), answering: request.id)
            member.room.unpublished(streams, by: participant)
            note(Note(member, "unpublished", ["streams": "\(streams.map(\.info.id))"]))
        case .setStream(let body):
            try change(participant.stream(body.stream), body.change, member)
            connection.send(.streamSet(StreamReference(stream: body.stream)), answering: request.id)
        case .setStreamState(let body):
            try change(participant.stream(body.stream), StreamChange(state: body.state), member)
            connection.send(.streamStateSet(StreamReference(stream: body.stream)), answering: request.id)
        case .streamReduced(let body):
            if let stream = try? participant.stream(body.stream) {
                member.room.reduce(stream, because: body.reason, by: participant)
            }
        case .answer(let description):
            guard let answer = try request.description?.get() else { return }
            try participant.answer(description, answer)
        case .candidate(let candidate): participant.addCandidate(candidate)
        case .restartICE(let body): try participant.restartICE(body.session)
        case .subscribe(let reference):
            let stream = try member.room.video(reference.stream, for: participant)
            try reference.view.validate()
            let subscribed = try participant.subscribe(stream, reference.view)
            connection.send(.subscribed(subscribed), answering: request.id)
        case .setView(let body):
            try set(body, member)
            connection.send(.viewSet(StreamReference(stream: body.stream)), answering: request.id)
        case .unsubscribe(let reference):
            try unsubscribe(reference, member)
            connection.send(.unsubscribed(reference), answering: request.id)
        case .message(let message):
            try message.validate()
            try member.room.admit(message)
            try participant.messagePace.admit(message, now: settings.loop.now)
            connection.send(.messageSent, answering: request.id)
            member.room.deliver(message, from: participant)
        case .ping: if request.id != nil { connection.send(.pong, answering: request.id) }
        case .leave:
            // A client that reads the answer has left: its place is free.
            let last = connection.connection
            remove(member)
            last?.send(.left, answering: request.id)
            last?.end()
        }
    }

    private func change(
        _ stream: PublishedStream, _ change: StreamChange, _ member: Membership
    ) throws(RoomError) {
        try change.validate()
        try member.participant.changePace.admit(now: settings.loop.now)
        try member.room.change(stream, change, by: member.participant)
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

    /// Accepts a stream that ended meanwhile, which has no view any longer.
    private func set(_ body: ViewOfStream, _ member: Membership) throws(RoomError) {
        try body.view.validate()
        let hasGone = numbers.hasIssued(body.stream) && !member.room.hasStream(body.stream)
        guard !hasGone else { return }
        let stream = try member.room.video(body.stream, for: member.participant)
        guard member.participant.setView(body.view, of: stream) else {
            throw RoomError(
                .notSubscribed, "Stream \(body.stream) is not subscribed. Subscribe before you set its view.")
        }
    }

    private func join(
        _ join: Join, _ admission: Admission, _ request: Int?, _ connection: any ClientConnection
    ) throws(RoomError) {
        guard !isClosed, !connection.isEnding else {
            throw RoomError(.roomReleased, "The server is closing this connection.")
        }
        let version = try join.negotiatedVersion()
        let line = ClientLine(connection)
        let participant = try Participant(
            line: line, token: join.token, pool: pool(join.receivers), mayRecord: admission.mayRecord,
            settings: settings)
        do throws(RoomError) {
            try participant.start()
        } catch {
            participant.close()
            throw error
        }
        let present = rooms[admission.room]
        let room = present ?? makePart(of: admission.room)
        joins += 1
        let id = participant.id
        let member = Membership(
            line: line, participant: participant, room: room, admission: admission, number: joins,
            departure: settings.loop.makeTimer { [weak self] in self?.expire(id) })
        watch(member)
        let (others, more) = room.introduction()
        // Its next message may be there before this returns, also a 'resume' on another connection.
        admission.begin(id)
        connection.didJoin()
        let terms = join.resume == true ? terms(for: line) : nil
        line.send(
            .joined(
                Joined(
                    version: version, participant: id, participants: others,
                    iceServers: settings.iceServers(join.token), resume: terms, receivers: pool(join.receivers))),
            answering: request)
        for info in more { line.send(.participantEntered(ParticipantEntered(participant: info))) }
        participant.offer()
        rooms[admission.room] = room
        members[id] = member
        connected[ObjectIdentifier(connection)] = id
        room.enter(participant)
        if present == nil { room.begin() }
        note(Note(member, "joined"))
    }

    /// Sends all participants the STUN and TURN servers again, before their credentials expire.
    package func renewICEServers() {
        for member in inOrder {
            let servers = settings.iceServers(member.participant.token)
            if !servers.isEmpty { member.line.send(.iceServers(ICEServersRenewed(iceServers: servers))) }
        }
    }

    /// Lets a client resume, if the server does. Nil otherwise.
    private func terms(for line: ClientLine) -> ResumeTerms? {
        let seconds = Int(settings.grace.seconds)
        guard seconds > 0 else { return nil }
        let secret = settings.nextSecret()
        line.keep(secret: secret)
        return ResumeTerms(secret: secret, seconds: seconds)
    }

    /// Continues a participation over another connection. The former one may seem to work still, if the client's network
    /// has changed.
    private func resume(_ resume: Resume, _ id: Int?, _ connection: any ClientConnection) throws(RoomError) {
        guard !isClosed, !connection.isEnding, let member = members[resume.participant], member.line.isResumable else {
            throw Self.notResumable
        }
        guard member.line.admits(resume.secret) else {
            connection.didGuess(at: resume.participant)
            throw Self.notResumable
        }
        try member.line.prepare(for: resume, now: settings.loop.now)
        // Its next message may be there before this returns.
        connection.didJoin()
        let former = member.line.resume(
            resume, secret: settings.nextSecret(), answering: id, over: connection)
        if let former {
            connected[ObjectIdentifier(former)] = nil
            former.end()
        }
        connected[ObjectIdentifier(connection)] = member.id
        member.participant.token = resume.token
        member.departure.disarm()
        note(Note(member, "resumed"))
    }

    /// For wrong secrets as well, so that an answer tells no more about ids.
    package static let notResumable = RoomError(
        .notResumable, "The server has no such participant to resume, or no longer. Join the room again.")

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
        member.participant.onEnded = { [weak self] error in self?.sessionEnded(error, of: id) }
        member.participant.onSilence = { [weak self] isLost in
            guard let member = self?.members[id] else { return }
            member.room.setLost(isLost, member.participant)
        }
        // Not in the middle of a message to many.
        member.line.onOverflow = { [weak self] in
            self?.settings.loop.schedule(after: .zero) { self?.overflowed(id) }
        }
    }

    /// The recording of a participant's stream has failed, as the recorder has logged.
    package func recordingFailed(_ recorded: RecordedStream, _ error: RoomError) {
        members[recorded.participant]?.participant.recordingFailed(of: recorded.stream, error)
    }

    private func overflowed(_ id: String) {
        guard let member = members[id] else { return }
        end(
            member,
            Closing(
                reason: .disconnected,
                error: RoomError(
                    .connectionLost, "The client has not acknowledged its messages for too long. Join the room again.")
            ))
    }

    /// Sends the client the cause, then closes its connection. Without media, it would remain as a name only.
    private func sessionEnded(_ error: RoomError, of id: String) {
        guard let member = members[id] else { return }
        end(member, Closing(reason: .disconnected, error: error))
    }

    private func pool(_ asked: ReceiverPool?) -> ReceiverPool {
        let asked = asked ?? ReceiverPool()
        let maximum = min(max(asked.maximum, 0), settings.mostReceivers)
        return ReceiverPool(
            initial: min(max(asked.initial, 0), maximum), maximum: maximum, growth: min(max(asked.growth, 1), maximum))
    }
}

extension Rooms.Note {
    fileprivate init(_ member: Rooms.Membership, _ text: String, _ details: [String: String] = [:]) {
        self.init(text: text, room: member.room.name.text, participant: member.participant.id, details: details)
    }
}
