internal import CongestionControl
internal import MediaGraph
internal import PeerLoop
internal import PeerSession
internal import RTP
internal import RoomProtocol

/// The publishing session: the client offers one m-line for each stream. On the loop only.
final class UpSession {
    let loop: Loop
    private let server: ServerAddress
    private let cname: String
    let wallClock: (MonotonicTime) -> NTPTime
    private let captures: (any CaptureLog)?
    private var random: RandomSource
    private let sessionID: UInt64
    var id: UInt64 { sessionID }
    private var version: UInt64 = 0
    private var nextMid = 0
    private(set) var isAnswered = false
    /// Whether nothing authentic has arrived for some time.
    private(set) var isSilent = false
    /// Whether there is no path, until an ICE restart finds another one.
    private(set) var isPathLost = false
    private var isRestarting = false
    /// The SSRCs of this session.
    private var used: Set<SSRC> = []
    let peer: Peer
    private(set) var tracks: [Track] = []
    /// The m-lines of an offer, in order: each with its track's sender, or with that of its last track.
    private var lines: [Sender] = []
    private(set) var profile: SRTPProfile?
    private(set) var roundTrip: TimeInterval?
    /// The rate of all tracks together in bits per second. Nil until the session knows it.
    private(set) var target: Int?
    /// The rate that the tracks can use together, as the session knows it.
    private var told: Int?
    private(set) var securedAt: MonotonicTime?
    /// Called on the loop.
    var onEvent: ((SessionEvent) -> Void)?
    private var packet = PacketBuffer()

    /// Starts the peer. Closes it if that fails.
    ///
    /// - Parameter cname: the peer's canonical name.
    init(
        loop: Loop, server: ServerAddress, peer: Peer, cname: String, environment: RoomEnvironment, seed: UInt64
    ) throws(TransportError) {
        self.loop = loop
        self.server = server
        self.peer = peer
        self.cname = cname
        wallClock = environment.wallClock
        captures = environment.captures
        random = RandomSource(seed: seed)
        sessionID = UInt64.random(in: 1...UInt64(Int64.max), using: &random)
        peer.onEvent = { [unowned self] event in handle(event) }
        do throws(TransportError) {
            try peer.start()
        } catch {
            peer.close()
            throw error
        }
    }

    // MARK: - Negotiation

    /// Adds a track to the next offer, on an m-line whose track was removed, or on a new one.
    ///
    /// - Parameter former: the track in a session that ended, whose mid it keeps.
    func addTrack(_ offer: TrackOffer, adopting former: FormerTrack? = nil) -> Track {
        let codec = offer.track.codec
        let mid = former?.mid ?? String(nextMid)
        nextMid = max(nextMid, (former.flatMap { Int($0.mid) } ?? nextMid) + 1)
        let retransmission = codec.retransmissionPayloadType.map { _ in newSSRC() }
        var sender = Sender(mid: mid, codec: codec, ssrc: newSSRC(), retransmissionSSRC: retransmission)
        let layers = codec.media == .video ? offer.track.layers : []
        if layers.count > 1 { sender.layers = layers.map(\.rid) }
        let track = Track(sender: sender, offer: offer)
        track.former = former?.stream
        tracks.append(track)
        for layer in layers.count > 1 ? layers : [.full] {
            track.encodings.append(
                encoding(
                    layer, of: sender, isAlone: layers.count <= 1, after: offer.track.encoderStatistics(of: layer)))
        }
        if let free = lines.firstIndex(where: \.hasEnded) { lines[free] = sender } else { lines.append(sender) }
        return track
    }

