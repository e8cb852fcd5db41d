internal import PeerLoop
internal import RTP
internal import RoomProtocol

/// The recording of one published stream. It follows the highest layer that its publisher delivers, and passes packets on in
/// order. Their picture ids stay those of the publisher, because a depayloader needs none. On the loop only.
final class StreamRecording {
    /// Packets wait for so long, so that the sink's thread is woken seldom.
    static let interval = TimeInterval.milliseconds(100)
    /// Packets of so many bytes do not wait.
    static let batchSize = 128 * 1024
    /// The most bytes without the end of a frame, which a depayloader keeps in memory.
    static let longestFrame = 4 * 1024 * 1024
    /// How long it waits for the clock of another layer, after which arrivals tell the time between the two.
    private static let clockTimeout = TimeInterval.seconds(2)

    private unowned let stream: PublishedStream
    private let sink: any RecordingSink
    private let clock: CaptureClock
    private let loop: Loop
    /// The layer that it follows. Nil before the first keyframe of any.
    private var layer: StreamLayer?
    private var layerSince: MonotonicTime
    private var epoch: Int?
    /// Whether the epoch had the parameter sets of H.264.
    private var hasParameters = false
    private var order = RecordingOrder()
    private var splice = Splice(firstSequenceNumber: SequenceNumber(0))
    /// How often the packets have gone on at another place, which leaves one number out.
    private var cuts = 0
    private var times: RecordingTimes
    private var batch = RecordedPackets()
    /// When the first packet was captured, by the publisher's clock. Nil before that is known.
    private var start: MonotonicTime?
    private var dropped = 0
    /// Whether the sink had no room, and is not half empty yet.
    private var isBlocked = false
    /// The memory of the packets since the newest end of a frame.
    private var unfinished = 0
    private var hasEnded = false
    private lazy var gapTimer = loop.makeTimer { [weak self] in self?.passReady() }
    private lazy var batchTimer = loop.makeTimer { [weak self] in self?.flush() }

    /// - Parameter clock: shared by the recordings of one participant.
    init(_ stream: PublishedStream, to sink: any RecordingSink, clock: CaptureClock, loop: Loop) {
        (self.stream, self.sink, self.clock, self.loop) = (stream, sink, clock, loop)
        times = RecordingTimes(clockRate: stream.codec.clockRate)
        layerSince = loop.now
        // Spatial layers come in the packets of the lowest one.
        if !stream.hasLayers || stream.info.isScalable { follow(stream.layers[0]) } else { attach() }
    }

    private var isVideo: Bool { stream.codec.media == .video }

    /// Whether a keyframe is awaited.
    var isAwaitingStart: Bool { isVideo && !isBlocked && (layer == nil || splice.isAwaitingStart) }

    // MARK: - Layers

    /// Lets the layers that it takes, or may take at their next keyframe, pass their packets here.
    private func attach() {
        let rank = layer.map { stream.rank(of: $0) }
        for other in stream.layers where !other.isSpatial || other.index == 0 {
            let isWanted = rank.map { stream.rank(of: other) >= $0 || layer?.delivery.isSilent == true } ?? true
            other.recording = isWanted ? self : nil
        }
    }

    private func follow(_ new: StreamLayer) {
        pass(order.giveUp())
        order.restart()
        (layer, layerSince, epoch, hasParameters) = (new, loop.now, new.epoch, false)
        splice.begin(clockRate: new.codec.clockRate, clock: new.clock, epoch: new.epoch)
        attach()
    }

    /// A keyframe of a layer begins, with a packet that follows.
    func keyframeBegins(in new: StreamLayer) {
        guard let layer else { return follow(new) }
        guard new !== layer else { return }
        if layer.delivery.isSilent || isHigher(new) && canRise(to: new) { follow(new) }
    }

    /// Looks at the layers: falls from one that has ended, and asks for the keyframe of a higher one.
    func review() {
        // All spatial layers are in the packets already.
        guard !stream.info.isScalable else { return }
        attach()
        guard let layer else { return }
        let delivered = stream.layers.indices.map { stream.layer(rank: $0) }.filter { other in
            // A layer that nobody asked for is not silent, and has no packets either.
            !other.delivery.isSilent && loop.now - other.lastPacket < LayerDelivery.silence
        }
        if layer.delivery.isSilent {
            delivered.last?.requestKeyframe()
        } else if let best = delivered.last, isHigher(best), canRise(to: best) {
            best.requestKeyframe()
        }
    }

    private func isHigher(_ other: StreamLayer) -> Bool {
        guard let layer, !other.delivery.isSilent else { return false }
        return stream.rank(of: other) > stream.rank(of: layer)
    }

    /// Whether timestamps go on exactly with another layer: as long as nothing ties them to the publisher's clock, they may go on
    /// in any way.
    private func canRise(to other: StreamLayer) -> Bool {
        splice.clock == nil || other.clock != nil || loop.now - layerSince >= Self.clockTimeout
    }

    // MARK: - Packets

