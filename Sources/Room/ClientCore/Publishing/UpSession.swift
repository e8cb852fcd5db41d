internal import CongestionControl
internal import MediaGraph
internal import PeerLoop
internal import PeerSession
internal import RTP
internal import RoomProtocol

/// The publishing session: the client offers one m-line for each stream. On the loop only.
final class UpSession {
    enum Event: Sendable {
        case candidate(String)
        case candidatesEnded
        case secured(SRTPProfile)
        /// Nothing arrives: the way to the server may have changed.
        case silent
        case ended(TransportError?)
    }

    /// One published stream.
    final class Track {
        let sender: Sender
        let senderID: SenderID
        let offer: TrackOffer
        /// The server's id, after it replied.
        var stream: Int?
        /// The id that it had in a session that ended.
        fileprivate var former: Int?
        /// The state that the server knows, and whether it is being told another one.
        var (toldState, isTelling) = (StreamState.live, false)
        /// The rate of media that the best link of a subscriber carries. Nil if one carries all of it.
        fileprivate(set) var roomLimit: Int?
        /// Whether it is lower than the track's share of the own link.
        fileprivate var isLimitedByRoom = false
        var framesSent = 0
        var framesNotSent = 0
        var bitRate = RateWindow()
        /// The path's bits of first packets and of all repeats, with all headers.
        fileprivate var (pathRate, repairRate) = (RateWindow(), RateWindow())
        /// The path's bits of all frames that came, dropped ones included.
        fileprivate var offeredBits = 0
        fileprivate var offeredRate = RateWindow()
        fileprivate var gate = FrameGate()
        fileprivate var keyframe = KeyframeRequests()
        fileprivate var captureTimes: CaptureTimeSchedule
        /// Counted here, because a restarted encoder begins with any number, and SRTP refuses numbers that go back (RFC
        /// 3711, section 3.3.2). The first is random and below 2^15 (section 3.3.1).
        fileprivate var nextSequenceNumber: SequenceNumber
        /// Counted here for the same reason: receivers take a jump of VP8's picture id for loss (RFC 7741, section 4.2).
        fileprivate var pictures = VP8PictureNumbers()

        var isVideo: Bool { sender.codec.media == .video }

        fileprivate init(sender: Sender, senderID: SenderID, offer: TrackOffer, first: SequenceNumber) {
            self.sender = sender
            self.senderID = senderID
            self.offer = offer
            captureTimes = CaptureTimeSchedule(clockRate: sender.codec.clockRate)
            nextSequenceNumber = first
        }
    }