    private func encoding(
        _ layer: VideoLayer, of sender: Sender, isAlone: Bool, after before: MediaStatistics.VideoEncoder?
    ) -> Encoding {
        let codec = sender.codec
        var configuration = SenderConfiguration(
            ssrc: sender.ssrc, retransmissionSSRC: sender.retransmissionSSRC, clockRate: codec.clockRate,
            retransmissionPayloadTypes: codec.retransmissionPayloadType.map { [codec.payloadType: $0] } ?? [:],
            history: codec.media == .video ? 1024 : 0, isAudio: codec.media == .audio)
        if !isAlone { (configuration.mid, configuration.rid) = (sender.mid, layer.rid) }
        if layer != .full {
            configuration.ssrc = newSSRC()
            configuration.retransmissionSSRC = sender.retransmissionSSRC.map { _ in newSSRC() }
        }
        let first = SequenceNumber(.random(in: 0..<0x4000, using: &random))
        used.formUnion([configuration.ssrc, configuration.retransmissionSSRC].compactMap(\.self))
        return Encoding(
            layer, peer.addSender(configuration), configuration, first: first, isOn: isAlone || layer == .full,
            after: before)
    }

    private func newSSRC() -> SSRC {
        while true {
            // Some stacks give 0 and 1 special meanings.
            let ssrc = SSRC(UInt32.random(in: 2 ... .max, using: &random))
            if used.insert(ssrc).inserted { return ssrc }
        }
    }

    /// The track of a stream that the application names: it may not know the id that the stream has since the client joined again.
    func track(of id: Int) -> Track? {
        tracks.first { $0.stream == id } ?? tracks.first { $0.former == id }
    }

    func remove(_ removed: [Track]) {
        for track in removed {
            for encoding in track.encodings { peer.removeSender(encoding.sender) }
            disconnect(track)
            for index in lines.indices where lines[index].mid == track.sender.mid { lines[index].hasEnded = true }
        }
        tracks.removeAll { track in removed.contains { $0 === track } }
        shareRate()
    }

    /// An offer that restarts ICE.
    func restart() throws(TransportError) -> String {
        try peer.restart()
        isRestarting = true
        return offer()
    }

    func offer() -> String {
        version += 1
        return UpDescription.offer(
            sessionID: sessionID, version: version, senders: lines, transport: peer.local, cname: cname
        ).serialized()
    }

    /// Accepts the server's answer and its ids of the new streams.
    func accept(_ published: Published) throws(RoomError) {
        if let other = published.streams.first(where: { stream in !tracks.contains { $0.sender.mid == stream.mid } }) {
            throw RoomError(
                .publishReplyDiffers,
                "The server's reply to 'publish' has a stream for the m-line '\(other.mid.prefix(32))', which was not offered. "
                    + "Check its version.")
        }
        do throws(TransportError) {
            let answer = try SessionDescription(parsing: published.sdp)
            for stream in published.streams {
                guard let track = tracks.first(where: { $0.sender.mid == stream.mid }),
                    answer[mid: stream.mid]?.isRejected == false
                else { continue }
                track.stream = stream.stream
            }
            for track in tracks {
                guard let media = answer[mid: track.sender.mid], !media.isRejected else { continue }
                acceptLayers(of: track, media)
                for encoding in track.encodings {
                    peer.setExtensions(UpDescription.acceptedExtensions(of: media), of: encoding.sender)
                    peer.setRedundancy(UpDescription.acceptedRedundancy(of: media), of: encoding.sender)
                }
            }
            shareRate()
            guard !isAnswered || isRestarting else { return }
            guard let transport = answer.transport else {
                throw TransportError(code: "sdp.no-media", message: "The answer refuses every stream.")
            }
            guard !isRestarting else {
                isRestarting = false
                return try peer.restart(with: transport)
            }
            isAnswered = true
            try peer.setRemote(transport, dtlsRole: transport.setup == .active ? .server : .client)
        } catch {
            throw RoomError(
                .answerUnusable, "The server's answer for the up session is unusable: \(error.message)")
        }
    }

