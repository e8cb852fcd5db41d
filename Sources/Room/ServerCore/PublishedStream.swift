internal import PeerLoop
internal import RTP
internal import RoomProtocol

/// One published stream: its source, and the consumers and pipes to forward it to. On the loop only.
final class PublishedStream {
    @exclusivity(unchecked) private(set) var info: StreamInfo
    let codec: Codec
    let participant: String
    /// In any order.
    @exclusivity(unchecked) private(set) var consumers: [Consumer] = []
    /// To the other parts of the room that have consumers of it.
    private var pipes: [Pipe] = []
    /// Ties the timestamps of the current epoch to the publisher's wall clock.
    private(set) var clock: SenderClock?
    /// Nil before the first packet.
    var epoch: Int? { newest?.epoch }
    /// The newest packets, from which all consumers send and resend.
    private let store = PacketStore()
    /// The same packets, for consumers that begin at the last keyframe. Only of video.
    @exclusivity(unchecked) private var recent = RecentPackets()
    private let loop: Loop
    private let source: any StreamSource
    @exclusivity(unchecked) private var newest: StreamPosition?
    /// The last capture time of the current epoch, with the timestamp of its packet.
    @exclusivity(unchecked) private var captured: (time: AbsoluteCaptureTime, rtp: RTPTimestamp)?
    /// Whether a consumer or a pipe began after the last packet with a capture time.
    @exclusivity(unchecked) private var needsCaptureTime = false
    @exclusivity(unchecked) private var rate = StreamRate()
    /// The rate before the publisher was told a limit, or a higher one since.
    private var freeRate = 0.0
    /// How much of it the best link carries, as the source was told.
    private var told = Carried.unknown
    private var reviewed = MonotonicTime.zero
    /// The consumers whose links carry all of it.
    private var freeConsumers = 0
    private lazy var limitTimer = loop.makeTimer { [weak self] in self?.reviewLimit() }
    /// Of the publisher's changes of the state.
    var statePace = StatePace()
    private var governor = KeyframeGovernor()
    private lazy var keyframeTimer = loop.makeTimer { [weak self] in self?.askAgain() }

    init(_ info: StreamInfo, codec: Codec, participant: String, loop: Loop, source: any StreamSource) {
        self.info = info
        self.codec = codec
        self.participant = participant
        self.loop = loop
        self.source = source
    }

    var memory: PacketMemory {
        var memory = store.memory
        memory += recent.memory
        return memory
    }

    /// Whether more than one receives it.
    var hasOthers: Bool { consumers.count + pipes.count > 1 }

    /// The rate on the path that it would have without limits, in bits per second. Nil before that is known.
    var wish: Double? {
        guard let current = rate.current(now: loop.now) else { return nil }
        return told.part == nil ? current : max(current, freeRate)
    }

    /// The rate on the path that it will have for another consumer. Nil before that is known.
    var expectedRate: Double? { wish.flatMap { $0 > 0 ? $0 : nil } ?? rate.latest }

    /// Whether its packets go anywhere.
    var isWatched: Bool { !consumers.isEmpty || !pipes.isEmpty }
    /// Whether a keyframe may be awaited.
    var isAwaited: Bool { !pipes.isEmpty || consumers.contains(where: \.isAwaitingStart) }

    func set(_ state: StreamState) { info.state = state }

    func add(_ pipe: Pipe) {
        pipes.append(pipe)
        consumerBegins()
    }

    func remove(_ pipe: Pipe) {
        pipes.removeAll { $0 === pipe }
        reviewLimit()
    }

    func add(_ consumer: Consumer) {
        if consumers.isEmpty { source.begin() }
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
        if consumer.carried == .all { freeConsumers -= 1 }
        if consumers.isEmpty { source.pause() }
        if consumer.carried != .unknown { reviewLimit() }
    }

    // MARK: - Limits

    /// Between two limits. A subscriber must not be able to flood a publisher.
    private static let limitInterval = TimeInterval.milliseconds(100)
    /// A publisher's video remains recognizable.
    private static let leastLimit = 150_000.0

    /// The link of a consumer carries more or less of the stream.
    func carriedChanged(from before: Carried, to after: Carried) {
        freeConsumers += (after == .all ? 1 : 0) - (before == .all ? 1 : 0)
        reviewLimit()
    }

    /// Tells the source what the best link carries, if that has changed. Newcomers count once their links are measured.
    func reviewLimit() {
        let now = loop.now
        guard now - reviewed >= Self.limitInterval else { return limitTimer.arm(at: reviewed + Self.limitInterval) }
        reviewed = now
        var best = freeConsumers > 0 ? Carried.all : .unknown
        if best != .all {
            for consumer in consumers { best = best.joined(with: consumer.carried) }
            for pipe in pipes { best = best.joined(with: pipe.carried(of: info.id)) }
        }
        if let rate = best.part { best = .part(max(rate, Self.leastLimit)) }
        if let new = best.part, let old = told.part, abs(new - old) * 20 < old { return }
        guard best != told else { return }
        let current = rate.current(now: now) ?? 0
        freeRate = told.part == nil ? current : max(freeRate, current)
        told = best
        source.carried(best)
    }

