internal import PeerLoop
internal import RTP
internal import RoomProtocol

/// One layer of a published stream: a source that encodes the whole video once, in a size of its own (simulcast), or a
/// spatial layer of VP9 with those below it. A stream without layers has one. On the loop only.
final class StreamLayer {
    /// Its place among the layers, in the order of the offer.
    let index: Int
    let codec: Codec
    private let id: Int
    private let loop: Loop
    private let source: any StreamSource
    /// The lowest spatial layer, which gets the packets of all. Nil for itself, and for a layer with packets of its own.
    @exclusivity(unchecked) private weak var carrier: StreamLayer?
    /// The spatial layers above it that come in its packets, lowest first.
    @exclusivity(unchecked) private var upper: [StreamLayer] = []
    /// Whether it is one of several layers in the same packets.
    @exclusivity(unchecked) private(set) var isSpatial = false
    /// The timestamp of the newest frame, if it has spatial layers.
    @exclusivity(unchecked) private var picture: RTPTimestamp?
    /// The number behind the newest packet, if that has the marker. The next frame begins there.
    @exclusivity(unchecked) private var afterMarker: Int?
    /// Those that get its packets, in any order.
    @exclusivity(unchecked) private(set) var consumers: [Consumer] = []
    /// Those that follow another layer until the next keyframe of this one.
    @exclusivity(unchecked) private(set) var joining: [Consumer] = []
    /// The recording of its stream, if that takes its packets or waits for its keyframe.
    @exclusivity(unchecked) var recording: StreamRecording?
    /// To the other parts of the room that have consumers of it.
    private(set) var pipes: [Pipe] = []
    /// Ties the timestamps of the current epoch to the publisher's wall clock.
    var clock: SenderClock? { carrier?.clock ?? ownClock }
    private var ownClock: SenderClock?
    /// The same, or before the first report a clock from the capture time of a frame. It has an arbitrary `at`.
    var seamClock: SenderClock? { clock ?? (carrier ?? self).capturedClock }
    private var capturedClock: SenderClock? {
        guard let captured, captured.time.clockOffset ?? 0 == 0 else { return nil }
        return SenderClock(
            ntp: captured.time.timestamp, rtp: captured.rtp, at: .zero, clockRate: codec.clockRate)
    }
    /// Nil before the first packet.
    var epoch: Int? { carrier?.epoch ?? newest?.epoch }
    /// The newest packets, from which all consumers send and resend.
    private let store = PacketStore()
    /// The same packets, for consumers that begin at the last keyframe. Only of video.
    @exclusivity(unchecked) private var recent = RecentPackets()
    @exclusivity(unchecked) private var newest: StreamPosition?
    /// The timestamp of the packet at that position.
    @exclusivity(unchecked) private var newestTimestamp: RTPTimestamp?
    /// The last capture time of the current epoch, with the timestamp of its packet.
    @exclusivity(unchecked) private var captured: (time: AbsoluteCaptureTime, rtp: RTPTimestamp)?
    /// Which packets carry a capture time that comes from sender reports.
    @exclusivity(unchecked) private var reportedTimes: CaptureTimeSchedule
    /// Whether a consumer or a pipe began after the last packet with a capture time.
    @exclusivity(unchecked) private var needsCaptureTime = false
    @exclusivity(unchecked) private(set) var rate = StreamRate()
    private var governor = KeyframeGovernor()
    private lazy var keyframeTimer = loop.makeTimer { [weak self] in self?.askAgain() }
    /// Whether its packets show how it can be ranked among others.
    private let isMeasured: Bool
    /// Of its newest keyframe. Nil before that, and for a codec that does not tell.
    @exclusivity(unchecked) private(set) var size: FrameSize?
    /// The timestamp of its newest keyframe. Nil before the first one of the current epoch.
    @exclusivity(unchecked) private var keyframe: RTPTimestamp?
    /// When its newest packet arrived. `.zero` before the first.
    @exclusivity(unchecked) private(set) var lastPacket = MonotonicTime.zero
    /// Whether it delivers.
    var delivery = LayerDelivery()