    /// Takes a packet of a layer.
    func take(
        _ packet: borrowing PacketBuffer, _ header: RTPHeader, at position: StreamPosition,
        _ payload: PayloadDescriptor?, of source: StreamLayer, now: MonotonicTime
    ) {
        guard let layer else { return source.requestKeyframe() }
        guard source === layer else { return }
        if position.epoch != epoch {
            pass(order.giveUp())
            order.restart()
            (epoch, hasParameters) = (position.epoch, false)
        }
        let end = payload == nil ? header.payloadOffset : header.payloadEnd
        let turn = order.turn(of: position.number)
        var payload = payload
        if case .h264(isKeyframeStart: true) = payload, turn != .never {
            // Frames show nothing before their parameter sets, which some publishers send once.
            hasParameters = hasParameters || H264Payload.hasSequenceParameters(packet, header: header)
            payload = .h264(isKeyframeStart: hasParameters)
        }
        let taken = RecordingOrder.Packet(
            position: position, timestamp: header.timestamp, marker: header.marker, payload: payload, arrival: now)
        switch turn {
        case .now:
            pass(taken, packet.bytes[header.payloadOffset..<end])
            passReady()
        case .later:
            order.hold(taken, Array(packet.bytes[header.payloadOffset..<end]))
            passReady()
        case .never: break
        }
        if isAwaitingStart { layer.requestKeyframe() }
    }

    private func passReady() {
        pass(order.ready(now: loop.now))
        if isAwaitingStart { layer?.requestKeyframe() }
        let deadline = order.deadline
        if deadline < gapTimer.deadline { gapTimer.arm(at: deadline) }
    }

    private func pass(_ packets: [(packet: RecordingOrder.Packet, bytes: [UInt8])]) {
        for (packet, bytes) in packets { pass(packet, bytes[...]) }
    }

    private func pass(_ packet: RecordingOrder.Packet, _ bytes: ArraySlice<UInt8>) {
        // Frames that depend on lost ones show nothing.
        if packet.isAfterGap, isVideo { splice.pause() }
        guard let payload = packet.payload else {
            _ = splice.leaveOut(packet.position, timestamp: packet.timestamp)
            return
        }
        if isBlocked {
            guard sink.isHalfEmpty else { return dropped += 1 }
            isBlocked = false
        }
        let wasAwaitingStart = splice.isAwaitingStart
        let arrived = Splice.Packet(
            position: packet.position, timestamp: packet.timestamp, isNewest: true, payload: payload)
        guard var numbers = splice.take(arrived, now: packet.arrival), !numbers.isEmpty else { return }
        let isCut = wasAwaitingStart && times.begun != nil
        let time = times.time(of: numbers.timestamp, arrival: packet.arrival)
        if isCut { cut(numbers, at: time) }
        numbers.sequenceNumber = numbers.sequenceNumber.advanced(by: cuts)
        batch.append(
            bytes, numbers, payloadType: stream.codec.payloadType, marker: packet.marker, at: time)
        if wasAwaitingStart { findStart() }
        limitFrame(bytes.count, isEnd: packet.marker)
        if batch.bytes.count >= Self.batchSize {
            flush()
        } else if batchTimer.deadline == .never {
            batchTimer.arm(at: loop.now + Self.interval)
        }
    }

    /// Leaves a number out before a packet, so that a depayloader forgets the frame in progress.
    private func cut(_ numbers: Splice.Numbers, at time: TimeInterval) {
        unfinished = 0
        cuts += 1
        guard stream.codec == .h264 else { return }
        // GStreamer's keeps whole units nevertheless. A delimiter with the marker ends their frame, which it then drops.
        var numbers = numbers
        numbers.sequenceNumber = numbers.sequenceNumber.advanced(by: cuts)
        batch.append(
            [H264Payload.accessUnitDelimiter, 0xf0], numbers, payloadType: stream.codec.payloadType, marker: true,
            at: time)
        cuts += 1
    }

    /// Goes on at the next keyframe if a frame does not end: nobody bounds the memory of a depayloader.
    private func limitFrame(_ length: Int, isEnd: Bool) {
        unfinished = isEnd || !isVideo ? 0 : unfinished + length + RecordedPackets.packetOverhead
        if unfinished > Self.longestFrame { splice.pause() }
    }

    private func flush() {
        batchTimer.disarm()
        guard !batch.isEmpty, let begun = times.begun else { return }
        batch.start = start ?? begun
        if !sink.write(batch) {
            dropped += batch.packets.count
            // Goes on at a keyframe, so that a player shows nothing broken. Viewers get those as well: none is asked for in vain.
            splice.pause()
            isBlocked = true
        }
        batch = RecordedPackets()
    }

    // MARK: - Clocks

    /// A report of the publisher about a layer has arrived.
    func setClock(_ clock: SenderClock, of source: StreamLayer) {
        guard source === layer else { return }
        splice.setClock(clock)
        findStart()
    }

    /// Computes when the first packet was captured, once.
    private func findStart() {
        guard start == nil, let begun = times.begun, let shown = splice.clock, let time = times.time(of: shown.rtp)
        else { return }
        let captured = clock.time(of: shown.ntp, at: shown.at) + (.zero - time)
        // A clock that says otherwise is wrong.
        let difference = captured - begun
        if max(difference, .zero - difference) <= RecordingTimes.tolerance { start = captured }
    }

    // MARK: - The end

    /// Ends the recording: with all packets that came, unless its sink has failed. Calling it again does nothing.
    func end(hasFailed: Bool = false) {
        guard !hasEnded else { return }
        hasEnded = true
        if !hasFailed {
            pass(order.giveUp())
            flush()
        }
        gapTimer.disarm()
        batchTimer.disarm()
        for layer in stream.layers { layer.recording = nil }
        sink.end(
            RecordingEnd(
                start: start ?? times.begun, missing: order.missing, dropped: dropped,
                sort: isVideo ? stream.info.attributes.sort : nil))
    }
}
