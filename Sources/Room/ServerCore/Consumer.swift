internal import CongestionControl
internal import PeerLoop
internal import PeerSession
internal import RTP
internal import RoomProtocol

/// One receiver of a subscriber's down session, with its assigned stream. On the loop only.
final class Consumer {
    let receiver: Receiver
    let isVideo: Bool
    private let peer: Peer
    private let maximumPayloadLength: Int
    private let history: Int
    private let replays: ReplayPace
    @exclusivity(unchecked) private var sender: SenderID?
    @exclusivity(unchecked) private var splice: Splice
    @exclusivity(unchecked) private var payloadType: UInt8 = 0
    /// Whether a packet of the stream was sent.
    private var hasBegun = false
    /// Nil once live packets are forwarded directly.
    @exclusivity(unchecked) private var replay: Replay?
    private lazy var replayTimer = peer.loop.makeTimer { [weak self] in self?.continueReplay() }
    /// The codecs that the client's answer accepts for this m-line. Nil before the answer.
    private(set) var accepted: [NegotiatedCodec]?
    private var extensions = HeaderExtensionIDs()
    @exclusivity(unchecked) private(set) var stream: PublishedStream?
    /// The layer of the stream that it forwards.
    @exclusivity(unchecked) private(set) var layer: StreamLayer?
    /// The spatial layers that it forwarded before, each with the first packet after it, oldest first: packets of their frames
    /// may arrive late. Only of the present epoch.
    @exclusivity(unchecked) private var formerLayers: [(layer: StreamLayer, end: Int)] = []
    /// The layer with which it goes on at the next keyframe. Nil if that is the present one.
    private(set) var next: StreamLayer?
    private var nextSince = MonotonicTime.zero
    /// The client's view of the stream.
    var view = StreamView()
    /// Since when the client wants no frames for now. Nil while it wants some.
    @exclusivity(unchecked) private var pausedAt: MonotonicTime?
    /// The layer that it forwarded when the client paused the stream.
    private var pausedLayer: StreamLayer?
    /// How the link's estimates let it choose among the layers.
    @exclusivity(unchecked) var choice = LayerChoice()
    /// The quality as the subscriber was told. Nil without a stream.
    var report: QualityReport?
    /// Nil while the link carries all of the stream.
    @exclusivity(unchecked) private var thinning: Thinning?
    /// When a frame was last left out because the link had no room for it. `.zero` if none was.
    private(set) var lastLeftOut = MonotonicTime.zero
    /// Whether frames may be left out at present.
    var mayLeaveOut: Bool { thinning.map { !$0.isEnding } ?? false }
    /// How much of the stream the link carries.
    @exclusivity(unchecked) private(set) var carried = Carried.unknown
    /// Its index among the consumers of the layer and of the stream, which those set.
    var place = 0
    var streamPlace = 0

    /// - Parameter replays: shared by the consumers of one client.
    init(
        _ receiver: Receiver, peer: Peer, firstSequenceNumber: SequenceNumber, history: Int, replays: ReplayPace
    ) {
        self.receiver = receiver
        self.replays = replays
        self.peer = peer
        maximumPayloadLength = peer.maximumPayloadLength
        isVideo = receiver.media == .video
        self.history = isVideo ? history : 0
        splice = Splice(firstSequenceNumber: firstSequenceNumber)
    }

    /// The session's sender for this receiver, from its first stream on, or to probe the link: most receivers never get one.
    ///
    /// - Parameter codecs: those of the client's answer, which may have other payload types than the offer.
    private func makeSender(_ codecs: [NegotiatedCodec]) -> SenderID {
        var configuration = SenderConfiguration(
            ssrc: receiver.ssrc,
            retransmissionSSRC: receiver.retransmissionSSRC, clockRate: receiver.media == .audio ? 48000 : 90000,
            retransmissionPayloadTypes: Dictionary(
                codecs.compactMap { codec in codec.retransmissionPayloadType.map { (codec.payloadType, $0) } }
            ) { first, _ in first },
            mid: receiver.mid, extensions: extensions, history: history, isAudio: receiver.media == .audio)
        for codec in codecs {
            configuration.redundancyPayloadTypes.merge(codec.redundancyPayloadTypes) { first, _ in first }
        }
        return peer.addSender(configuration)
    }

