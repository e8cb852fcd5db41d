internal import PeerLoop
internal import RTP
internal import RoomProtocol

/// One end of a pipe between two parts of a room, each on a loop of its own. On the loop only.
///
/// A turn's messages and packets go to the other end together. The other end reports the bytes that it has forwarded, so
/// a pipe holds at most its window. Packets of a turn that do not fit are dropped, all of them: their streams begin again
/// at a keyframe. Messages are never dropped.
final class Pipe: TurnMember {
    /// A participant of the other part.
    struct Guest {
        var info: ParticipantInfo
        var streams: [PublishedStream] = []
    }

    /// How long it waits when the other loop accepts nothing.
    static let pause = TimeInterval.milliseconds(10)
    /// How many packets are sent to consumers before the loop's other work: a fraction of a millisecond.
    private static let sendsAtOnce = 128

    let other: PartID
    var guests: [Guest] = []
    /// The streams that everyone hears, as the other part has told last. Nil before.
    var speakers: [Int]?
    private weak var room: Room?
    private let loop: Loop
    private let links: LoopLinks
    private var outgoing: PipeBatch
    private var isTouched = false
    private var hasEnded = false
    private var isRetrying = false
    /// Bytes of sent packets that the other end has not reported as forwarded.
    private var unreported = 0
    /// Batches that have arrived. Those before `nextBatch` are handled.
    private var arrived: [PipeBatch] = []
    private var nextBatch = 0
    /// Of the next batch.
    private var nextMessage = 0
    private var nextPacket = (index: 0, start: 0)
    /// Bytes of packets that were forwarded here since the last report.
    private var taken = 0
    /// This part's layers that the other part wants.
    private var outgoingLayers: [StreamLayerID: PublishedStream] = [:]
    /// How much of them the best link of its consumers carries.
    private var carried: [Int: Carried] = [:]
    /// Those of which packets were dropped, until they continue.
    private var interrupted: [StreamLayerID] = []
    private var toldMeasurements: [StreamLayerID: LayerMeasurement] = [:]
    /// The other part's streams.
    private var incomingStreams: [Int: PublishedStream] = [:]
    /// The layers of the other part's streams, and how often each was interrupted.
    private var incomingLayers: [StreamLayerID: (layer: StreamLayer, interruptions: Int)] = [:]

    init(_ other: PartID, of room: Room, loop: Loop, links: LoopLinks) {
        self.other = other
        self.room = room
        self.loop = loop
        self.links = links
        outgoing = PipeBatch(room: room.name, from: room.part, to: other)
    }

    // MARK: - Sending

    func send(_ message: PipeMessage) {
        guard !hasEnded else { return }
        outgoing.append(message)
        touch()
    }

    /// Passes on a packet of one of this part's streams. Copies it, once for all subscribers of the other part.
    func carry(
        _ packet: borrowing PacketBuffer, _ header: RTPHeader, at position: StreamPosition, of layer: StreamLayerID
    ) {
        outgoing.append(packet, header, at: position, of: layer)
        touch()
    }

    /// Passes on what is known of a layer, unless the other part knows it already.
    func tell(_ measured: LayerMeasurement, of layer: StreamLayerID) {
        guard measured.differs(from: toldMeasurements[layer]) else { return }
        toldMeasurements[layer] = measured
        send(.measured(layer, measured))
    }

    private func touch() {
        guard !isTouched else { return }
        isTouched = true
        loop.atEndOfTurn(self)
    }

    func endTurn() {
        isTouched = false
        guard !outgoing.isEmpty else { return }
        if unreported + outgoing.size > links.window { dropPackets() }
        resumeInterrupted()
        guard !outgoing.isEmpty else { return }
        let batch = outgoing
        guard links.send(batch, other.loop) else {
            dropPackets()
            return retry()
        }
        unreported += batch.size
        outgoing = batch.next
    }

    private func retry() {
        guard !isRetrying else { return }
        isRetrying = true
        // Keeps the pipe until its last message has left.
        loop.schedule(after: Self.pause) {
            self.isRetrying = false
            self.touch()
        }
    }

    private func dropPackets() {
        room?.settings.packetsNotPiped += outgoing.packets.count
        for packet in outgoing.packets where !interrupted.contains(packet.layer) { interrupted.append(packet.layer) }
        outgoing.dropPackets(ofInterrupted: interrupted)
    }

    /// Announces the interruption of each layer that continues with this batch.
    private func resumeInterrupted() {
        let resumed = interrupted.filter { layer in outgoing.packets.contains { $0.layer == layer } }
        guard !resumed.isEmpty else { return }
        interrupted.removeAll { resumed.contains($0) }
        outgoing.prepend(resumed.flatMap { beginning(of: $0) })
    }

    private func beginning(of id: StreamLayerID) -> [PipeMessage] {
        let clock = outgoingLayers[id]?.layers[id.layer].clock
        return [.interrupted(id)] + (clock.map { [.clock(id, $0)] } ?? [])
    }

    // MARK: - Receiving

    func receive(_ batch: PipeBatch) {
        guard !hasEnded else { return }
        // The way back is free, however long this one takes.
        for (_, message) in batch.messages { if case .taken(let bytes) = message { unreported -= bytes } }
        arrived.append(batch)
        if arrived.count == 1 { goOn() }
    }

