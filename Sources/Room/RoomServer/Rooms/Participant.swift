internal import RTP
internal import RoomProtocol

/// One client in a room: its connection, its two sessions and what it publishes. On the loop only.
final class Participant: AudioListener {
    let id: String
    /// The access token that it joined by; revoking it ends the participant.
    let token: String
    let connection: SignallingConnection
    private let settings: SessionSettings
    private let down: DownSession
    private var up: UpSession?
    private(set) var streams: [PublishedStream] = []
    /// Called when one of the two sessions is over. Half a participant helps nobody, so the owner removes it.
    var onEnded: ((RoomError) -> Void)?
    /// Called when media of the participant's is no longer taken, which it is told itself.
    var onRefused: ((RoomError) -> Void)?
    /// Called at most once a second for each session with the number of its packets that failed authentication.
    var onUnauthenticated: ((Int) -> Void)?

    init(
        connection: SignallingConnection, token: String, pool: ReceiverPool, settings: SessionSettings
    ) throws(RoomError) {
        id = "p-" + RandomToken.text(bytes: 9)
        self.token = token
        self.connection = connection
        self.settings = settings
        down = try DownSession(pool: pool, settings: settings) { [connection] message in connection.send(message) }
        down.onEnded = { [unowned self] error in onEnded?(error) }
        down.onUnauthenticated = { [unowned self] packets in onUnauthenticated?(packets) }
    }

    var info: ParticipantInfo { ParticipantInfo(id: id, streams: streams.map(\.info)) }

    func start() throws(RoomError) { try down.start() }

    func offer() { down.offer() }

    func publish(
        _ publish: Publish, offer: SessionDescription, numbered: () -> Int
    ) throws(RoomError) -> (Published, [PublishedStream]) {
        let session = if let up { up } else { try makeUpSession() }
        let result = try session.publish(publish, offer: offer, numbered: numbered)
        streams += result.streams
        return (result.answer, result.streams)
    }

    /// `parsed` is the description's text.
    func answer(_ description: Description, _ parsed: SessionDescription) throws(RoomError) {
        guard description.session == .down else {
            throw RoomError(.answerRefused, "Only the down session is answered by the client.")
        }
        try down.answer(description, parsed)
    }

    func addCandidate(_ candidate: Candidate) {
        switch candidate.session {
        case .down: down.addCandidate(candidate.candidate)
        // A candidate may come before the offer that makes the session; the session is made for it then.
        case .up: (up ?? (try? makeUpSession()))?.addCandidate(candidate.candidate)
        }
    }

    func subscribe(_ stream: PublishedStream) throws(RoomError) -> Subscribed { try down.subscribe(stream) }

    func unsubscribe(_ stream: PublishedStream) -> Bool { down.unsubscribe(stream) }

    func hear(_ stream: PublishedStream) { down.hear(stream) }

    var hasFreeAudioSlot: Bool { down.hasFreeAudioSlot }

    func publishes(_ stream: PublishedStream) -> Bool { stream.participant == id }

    func isHearing(_ stream: PublishedStream) -> Bool { down.receiver(carrying: stream) != nil }

    func streamEnded(_ stream: PublishedStream) -> Bool { down.streamEnded(stream) }

    /// When media or a word about it last came.
    var lastReceived: MonotonicTime { max(down.lastReceived, up?.lastReceived ?? .zero) }

    func close() {
        down.close()
        up?.close()
    }

    private func makeUpSession() throws(RoomError) -> UpSession {
        let session = try UpSession(participant: id, settings: settings) { [connection] message in
            connection.send(message)
        }
        session.onEnded = { [unowned self] error in onEnded?(error) }
        session.onUnauthenticated = { [unowned self] packets in onUnauthenticated?(packets) }
        session.onRefused = { [unowned self] error in
            connection.send(.error(Problem(error)))
            onRefused?(error)
        }
        up = session
        return session
    }
}