    var isFree: Bool { stream == nil }
    /// Whether a keyframe of the stream would be forwarded.
    var isAwaitingStart: Bool { splice.isAwaitingStart && replay == nil && !isPausing }
    /// The first sequence number of a stream that is assigned now.
    var nextSequenceNumber: SequenceNumber { splice.nextSequenceNumber }

    /// Whether the client has reported on this receiver's stream, so its media path works.
    var isKnownToClient: Bool { sender.flatMap { peer.statistics(of: $0)?.isKnownToPeer } ?? false }

    func owns(_ sender: SenderID) -> Bool { self.sender == sender }

    /// Sets the codecs and header extensions of the client's answer.
    func accept(_ codecs: [NegotiatedCodec], _ extensions: HeaderExtensionIDs = HeaderExtensionIDs()) {
        accepted = codecs
        self.extensions = extensions
        beginIfPossible()
    }

    /// Sets the header extensions of a later answer.
    func accept(_ extensions: HeaderExtensionIDs) {
        self.extensions = extensions
        if let sender { peer.setExtensions(extensions, of: sender) }
    }

    /// The session can send from now on.
    func secured() { beginIfPossible() }

    /// Whether the client can decode the codec. True before its answer.
    func canCarry(_ codec: Codec) -> Bool { accepted.map { $0.contains { $0.codec == codec } } ?? true }

    /// Whether the session can send it anything.
    var hasSender: Bool { sender != nil }

    /// Makes the sender before there is a stream, so that the session can probe its link.
    func prepare() {
        if sender == nil, let accepted { sender = makeSender(accepted) }
    }

    /// Begins with the lowest layer of a stream that is delivered, until the link is measured.
    func assign(_ stream: PublishedStream, view: StreamView = StreamView()) {
        release()
        self.stream = stream
        self.view = view
        choice = LayerChoice()
        report = QualityReport(of: stream.info.id, now: peer.loop.now)
        lastLeftOut = .zero
        stream.add(self)
        guard !view.isPaused else { return pausedAt = peer.loop.now }
        begin(stream.layer(rank: stream.deliveredRanks(for: view)[0]))
    }

    private func begin(_ new: StreamLayer) {
        layer = new
        new.add(self)
        // The keyframe can then be there before the session is secured, which takes several round trips.
        if !beginIfPossible() { _ = new.replay() }
    }

    // MARK: - Pauses

    var isPaused: Bool { pausedAt != nil }

    /// Follows no layer while it is paused, and keeps the stream with its numbers. It goes on at a keyframe that is newer than the
    /// pause. Returns false if nothing has changed.
    func setPaused(_ isPaused: Bool) -> Bool {
        guard let stream, isPaused != self.isPaused else { return false }
        let now = peer.loop.now
        guard !isPaused else {
            // A lost frame would be shown during the pause, or as the first one after it.
            if let sender { peer.withholdSent(sender) }
            splice.pause()
            pausedLayer = layer
            leaveLayers()
            setCarried(.unknown)
            report = QualityReport(of: stream.info.id, now: now)
            lastLeftOut = .zero
            pausedAt = now
            return true
        }
        (lastPause, pausedAt) = (pausedAt, nil)
        // A stream that was paused before its first report would go on by arrivals.
        if let pausedLayer, let clock = pausedLayer.seamClock { splice.setClock(clock, ofPaused: pausedLayer.epoch) }
        pausedLayer = nil
        choice = LayerChoice()
        begin(stream.layer(rank: stream.deliveredRanks(for: view)[0]))
        return true
    }

    /// A replay begins at a keyframe that is younger than this.
    private static let replayReach = TimeInterval.seconds(2)
    /// When the last pause of the stream began. Nil without one.
    private var lastPause: MonotonicTime?
    /// False after a pause that is younger than the keyframe to replay may be, with whichever layer it begins.
    private var mayReplay: Bool { lastPause.map { peer.loop.now - $0 > Self.replayReach } ?? true }