    /// - Parameters:
    ///   - id: of the stream
    ///   - isMeasured: whether it is one of several
    init(_ index: Int, of id: Int, codec: Codec, loop: Loop, source: any StreamSource, isMeasured: Bool) {
        self.index = index
        self.id = id
        self.codec = codec
        self.loop = loop
        self.source = source
        self.isMeasured = isMeasured
        reportedTimes = CaptureTimeSchedule(clockRate: codec.clockRate)
        begun = loop.now
        lastWatched = loop.now
    }

    /// Lets the first of some layers carry the others, which are spatial layers in its packets.
    static func join(_ layers: [StreamLayer]) {
        for layer in layers { layer.isSpatial = true }
        layers[0].upper = Array(layers.dropFirst())
        for layer in layers[0].upper { layer.carrier = layers[0] }
    }

    var memory: PacketMemory {
        var memory = store.memory
        memory += recent.memory
        return memory
    }

    /// Whether more than one receives it.
    var hasOthers: Bool {
        if let carrier { return carrier.hasOthers }
        return receivers + pipes.count > 1
    }
    /// How many consumers a packet may go to, also those of the layers that it carries.
    var receivers: Int { upper.reduce(consumers.count) { $0 + $1.consumers.count } }
    /// Whether its packets go anywhere.
    var isWatched: Bool { !pipes.isEmpty || recording != nil || hasConsumers }
    /// Whether a keyframe may be awaited.
    var isAwaited: Bool {
        !pipes.isEmpty || !joining.isEmpty || recording?.isAwaitingStart == true
            || consumers.contains(where: \.isAwaitingStart)
            || upper.contains(where: \.isAwaited)
    }
    /// Whether there are some, or some that wait for it, also of the layers that it carries.
    private var hasConsumers: Bool {
        !consumers.isEmpty || !joining.isEmpty || upper.contains(where: \.hasConsumers)
    }
    /// Whether the source is asked for packets.
    private var isUsed: Bool { (carrier ?? self).hasConsumers }

    // MARK: - Consumers

    func add(_ pipe: Pipe) {
        pipes.append(pipe)
        consumerBegins()
    }

    func remove(_ pipe: Pipe) { pipes.removeAll { $0 === pipe } }

    func add(_ consumer: Consumer) {
        if !isUsed { source.begin() }
        consumer.place = consumers.count
        consumers.append(consumer)
    }

    /// Takes constant time, because hundreds of consumers are removed when a stream ends.
    func remove(_ consumer: Consumer) {
        guard consumers.indices.contains(consumer.place), consumers[consumer.place] === consumer else { return }
        let last = consumers.removeLast()
        if last !== consumer {
            consumers[consumer.place] = last
            last.place = consumer.place
        }
        pauseUnused()
    }

    /// Lets a consumer of another layer go on with this one, from its next keyframe on. A lower spatial layer needs none.
    func addJoining(_ consumer: Consumer) {
        if !isUsed { source.begin() }
        joining.append(consumer)
        if !isSpatial || !consumer.isLower(self) { requestKeyframe() }
    }

    func removeJoining(_ consumer: Consumer) {
        joining.removeAll { $0 === consumer }
        pauseUnused()
    }

    private func pauseUnused() {
        guard !isUsed else { return }
        source.pause()
        if !source.isPublisher { (carrier ?? self).recent.forgetKeyframe() }
    }

    // MARK: - Packets

    /// Whether packets are kept although nobody watches: a consumer that comes before a keyframe can be requested begins at
    /// the last one. From another part of the room, it begins with a gap.
    private func mayBeWatched(now: MonotonicTime) -> Bool { source.isPublisher && governor.isResting(now: now) }

