internal import MediaGraph
internal import MediaNodes
internal import PeerIO
internal import PeerSession
internal import RTP
internal import RoomProtocol

/// The receiving session: the server offers a pool of receivers and assigns streams to them. On the loop only.
final class DownSession {
    enum Event: Sendable {
        case candidate(String)
        case candidatesEnded
        case secured(SRTPProfile)
        /// An assigned stream stopped. The session continues.
        case problem(RoomError)
        case ended(TransportError?)
    }

    private let loop: EventLoop
    private let sessionID: UInt64
    private let peer: Peer
    private var slots: [String: ReceiverSlot] = [:]
    private var slotOfReceiver: [ReceiverID: ReceiverSlot] = [:]
    private var isAnswered = false
    private(set) var revision = 0
    private(set) var profile: SRTPProfile?
    private(set) var roundTrip: TimeInterval?
    /// Called on the loop.
    var onEvent: ((Event) -> Void)?
    private let connectStarted: MonotonicTime
    /// The last statistics of ended streams, for a report of the whole call. The oldest are removed first.
    private var ended: [RoomStatistics.Received] = []
    private static let endedCapacity = 64

    init(
        loop: EventLoop, configuration: PeerConfiguration, connectStarted: MonotonicTime
    ) throws(TransportError) {
        self.loop = loop
        self.connectStarted = connectStarted
        sessionID = UInt64.random(in: 1...UInt64(Int64.max))
        peer = try Peer(loop: loop, configuration: configuration)
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
        RoomError(.offerRefused, "The server's offer of the down session cannot be used: \(error.message)")
    }

    /// Accepts the first offer, or one with more receivers. Returns the answer, or nil for an outdated offer.
    func answer(_ offer: SessionDescription, revision: Int) throws(RoomError) -> Description? {
        guard revision > self.revision else { return nil }
        do throws(TransportError) {
            try addReceivers(of: offer)
            var transport = peer.local
            transport.setup = .active
            if !isAnswered {
                guard let remote = offer.transport else {
                    throw TransportError(code: "sdp.no-media", message: "It offers no receiver.")
                }
                isAnswered = true
                try peer.setRemote(remote, dtlsRole: .client)
            }
            self.revision = revision
            let answer = DownDescription.answer(to: offer, sessionID: sessionID, transport: transport)
            return Description(session: .down, sdp: answer.serialized(), revision: revision)
        } catch {
            throw Self.refusal(error)
        }
    }

    private func addReceivers(of offer: SessionDescription) throws(TransportError) {
        let receivers: [Receiver]
        do throws(RoomError) {
            receivers = try DownDescription.receivers(in: offer)
        } catch {
            throw TransportError(code: "sdp.no-ssrc", message: error.message, cause: error)
        }
        for receiver in receivers where slots[receiver.mid] == nil {
            let codecs = offer[mid: receiver.mid].map { NegotiatedCodec.all(in: $0) } ?? []
            let retransmissions = codecs.compactMap { codec in
                codec.retransmissionPayloadType.map { (codec.payloadType, $0) }
            }
            let id = peer.addReceiver(
                ReceiverConfiguration(
                    kind: receiver.media == .video ? .video : .audio, ssrc: receiver.ssrc,
                    retransmissionSSRC: receiver.retransmissionSSRC, mid: receiver.mid,
                    clockRate: receiver.media == .video ? Codec.vp8.clockRate : Codec.opus.clockRate,
                    payloadTypes: Set(codecs.map(\.payloadType)),
                    retransmissionPayloadTypes: Dictionary(retransmissions) { first, _ in first },
                    nack: receiver.media == .video))
            let slot = ReceiverSlot(receiver: receiver, id: id, codecs: codecs)
            slots[receiver.mid] = slot
            slotOfReceiver[id] = slot
        }
    }

    func cut(_ isCut: Bool) { peer.impairment = isCut ? .cut : nil }

    /// When media or RTCP last arrived.
    var lastReceived: MonotonicTime { peer.lastReceived }

    func addRemoteCandidate(_ candidate: String) {
        if candidate.isEmpty { peer.remoteCandidatesEnded() } else { peer.addRemoteCandidate(candidate) }
    }

    // MARK: - Assignments

    /// Assigns a stream to a receiver, beginning at the packet `first`, and ends the earlier assignment. Returns false
    /// if the receiver does not exist or cannot carry the codec.
    func assign(
        _ stream: AssignedStream, to mid: String, from first: SequenceNumber?,
        post: @escaping @Sendable (ReceiverNotice) -> Void
    ) -> Bool {
        guard let slot = slots[mid], let codec = slot.codecs.first(where: { $0.codec == stream.codec }) else {
            return false
        }
        guard slot.assignment?.stream.id != stream.id else { return true }
        // A stream is assigned to one receiver at a time.
        release(stream: stream.id)
        free(slot)
        let number = first.flatMap { peer.discard(before: $0, on: slot.id) }
        let isWhole = slot.begin(
            Assignment(stream, mid: mid, codec: codec, before: peer.statistics(of: slot.id), post: post), at: number)
        if !isWhole { peer.requestKeyframe(slot.id) }
        return true
    }