    private func leaveLayers() {
        endReplay()
        thinning = nil
        next?.removeJoining(self)
        next = nil
        layer?.remove(self)
        layer = nil
        formerLayers = []
        hasBegun = false
    }

    // MARK: - Layers

    /// Goes on with another layer of the stream: at its next keyframe, so that nothing is missing until then.
    func follow(_ wanted: StreamLayer) {
        guard let layer, wanted !== next ?? layer else { return }
        next?.removeJoining(self)
        next = nil
        guard wanted !== layer else { return }
        guard hasBegun else {
            endReplay()
            layer.remove(self)
            return begin(wanted)
        }
        next = wanted
        nextSince = peer.loop.now
        wanted.addJoining(self)
    }

    /// How long it waits for the clock of another layer, after which arrivals tell the time between the two. Publishers send a
    /// report a second.
    private static let clockTimeout = TimeInterval.milliseconds(1250)

    /// Whether the timestamps can go on with another layer, which is exact if the publisher has reported on both. A lower
    /// layer does not wait for that: the link may not carry the present one.
    func canJoin(_ new: StreamLayer) -> Bool {
        splice.clock == nil || new.seamClock != nil || isLower(new) || peer.loop.now - nextSince >= Self.clockTimeout
    }

    /// A keyframe of the layer that it waits for begins.
    func join(_ new: StreamLayer) {
        endReplay()
        layer?.remove(self)
        layer = new
        next = nil
        new.add(self)
        thinning = nil
        splice.begin(clockRate: new.codec.clockRate, clock: new.seamClock, epoch: new.epoch)
        new.consumerBegins()
    }

    /// The same if the first packet of the keyframe was overtaken by others of it. Returns false if it cannot begin there.
    func joinOvertaken(_ new: StreamLayer) -> Bool {
        guard let start = replays.replay(of: new) else { return false }
        join(new)
        replay = start
        replayTimer.arm(at: peer.loop.now)
        return true
    }

    /// Whether it can go on with another spatial layer of its stream: at the beginning of a frame with a lower one, and with
    /// a higher one at a keyframe, unless older packets are yet to be sent.
    func canMove(to new: StreamLayer, isKeyframe: Bool) -> Bool { isLower(new) || isKeyframe && replay == nil }

    /// A frame begins with which it goes on with another spatial layer. All numbers stay those of one stream.
    func move(to new: StreamLayer, at position: StreamPosition) {
        if let layer {
            if formerLayers.count == Self.mostFormerLayers { formerLayers.removeFirst() }
            formerLayers.append((layer, position.number))
        }
        layer?.remove(self)
        layer = new
        next = nil
        new.add(self)
    }

    /// More moves than these within the time that a packet may be late are of no use to anybody.
    private static let mostFormerLayers = 4

    /// The spatial layer that it forwarded at a position of the present epoch. Nil if that is the one that it forwards now.
    func formerLayer(at position: StreamPosition) -> StreamLayer? {
        formerLayers.isEmpty ? nil : formerLayers.first { position.number < $0.end }?.layer
    }

    /// Sets how much of the stream the link carries. `thin` leaves frames out.
    func setCarried(_ new: Carried) {
        guard let stream, new != carried else { return }
        let before = carried
        carried = new
        stream.carriedChanged(from: before, to: new)
    }

    /// Sends nothing for now.
    func hold(now: MonotonicTime) { if stream != nil { thin(to: 0, now: now) } }

    /// Leaves frames out to keep within a rate. Nil ends that.
    func thin(to share: Double?, now: MonotonicTime) {
        guard let share else {
            if thinning?.end(now: now) == true { thinning = nil }
            return
        }
        if thinning == nil { thinning = Thinning() }
        thinning?.setShare(share, now: now)
    }

