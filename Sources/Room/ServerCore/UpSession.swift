internal import PeerLoop
internal import PeerSession
internal import RTP
internal import RoomProtocol

/// One client's publishing session. On the loop only.
final class UpSession {
    /// The most streams of one participant. Each is announced to all participants.
    static let maximumStreams = 16

    private struct Incoming {
        let offered: OfferedStream
        let receivers: [ReceiverID]
        let stream: PublishedStream
        /// That of the stream's sender reports.
        var clock = RemoteClock()
        var lengths = PacketLengthCheck()
        var audio = AudioLimit()
    }

    /// A layer of a stream.
    private struct IncomingLayer {
        let receiver: ReceiverID
        let layer: StreamLayer
        /// Its stream's place among the streams.
        var stream: Int
    }

    private let peer: Peer
    private let settings: SessionSettings
    private let participant: String
    private let send: (ServerMessage) -> Void
    private let sessionID: UInt64
    /// The client's transport, once it is connected.
    private var remote: TransportDescription?
    private var streams: [Incoming] = []
    /// Those of all streams.
    private var layers: [IncomingLayer] = []
    private var restartPace = RequestPace.restarts
    /// The SSRCs of layers whose streams have ended, newest last. A sender that published on the same m-line before knows that
    /// they were learned, and names the layer in none of its packets any longer.
    private var learned: [(mid: String, rid: String, ssrc: SSRC, retransmissionSSRC: SSRC?)] = []
    private static let maximumLearned = 16 * UpDescription.maximumLayers

    /// Called once, when the media path failed or the client closed it. The owner closes the session.
    var onEnded: ((RoomError) -> Void)?
    /// Called at most once a second with the number of packets that failed authentication so far.
    var onUnauthenticated: ((Int) -> Void)?
    /// Called when the publisher falls silent as one whose connection is lost, and when it is heard again.
    var onSilence: ((Bool) -> Void)?
    private var silence = PublisherSilence()
    private lazy var silenceTimer = settings.loop.makeTimer { [unowned self] in reviewSilence() }

    /// Called when packets of one stream are no longer accepted. The session continues.
    var onRefused: ((RoomError) -> Void)?

    init(
        participant: String, settings: SessionSettings, place: ClientPlace, send: @escaping (ServerMessage) -> Void
    ) throws(RoomError) {
        self.participant = participant
        self.settings = settings
        self.send = send
        sessionID = settings.nextSessionID()
        peer = try settings.makePeer(.controlled, place)
        peer.onEvent = { [unowned self] event in handle(event) }
        peer.onMedia = { [unowned self] receiver, header, position, packet in
            guard let place = layers.firstIndex(where: { $0.receiver == receiver }) else { return }
            let index = layers[place].stream
            var header = header
            // The reports that are passed on show another clock: the publisher's, late by the way from it.
            if header.captureTime != nil, !streams[index].clock.isKnown { header.captureTime?.clockOffset = nil }
            if streams[index].stream.isAudio {
                guard streams[index].audio.admits(packet.count, now: settings.loop.now) else {
                    if let problem = streams[index].audio.problem(of: streams[index].offered.mid) {
                        send(.error(Problem(problem)))
                    }
                    return
                }
                streams[index].stream.received(header.audioLevel)
            }
            layers[place].layer.forward(packet, header: header, at: position)
            if let problem = streams[index].lengths.problem(with: header, of: streams[index].offered.mid) {
                send(.error(Problem(problem)))
            }
        }
    }

    private func layer(of receiver: ReceiverID) -> StreamLayer? {
        layers.first { $0.receiver == receiver }?.layer
    }