    /// Forwards one packet to every consumer and pipe. Does not lock or await, and allocates nothing for consumers.
    func forward(_ packet: borrowing PacketBuffer, header: RTPHeader, at position: StreamPosition) {
        let isNewest = advance(to: position)
        if isNewest, let time = header.captureTime { captured = (time, header.timestamp) }
        guard isWatched else { return recent.forgetKeyframe() }
        let now = loop.now
        rate.add(packet.count, now: now)
        let payload =
            header.payloadLength > 0
            ? PayloadDescriptor(parsing: packet, header: header, as: codec.payload) : nil
        var header = header
        if isNewest, payload?.isStart == true, needsCaptureTime || codec.media == .video { addCaptureTime(to: &header) }
        for pipe in pipes { pipe.carry(packet, header, at: position, of: info.id) }
        guard !consumers.isEmpty else {
            // Without consumers, packets are not kept.
            recent.forgetKeyframe()
            if payload?.isStart == true { governor.keyframeBegan() }
            return
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
            for consumer in consumers { consumer.leaveOut(header, at: position, store) }
            return
        }
        if payload.isStart, !isNewest, recent.start(now: now)?.keyframe == index {
            for consumer in consumers { consumer.beginAtRepairedKeyframe() }
        }
        let arrived = Splice.Packet(
            position: position, timestamp: header.timestamp, isNewest: isNewest, payload: payload)
        var isAwaited = false
        for consumer in consumers {
            consumer.forward(index, of: store, header, arrived, now: now)
            if consumer.isAwaitingStart { isAwaited = true }
        }
        if payload.isStart { governor.keyframeBegan() }
        if isAwaited { requestKeyframe() }
    }

    /// A receiver begins with the next packet that can begin a stream. Until it has a capture time of this stream, it
    /// would compute with that of the stream before, which another machine may have captured.
    func consumerBegins() { needsCaptureTime = true }

    /// Computes the packet's capture time, as its receivers would, if the packet has none.
    private func addCaptureTime(to header: inout RTPHeader) {
        if header.captureTime == nil, let captured {
            let distance = header.timestamp.interval(since: captured.rtp, clockRate: codec.clockRate)
            if distance <= AbsoluteCaptureTime.reach { header.captureTime = captured.time.advanced(by: distance) }
        }
        if header.captureTime != nil { needsCaptureTime = false }
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
        clock = nil
        captured = nil
        needsCaptureTime = true
        governor = KeyframeGovernor()
        recent.forgetKeyframe()
        for consumer in consumers { consumer.streamRestarted() }
    }

    /// Packets are missing before the next one. Consumers join it as if it had restarted.
    func wasInterrupted() {
        newest = nil
        beginEpoch()
    }

    /// The replay with which a consumer begins now. Without a keyframe that is young enough, requests one and returns
    /// nil.
    func replay() -> Replay? {
        if let start = recent.start(now: loop.now), store.contains(start.first) { return Replay(from: start) }
        requestKeyframe()
        return nil
    }

    /// Sends the packets of a replay that may be sent now.
    func run(_ replay: inout Replay, _ send: (Int, PacketStore, RecentPackets.Packet) -> Void) -> Replay.Outcome {
        replay.run(recent, of: store, now: loop.now) { send($0, store, $1) }
    }

    /// Requests a keyframe from the source, at most once a second.
    func requestKeyframe() {
        guard codec.media == .video, source.isReady else { return }
        switch governor.request(now: loop.now) {
        case .askNow: source.requestKeyframe()
        case .askAt(let time): keyframeTimer.arm(at: time)
        case .wait: break
        }
    }

    private func askAgain() {
        if governor.timeout(now: loop.now) { source.requestKeyframe() }
    }

    /// Ends the timer of a pending request, and the way to other parts of the room. The owner calls this when the stream
    /// ends.
    func end() {
        keyframeTimer.disarm()
        limitTimer.disarm()
        for pipe in pipes { pipe.ended(self) }
        pipes = []
    }

    /// Between two clocks that the stream passes on. Publishers send a report a second.
    static let clockInterval = TimeInterval.milliseconds(200)

    /// Ignores a clock that follows too soon, because each costs work for every subscriber and part of the room.
    func setClock(_ clock: SenderClock) {
        if let last = self.clock, clock.at - last.at < Self.clockInterval { return }
        self.clock = clock
        for pipe in pipes { pipe.send(.clock(info.id, clock)) }
        for consumer in consumers { consumer.setClock(clock) }
    }
}
