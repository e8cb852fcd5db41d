internal import PeerLoop
internal import PeerSession
internal import RTP
internal import RoomProtocol

/// The receiving session: the server offers a pool of receivers and assigns streams to them. On the loop only.
final class DownSession {
    private let server: ServerAddress
    private let sessionID: UInt64
    var id: UInt64 { sessionID }
    let peer: Peer
    /// In the order of the offers.
    private(set) var slots: [ReceiverSlot] = []
    private var slotOfReceiver: [ReceiverID: ReceiverSlot] = [:]
    private var remote: TransportDescription?
    private var restartPace = RequestPace.restarts
    /// Whether nothing authentic has arrived for some time.
    private(set) var isSilent = false
    /// Whether there is no path, until an ICE restart finds another one.
    private(set) var isPathLost = false
    /// How many packets of streams had arrived at the last sample, and the last sample with new ones.
    private var arrived = (packets: 0, at: MonotonicTime.zero)
    /// When media began to arrive again after a pause.
    private var flowsSince = MonotonicTime.zero
    private(set) var revision = 0
    /// Whether the offer of that revision had more receivers than the one before.
    private(set) var hasGrown = false
    private(set) var profile: SRTPProfile?
    private(set) var roundTrip: TimeInterval?
    /// Called on the loop.
    var onEvent: ((SessionEvent) -> Void)?
    private let connectStarted: MonotonicTime
    /// The last statistics of ended streams, for a report of the whole call. The oldest are removed first.
    private var ended: [RoomStatistics.Received] = []
    private static let endedCapacity = 64

    /// Starts the peer. Closes it if that fails.
    init(
        server: ServerAddress, peer: Peer, connectStarted: MonotonicTime, seed: UInt64
    ) throws(TransportError) {
        self.server = server
        self.peer = peer
        self.connectStarted = connectStarted
        var random = RandomSource(seed: seed)
        sessionID = UInt64.random(in: 1...UInt64(Int64.max), using: &random)
        peer.onEvent = { [unowned self] event in handle(event) }
        peer.onMedia = { [unowned self] id, header, position, packet in
            slotOfReceiver[id]?.receive(packet, header, at: position)
        }
        do throws(TransportError) {
            try peer.start()
        } catch {
            peer.close()
            throw error
        }
    }

    /// Reads an offer of the server.
    static func offer(in description: Description) throws(RoomError) -> SessionDescription {
        do throws(TransportError) {
            return try SessionDescription(parsing: description.sdp)
        } catch {
            throw refusal(error)
        }
    }

    private static func refusal(_ error: TransportError) -> RoomError {
        RoomError(.downOfferUnusable, "The server's offer of the down session cannot be used: \(error.message)")
    }

    /// Accepts the first offer, or one with more receivers. Returns the answer, or nil for an outdated offer.
    func answer(_ offer: SessionDescription, revision: Int) throws(RoomError) -> Description? {
        guard revision > self.revision else { return nil }
        let restarts =
            if let remote, let offered = offer.transport {
                remote.iceUfrag != offered.iceUfrag || remote.icePwd != offered.icePwd
            } else {
                false
            }
        if restarts { try restartPace.admit(now: peer.loop.now) }
        let before = slots.count
        do throws(TransportError) {
            try addReceivers(of: offer)
            guard let offered = offer.transport else {
                throw TransportError(code: "sdp.no-media", message: "It offers no receiver.")
            }
            let former = remote
            remote = offered
            if restarts { try restart() }
            var transport = peer.local
            transport.setup = .active
            if former == nil { try peer.setRemote(offered, dtlsRole: .client) }
            if restarts { try peer.restart(with: offered) }
            self.revision = revision
            hasGrown = former != nil && slots.count > before
            let answer = DownDescription.answer(to: offer, sessionID: sessionID, transport: transport)
            return Description(session: .down, sdp: answer.serialized(), revision: revision)
        } catch {
            throw error.cause as? RoomError ?? Self.refusal(error)
        }
    }

    /// Makes the description of an answer that restarts ICE.
    private func restart() throws(TransportError) {
        do throws(TransportError) {
            try peer.restart()
        } catch {
            let problem = RoomError(
                .answerNotMade, "The answer that restarts ICE of the down session was not made: \(error.message)")
            throw TransportError(code: error.code, message: error.message, cause: problem)
        }
    }

