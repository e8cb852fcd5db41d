internal import PeerLoop
internal import PeerSession
internal import RTP
internal import RoomProtocol

/// One client's receiving session: its receivers and their assigned streams. On the loop only.
final class DownSession {
    /// Packets kept for retransmission to this client, for each video receiver.
    private static let history = 512
    /// How long after the session is secured a second keyframe is requested if the client has not reported on the
    /// stream. The first keyframe may arrive before the client's media path is ready, and not every stack requests
    /// another (aiortc does not). Clients report about once a second, so those that are ready cost no keyframe.
    private static let keyframeRepetition = TimeInterval.seconds(1)

    private let peer: Peer
    private let pool: ReceiverPool
    private let settings: SessionSettings
    private let send: (ServerMessage) -> Void
    private let sessionID: UInt64
    private let replays: ReplayPace
    private var consumers: [Consumer] = []
    private var revision = 0
    /// The client's transport, once it is connected.
    private var remote: TransportDescription?
    private lazy var repeatedRequest = settings.loop.makeTimer { [unowned self] in
        for consumer in consumers where !consumer.isKnownToClient { consumer.stream?.requestKeyframe() }
    }

    /// Called once, when the media path failed or the client closed it. The owner closes the session.
    var onEnded: ((RoomError) -> Void)?
    /// Called at most once a second with the number of packets that failed authentication so far.
    var onUnauthenticated: ((Int) -> Void)?

    init(
        pool: ReceiverPool, settings: SessionSettings, place: ClientPlace, send: @escaping (ServerMessage) -> Void
    ) throws(RoomError) {
        self.pool = pool
        self.settings = settings
        self.send = send
        sessionID = settings.nextSessionID()
        replays = ReplayPace(loop: settings.loop)
        peer = try settings.makePeer(.controlling, place)
    }

    /// Creates the first receivers and opens their sockets.
    func start() throws(RoomError) {
        peer.onEvent = { [unowned self] event in handle(event) }
        for _ in 0..<DownDescription.audioSlots { addConsumer(.audio) }
        for _ in 0..<pool.initial { addConsumer(.video) }
        try settings.start(peer)
    }

    /// Offers the current receivers.
    func offer() {
        revision += 1
        let description = DownDescription.offer(
            sessionID: sessionID, revision: revision, receivers: consumers.map(\.receiver), transport: peer.local,
            cname: SessionSettings.cname)
        send(.offer(Description(session: .down, sdp: description.serialized(), revision: revision)))
    }

    /// - Parameter answer: the description's text, parsed.
    func answer(_ description: Description, _ answer: SessionDescription) throws(RoomError) {
        // An answer to an older offer does not cover the receivers added since.
        guard description.revision == revision else { return }
        guard let transport = answer.transport else {
            throw RoomError(.answerRefused, "The answer accepts none of the receivers. Accept at least one.")
        }
        guard transport.setup != .actpass else {
            throw RoomError(
                .answerRefused, "The answer has no DTLS role. Answer with 'a=setup:active' or 'a=setup:passive'.")
        }
        if let remote {
            try settings.requireSame(transport, as: remote, .answerRefused)
        } else {
            try settings.connect(peer, to: transport, as: transport.setup == .passive ? .client : .server)
            remote = transport
        }
        for consumer in consumers {
            let media = answer[mid: consumer.receiver.mid]
            guard consumer.accepted == nil else {
                consumer.accept(media.map(DownDescription.acceptedExtensions) ?? HeaderExtensionIDs())
                continue
            }
            let isTaken =
                media.map { !$0.isRejected && ($0.direction == .recvonly || $0.direction == .sendrecv) } ?? false
            if let media, isTaken {
                consumer.accept(NegotiatedCodec.all(in: media), DownDescription.acceptedExtensions(of: media))
            } else {
                consumer.accept([])
            }
            if let stream = consumer.stream, !consumer.canCarry(stream.codec) { withdraw(stream, from: consumer) }
        }
    }

    /// Releases a stream that was assigned before the client's answer, which does not accept its codec.
    private func withdraw(_ stream: PublishedStream, from consumer: Consumer) {
        consumer.release()
        send(assigned(consumer))
        if stream.codec.media == .video { send(.error(Problem(Self.notTaken(stream)))) }
    }

    private static func notTaken(_ stream: PublishedStream) -> RoomError {
        RoomError(
            .receiversExhausted,
            "The client's answer does not accept \(stream.codec.rawValue), the codec of stream \(stream.info.id).")
    }

    var memory: PacketMemory { peer.memory }

    /// When media or RTCP last arrived.
    var lastReceived: MonotonicTime { peer.lastReceived }

    func addCandidate(_ candidate: String) {
        candidate.isEmpty ? peer.remoteCandidatesEnded() : peer.addRemoteCandidate(candidate)
    }

    func receiver(carrying stream: PublishedStream) -> Receiver? {
        consumers.first { $0.stream === stream }?.receiver
    }