    /// Forwards one packet to every consumer and pipe. Does not lock or await, and allocates nothing for consumers.
    func forward(_ packet: borrowing PacketBuffer, header: RTPHeader, at position: StreamPosition) {
        let isNewest = advance(to: position)
        if isNewest { newestTimestamp = header.timestamp }
        if isNewest, let time = header.captureTime { captured = (time, header.timestamp) }
        let now = loop.now
        let isKept = isWatched || mayBeWatched(now: now)
        guard isMeasured || isKept else { return recent.forgetKeyframe() }
        let payload =
            header.payloadLength > 0
            ? PayloadDescriptor(parsing: packet, header: header, as: codec.payload) : nil
        measure(packet.count, payload, now: now)
        var header = header
        if isNewest, let payload { addCaptureTime(to: &header, isStart: payload.isStart) }
        // Several packets of a keyframe may look like its first one.
        if isNewest, payload?.isStart == true, isMeasured, header.timestamp != keyframe {
            keyframe = header.timestamp
            begin(payload, packet, header)
        }
        // Browsers repeat the sizes on frames of the lowest layers.
        if isSpatial, isNewest, let payload { readSizes(payload, packet, header) }
        if isSpatial, isNewest {
            if let payload { beginPicture(payload, header.timestamp, at: position) }
            afterMarker = header.marker ? position.number + 1 : nil
        }
        guard isKept else { return recent.forgetKeyframe() }
        for pipe in pipes { pipe.carry(packet, header, at: position, of: StreamLayerID(stream: id, layer: index)) }
        if let recording { recording.take(packet, header, at: position, payload, of: self, now: now) }
        let hasConsumers = !consumers.isEmpty || upper.contains { !$0.consumers.isEmpty }
        guard hasConsumers || mayBeWatched(now: now) else {
            // Without consumers, packets are not kept.
            recent.forgetKeyframe()
            if payload?.isStart == true { governor.keyframeBegan() }
            return joining.contains { $0.canJoin(self) } ? requestKeyframe() : ()
        }
        let end = payload == nil ? header.payloadOffset : header.payloadEnd
        let index = store.add(
            packet, header.payloadOffset..<end, timestamp: header.timestamp, marker: header.marker,
            captureTime: header.captureTime, now: now)
        if codec.media == .video {
            recent.add(
                RecentPackets.Packet(
                    position: position, timestamp: header.timestamp, marker: header.marker, isNewest: isNewest,
                    payload: payload, arrival: now),
                at: index, length: end - header.payloadOffset)
        }
        guard let payload else {
            forEachConsumer { $0.leaveOut(header, at: position, store) }
            return
        }
        if payload.isStart, !isNewest, recent.start(now: now)?.keyframe == index {
            forEachConsumer { $0.beginAtRepairedKeyframe() }
            if isMeasured, header.timestamp == newestTimestamp { beginOvertaken() }
        }
        let arrived = Splice.Packet(
            position: position, timestamp: header.timestamp, isNewest: isNewest, payload: payload)
        var isAwaited = false
        if isSpatial {
            isAwaited = pass(index, of: store, header, arrived, now: now)
            for layer in upper where layer.pass(index, of: store, header, arrived, now: now) { isAwaited = true }
        } else {
            // A keyframe before the layer's clock would help nobody.
            isAwaited = joining.contains { $0.canJoin(self) }
            for consumer in consumers {
                consumer.forward(index, of: store, header, arrived, now: now)
                if consumer.isAwaitingStart { isAwaited = true }
            }
        }
        if payload.isStart { governor.keyframeBegan() }
        if isAwaited { requestKeyframe() }
    }

    /// A keyframe begins: those that wait for it follow this layer from now on.
    private func begin(_ payload: PayloadDescriptor?, _ packet: borrowing PacketBuffer, _ header: RTPHeader) {
        if let read = payload?.size(packet, header: header) { size = read }
        if !isSpatial, let recording { recording.keyframeBegins(in: self) }
        guard !joining.isEmpty, !isSpatial else { return }
        guard joining.contains(where: { $0.canJoin(self) }) else { return }
        let ready = joining.filter { $0.canJoin(self) }
        for consumer in ready { consumer.join(self) }
        joining.removeAll { joined in ready.contains { $0 === joined } }
    }

    /// A keyframe begins with a packet that others of the same frame overtook: those that wait for it follow this layer, too. A
    /// later frame of their present layer may be on its way if later ones did.
    private func beginOvertaken() {
        guard !isSpatial else { return }
        let ready = joining.filter { $0.canJoin(self) && $0.joinOvertaken(self) }
        joining.removeAll { joined in ready.contains { $0 === joined } }
    }

    // MARK: - Spatial layers

    private func forEachConsumer(_ body: (Consumer) -> Void) {
        for consumer in consumers { body(consumer) }
        for layer in upper { for consumer in layer.consumers { body(consumer) } }
    }

    /// Reads the sizes of all spatial layers from a packet that has them. A layer that the publisher has stopped has none.
    private func readSizes(_ payload: PayloadDescriptor, _ packet: borrowing PacketBuffer, _ header: RTPHeader) {
        guard let count = payload.spatialLayers(packet, header: header) else { return }
        if let read = payload.size(packet, header: header) { size = read }
        for layer in upper {
            let read = payload.size(packet, header: header, spatialLayer: layer.index)
            if read != nil || layer.index >= count { layer.size = read }
        }
    }