    /// Keeps the layers that the answer accepts: without any, the whole size.
    private func acceptLayers(of track: Track, _ media: MediaDescription) {
        guard track.encodings.count > 1 else { return }
        // Without them in the packets, nothing tells the layers apart.
        let names = UpDescription.acceptedExtensions(of: media)
        let isNamed = names.mid != nil && names.streamID != nil
        let accepted = !isNamed ? [] : UpDescription.acceptedLayers(of: media).compactMap { VideoLayer(rid: $0) }
        let kept: [VideoLayer] = accepted.isEmpty ? [.full] : accepted
        guard track.encodings.contains(where: { kept.contains($0.layer) }) else { return }
        for encoding in track.encodings where !kept.contains(encoding.layer) {
            peer.removeSender(encoding.sender)
            track.offer.track.endLimit(of: encoding.layer)
        }
        track.encodings.removeAll { !kept.contains($0.layer) }
        if track.encodings.map(\.layer) == [.full] { track.offer.track.layersRefused() }
    }

    func cut(_ isCut: Bool) { peer.impairment = isCut ? .cut : nil }

    /// When media or RTCP last arrived.
    var lastReceived: MonotonicTime { peer.lastReceived }

    func addRemoteCandidate(_ candidate: String) {
        if candidate.isEmpty { peer.remoteCandidatesEnded() } else { peer.addRemoteCandidate(candidate) }
    }

    // MARK: - Media

    /// Sends the packets of one encoded frame.
    func send(_ batch: RTPBatch, on track: Track) {
        guard profile != nil, let stream = track.stream else {
            track.framesNotSent += 1
            return
        }
        guard let encoding = track.encodings.first(where: { $0.layer == batch.layer }),
            isDue(batch, of: encoding, on: track)
        else { return }
        encoding.framesSent += 1
        let captured = MonotonicTime(nanoseconds: batch.captureTime.nanoseconds)
        let (ntp, rtp) = (wallClock(captured), RTPTimestamp(batch.rtpTimestamp))
        peer.setClock(encoding.sender, ntp: ntp, rtp: rtp, at: captured)
        let carriesTime = encoding.captureTimes.includes(ntp, rtp: rtp, beginsStream: track.isVideo && batch.isKeyframe)
        // All layers of a frame have one timestamp.
        if track.isVideo, track.recorded != batch.rtpTimestamp {
            track.recorded = batch.rtpTimestamp
            captures?.record(
                StreamKey(server: server, stream: stream), rtpTimestamp: batch.rtpTimestamp, captured: batch.captureTime
            )
        }
        encoding.pictures.beginFrame()
        for index in 0..<batch.count {
            let range = batch.range(index)
            guard range.count <= PacketBuffer.capacity else { continue }
            packet.bytes.copyBytes(from: batch.bytes, range, to: 0)
            packet.count = range.count
            guard var header = RTPHeader(parsing: packet) else { continue }
            encoding.pictures.number(&packet, header: header, as: track.sender.codec.payload)
            // The clock of the capture is that of the sender reports.
            header.audioLevel = batch.audioLevel.map { AudioLevel(negativeDecibels: $0) }
            if carriesTime, index == 0 { header.captureTime = AbsoluteCaptureTime(ntp, clockOffset: 0) }
            var rewrite = Rewrite(keeping: header)
            rewrite.sequenceNumber = encoding.nextSequenceNumber
            encoding.nextSequenceNumber = encoding.nextSequenceNumber.advanced(by: 1)
            peer.send(packet, header: header, rewrite: rewrite, via: encoding.sender)
        }
    }