    /// Of retransmissions, and of copies in audio packets, on the path with all headers.
    var repairBytes: Int {
        guard let sender, let sent = peer.statistics(of: sender) else { return 0 }
        return sent.retransmittedBytes + sent.retransmittedPackets * PathRate.packetOverhead + sent.redundantBytes
    }

    func release() {
        guard let stream else { return }
        leaveLayers()
        stream.remove(self)
        carried = .unknown
        report = nil
        (pausedAt, pausedLayer, lastPause) = (nil, nil, nil)
        self.stream = nil
        splice.end()
        // Retransmissions of this stream would reach the next one.
        if let sender { peer.forget(sender) }
    }

    /// Forwards a packet whose payload is in a store. Runs for each packet and each subscriber.
    @inline(__always)
    func forward(
        _ payload: Int, of store: PacketStore, _ header: RTPHeader, _ arrived: Splice.Packet, now: MonotonicTime
    ) {
        // The replay comes to it.
        guard replay == nil else { return }
        pass(payload, of: store, length: header.payloadLength, marker: header.marker, arrived, now: now)
    }

    /// Skips a packet without a gap in the subscriber's sequence numbers.
    func leaveOut(_ header: RTPHeader, at position: StreamPosition, _ store: PacketStore) {
        guard replay == nil else { return }
        skip(position, header.timestamp, marker: header.marker, store)
    }

    @inline(__always)
    private func pass(
        _ payload: Int, of store: PacketStore, length: Int, marker: Bool, _ arrived: Splice.Packet, now: MonotonicTime
    ) {
        guard length <= maximumPayloadLength else {
            return skip(arrived.position, arrived.timestamp, marker: marker, store)
        }
        let wasAwaitingStart = splice.isAwaitingStart
        if thinning != nil || splice.hasLeftOutFrames, omits(arrived, marker: marker, store) { return }
        if wasAwaitingStart, let clock = layer?.seamClock { splice.offerClock(clock) }
        guard let numbers = splice.take(arrived, now: now) else { return }
        guard !numbers.isEmpty else { return send(nil, of: store, marker: marker, numbers) }
        send(payload, of: store, marker: marker, numbers)
        thinning?.sent(bytes: length + RTPHeader.minimumLength + PathRate.packetOverhead)
        if wasAwaitingStart {
            hasBegun = true
            passClockOn()
        }
    }

    /// Whether the packet's frame is left out, because the link has no room for it, or because it depends on such a one.
    private func omits(_ packet: Splice.Packet, marker: Bool, _ store: PacketStore) -> Bool {
        let now = peer.loop.now
        if let layer = packet.payload.switchingPoint {
            thinning?.bringsBackLayer(above: layer, isNewest: packet.isNewest, now: now)
        }
        guard let (temporal, isSync) = packet.payload.higherLayer, !isPausing, !splice.isAwaitingStart else {
            return pausesAtBaseLayer(packet)
        }
        let isLeftOut = thinning?.leavesOut(
            temporal, isSync: isSync, of: packet.timestamp, isNewest: packet.isNewest, now: now)
        // The rest of a frame that was left out, too.
        guard isLeftOut ?? splice.hasLeftOut(packet) else { return false }
        if thinning?.isEnding == false { lastLeftOut = now }
        if thinning?.needsKeyframe(now: now) == true { layer?.requestKeyframe() }
        if let numbers = splice.leaveOutPicture(packet) { send(nil, of: store, marker: marker, numbers) }
        return true
    }

    /// Whether a frame of the base layer is left out. Then the stream goes on at a later keyframe.
    private func pausesAtBaseLayer(_ packet: Splice.Packet) -> Bool {
        guard let layer else { return false }
        // A packet of a replay has arrived earlier.
        let now = peer.loop.now
        if isPausing {
            lastLeftOut = now
            let isKeyframe = packet.payload.isStart && packet.isNewest
            return thinning?.resumes(isKeyframe: isKeyframe, isAlone: !layer.hasOthers, now: now) == false
        }
        guard !splice.isAwaitingStart,
            thinning?.pauses(
                before: packet.timestamp, isKeyframe: packet.payload.isStart, isNewest: packet.isNewest, now: now)
                == true
        else { return false }
        lastLeftOut = now
        endReplay()
        splice.pause()
        layer.consumerBegins()
        return true
    }