    /// Counts a packet to the rates of the layers that it belongs to. That of a spatial layer includes those below it, as
    /// long as it has packets of its own.
    private func measure(_ length: Int, _ payload: PayloadDescriptor?, now: MonotonicTime) {
        guard isSpatial else {
            if isMeasured { lastPacket = now }
            return rate.add(length, now: now)
        }
        guard let payload else { return }
        let (place, before) = (payload.spatialLayer, lastPacket)
        if has(payload) { rate.add(length, now: now) }
        if place == index { lastPacket = now }
        for layer in upper where layer.has(payload) {
            if place == layer.index { layer.lastPacket = now }
            // Between two frames, all layers are silent.
            guard layer.lastPacket > .zero, layer.lastPacket + LayerDelivery.silence >= before else { continue }
            layer.rate.add(length, now: now)
        }
    }

    /// A frame begins with the packet: those that wait for a lower layer go on with it, and at a keyframe those that wait
    /// for a higher one, too. Where the beginning of a frame is missing, they wait for the next one.
    private func beginPicture(_ payload: PayloadDescriptor, _ timestamp: RTPTimestamp, at position: StreamPosition) {
        guard payload.beginsFrame, timestamp != picture else { return }
        guard payload.spatialLayer == 0 || afterMarker == position.number else { return }
        picture = timestamp
        welcome(isKeyframe: payload.isStart, at: position)
        for layer in upper { layer.welcome(isKeyframe: payload.isStart, at: position) }
    }

    private func welcome(isKeyframe: Bool, at position: StreamPosition) {
        guard !joining.isEmpty else { return }
        let ready = joining.filter { $0.canMove(to: self, isKeyframe: isKeyframe) }
        for consumer in ready { consumer.move(to: self, at: position) }
        joining.removeAll { joined in ready.contains { $0 === joined } }
    }

    /// Whether its subscribers get the layer frame of which this is a packet. They get none of higher spatial layers.
    func has(_ payload: PayloadDescriptor) -> Bool { !isSpatial || payload.spatialLayer <= index }

    /// The marker of a packet for the layer's subscribers: it ends the last layer frame that they get (RFC 9628,
    /// section 4.1).
    func marker(_ marker: Bool, of payload: PayloadDescriptor) -> Bool {
        marker || isSpatial && payload.spatialLayer == index && payload.endsFrame
    }

    /// Passes a packet to those whose layer has its layer frame. The others get the frame without it. Returns whether somebody
    /// waits for a keyframe.
    private func pass(
        _ payload: Int, of store: PacketStore, _ header: RTPHeader, _ arrived: Splice.Packet, now: MonotonicTime
    ) -> Bool {
        var isAwaited = false
        let own = part(header, of: arrived.payload)
        // The marker is at the end of what they get.
        var empty = header
        empty.marker = false
        for consumer in consumers {
            // A late packet may be of a frame from before a move.
            let former = arrived.isNewest ? nil : consumer.formerLayer(at: arrived.position)
            let part = former.map { $0.part(header, of: arrived.payload) } ?? own
            if let part {
                consumer.forward(payload, of: store, part, arrived, now: now)
            } else {
                consumer.leaveOut(empty, at: arrived.position, store)
            }
            if consumer.isAwaitingStart { isAwaited = true }
        }
        return isAwaited || joining.contains { !$0.isLower(self) }
    }

    /// The header of a packet for the layer's subscribers. Nil if they do not get it.
    private func part(_ header: RTPHeader, of payload: PayloadDescriptor) -> RTPHeader? {
        guard has(payload) else { return nil }
        var header = header
        header.marker = marker(header.marker, of: payload)
        return header
    }

    // MARK: -

    /// A receiver begins with the next packet that can begin a stream. Until it has a capture time of this stream, it
    /// would compute with that of the stream before, which another machine may have captured.
    func consumerBegins() { (carrier ?? self).needsCaptureTime = true }