    private func addReceivers(of offer: SessionDescription) throws(TransportError) {
        let receivers: [Receiver]
        do throws(RoomError) {
            receivers = try DownDescription.receivers(in: offer)
        } catch {
            throw TransportError(code: "sdp.no-ssrc", message: error.message, cause: error)
        }
        for receiver in receivers {
            let media = offer[mid: receiver.mid]
            let extensions = media?.sentExtensions ?? HeaderExtensionIDs()
            if let slot = slot(receiver.mid) {
                peer.setExtensions(extensions, of: slot.id)
                continue
            }
            let codecs = media.map { NegotiatedCodec.all(in: $0) } ?? []
            let retransmissions = codecs.compactMap { codec in
                codec.retransmissionPayloadType.map { (codec.payloadType, $0) }
            }
            let redundancies = codecs.flatMap(\.redundancyPayloadTypes).map { ($0.key, $0.value) }
            let id = peer.addReceiver(
                ReceiverConfiguration(
                    ssrc: receiver.ssrc,
                    retransmissionSSRC: receiver.retransmissionSSRC, mid: receiver.mid,
                    extensions: extensions,
                    clockRate: receiver.media == .video ? Codec.vp8.clockRate : Codec.opus.clockRate,
                    payloadTypes: Set(codecs.map(\.payloadType)),
                    retransmissionPayloadTypes: Dictionary(retransmissions) { first, _ in first },
                    redundancyPayloadTypes: Dictionary(redundancies) { first, _ in first },
                    nack: receiver.media == .video))
            let slot = ReceiverSlot(receiver: receiver, id: id, codecs: codecs, loop: peer.loop)
            slots.append(slot)
            slotOfReceiver[id] = slot
        }
    }

    private func slot(_ mid: String) -> ReceiverSlot? { slots.first { $0.receiver.mid == mid } }

    private func slot(carrying stream: Int) -> ReceiverSlot? { slots.first { $0.assignment?.stream.id == stream } }

    /// How media travels. Nil before there is a way.
    var route: MediaRoute? { peer.route }

    func cut(_ isCut: Bool) { peer.impairment = isCut ? .cut : nil }

    /// When media or RTCP last arrived.
    var lastReceived: MonotonicTime { peer.lastReceived }

    func addRemoteCandidate(_ candidate: String) {
        if candidate.isEmpty { peer.remoteCandidatesEnded() } else { peer.addRemoteCandidate(candidate) }
    }

    // MARK: - Assignments

    /// Assigns a stream to a receiver, beginning at the packet `first`, and ends the earlier assignment. Returns false
    /// if the receiver does not exist or cannot carry the codec.
    func assign(_ stream: AssignedStream, to mid: String, from first: SequenceNumber?) -> Bool {
        guard let slot = slot(mid), let codec = slot.codecs.first(where: { $0.codec == stream.codec }) else {
            return false
        }
        guard slot.assignment?.stream.id != stream.id else { return true }
        // A stream is assigned to one receiver at a time.
        release(stream: stream.id)
        free(slot)
        let number = first.flatMap { peer.discard(before: $0, on: slot.id) }
        let incoming = IncomingStream(
            id: stream.id, server: server, participant: stream.participant, codec: stream.codec,
            payloadType: codec.payloadType, connectStarted: connectStarted)
        let assignment = Assignment(incoming, to: stream.makeSink(incoming), before: peer.statistics(of: slot.id))
        if !slot.begin(assignment, at: first, position: number) { peer.requestKeyframe(slot.id) }
        return true
    }

    func release(mid: String) {
        if let slot = slot(mid) { free(slot) }
    }

    private func free(_ slot: ReceiverSlot) {
        if var numbers = statistics(of: slot) {
            numbers.hasEnded = true
            ended.removeAll { $0.streamId == numbers.streamId }
            ended.append(numbers)
            if ended.count > Self.endedCapacity { ended.removeFirst() }
        }
        slot.release()
    }

    func release(stream: Int) {
        if let slot = slot(carrying: stream) { free(slot) }
    }

