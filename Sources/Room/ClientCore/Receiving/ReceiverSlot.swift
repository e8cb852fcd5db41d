internal import PeerLoop
internal import PeerSession
internal import RTP
internal import RoomProtocol

/// One receiver of the pool. On the loop only.
final class ReceiverSlot {
    let receiver: Receiver
    let id: ReceiverID
    let codecs: [NegotiatedCodec]
    private(set) var assignment: Assignment?
    /// Of the streams that it has carried before.
    private(set) var past = MediaTotals()
    /// Of decoded frames.
    private(set) var frameRate = RateWindow(over: .seconds(1))
    /// Of the newest stream.
    private(set) var codec: NegotiatedCodec?
    /// The first packet of the assigned stream. Nil if the receiver had none before, or if the server does not tell it.
    private var first: StreamPosition?
    private var newestEpoch = 0
    /// The newest sender report. It may belong to the next stream, as packets may.
    private var report: SenderReport?
    /// Packets of the next stream that arrived before the message that assigns it.
    private var held = HeldPackets()
    /// Of a video whose first packet has not arrived.
    private var start: StreamStart?
    private let loop: Loop
    private lazy var timer = loop.makeTimer { [unowned self] in
        if let packets = start?.giveUp() { finishStart(packets) }
    }

    init(receiver: Receiver, id: ReceiverID, codecs: [NegotiatedCodec], loop: Loop) {
        self.receiver = receiver
        self.id = id
        self.codecs = codecs
        self.loop = loop
    }

    func receive(_ packet: borrowing PacketBuffer, _ header: RTPHeader, at position: StreamPosition) {
        newestEpoch = position.epoch
        guard let assignment else { return held.hold(packet, header, at: position) }
        held.remember(packet, header, at: position)
        // A packet with another payload type belongs to the previous or the next stream.
        guard assignment.stream.payloadType == header.payloadType else { return }
        deliver(packet.bytes.span.extracting(0..<packet.count), header)
    }

    /// A report follows the first packet of its stream. One that arrived before that packet is about the stream before.
    func receive(_ report: SenderReport) {
        self.report = report
        guard let assignment, let after = report.after else { return }
        if let first, after.epoch == first.epoch, after.number < first.number { return }
        assignment.receive(report)
    }

    /// Passes a packet on. At the start of a stream, it may have to wait for the first one.
    private func deliver(_ packet: Span<UInt8>, _ header: RTPHeader) {
        if let time = header.captureTime { assignment?.captured(time, rtp: header.timestamp) }
        guard start != nil else { return assignment?.receive(packet) ?? () }
        if let packets = start?.add(packet, header.sequenceNumber, now: loop.now) {
            finishStart(packets)
        } else if let deadline = start?.deadline {
            timer.arm(at: deadline)
        }
    }

    private func finishStart(_ packets: [[UInt8]]) {
        start = nil
        timer.disarm()
        for packet in packets { assignment?.receive(packet.span) }
    }

    /// Assigns a stream that begins at `number`. Packets that arrived before the message now go to it, even if the
    /// previous stream already got them. Returns false if its first packets were dropped because too many arrived.
    ///
    /// - Parameters:
    ///   - number: nil if the server does not tell it.
    ///   - first: the same as a position, nil before the receiver's first packet.
    func begin(_ assignment: Assignment, at number: SequenceNumber?, position first: Int?) -> Bool {
        self.assignment = assignment
        codec = codecs.first { $0.payloadType == assignment.stream.payloadType }
        self.first = first.map { StreamPosition(epoch: newestEpoch, number: $0) }
        start = receiver.media == .video ? number.map { StreamStart(at: $0) } : nil
        assignment.begin()
        let isWhole = held.isWhole(from: first)
        // Packets that were dropped never arrive again.
        if !isWhole { start = nil }
        let packets = held.take(from: first).filter { $0.header.payloadType == assignment.stream.payloadType }
        let skipped = max(0, packets.count - (assignment.sink.backlog ?? packets.count))
        for packet in packets.prefix(skipped) {
            if let time = packet.header.captureTime { assignment.captured(time, rtp: packet.header.timestamp) }
        }
        for packet in packets.dropFirst(skipped) { deliver(packet.bytes.span, packet.header) }
        if let report, self.first != nil { receive(report) }
        return isWhole
    }

    /// Called about twice a second.
    func sample(now: MonotonicTime) {
        guard receiver.media == .video else { return }
        frameRate.sample(past.framesDecoded + (assignment?.sink.framesDecoded ?? 0), now: now)
    }

    func release() {
        if let assignment { past.add(assignment.statistics) }
        start = nil
        timer.disarm()
        assignment?.sink.end()
        assignment = nil
    }
}