    /// Adds the capture time of a packet that has none. Where a receiver begins, it is as receivers would compute it. From a
    /// publisher that sends none, such as aiortc, it comes from sender reports, as often as others send it: browsers tell a
    /// page nothing else by which it could align sound and video.
    private func addCaptureTime(to header: inout RTPHeader, isStart: Bool) {
        let begins = isStart && (needsCaptureTime || codec.media == .video)
        if header.captureTime == nil {
            if begins, let computed = capturedTime(of: header.timestamp) {
                header.captureTime = computed
            } else if begins || captured == nil, let ownClock {
                let elapsed = header.timestamp.interval(since: ownClock.rtp, clockRate: codec.clockRate)
                let ntp = ownClock.ntp.advanced(by: elapsed)
                if reportedTimes.includes(ntp, rtp: header.timestamp, beginsStream: begins) {
                    header.captureTime = AbsoluteCaptureTime(ntp, clockOffset: nil)
                }
            }
        }
        if begins, header.captureTime != nil { needsCaptureTime = false }
    }

    /// From the publisher's last capture time. Nil too far from one.
    private func capturedTime(of timestamp: RTPTimestamp) -> AbsoluteCaptureTime? {
        guard let captured else { return nil }
        let distance = timestamp.interval(since: captured.rtp, clockRate: codec.clockRate)
        return distance <= AbsoluteCaptureTime.reach ? captured.time.advanced(by: distance) : nil
    }

    /// Whether the packet at this position is the newest of its epoch.
    private func advance(to position: StreamPosition) -> Bool {
        guard let newest else {
            newest = position
            return true
        }
        if position.epoch != newest.epoch { beginEpoch() }
        guard position.epoch != newest.epoch || position.number > newest.number else { return false }
        self.newest = position
        return true
    }

    /// The publisher's stream restarted. Consumers join it at its next keyframe, which may be requested immediately.
    private func beginEpoch() {
        ownClock = nil
        captured = nil
        reportedTimes = CaptureTimeSchedule(clockRate: codec.clockRate)
        (keyframe, picture, afterMarker) = (nil, nil, nil)
        needsCaptureTime = true
        governor = KeyframeGovernor()
        recent.forgetKeyframe()
        forEachConsumer { $0.streamRestarted() }
    }

    /// Packets are missing before the next one. Consumers join it as if it had restarted.
    func wasInterrupted() {
        newest = nil
        beginEpoch()
    }

    /// The replay with which a consumer begins now. Without a keyframe that is young enough, requests one and returns
    /// nil.
    func replay() -> Replay? {
        if let carrier { return carrier.replay() }
        if let start = recent.start(now: loop.now), store.contains(start.first) { return Replay(from: start) }
        requestKeyframe()
        return nil
    }

    /// Sends the packets of a replay that may be sent now.
    func run(_ replay: inout Replay, _ send: (Int, PacketStore, RecentPackets.Packet) -> Void) -> Replay.Outcome {
        if let carrier { return carrier.run(&replay, send) }
        return replay.run(recent, of: store, now: loop.now) { send($0, store, $1) }
    }

    /// Requests a keyframe from the source, at most once a second.
    func requestKeyframe() {
        if let carrier { return carrier.requestKeyframe() }
        guard codec.media == .video, source.isReady else { return }
        switch governor.request(now: loop.now) {
        case .askNow: source.requestKeyframe()
        case .askAt(let time): keyframeTimer.arm(at: time)
        case .wait: break
        }
    }

    private func askAgain() {
        guard isWatched else { return governor.withdraw() }
        if governor.timeout(now: loop.now) { source.requestKeyframe() }
    }

    /// Ends the timer of a pending request, and the way to other parts of the room.
    func end() {
        keyframeTimer.disarm()
        pipes = []
        recording = nil
    }

    /// Between two clocks that the layer passes on. Publishers send a report a second.
    static let clockInterval = TimeInterval.milliseconds(200)

    /// Ignores a clock that follows too soon, because each costs work for every subscriber and part of the room.
    func setClock(_ clock: SenderClock) {
        if let last = ownClock, clock.at - last.at < Self.clockInterval { return }
        ownClock = clock
        for pipe in pipes { pipe.send(.clock(StreamLayerID(stream: id, layer: index), clock)) }
        forEachConsumer { $0.setClock(clock) }
        recording?.setClock(clock, of: self)
    }

    private let begun: MonotonicTime
    /// When it was last watched, or began.
    var lastWatched: MonotonicTime