    /// Accepts all new streams of an offer, or throws and accepts none. `numbered` returns each stream's id.
    func publish(
        _ publish: Publish, offer: SessionDescription, numbered: () -> Int
    ) throws(RoomError) -> (answer: Published, streams: [PublishedStream]) {
        guard let transport = offer.transport else {
            throw RoomError(.offerRefused, "The offer has no media.")
        }
        let restarts =
            try remote.map { old throws(RoomError) in
                try settings.restartsICE(transport, from: old, .offerRefused)
            } ?? false
        var new: [(offered: OfferedStream, attributes: StreamAttributes)] = []
        for stream in publish.streams {
            guard !(streams.map(\.offered) + new.map(\.offered)).contains(where: { $0.mid == stream.mid }) else {
                throw RoomError(.publishRefused, "The m-line '\(stream.mid.prefix(32))' is already published.")
            }
            try StreamChange(stream.attributes, state: nil).validate()
            var offered = try UpDescription.stream(stream.mid, of: offer)
            try offered.setSpatialLayers(stream.spatialLayers ?? 1)
            new.append((offered, stream.attributes))
        }
        guard !new.isEmpty || restarts else {
            throw RoomError(.publishRefused, "The message has no stream to publish.")
        }
        guard streams.count + new.count <= Self.maximumStreams else {
            throw RoomError(
                .publishRefused, "A participant can publish at most \(Self.maximumStreams) streams. Publish fewer.")
        }
        if remote == nil {
            try settings.start(peer)
            try settings.connect(peer, to: transport, as: transport.setup == .passive ? .client : .server)
            remote = transport
        } else if restarts {
            try restartPace.admit(now: settings.loop.now)
            try settings.restart(peer)
            try settings.restart(peer, with: transport)
            remote = transport
        }
        for entry in streams {
            guard let media = offer[mid: entry.offered.mid], !media.isRejected else { continue }
            for receiver in entry.receivers { peer.setExtensions(media.sentExtensions, of: receiver) }
        }
        let published = new.map { add($0.offered, $0.attributes, id: numbered()) }
        var local = peer.local
        local.setup = transport.setup == .passive ? .active : .passive
        let answer = UpDescription.answer(
            to: offer, taking: streams.map(\.offered), sessionID: sessionID, transport: local)
        return (
            Published(
                sdp: answer.serialized(),
                streams: zip(new, published).map { .init(mid: $0.offered.mid, stream: $1.info.id) }),
            published
        )
    }

    var memory: PacketMemory {
        streams.reduce(into: peer.memory) { $0 += $1.stream.memory }
    }

    /// Accepts no more packets of these streams. A later offer may use their m-lines for others.
    func end(_ ended: [PublishedStream]) {
        for entry in streams where ended.contains(where: { $0 === entry.stream }) {
            entry.stream.end()
            rememberSources(of: entry)
            for receiver in entry.receivers { peer.removeReceiver(receiver) }
        }
        streams.removeAll { entry in ended.contains { $0 === entry.stream } }
        indexLayers()
    }

    /// When media or RTCP last arrived.
    var lastReceived: MonotonicTime { peer.lastReceived }

    func addCandidate(_ candidate: String) {
        candidate.isEmpty ? peer.remoteCandidatesEnded() : peer.addRemoteCandidate(candidate)
    }

    func close() {
        silenceTimer.disarm()
        for entry in streams { entry.stream.end() }
        peer.close()
    }

    private func reviewSilence() {
        guard !streams.isEmpty else { return }
        let now = settings.loop.now
        silenceTimer.arm(at: now + PublisherSilence.interval)
        let newest = layers.map(\.layer.rate.newest).max() ?? .zero
        let isLost = silence.update(
            packet: newest, heard: peer.lastReceived, stalled: settings.loop.stalled, now: now)
        if let isLost { onSilence?(isLost) }
    }

    private func rememberSources(of entry: Incoming) {
        for (rid, receiver) in zip(entry.offered.layers, entry.receivers) {
            guard let known = peer.statistics(of: receiver), let ssrc = known.ssrc else { continue }
            learned.removeAll { $0.mid == entry.offered.mid && $0.rid == rid }
            learned.append((entry.offered.mid, rid, ssrc, known.retransmissionSSRC))
        }
        learned.removeFirst(max(0, learned.count - Self.maximumLearned))
    }

    private func indexLayers() {
        layers = streams.enumerated().flatMap { index, entry in
            zip(entry.receivers, entry.stream.layers).map { IncomingLayer(receiver: $0, layer: $1, stream: index) }
        }
    }