    func release(mid: String) -> AssignedStream? {
        let stream = slots[mid]?.assignment?.stream
        if let slot = slots[mid] { free(slot) }
        return stream
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

    @discardableResult
    func release(stream: Int) -> AssignedStream? {
        guard let slot = slots.values.first(where: { $0.assignment?.stream.id == stream }) else { return nil }
        return release(mid: slot.receiver.mid)
    }

    func assignment(of stream: Int) -> Assignment? {
        slots.values.lazy.compactMap(\.assignment).first { $0.stream.id == stream }
    }

    /// Handles a notice of a receiver's pipeline. Ignores notices of earlier assignments.
    func handle(_ notice: ReceiverNotice) -> RoomError? {
        guard let slot = slots[notice.mid], let assignment = slot.assignment, assignment.serial == notice.serial else {
            return nil
        }
        switch notice.kind {
        case .keyframeNeeded: peer.requestKeyframe(slot.id)
        case .pipeline(let number, let told):
            switch assignment.pipeline?.handle(told, of: number, now: loop.now) {
            case .requestKeyframe: peer.requestKeyframe(slot.id)
            case .retry(let delay, let isNews):
                loop.schedule(after: delay) { [weak pipeline = assignment.pipeline] in pipeline?.retry(after: number) }
                if isNews, case .failed(let error) = told { return RoomError(error) }
            case .nothing, nil: break
            }
        }
        return nil
    }

    // MARK: - Statistics

    /// Called about twice a second.
    func sample(now: MonotonicTime) {
        for slot in slots.values {
            guard let assignment = slot.assignment, let statistics = peer.statistics(of: slot.id) else { continue }
            assignment.monitor.sample(bytes: statistics.bytes, now: now)
        }
    }

    /// All received streams, including ended ones.
    func received() -> [RoomStatistics.Received] {
        let present = slots.values.compactMap { statistics(of: $0) }
        let past = ended.filter { past in !present.contains { $0.streamId == past.streamId } }
        return (present + past).sorted { $0.streamId < $1.streamId }
    }

    private func statistics(of slot: ReceiverSlot) -> RoomStatistics.Received? {
        guard let assignment = slot.assignment else { return nil }
        var entry = assignment.statistics(connectStarted: connectStarted)
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
        for slot in slots.values { slot.release() }
        peer.close()
    }

    private func handle(_ event: PeerEvent) {
        switch event {
        case .localCandidate(let candidate): onEvent?(.candidate(candidate))
        case .gatheringDone: onEvent?(.candidatesEnded)
        case .secured(let profile):
            self.profile = profile
            onEvent?(.secured(profile))
        case .lossBeyondRepair(let id): peer.requestKeyframe(id)
        case .senderReport(let id, let ntp, let rtp, _):
            slotOfReceiver[id]?.assignment?.sink.senderReport(ntp: ntp, rtp: rtp)
        case .mediaRefused(let id, let packets):
            if let stream = slotOfReceiver[id]?.assignment?.stream { onEvent?(.problem(refusal(of: stream, packets))) }
        case .roundTrip(let time): roundTrip = time
        case .closed: onEvent?(.ended(nil))
        case .failed(let error): onEvent?(.ended(error))
        case .connected, .disconnected, .keyframeRequested, .unauthenticated, .bye: break
        }
    }

    /// SRTP cannot distinguish restarted numbers from a replay. Another subscription would use the same SSRC.
    private func refusal(of stream: AssignedStream, _ packets: Int) -> RoomError {
        RoomError(
            .streamRefused,
            "The client refuses stream \(stream.id) after \(packets) packets: the server's packets fail SRTP's "
                + "check. Connect to the room again.")
    }
}

/// One receiver of the pool. On the loop only.
final class ReceiverSlot {
    let receiver: Receiver
    let id: ReceiverID
    let codecs: [NegotiatedCodec]
    private(set) var assignment: Assignment?
    /// Packets of the next stream that arrived before the message that assigns it.
    private var held = HeldPackets()

    init(receiver: Receiver, id: ReceiverID, codecs: [NegotiatedCodec]) {
        self.receiver = receiver
        self.id = id
        self.codecs = codecs
    }

    func receive(_ packet: borrowing PacketBuffer, _ header: RTPHeader, at position: StreamPosition) {
        guard let assignment else { return held.hold(packet, header, at: position) }
        held.remember(packet, header, at: position)
        // A packet with another payload type belongs to the previous or the next stream.
        guard assignment.payloadType == header.payloadType else { return }
        assignment.receive(packet.bytes.span.extracting(0..<packet.count))
    }

    /// Assigns a stream that begins at `first`. Packets that arrived before the message now go to it, even if the
    /// previous stream already got them. Returns false if its first packets were dropped because too many arrived.
    func begin(_ assignment: Assignment, at first: Int?) -> Bool {
        self.assignment = assignment
        let isWhole = held.isWhole(from: first)
        for packet in held.take(from: first) where packet.payloadType == assignment.payloadType {
            assignment.receive(packet.bytes.span)
        }
        return isWhole
    }

    func release() {
        assignment?.sink.end()
        assignment = nil
    }
}