    /// Assigns a video to a free receiver, growing the pool up to its maximum.
    func subscribe(_ stream: PublishedStream) throws(RoomError) -> Subscribed {
        if let consumer = consumers.first(where: { $0.stream === stream }) {
            throw RoomError(
                .alreadySubscribed,
                "The stream \(stream.info.id) is already subscribed on the receiver '\(consumer.receiver.mid)'.")
        }
        if let consumer = freeConsumer(for: stream) {
            return assign(stream, to: consumer)
        }
        // A client accepts the same codecs for further receivers as for the first ones.
        let answered = consumers.filter { $0.receiver.media == .video && $0.accepted != nil }
        guard answered.isEmpty || answered.contains(where: { $0.canCarry(stream.codec) }) else {
            throw Self.notTaken(stream)
        }
        let videos = consumers.count { $0.receiver.media == .video }
        guard videos < pool.maximum else {
            throw RoomError(
                .receiversExhausted,
                "All \(videos) video receivers are in use. Unsubscribe from another video first.")
        }
        for _ in 0..<min(pool.growth, pool.maximum - videos) { addConsumer(.video) }
        offer()
        guard let consumer = freeConsumer(for: stream) else {
            throw Self.notTaken(stream)
        }
        return assign(stream, to: consumer)
    }

    private func assign(_ stream: PublishedStream, to consumer: Consumer) -> Subscribed {
        consumer.assign(stream)
        return Subscribed(
            stream: stream.info.id, mid: consumer.receiver.mid,
            firstSequenceNumber: consumer.nextSequenceNumber.rawValue)
    }

    /// Frees the receiver of a stream. Returns false if the stream was not subscribed.
    func unsubscribe(_ stream: PublishedStream) -> Bool {
        guard let consumer = consumers.first(where: { $0.stream === stream }) else { return false }
        consumer.release()
        return true
    }

    /// The audio slots are the first receivers.
    var hasFreeAudioSlot: Bool {
        consumers.prefix(DownDescription.audioSlots).contains { $0.isFree && $0.canCarry(.opus) }
    }

    /// Assigns an audio stream to a free slot, if there is one, and notifies the client.
    func hear(_ stream: PublishedStream) {
        guard let consumer = freeConsumer(for: stream) else { return }
        consumer.assign(stream)
        send(assigned(consumer))
    }

    /// Frees the receiver of an ended stream and notifies the client. Returns true if it was an audio slot.
    func streamEnded(_ stream: PublishedStream) -> Bool {
        guard let consumer = consumers.first(where: { $0.stream === stream }) else { return false }
        consumer.release()
        send(assigned(consumer))
        return consumer.receiver.media == .audio
    }

    func close() {
        repeatedRequest.disarm()
        for consumer in consumers { consumer.release() }
        peer.close()
    }

    private func freeConsumer(for stream: PublishedStream) -> Consumer? {
        consumers.first {
            $0.isFree && $0.receiver.media == stream.codec.media && $0.canCarry(stream.codec)
        }
    }

    private func addConsumer(_ media: StreamMedia) {
        let receiver = Receiver(
            mid: String(consumers.count), media: media, ssrc: settings.nextSSRC(),
            retransmissionSSRC: media == .video ? settings.nextSSRC() : nil)
        consumers.append(
            Consumer(
                receiver, peer: peer, firstSequenceNumber: settings.nextSequenceNumber(), history: Self.history,
                replays: replays))
    }

    private func assigned(_ consumer: Consumer) -> ServerMessage {
        .receiverAssigned(
            ReceiverAssigned(
                mid: consumer.receiver.mid, media: consumer.receiver.media, stream: consumer.stream?.info.id,
                participant: consumer.stream?.participant, codec: consumer.stream?.codec.rawValue,
                firstSequenceNumber: consumer.stream == nil ? nil : consumer.nextSequenceNumber.rawValue))
    }

    private func handle(_ event: PeerEvent) {
        switch event {
        case .localCandidate(let candidate): send(.candidate(Candidate(session: .down, candidate: candidate)))
        case .gatheringDone: send(.candidate(Candidate(session: .down, candidate: "")))
        case .secured:
            for consumer in consumers { consumer.secured() }
            repeatedRequest.arm(at: settings.loop.now + Self.keyframeRepetition)
        case .keyframeRequested(let sender):
            consumers.first { $0.owns(sender) }?.stream?.requestKeyframe()
        case .unauthenticated(let packets): onUnauthenticated?(packets)
        case .closed:
            onEnded?(RoomError(.mediaConnectionFailed, "The client closed its down session."))
        case .failed(let error):
            onEnded?(RoomError(.mediaConnectionFailed, "The client's down session failed: \(error.message)"))
        case .connected, .disconnected, .roundTrip, .sendingRate: break
        // The client sends no media in this session.
        case .lossBeyondRepair, .mediaRefused, .senderReport, .bye: break
        }
    }
}