    private func add(_ offered: OfferedStream, _ attributes: StreamAttributes, id: Int) -> PublishedStream {
        let codec = offered.negotiated.codec
        let rids = offered.layers.isEmpty ? [nil] : offered.layers.map(Optional.some)
        let receivers = rids.map { peer.addReceiver(configuration(of: offered, rid: $0)) }
        let isScalable = offered.spatialLayers > 1
        let count = isScalable ? offered.spatialLayers : receivers.count
        var info = StreamInfo(
            id: id, media: codec.media, codec: codec.rawValue, attributes: attributes, layers: count)
        info.isScalable = isScalable
        info.hasLevels = offered.extensions.audioLevel != nil
        let stream = PublishedStream(
            info, codec: codec, participant: participant, loop: settings.loop,
            sources: (0..<count).map { index in
                SessionSource(peer: peer, receiver: receivers[isScalable ? 0 : index]) { [send] rate, watched in
                    let rids = isScalable ? nil : watched.map { $0.map { offered.layers[$0] } }
                    send(.streamLimit(StreamLimit(stream: id, bitsPerSecond: rate, layers: rids)))
                }
            })
        streams.append(Incoming(offered: offered, receivers: receivers, stream: stream))
        if streams.count == 1 { silenceTimer.arm(at: settings.loop.now + PublisherSilence.interval) }
        indexLayers()
        stream.begin()
        return stream
    }

    private func configuration(of offered: OfferedStream, rid: String?) -> ReceiverConfiguration {
        let negotiated = offered.negotiated
        let before = learned.last { $0.mid == offered.mid && $0.rid == rid }
        var configuration = ReceiverConfiguration(
            ssrc: offered.ssrc ?? before?.ssrc,
            retransmissionSSRC: offered.retransmissionSSRC ?? before?.retransmissionSSRC, mid: offered.mid, rid: rid,
            extensions: offered.extensions, clockRate: negotiated.codec.clockRate,
            payloadTypes: [negotiated.payloadType],
            retransmissionPayloadTypes: negotiated.retransmissionPayloadType.map { [negotiated.payloadType: $0] }
                ?? [:],
            redundancyPayloadTypes: negotiated.redundancyPayloadTypes, nack: negotiated.codec.media == .video)
        configuration.takesEstimates = offered.takesEstimates
        return configuration
    }

    private func handle(_ event: PeerEvent) {
        switch event {
        case .localCandidate(let candidate): send(.candidate(Candidate(session: .up, candidate: candidate)))
        case .gatheringDone: send(.candidate(Candidate(session: .up, candidate: "")))
        case .secured:
            for entry in layers where entry.layer.isAwaited { entry.layer.requestKeyframe() }
        case .senderReport(let receiver, let report): handle(report, of: receiver)
        case .mediaRefused(let receiver, let packets):
            guard let place = layers.firstIndex(where: { $0.receiver == receiver }) else { return }
            refuse(layers[place].layer, of: streams[layers[place].stream].stream, packets)
        case .lossBeyondRepair(let receiver):
            // The subscribers' requests for these packets would fail too: one keyframe mends the stream for all.
            if let layer = layer(of: receiver), layer.isWatched { layer.requestKeyframe() }
        case .unauthenticated(let packets): onUnauthenticated?(packets)
        case .closed:
            onEnded?(RoomError(.mediaConnectionFailed, "The client closed its media connection to the server."))
        case .failed(let error):
            onEnded?(
                RoomError(
                    .mediaConnectionFailed, "The client's media connection to the server failed: \(error.message)"))
        case .connected, .disconnected, .pathLost, .rerouted, .roundTrip, .sendingRate: break
        // A stream that the client ended may restart with another SSRC. The server sends no media in this session.
        case .bye, .keyframeRequested: break
        }
    }

    /// Passes the publisher's clock on, as it is at the report's arrival: a report is as old as its way is long.
    private func handle(_ report: SenderReport, of receiver: ReceiverID) {
        guard let place = layers.firstIndex(where: { $0.receiver == receiver }) else { return }
        let index = layers[place].stream
        if let roundTrip = report.roundTrip {
            streams[index].clock.add(report.ntp, arrival: report.arrival, roundTrip: roundTrip)
        }
        let layer = layers[place].layer
        let clock = SenderClock(
            ntp: report.ntp, rtp: report.rtp, at: report.arrival, clockRate: layer.codec.clockRate)
        guard let present = streams[index].clock.time(at: report.arrival) else { return layer.setClock(clock) }
        layer.setClock(clock.shown(present))
    }

    /// SRTP cannot distinguish a restarted stream with its old SSRC from a replay. Only the publisher can repair that.
    private func refuse(_ layer: StreamLayer, of stream: PublishedStream, _ packets: Int) {
        layer.requestKeyframe()
        onRefused?(
            RoomError(
                .streamRefused,
                "The server refuses stream \(stream.info.id) after \(packets) packets: its sequence numbers restarted "
                    + "under the same SSRC. Send it under another SSRC, or connect again."))
    }
}