    /// Whether frames are left out because the link has no room for them. A keyframe would be, too.
    var isPausing: Bool { thinning?.isPausing == true }

    private func skip(_ position: StreamPosition, _ timestamp: RTPTimestamp, marker: Bool, _ store: PacketStore) {
        guard let numbers = splice.leaveOut(position, timestamp: timestamp) else { return }
        send(nil, of: store, marker: marker, numbers)
    }

    private func send(_ payload: Int?, of store: PacketStore, marker: Bool, _ numbers: Splice.Numbers) {
        let rewrite = Rewrite(
            payloadType: payloadType, sequenceNumber: numbers.sequenceNumber, timestamp: numbers.timestamp,
            marker: marker, patch: numbers.patch)
        if let sender { peer.forward(payload, of: store, rewrite: rewrite, via: sender) }
    }

    func setClock(_ clock: SenderClock) {
        splice.setClock(clock)
        passClockOn()
    }

    /// The publisher's timestamps restarted. The rest of a replay is useless before the next keyframe.
    func streamRestarted() {
        endReplay()
        formerLayers = []
        splice.sourceRestarted()
        if let sender { peer.clearClock(sender) }
    }

    /// Forwards the publisher's clock, so that the subscriber can compute capture times and synchronise audio and
    /// video.
    private func passClockOn() {
        // One from a capture time does not tell the time at which it was sent.
        guard let sender, layer?.clock != nil, let clock = splice.clock else { return }
        peer.setClock(sender, ntp: clock.ntp, rtp: clock.rtp, at: clock.at)
    }

    /// Returns false before the session is secured and the client has accepted the stream's codec.
    @discardableResult
    private func beginIfPossible() -> Bool {
        guard peer.isSecured, let layer, let accepted,
            let negotiated = accepted.first(where: { $0.codec == layer.codec })
        else { return false }
        if sender == nil { sender = makeSender(accepted) }
        payloadType = negotiated.payloadType
        splice.begin(clockRate: layer.codec.clockRate, clock: layer.seamClock, epoch: layer.epoch)
        layer.consumerBegins()
        guard mayReplay else {
            layer.requestKeyframe()
            return true
        }
        replay = replays.replay(of: layer)
        // Not now: the message that assigns the stream has the first sequence number, and is not written yet.
        if replay != nil { replayTimer.arm(at: peer.loop.now) }
        return true
    }

    /// Begins at a keyframe whose first packet arrived after others, because it was overtaken or repaired.
    func beginAtRepairedKeyframe() {
        guard isAwaitingStart, peer.isSecured, let layer else { return }
        replay = replays.replay(of: layer)
        if replay != nil { replayTimer.arm(at: peer.loop.now) }
    }

    private func continueReplay() {
        guard let present = layer, var replay else { return }
        let outcome = present.run(&replay) { index, store, packet in
            let layer = formerLayer(at: packet.position) ?? present
            guard let payload = packet.payload, layer.has(payload) else {
                return skip(
                    packet.position, packet.timestamp, marker: packet.payload == nil && packet.marker, store)
            }
            let arrived = Splice.Packet(
                position: packet.position, timestamp: packet.timestamp, isNewest: packet.isNewest, payload: payload)
            pass(
                index, of: store, length: store.length(of: index), marker: layer.marker(packet.marker, of: payload),
                arrived, now: packet.arrival)
        }
        // The link had no room for the rest.
        guard self.replay != nil else { return }
        switch outcome {
        case .more(let time):
            self.replay = replay
            replayTimer.arm(at: time)
        case .caughtUp: self.replay = nil
        case .overtaken:
            // The same start again would end in the same way.
            self.replay = nil
            splice.pause()
            present.requestKeyframe()
        }
    }

    private func endReplay() {
        guard replay != nil else { return }
        replay = nil
        replayTimer.disarm()
    }
}