    func requestKeyframe(of stream: Int) {
        if let slot = slot(carrying: stream) { peer.requestKeyframe(slot.id) }
    }

    // MARK: - Statistics

    /// Called about twice a second.
    func sample(now: MonotonicTime) {
        var packets = 0
        for slot in slots {
            slot.sample(now: now)
            guard let statistics = peer.statistics(of: slot.id) else { continue }
            packets += statistics.packets
            slot.assignment?.sample(statistics, now: now)
        }
        guard packets != arrived.packets else { return }
        if now - arrived.at >= Self.pause { flowsSince = now }
        arrived = (packets, now)
    }

    /// The losses until now say nothing about those to come.
    func forgetLosses() {
        for slot in slots { slot.assignment?.forgetLosses() }
    }

    /// Whether media was the last to arrive. After the end of all streams, reports are.
    var hasStopped: Bool { lastReceived > .zero && arrived.at >= lastReceived }

    /// Without media for so long, both ends report rarely.
    private static let pause = TimeInterval.seconds(2)
    /// The server replies to the reports of a session that gets media once a second.
    private static let unheard = TimeInterval.seconds(8)

    /// Since when the server has got no report of this session, although media arrives: the way to it is dead, and that from it is
    /// not. Nil while the server gets them.
    func unheardSince(now: MonotonicTime) -> MonotonicTime? {
        let answered = peer.lastAnswered
        let since = max(answered, flowsSince)
        guard answered > .zero, now - since >= Self.unheard, now - arrived.at < Self.unheard else { return nil }
        return since
    }

    /// The figures of the stream of each slot. Collecting them takes long for a pipeline.
    func figures() -> [RoomStatistics.Received?] { slots.map { statistics(of: $0) } }

    /// All received streams, including ended ones.
    ///
    /// - Parameter figures: those of `figures()`
    func received(_ figures: [RoomStatistics.Received?]) -> [RoomStatistics.Received] {
        let present = figures.compactMap(\.self)
        let past = ended.filter { past in !present.contains { $0.streamId == past.streamId } }
        return (present + past).sorted { $0.streamId < $1.streamId }
    }

    private func statistics(of slot: ReceiverSlot) -> RoomStatistics.Received? {
        guard let assignment = slot.assignment else { return nil }
        var entry = assignment.statistics
        if let now = peer.statistics(of: slot.id), let before = assignment.before {
            entry.packetsReceived = now.packets - before.packets
            entry.packetsLost = now.lost - before.lost
            entry.packetsRecovered = now.recovered - before.recovered
            entry.keyframesRequested = now.keyframeRequests - before.keyframeRequests
        }
        return entry
    }

    func close() {
        onEvent = nil
        for slot in slots { slot.release() }
        peer.close()
    }

    private func handle(_ event: PeerEvent) {
        switch event {
        case .localCandidate(let candidate): onEvent?(.candidate(candidate))
        case .gatheringDone: onEvent?(.candidatesEnded)
        case .secured(let profile):
            self.profile = profile
            onEvent?(.secured)
        case .lossBeyondRepair(let id): peer.requestKeyframe(id)
        case .senderReport(let id, let report): slotOfReceiver[id]?.receive(report)
        case .mediaRefused(let id, let packets):
            if let stream = slotOfReceiver[id]?.assignment?.stream { onEvent?(.problem(refusal(of: stream, packets))) }
        case .roundTrip(let time): roundTrip = time
        case .closed: onEvent?(.ended(nil))
        case .failed(let error): onEvent?(.ended(error))
        case .disconnected:
            isSilent = true
            onEvent?(.silent)
        case .pathLost:
            isPathLost = true
            onEvent?(.pathLost)
        case .connected, .rerouted: (isSilent, isPathLost) = (false, false)
        case .keyframeRequested, .unauthenticated, .bye, .sendingRate: break
        }
    }

    /// SRTP cannot distinguish restarted numbers from a replay. Another subscription would use the same SSRC.
    private func refusal(of stream: IncomingStream, _ packets: Int) -> RoomError {
        RoomError(
            .streamRefused,
            "The client refuses stream \(stream.id) after \(packets) packets: the server's packets fail SRTP's "
                + "check. Connect to the room again.")
    }
}
