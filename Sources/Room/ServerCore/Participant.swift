internal import PeerLoop
internal import RTP
internal import RoomProtocol

/// One client in a room: its line, its two sessions and its published streams. On the loop only.
final class Participant: AudioListener {
    let id: String
    /// The access token used to join, or to resume. Revoking it removes the participant.
    var token: String
    let line: ClientLine
    let settings: SessionSettings
    private let down: DownSession
    private var up: UpSession?
    private(set) var streams: [PublishedStream] = []
    /// Called when one of the two sessions ends. The owner then removes the participant.
    var onEnded: ((RoomError) -> Void)?
    /// Called when media of this participant is no longer accepted. The participant is notified.
    var onRefused: ((RoomError) -> Void)?
    /// Called when the connection of media to the server is lost, as its silence shows, and when it is back.
    var onSilence: ((Bool) -> Void)?
    /// Called at most once a second for each session with the number of its packets that failed authentication.
    var onUnauthenticated: ((Int) -> Void)?
    /// See `DownSession.onAudioSlots`.
    var onAudioSlots: (() -> Void)?

    /// Whether the server records for it.
    let mayRecord: Bool
    let captureClock = CaptureClock()
    private var pace = RequestPace.publications
    var changePace = RequestPace.changes
    var messagePace = MessagePace()

    init(
        line: ClientLine, token: String, pool: ReceiverPool, mayRecord: Bool, settings: SessionSettings
    ) throws(RoomError) {
        self.mayRecord = mayRecord
        id = settings.nextParticipantID()
        self.token = token
        self.line = line
        self.settings = settings
        down = try DownSession(pool: pool, settings: settings, place: line.place) { [line] message in
            line.send(message)
        }
        down.onEnded = { [unowned self] error in onEnded?(error) }
        down.onUnauthenticated = { [unowned self] packets in onUnauthenticated?(packets) }
        down.onAudioSlots = { [unowned self] in onAudioSlots?() }
    }

    var info: ParticipantInfo { ParticipantInfo(id: id, streams: streams.map(\.info)) }

    func start() throws(RoomError) { try down.start() }

    func offer() { down.offer() }

    func publish(
        _ publish: Publish, offer: SessionDescription, numbered: () -> Int
    ) throws(RoomError) -> (Published, [PublishedStream]) {
        try pace.admit(publish.streams.count, now: settings.loop.now)
        let session = if let up { up } else { try makeUpSession() }
        let result = try session.publish(publish, offer: offer, numbered: numbered)
        streams += result.streams
        return (result.answer, result.streams)
    }

    /// Ends all of these streams, or throws and ends none.
    func unpublish(_ ids: [Int]) throws(RoomError) -> [PublishedStream] {
        guard !ids.isEmpty else { throw RoomError(.noSuchStream, "The message has no stream to unpublish.") }
        guard ids.count <= UpSession.maximumStreams, Set(ids).count == ids.count else {
            throw RoomError(.noSuchStream, "The message names a stream twice. Unpublish each stream once.")
        }
        if let other = ids.first(where: { id in !streams.contains { $0.info.id == id } }) {
            throw RoomError(
                .noSuchStream, "This participant does not publish stream \(other). Unpublish each of its streams once.")
        }
        let ended = streams.filter { ids.contains($0.info.id) }
        streams.removeAll { ids.contains($0.info.id) }
        up?.end(ended)
        return ended
    }

    /// A stream that this participant publishes.
    func stream(_ id: Int) throws(RoomError) -> PublishedStream {
        guard let stream = streams.first(where: { $0.info.id == id }) else {
            throw RoomError(.noSuchStream, "This participant does not publish stream \(id).")
        }
        return stream
    }

    /// - Parameter parsed: the description's text, parsed.
    func answer(_ description: Description, _ parsed: SessionDescription) throws(RoomError) {
        guard description.session == .down else {
            throw RoomError(
                .answerRefused,
                "The client answers only the down session. Offer the up session with 'publish'.")
        }
        try down.answer(description, parsed)
    }

    func restartICE(_ session: SessionDirection) throws(RoomError) {
        guard session == .down else {
            throw RoomError(
                .messageMalformed, "The client offers the up session. Send 'publish' with other ICE credentials.")
        }
        try down.restartICE()
    }

    func addCandidate(_ candidate: Candidate) {
        switch candidate.session {
        case .down: down.addCandidate(candidate.candidate)
        // A candidate may arrive before the offer that creates the session, which is then created early.
        case .up: (up ?? (try? makeUpSession()))?.addCandidate(candidate.candidate)
        }
    }

    func subscribe(_ stream: PublishedStream, _ view: StreamView) throws(RoomError) -> Subscribed {
        try down.subscribe(stream, view)
    }

    /// Returns false if the stream is not subscribed.
    func setView(_ view: StreamView, of stream: PublishedStream) -> Bool { down.setView(view, of: stream) }

    func unsubscribe(_ stream: PublishedStream) -> Bool { down.unsubscribe(stream) }

    func hear(_ stream: PublishedStream, insteadOf other: PublishedStream?) { down.hear(stream, insteadOf: other) }

    func stopHearing(_ stream: PublishedStream) { _ = down.streamEnded(stream) }

    var heardStreams: [PublishedStream] { down.heardStreams }

    var audioSlots: Int { down.audioSlots }

    var hasFreeAudioSlot: Bool { down.hasFreeAudioSlot }

    func publishes(_ stream: PublishedStream) -> Bool { stream.participant == id }

    /// See `DownSession.lastLeftOut`.
    func lastLeftOut(of stream: Int) -> MonotonicTime { down.lastLeftOut(of: stream) }

    func streamEnded(_ stream: PublishedStream) -> Bool { down.streamEnded(stream) }

    var memory: PacketMemory {
        var memory = down.memory
        if let up { memory += up.memory }
        return memory
    }

    /// When media or RTCP last arrived.
    var lastReceived: MonotonicTime { max(down.lastReceived, up?.lastReceived ?? .zero) }

    func close() {
        down.close()
        up?.close()
    }

    private func makeUpSession() throws(RoomError) -> UpSession {
        let session = try UpSession(participant: id, settings: settings, place: line.place) {
            [line] message in line.send(message)
        }
        session.onEnded = { [unowned self] error in onEnded?(error) }
        session.onUnauthenticated = { [unowned self] packets in onUnauthenticated?(packets) }
        session.onSilence = { [unowned self] isLost in onSilence?(isLost) }
        session.onRefused = { [unowned self] error in
            line.send(.error(Problem(error)))
            onRefused?(error)
        }
        up = session
        return session
    }
}