    /// Called about twice a second.
    func sample(now: MonotonicTime) {
        for (source, isVideo, encoding) in tracks.flatMap({ track in
            track.encodings.map { (track.offer.track, track.isVideo, $0) }
        }) {
            guard let sent = peer.statistics(of: encoding.sender) else { continue }
            encoding.bitRate.sample(sent.bytes * 8, now: now)
            encoding.pathRate.sample((sent.bytes + sent.packets * PathRate.packetOverhead) * 8, now: now)
            encoding.offeredRate.sample(encoding.offeredBits, now: now)
            encoding.sentPackets.sample(sent.packets, now: now)
            encoding.lostPackets.sample(sent.remoteLost, now: now)
            if isVideo {
                let encoder = source.encoderStatistics(of: encoding.layer)
                encoding.skipped.sample(encoder?.droppedForRate ?? encoding.gate.dropped, now: now)
            }
            if isVideo { encoding.encoder.sample(source.encoderStatistics(of: encoding.layer), now: now) }
            if !isVideo, let percent = sent.expectedLoss.percent { source.expectLoss(percent: percent) }
            encoding.repairRate.sample(
                (sent.retransmittedBytes + sent.retransmittedPackets * PathRate.packetOverhead) * 8, now: now)
        }
        for track in tracks { track.offer.track.audioEncoderStatistics.map { track.sound.update($0) } }
        shareRate()
    }

    // MARK: - Rates

    /// Each change may cause probes, so small ones do not count.
    func tellDemand(_ demand: Int?) {
        if let demand, let told, abs(demand - told) * 10 <= told { return }
        told = demand
        peer.setDemand(bitsPerSecond: demand)
    }

    func close() {
        onEvent = nil
        for track in tracks { disconnect(track) }
        peer.close()
    }

    /// Ends the session, and returns the published tracks and those with the given mids, which go on in another one. Others end.
    func surrender(keeping mids: Set<String>) -> [FormerTrack] {
        onEvent = nil
        var former: [FormerTrack] = []
        for track in tracks {
            let stream = track.stream ?? track.former
            guard stream != nil || mids.contains(track.sender.mid) else {
                disconnect(track)
                continue
            }
            if let stream { captures?.remove(StreamKey(server: server, stream: stream)) }
            for encoding in track.encodings { track.offer.track.endLimit(of: encoding.layer) }
            former.append(FormerTrack(mid: track.sender.mid, offer: track.offer, stream: stream))
        }
        peer.close()
        return former
    }

    private func disconnect(_ track: Track) {
        track.offer.track.disconnect()
        if let stream = track.stream { captures?.remove(StreamKey(server: server, stream: stream)) }
    }

    private func handle(_ event: PeerEvent) {
        switch event {
        case .localCandidate(let candidate): onEvent?(.candidate(candidate))
        case .gatheringDone: onEvent?(.candidatesEnded)
        case .secured(let profile):
            // The server requests a keyframe when a participant subscribes.
            self.profile = profile
            securedAt = loop.now
            shareRate()
            onEvent?(.secured)
        case .keyframeRequested(let id):
            for track in tracks {
                guard let encoding = track.encodings.first(where: { $0.sender == id }), encoding.isOn else { continue }
                requestKeyframe(of: encoding, on: track)
            }
        case .roundTrip(let time): roundTrip = time
        case .sendingRate(let rate):
            target = rate
            shareRate()
        case .closed: onEvent?(.ended(nil))
        case .failed(let error): onEvent?(.ended(error))
        case .disconnected:
            isSilent = true
            onEvent?(.silent)
        case .pathLost:
            isPathLost = true
            onEvent?(.pathLost)
        case .connected, .rerouted: (isSilent, isPathLost) = (false, false)
        case .lossBeyondRepair, .mediaRefused, .unauthenticated, .senderReport, .bye: break
        }
    }

    func requestKeyframe(of encoding: Encoding, on track: Track) {
        guard track.isVideo else { return }
        encoding.keyframesRequested += 1
        switch encoding.governor.request(now: loop.now) {
        case .askNow: track.offer.track.requestKeyframe(of: encoding.layer)
        case .askAt(let time):
            loop.schedule(at: time) { [weak self, weak track, weak encoding] in
                guard self != nil, let track, let encoding, encoding.governor.timeout(now: time) else { return }
                track.offer.track.requestKeyframe(of: encoding.layer)
            }
        case .wait: break
        }
    }
}