    private let loop: Loop
    private let server: ServerAddress
    private let cname: String
    private let wallClock: (MonotonicTime) -> NTPTime
    private let captures: (any CaptureLog)?
    private var random: RandomSource
    private let sessionID: UInt64
    var id: UInt64 { sessionID }
    private var version: UInt64 = 0
    private var nextMid = 0
    private(set) var isAnswered = false
    /// Whether nothing authentic has arrived for some time.
    private(set) var isSilent = false
    private var isRestarting = false
    let peer: Peer
    private(set) var tracks: [Track] = []
    /// The m-lines of an offer, in order: each with its track's sender, or with that of its last track.
    private var lines: [Sender] = []
    private(set) var profile: SRTPProfile?
    private(set) var roundTrip: TimeInterval?
    /// The rate of all tracks together in bits per second. Nil until the session knows it.
    private var target: Int?
    /// The rate that the tracks can use together, as the session knows it.
    private var told: Int?
    private var securedAt: MonotonicTime?
    /// Called on the loop.
    var onEvent: ((Event) -> Void)?
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
        let sender = Sender(mid: mid, codec: codec, ssrc: newSSRC(), retransmissionSSRC: retransmission)
        let id = peer.addSender(
            SenderConfiguration(
                ssrc: sender.ssrc,
                retransmissionSSRC: sender.retransmissionSSRC, clockRate: codec.clockRate,
                retransmissionPayloadTypes: codec.retransmissionPayloadType.map { [codec.payloadType: $0] } ?? [:],
                history: codec.media == .video ? 1024 : 0, isAudio: codec.media == .audio))
        let first = SequenceNumber(.random(in: 0..<0x4000, using: &random))
        let track = Track(sender: sender, senderID: id, offer: offer, first: first)
        track.former = former?.stream
        tracks.append(track)
        if let free = lines.firstIndex(where: \.hasEnded) { lines[free] = sender } else { lines.append(sender) }
        return track
    }

    private func newSSRC() -> SSRC {
        while true {
            // Some stacks give 0 and 1 special meanings.
            let ssrc = SSRC(UInt32.random(in: 2 ... .max, using: &random))
            if !tracks.contains(where: { $0.sender.ssrc == ssrc || $0.sender.retransmissionSSRC == ssrc }) {
                return ssrc
            }
        }
    }

    func remove(_ removed: [Track]) {
        for track in removed {
            peer.removeSender(track.senderID)
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
                peer.setExtensions(UpDescription.acceptedExtensions(of: media), of: track.senderID)
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
                .answerRefused, "The server's answer for the up session is unusable: \(error.message)")
        }
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
        guard hasRoom(for: batch, on: track) else { return }
        track.framesSent += 1
        let captured = MonotonicTime(nanoseconds: batch.captureTime.nanoseconds)
        let (ntp, rtp) = (wallClock(captured), RTPTimestamp(batch.rtpTimestamp))
        peer.setClock(track.senderID, ntp: ntp, rtp: rtp, at: captured)
        let carriesTime = track.captureTimes.includes(ntp, rtp: rtp, beginsStream: track.isVideo && batch.isKeyframe)
        if track.isVideo {
            captures?.record(
                StreamKey(server: server, stream: stream), rtpTimestamp: batch.rtpTimestamp, captured: batch.captureTime
            )
        }
        track.pictures.beginFrame()
        for index in 0..<batch.count {
            let range = batch.range(index)
            guard range.count <= PacketBuffer.capacity else { continue }
            packet.bytes.copyBytes(from: batch.bytes, range, to: 0)
            packet.count = range.count
            guard var header = RTPHeader(parsing: packet) else { continue }
            if track.sender.codec == .vp8 { track.pictures.number(&packet, header: header) }
            // The clock of the capture is that of the sender reports.
            if carriesTime, index == 0 { header.captureTime = AbsoluteCaptureTime(ntp, clockOffset: 0) }
            var rewrite = Rewrite(keeping: header)
            rewrite.sequenceNumber = track.nextSequenceNumber
            track.nextSequenceNumber = track.nextSequenceNumber.advanced(by: 1)
            peer.send(packet, header: header, rewrite: rewrite, via: track.senderID)
        }
    }

    /// Called about twice a second.
    func sample(now: MonotonicTime) {
        for track in tracks {
            guard let sent = peer.statistics(of: track.senderID) else { continue }
            track.bitRate.sample(sent.bytes * 8, now: now)
            track.pathRate.sample((sent.bytes + sent.packets * PathRate.packetOverhead) * 8, now: now)
            track.offeredRate.sample(track.offeredBits, now: now)
            track.repairRate.sample(
                (sent.retransmittedBytes + sent.retransmittedPackets * PathRate.packetOverhead) * 8, now: now)
        }
        shareRate()
    }

    // MARK: - Rates

    /// Of video, in bits per second, so that it shows something.
    private static let leastRate = 5000
    private static let highestRate = 1_000_000_000
    /// For how long a session sends all frames, whatever the first probes say.
    private static let gateDelay = TimeInterval.seconds(1)

    /// Tells the session what the tracks can use, and each video track its share of the target. Limits of encoders end if
    /// they are not renewed.
    private func shareRate() {
        let streams = tracks.map { track in
            let encoder = track.offer.track.encoderStatistics
            let wished = encoder?.wishedBitsPerSecond ?? 0
            let used = encoder == nil && track.isVideo ? track.offeredRate.rate : track.pathRate.rate
            return RateShares.Stream(
                isVideo: track.isVideo, used: used, wished: wished > 0 ? min(wished, track.roomLimit ?? wished) : nil,
                hasSent: track.framesSent > 0)
        }
        tellDemand(streams.isEmpty ? nil : Int(RateShares.demand(of: streams)))
        let repairs = tracks.reduce(0) { $0 + $1.repairRate.rate }
        let shares = target.map { RateShares.shares(of: Double($0), among: streams, repairs: repairs) }
        for (index, track) in tracks.enumerated() where track.isVideo {
            let limit = track.roomLimit.map { PathRate.ofMedia(Double($0)) }
            track.isLimitedByRoom = limit.map { $0 < shares?[index] ?? .infinity } ?? false
            guard let share = [shares?[index], limit].compactMap(\.self).min() else { continue }
            if let securedAt, loop.now - securedAt >= Self.gateDelay { track.gate.setShare(share, now: loop.now) }
            let media = target == 0 ? 0 : max(Self.leastRate, Int(PathRate.media(onPath: share)))
            track.offer.track.limitRate(bitsPerSecond: media)
        }
    }

    /// Sets how much of a stream the best link of a subscriber carries, in bits per second of media. Nil if one carries all of it.
    func setLimit(_ bitsPerSecond: Int?, of stream: Int) {
        guard let track = tracks.first(where: { $0.stream == stream }) else { return }
        track.roomLimit = bitsPerSecond.map { max(Self.leastRate, min($0, Self.highestRate)) }
        shareRate()
    }

    /// Each change may cause probes, so small ones do not count.
    private func tellDemand(_ demand: Int?) {
        if let demand, let told, abs(demand - told) * 10 <= told { return }
        told = demand
        peer.setDemand(bitsPerSecond: demand)
    }

    /// Whether to send a frame. One that nothing here encodes is dropped if the path has no room for it.
    private func hasRoom(for batch: RTPBatch, on track: Track) -> Bool {
        guard track.isVideo, track.offer.track.encoderStatistics == nil else { return true }
        let bytes = batch.bytes.count + batch.count * PathRate.packetOverhead
        track.offeredBits += bytes * 8
        switch track.gate.admit(bytes: bytes, isKeyframe: batch.isKeyframe, now: loop.now) {
        case .pass: return true
        case .drop(let asks):
            if asks { requestKeyframe(of: track) }
            return false
        }
    }

    func published() -> [RoomStatistics.Published] {
        tracks.compactMap { track in
            guard let stream = track.stream else { return nil }
            var entry = RoomStatistics.Published(streamId: stream, isVideo: track.isVideo)
            entry.codec = track.sender.codec.rawValue
            entry.framesSent = track.framesSent
            entry.framesNotSent = track.framesNotSent
            entry.bitsPerSecond = track.bitRate.rate
            entry.keyframesRequested = track.keyframe.count
            if let encoder = track.offer.track.encoderStatistics {
                entry.framesCaptured = encoder.captured
                entry.framesDroppedBeforeEncoder = encoder.droppedBeforeEncoder
                entry.framesInFlight = encoder.inFlight
                entry.framesEncoded = encoder.encoded
                entry.width = encoder.width
                entry.height = encoder.height
                entry.framesPerSecond = encoder.framesPerSecond
                entry.encoderKeepsUp = encoder.encoderKeepsUp
                entry.framesDroppedForRate = encoder.droppedForRate
                entry.wishedBitsPerSecond =
                    encoder.wishedBitsPerSecond > 0 ? Double(encoder.wishedBitsPerSecond) : nil
                entry.limitedBitsPerSecond = encoder.limitedBitsPerSecond.map(Double.init)
                entry.limitation = Self.limitation(of: encoder, track)
            } else if track.isVideo {
                entry.isEncoded = false
                entry.framesDroppedForRate = track.gate.dropped
                if let last = track.gate.lastDrop, loop.now - last < .seconds(2) {
                    entry.limitation = track.isLimitedByRoom ? .subscribers : .network
                }
                entry.width = track.offer.track.videoFormat?.width ?? 0
                entry.height = track.offer.track.videoFormat?.height ?? 0
            }
            if let sender = peer.statistics(of: track.senderID) {
                entry.packetsSent = sender.packets
                entry.packetsRetransmitted = sender.retransmittedPackets
                entry.packetsLost = sender.remoteLost
            }
            return entry
        }
    }

    private static func limitation(
        of encoder: MediaStatistics.VideoEncoder, _ track: Track
    ) -> RoomStatistics.Limitation {
        let network = track.isLimitedByRoom ? RoomStatistics.Limitation.subscribers : .network
        switch encoder.limitation {
        case .network, .subscribers: return network
        case .processor: return .processor
        case .none: break
        }
        if let limit = encoder.limitedBitsPerSecond, limit < encoder.wishedBitsPerSecond { return network }
        return encoder.encoderKeepsUp ? .none : .processor
    }

    func close() {
        onEvent = nil
        for track in tracks { disconnect(track) }
        peer.close()
    }

    /// Ends the session, and returns the published tracks, which go on in another one. Others end.
    func surrender() -> [FormerTrack] {
        onEvent = nil
        var former: [FormerTrack] = []
        for track in tracks {
            guard let stream = track.stream ?? track.former else {
                disconnect(track)
                continue
            }
            captures?.remove(StreamKey(server: server, stream: stream))
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
            onEvent?(.secured(profile))
        case .keyframeRequested(let id):
            guard let track = tracks.first(where: { $0.senderID == id }) else { return }
            requestKeyframe(of: track)
        case .roundTrip(let time): roundTrip = time
        case .sendingRate(let rate):
            target = rate
            shareRate()
        case .closed: onEvent?(.ended(nil))
        case .failed(let error): onEvent?(.ended(error))
        case .disconnected:
            isSilent = true
            onEvent?(.silent)
        case .connected, .rerouted: isSilent = false
        case .lossBeyondRepair, .mediaRefused, .unauthenticated, .senderReport, .bye: break
        }
    }

    private func requestKeyframe(of track: Track) {
        guard track.isVideo else { return }
        switch track.keyframe.asked(at: loop.now) {
        case .now: track.offer.track.requestKeyframe()
        case .at(let time):
            loop.schedule(at: time) { [weak self, weak track] in
                guard self != nil, let track else { return }
                track.keyframe.delivered(at: time)
                track.offer.track.requestKeyframe()
            }
        case .pending: break
        }
    }
}