    /// How long a layer may take to show its rate after the stream was published.
    private static let measuring = TimeInterval.seconds(10)
    /// Whether it has to go on, watched or not, so that it can be ranked.
    var isMeasuring: Bool { rate.latest == nil && loop.now - begun < Self.measuring }

    /// Without packets for this long, its last rate may be far from the next one.
    private static let validity = TimeInterval.seconds(10)
    /// Whether its rate was measured long ago, and no other part of the room knows better.
    var isOutdated: Bool { told == nil && loop.now - lastPacket > Self.validity }

    /// Sets the measurement of the publisher's part of the room.
    func set(_ measured: LayerMeasurement) {
        told = measured
        delivery.set(isSilent: measured.isSilent)
    }
    private var told: LayerMeasurement?

    /// Its measurement, for other parts of the room.
    var measurement: LayerMeasurement {
        LayerMeasurement(rate: knownRate, size: knownSize, isSilent: delivery.isSilent)
    }

    /// Its rate on the path as far as it is known, in bits per second. Nil before that.
    var knownRate: Double? {
        rate.current(now: loop.now).flatMap { $0 > 0 ? $0 : nil } ?? told?.rate ?? rate.latest
    }
    /// The size of its frames, as far as it is known.
    var knownSize: FrameSize? { size ?? told?.size }
}

/// One layer of a stream, in messages between parts of a room.
struct StreamLayerID: Hashable, Sendable {
    var stream: Int
    var layer = 0
}

/// The measurement of a layer on its publisher's loop, for the other parts of the room.
struct LayerMeasurement: Equatable, Sendable {
    /// On the path, in bits per second.
    var rate: Double?
    var size: FrameSize?
    /// Whether it is to be delivered, and is not.
    var isSilent = false

    /// Whether others have to know the difference.
    func differs(from known: LayerMeasurement?) -> Bool {
        guard let known, known.size == size, known.isSilent == isSilent else { return true }
        return abs((rate ?? 0) - (known.rate ?? 0)) * 10 > known.rate ?? 0
    }
}

/// Whether a layer delivers, as the times of its packets show. It is told the time.
///
/// Browsers turn their higher layers off by themselves while bandwidth or processor time is short.
struct LayerDelivery {
    /// Without packets for this long while others have some, a layer is silent.
    static let silence = TimeInterval.milliseconds(500)
    /// How long a layer may take to begin after someone wants it.
    static let start = TimeInterval.seconds(3)
    /// How long a silent layer has to deliver until it counts again.
    static let proof = TimeInterval.seconds(1)
    /// One that stops again this soon has to deliver for twice as long the next time.
    static let trial = TimeInterval.seconds(15)
    static let longestProof = TimeInterval.seconds(60)

    private var wantedSince: MonotonicTime?
    private var deliversSince: MonotonicTime?
    private var neededProof = Self.proof
    /// When it last counted again.
    private var proven: MonotonicTime?
    /// Whether it is wanted, and does not deliver.
    private(set) var isSilent = false
    /// Whether another part of the room knows it.
    private var isTold = false

    mutating func set(isSilent: Bool) { (self.isSilent, isTold) = (isSilent, true) }

    /// - Parameters:
    ///   - isWanted: whether the publisher is to send it
    ///   - last: its newest packet
    ///   - others: the newest packet of all layers
    mutating func update(isWanted: Bool, last: MonotonicTime, others: MonotonicTime, now: MonotonicTime) {
        guard !isTold else { return }
        // Nothing is late before anything has arrived.
        guard isWanted, others > .zero else {
            (wantedSince, deliversSince, isSilent) = (nil, nil, false)
            return
        }
        let since = wantedSince ?? now
        wantedSince = since
        // Packets from before say nothing: the publisher begins it again, at a keyframe.
        let isDelivering = last >= since && last + Self.silence >= others
        if isDelivering {
            let begun = deliversSince ?? now
            deliversSince = begun
            guard isSilent, now - begun >= neededProof else { return }
            isSilent = false
            proven = now
        } else {
            let hadBegun = deliversSince != nil
            deliversSince = nil
            guard !isSilent, hadBegun || now - since >= Self.start else { return }
            isSilent = true
            let isRelapse = proven.map { now - $0 < Self.trial } ?? false
            neededProof = isRelapse ? min(neededProof + neededProof, Self.longestProof) : Self.proof
        }
    }
}