    /// Handles a share of what has arrived. The rest waits for the loop's other work.
    private func goOn() {
        var share = Self.sendsAtOnce
        while share > 0, nextBatch < arrived.count {
            let batch = arrived[nextBatch]
            if let message = batch.message(nextMessage, before: nextPacket.index) {
                nextMessage += 1
                // It may be passed on to every participant.
                share -= message.concernsParticipants ? 1 + (room?.count ?? 0) : 1
                handle(message)
                // The last message ends this end of the pipe.
                if hasEnded { return }
            } else if nextPacket.index < batch.packets.count {
                share -= 1 + receiveNext(of: batch)
            } else {
                endBatch()
            }
        }
        report()
        guard !arrived.isEmpty else { return }
        loop.sendEarly()
        loop.schedule(at: loop.now) { [weak self] in self?.goOn() }
    }

    private func endBatch() {
        nextMessage = 0
        nextPacket = (0, 0)
        nextBatch += 1
        guard 2 * nextBatch >= arrived.count else { return }
        arrived.removeFirst(nextBatch)
        nextBatch = 0
    }

    /// Forwards a packet. Returns how many consumers it has.
    private func receiveNext(of batch: PipeBatch) -> Int {
        let packet = batch.packets[nextPacket.index]
        let range = nextPacket.start..<(nextPacket.start + packet.length)
        nextPacket = (nextPacket.index + 1, range.upperBound)
        taken += packet.length + PipeBatch.packetOverhead
        guard let (layer, interruptions) = incomingLayers[packet.layer], loop.scratch.assign(batch.bytes, range)
        else { return 0 }
        var position = packet.position
        position.epoch += interruptions
        layer.forward(loop.scratch, header: packet.header, at: position)
        return layer.receivers
    }

    private func report() {
        guard taken > links.window / 4 else { return }
        send(.taken(taken))
        taken = 0
    }

    private func handle(_ message: PipeMessage) {
        guard !hasEnded else { return }
        switch message {
        case .wanted(let id):
            guard let stream = room?.ownStream(id.stream), stream.layers.indices.contains(id.layer),
                outgoingLayers[id] == nil
            else { return }
            outgoingLayers[id] = stream
            stream.add(self, layer: id.layer)
            for message in beginning(of: id) { send(message) }
        case .unwanted(let id):
            let stream = outgoingLayers.removeValue(forKey: id)
            if !outgoingLayers.keys.contains(where: { $0.stream == id.stream }) { forget(id.stream) }
            stream?.remove(self, layer: id.layer)
        case .carried(let id, let part):
            guard let stream = outgoingLayers.first(where: { $0.key.stream == id })?.value else { return }
            carried[id] = part
            stream.reviewLimit()
        case .keyframe(let id): outgoingLayers[id]?.layers[id.layer].requestKeyframe()
        case .interrupted(let id):
            incomingLayers[id]?.interruptions += 1
            incomingLayers[id]?.layer.wasInterrupted()
        case .clock(let id, let clock): incomingLayers[id]?.layer.setClock(clock)
        case .measured(let id, let measured): incomingLayers[id]?.layer.set(measured)
        case .taken: break
        case .speaking(let reports): room?.speakers.told(reports, by: self)
        case .levels(let id, let hasLevels): incomingStreams[id]?.set(hasLevels: hasLevels)
        case .speakers(let order): room?.speakers.told(order, by: self)
        case .began, .introduction, .entered, .left, .published, .unpublished, .changed, .reduced, .userMessage, .ended:
            room?.handle(message, from: self)
        }
    }

    /// How much of this part's stream the best link of the other part's consumers carries.
    func carried(of stream: Int) -> Carried { carried[stream] ?? .unknown }

    /// Adds a stream of the other part.
    func addStream(_ info: StreamInfo, of guest: Int) -> PublishedStream? {
        guard incomingStreams[info.id] == nil, let codec = Codec(rawValue: info.codec) else { return nil }
        let sources = (0..<max(1, info.layers)).map {
            PipeSource(pipe: self, layer: StreamLayerID(stream: info.id, layer: info.isScalable ? 0 : $0))
        }
        let stream = PublishedStream(
            info, codec: codec, participant: guests[guest].info.id, loop: loop, sources: sources)
        incomingStreams[info.id] = stream
        for layer in stream.layers {
            incomingLayers[StreamLayerID(stream: info.id, layer: layer.index)] = (layer, 0)
        }
        guests[guest].streams.append(stream)
        stream.begin()
        return stream
    }

    /// Forgets streams of the other part that have ended.
    func remove(_ streams: [PublishedStream]) {
        for stream in streams {
            stream.end()
            incomingStreams[stream.info.id] = nil
            for layer in stream.layers {
                incomingLayers[StreamLayerID(stream: stream.info.id, layer: layer.index)] = nil
            }
        }
    }

    /// A stream of this part has ended.
    func ended(_ stream: PublishedStream) {
        for layer in stream.layers { outgoingLayers[StreamLayerID(stream: stream.info.id, layer: layer.index)] = nil }
        forget(stream.info.id)
        interrupted.removeAll { $0.stream == stream.info.id }
    }

    /// The other part wants nothing of a stream any longer. Nobody tells it when the stream ends.
    private func forget(_ stream: Int) {
        carried[stream] = nil
        toldMeasurements = toldMeasurements.filter { $0.key.stream != stream }
    }

    /// Ends this part's end of the pipe. Its last message is sent at the end of the turn.
    func close() {
        send(.ended)
        end()
    }

    /// The other end has ended.
    func wasClosed() {
        outgoing = outgoing.next
        end()
    }

    private func end() {
        hasEnded = true
        arrived = []
        for (id, stream) in outgoingLayers { stream.remove(self, layer: id.layer) }
        outgoingLayers = [:]
        for stream in incomingStreams.values { stream.end() }
        incomingStreams = [:]
        incomingLayers = [:]
        // Their streams refer to this pipe.
        guests = []
    }
}
