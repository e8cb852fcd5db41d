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
    /// Whether the last offer has credentials that no answer has used.
    private var isRestarting = false
    private var restartPace = RequestPace.restarts
    private lazy var repeatedRequest = settings.loop.makeTimer { [unowned self] in
        for consumer in consumers where !consumer.isKnownToClient { consumer.layer?.requestKeyframe() }
    }

    /// The rate of the link in bits per second: 0 while nothing arrives, nil before the first estimate.
    private var target: Int?
    /// The rate that the streams can use, as the session knows it.
    private var told: Int?
    /// While a probe of more has no result, all frames are sent.
    private var settling: (from: Int?, until: MonotonicTime)?
    private var repairs = (bytes: 0, at: MonotonicTime.zero, rate: 0.0)
    private var slotChoice = SlotChoice()

    /// Called once, when the media path failed or the client closed it. The owner closes the session.
    var onEnded: ((RoomError) -> Void)?
    /// Called at most once a second with the number of packets that failed authentication so far.
    var onUnauthenticated: ((Int) -> Void)?
    /// Called when `audioSlots` has changed. It must not change the slots before it returns.
    var onAudioSlots: (() -> Void)?

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

    /// Offers again, with other ICE credentials. Does nothing before the first answer.
    func restartICE() throws(RoomError) {
        guard remote != nil else { return }
        try restartPace.admit(now: settings.loop.now)
        try settings.restart(peer)
        isRestarting = true
        offer()
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
            guard try settings.restartsICE(transport, from: remote, .answerRefused) else {
                return accept(answer)
            }
            guard isRestarting else {
                throw RoomError(
                    .answerRefused,
                    "The answer restarts ICE, but not its offer. Send 'restartICE', and answer the next offer.")
            }
            try settings.restart(peer, with: transport)
            (self.remote, isRestarting) = (transport, false)
        } else {
            try settings.connect(peer, to: transport, as: transport.setup == .passive ? .client : .server)
            remote = transport
        }
        accept(answer)
    }

    private func accept(_ answer: SessionDescription) {
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
            .receiverUnavailable,
            "The client's answer does not accept \(stream.codec.rawValue), the codec of stream \(stream.info.id).")
    }

    var memory: PacketMemory { peer.memory }

    /// When media or RTCP last arrived.
    var lastReceived: MonotonicTime { peer.lastReceived }

    func addCandidate(_ candidate: String) {
        candidate.isEmpty ? peer.remoteCandidatesEnded() : peer.addRemoteCandidate(candidate)
    }

    /// When a frame of a stream was last left out because the link had no room for it. `.zero` if none was.
    func lastLeftOut(of stream: Int) -> MonotonicTime {
        consumers.first { $0.stream?.info.id == stream }?.lastLeftOut ?? .zero
    }

    /// Assigns a video to a free receiver, growing the pool up to its maximum.
    func subscribe(_ stream: PublishedStream, _ view: StreamView) throws(RoomError) -> Subscribed {
        if let consumer = consumers.first(where: { $0.stream === stream }) {
            throw RoomError(
                .alreadySubscribed,
                "The stream \(stream.info.id) is already subscribed on the receiver '\(consumer.receiver.mid)'.")
        }
        if let consumer = freeConsumer(for: stream) {
            return assign(stream, view, to: consumer)
        }
        // A client accepts the same codecs for further receivers as for the first ones.
        let answered = consumers.filter { $0.isVideo && $0.accepted != nil }
        guard answered.isEmpty || answered.contains(where: { $0.canCarry(stream.codec) }) else {
            throw Self.notTaken(stream)
        }
        let videos = consumers.count(where: \.isVideo)
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
        return assign(stream, view, to: consumer)
    }

    private func assign(_ stream: PublishedStream, _ view: StreamView, to consumer: Consumer) -> Subscribed {
        // The first probes begin with the stream's sender, and measure what all streams can use.
        streamsChanged(adding: stream)
        consumer.assign(stream, view: view)
        qualityTimer.arm(at: settings.loop.now + Self.qualityInterval)
        countUnmeasured()
        if stream.hasLayers { reviewLayers() }
        return Subscribed(
            stream: stream.info.id, mid: consumer.receiver.mid,
            firstSequenceNumber: consumer.nextSequenceNumber.rawValue)
    }

    /// Sets the client's view of a stream. Returns false if the stream is not subscribed.
    func setView(_ view: StreamView, of stream: PublishedStream) -> Bool {
        guard let consumer = consumers.first(where: { $0.stream === stream }) else { return false }
        consumer.view = view
        let isOther = consumer.setPaused(view.isPaused)
        consumer.report?.measureAgain(now: settings.loop.now)
        if isOther {
            view.isPaused ? share() : streamsChanged()
            countUnmeasured()
        } else if stream.hasLayers {
            share()
        }
        return true
    }

    /// Frees the receiver of a stream. Returns false if the stream was not subscribed.
    func unsubscribe(_ stream: PublishedStream) -> Bool {
        guard let consumer = consumers.first(where: { $0.stream === stream }) else { return false }
        consumer.release()
        share()
        return true
    }

    /// How many of the audio slots the link carries.
    var audioSlots: Int { slotChoice.slots }

    /// The audio slots are the first receivers.
    var hasFreeAudioSlot: Bool {
        heardStreams.count < audioSlots
            && consumers.prefix(DownDescription.audioSlots).contains { $0.isFree && $0.canCarry(.opus) }
    }

    var heardStreams: [PublishedStream] { consumers.prefix(DownDescription.audioSlots).compactMap(\.stream) }

    /// Assigns an audio stream to the slot of another one, or to a free slot, if there is one, and notifies the client.
    func hear(_ stream: PublishedStream, insteadOf other: PublishedStream?) {
        let former = other.flatMap { other in consumers.first { $0.stream === other && $0.canCarry(stream.codec) } }
        guard let consumer = former ?? freeConsumer(for: stream) else { return }
        share(adding: stream)
        consumer.assign(stream)
        send(assigned(consumer))
    }

    /// Frees the receiver of a stream that has ended, or is off, and notifies the client. Returns true if it was an audio slot.
    func streamEnded(_ stream: PublishedStream) -> Bool {
        guard let consumer = consumers.first(where: { $0.stream === stream }) else { return false }
        consumer.release()
        send(assigned(consumer))
        return consumer.receiver.media == .audio
    }

    func close() {
        repeatedRequest.disarm()
        layerTimer.disarm()
        qualityTimer.disarm()
        for consumer in consumers { consumer.release() }
        peer.close()
    }

    // MARK: - Rates

    /// For how long all frames are sent after more streams began, at most.
    private static let settlingTime = TimeInterval.seconds(1)
    /// The result of a probe changes the target by this share or more.
    private static let probeResult = 0.1
    /// Of video that nobody has measured yet, in bits per second.
    private static let unknownVideo = 2_000_000.0
    /// Of audio likewise: Opus at 64 kbit/s with 50 packets a second.
    private static let unknownAudio = 90_000.0

    /// There are more streams: the session may have to measure more of the link.
    private func streamsChanged(adding stream: PublishedStream? = nil) {
        settling = (target, settings.loop.now + Self.settlingTime)
        share(adding: stream)
    }

    /// Tells the session what the streams can use, and gives each its share of what the link carries.
    ///
    /// - Parameter new: one that is about to begin
    private func share(adding new: PublishedStream? = nil) {
        guard peer.isSecured else { return }
        // Each estimate of the link leads here, so few arrays are made.
        var videos: [Consumer] = []
        var wishes: [LinkShares.Video] = []
        var sounds: [Double] = []
        for consumer in consumers {
            guard let stream = consumer.stream, !consumer.isPaused else { continue }
            if consumer.isVideo {
                videos.append(consumer)
                wishes.append(consumer.linkWish(unknown: Self.unknownVideo))
            } else {
                sounds.append(stream.wish() ?? Self.unknownAudio)
            }
        }
        let audio = sounds.reduce(0, +)
        chooseSlots(among: sounds)
        var demand = LinkShares.demand(audio: audio + slotChoice.further(sounds), videos: wishes)
        if let new { demand += new.expectedRate ?? (new.codec.media == .video ? Self.unknownVideo : Self.unknownAudio) }
        tellDemand(demand == 0 ? nil : Int(demand))
        let now = settings.loop.now
        let repairs = repairRate(now: now)
        // As long as the link is not measured, only changes of views and layers count.
        guard let target, !isSettling(target, now: now) else { return videos.forEach { $0.keepLayer() } }
        // Nothing arrives at the client. The publisher goes on for the other subscribers, and for the time after that.
        guard target > 0 else { return videos.forEach { $0.hold(now: now) } }
        let choices = LinkShares.choices(of: Double(target), audio: audio + repairs, videos: wishes)
        let isCongested = peer.isCongested
        for (index, video) in videos.enumerated() {
            video.choose(choices[index], among: wishes[index], isCongested: isCongested, now: now)
        }
    }

    /// Chooses how many streams the client hears.
    private func chooseSlots(among sounds: [Double]) {
        guard let target = audioTarget() else { return }
        let before = slotChoice.slots
        let isProbed = peer.canPad
        // Losses without a queue do not become fewer with fewer streams.
        let isQueueing = peer.isQueueing
        slotChoice.follow(
            target, sounds, isProbed: isProbed, isCongested: isQueueing && peer.isCongested,
            isQueueing: isQueueing, now: settings.loop.now)
        if slotChoice.slots != before { onAudioSlots?() }
        // Audio alone cannot have padding, which shows whether the link carries one more.
        guard slotChoice.slots < before, !isProbed else { return }
        consumers.first { consumer in
            consumer.isVideo && !consumer.hasSender
                && consumer.accepted?.contains { $0.retransmissionPayloadType != nil } == true
        }?.prepare()
    }

    /// After so long with audio alone, the audio itself fills the link, if the last report is recent.
    private static let overload = TimeInterval.seconds(2)
    /// The greatest age of a recent report.
    private static let recentReport = TimeInterval.milliseconds(500)
    private var overloadedSince: MonotonicTime?

    /// The rate by which the streams to hear are chosen. A link that carries nothing for a moment says nothing about that, and neither
    /// does an estimate of the client itself, which is hardly higher than the rate that arrives.
    private func audioTarget() -> Double? {
        guard let target, let report = peer.lastReport else { return nil }
        let now = settings.loop.now
        guard target == 0, now - report < Self.recentReport else {
            overloadedSince = nil
            return target > 0 ? Double(target) : nil
        }
        let since = overloadedSince ?? now
        overloadedSince = since
        guard now - since >= Self.overload else { return nil }
        return peer.statistics.session.sending.map { Double($0.estimatedBitsPerSecond) }
    }

    /// Between two choices of all layers. Each estimate of the link causes one, too.
    private static let layerInterval = TimeInterval.milliseconds(250)
    private lazy var layerTimer = settings.loop.makeTimer { [unowned self] in reviewLayers() }

    /// Chooses layers as long as there are some to choose from: their rates change, and publishers stop some.
    private func reviewLayers() {
        guard consumers.contains(where: { $0.stream?.hasLayers == true }) else { return }
        layerTimer.arm(at: settings.loop.now + Self.layerInterval)
        share()
        countUnmeasured()
    }

    private static let qualityInterval = TimeInterval.milliseconds(500)
    private lazy var qualityTimer = settings.loop.makeTimer { [unowned self] in reviewQuality() }

    /// Tells the client why it gets videos worse than they could be.
    private func reviewQuality() {
        let now = settings.loop.now
        let videos = consumers.filter { $0.isVideo && !$0.isFree }
        guard !videos.isEmpty else { return }
        qualityTimer.arm(at: now + Self.qualityInterval)
        guard peer.isSecured else { return }
        for video in videos {
            if let news = video.qualityNews(target: target, now: now) { send(.streamQuality(news)) }
        }
    }

    /// A client that reports no arrivals gets everything. Its first sender shows whether it does.
    private func countUnmeasured() {
        guard peer.isSecured, !peer.isPaced, consumers.contains(where: \.hasSender) else { return }
        for consumer in consumers {
            guard let stream = consumer.stream, !consumer.isPaused else { continue }
            consumer.setCarried(.all)
            consumer.thin(to: nil, now: settings.loop.now)
            if let best = stream.deliveredRanks(for: consumer.view).last { consumer.follow(stream.layer(rank: best)) }
        }
    }

    private func isSettling(_ target: Int, now: MonotonicTime) -> Bool {
        guard let (from, until) = settling else { return false }
        let isMeasured = from.map { Double(abs(target - $0)) > Double($0) * Self.probeResult } ?? false
        if from == nil { settling?.from = target }
        guard isMeasured || now >= until else { return true }
        settling = nil
        return false
    }

    /// Each change may cause probes, so small ones do not count.
    private func tellDemand(_ demand: Int?) {
        let now = settings.loop.now
        if let demand, let told, abs(demand - told) * 10 <= told { return tellAgain(told, now) }
        guard demand != told else { return }
        if demand ?? 0 > told ?? 0 { raised = now }
        (told, toldAt) = (demand, now)
        peer.setDemand(bitsPerSecond: demand)
    }

    /// For so long after the demand rose, the session is asked again to measure whether the link carries the next layers.
    private static let eagerness = TimeInterval.seconds(6)
    private static let askingInterval = TimeInterval.seconds(1)
    private var raised = MonotonicTime.zero
    private var toldAt = MonotonicTime.zero

    /// A session probes for a demand when it changes, and not before it has seen that the application sends less than the
    /// link carries.
    private func tellAgain(_ demand: Int, _ now: MonotonicTime) {
        guard let target, target < demand, now - raised < Self.eagerness, now - toldAt >= Self.askingInterval,
            consumers.contains(where: { $0.stream?.hasLayers == true })
        else { return }
        (told, toldAt) = (demand ^ 1, now)
        peer.setDemand(bitsPerSecond: demand ^ 1)
    }

    /// The rate of repairs over the last half second or more, in bits per second of the path.
    private func repairRate(now: MonotonicTime) -> Double {
        let elapsed = now - repairs.at
        guard elapsed >= .milliseconds(500) else { return repairs.rate }
        let bytes = consumers.reduce(0) { $0 + $1.repairBytes }
        repairs = (bytes, now, Double(max(0, bytes - repairs.bytes)) * 8 / elapsed.seconds)
        return repairs.rate
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
            streamsChanged()
            for consumer in consumers { consumer.secured() }
            countUnmeasured()
            repeatedRequest.arm(at: settings.loop.now + Self.keyframeRepetition)
        case .keyframeRequested(let sender):
            guard let consumer = consumers.first(where: { $0.owns(sender) }), !consumer.isPausing else { return }
            consumer.keyframeRequested()
        case .unauthenticated(let packets): onUnauthenticated?(packets)
        case .closed:
            onEnded?(RoomError(.mediaConnectionFailed, "The client closed the media connection from the server."))
        case .failed(let error):
            onEnded?(
                RoomError(
                    .mediaConnectionFailed, "The client's media connection from the server failed: \(error.message)"))
        case .sendingRate(let rate):
            target = rate
            share()
        // A client that is there answers, and finds another path.
        case .pathLost: try? restartICE()
        case .connected, .disconnected, .rerouted, .roundTrip: break
        // The client sends no media in this session.
        case .lossBeyondRepair, .mediaRefused, .senderReport, .bye: break
        }
    }
}
