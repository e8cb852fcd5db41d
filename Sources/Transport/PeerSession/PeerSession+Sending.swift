internal import CongestionControl
public import RTP

// How fast to send to a peer, and the reports of a peer's numbers.
extension PeerSession {
    /// Sets what all streams together can use, with headers, in bits per second. Nil before there is media. Probes measure
    /// up to twice that.
    public func setDemand(bitsPerSecond: Int?, now: MonotonicTime) {
        demand = bitsPerSecond
        guard let control else { return }
        control.setDemand(bitsPerSecond, now: now)
        pace(now: now)
    }

    /// Packets take another way from now on, for which no estimate holds.
    public func routeChanged(now: MonotonicTime) {
        streams.pathReports = ReportEstimate()
        control?.routeChanged(now: now)
        followReports(now: now)
    }

    /// This process stood still until now, so that no socket was read and no timer fired. Call it before the first
    /// datagram after that.
    public func stalled(for time: TimeInterval, now: MonotonicTime) {
        control?.stalled(for: time, now: now)
        incoming?.stalled(now: now)
    }

    /// When the peer last reported which packets arrived. Nil before it does, and if it never does.
    public var lastReport: MonotonicTime? { control?.lastReport }

    /// Whether the pacer spreads the packets of this session.
    public var isPaced: Bool { control != nil }

    /// Whether the path shows that it carries less than it gets.
    public var isCongested: Bool { control?.isCongested ?? false }

    /// Whether the path has a queue at present, or delivers nothing.
    public var isQueueing: Bool { control?.isQueueing ?? false }

    /// Whether the path can be measured by padding.
    public var canPad: Bool { streams.paddingSender?.extensions.transportNumber != nil }

    func beginControl(now: MonotonicTime) {
        if control == nil { control = SendingControl(startSettings, burst: streams.configuration.pacingBurst) }
        guard phase == .secured else { return }
        control?.begin(hasNumbers: streams.hasNumbers, canPad: canPad, now: now)
        pace(now: now)
    }

    /// Before the first estimate of a peer that gets no numbers, nothing limits the rate.
    private var startSettings: CongestionController.Settings {
        let settings = CongestionController.Settings()
        return streams.hasNumbers || !streams.hasSendTimes
            ? settings : .init(minimum: settings.minimum, start: settings.maximum, maximum: settings.maximum)
    }

    /// When the control or the reports of arrivals are due.
    var nextControl: MonotonicTime { min(control?.nextTimeout ?? .never, arrivals?.nextTimeout ?? .never) }

    func handleControlTimeout(now: MonotonicTime) {
        reportArrivals(now: now)
        control?.handleTimeout(now: now)
        // Without feedback, no report comes either.
        if control?.isQueueing ?? false { chooseCopies(now: now) }
        pace(now: now)
    }

    // MARK: Sending

    func hold(
        _ packet: SentPacket, length: Int, of stream: OutgoingStream, _ control: SendingControl, now: MonotonicTime
    ) {
        let isGranted = control.enqueue(
            PacedPacket(sender: stream.id, packet: packet, role: .media), length: length,
            kind: stream.configuration.isAudio ? .audio : .video, now: now)
        if !isGranted { pace(now: now) }
    }

    /// Lets the packets leave that may.
    func pace(now: MonotonicTime) {
        guard let control, phase == .secured else { return }
        control.release(now: now) { bytes in padding(bytes) }
        if let rate = control.news(now: now) { streams.events.push(.sendingRate(bitsPerSecond: rate)) }
    }

    /// A packet that only measures the path, of about so many bytes, and its length.
    private func padding(_ bytes: Int) -> (packet: PacedPacket, length: Int)? {
        guard let stream = streams.paddingSender else { return nil }
        if bytes > Int(UInt8.max) / 2, let packet = stream.paddingRepeat() {
            let length = stream.length(of: packet, isRepeat: true)
            stream.countPadding(length, repeating: packet)
            return (PacedPacket(sender: stream.id, packet: packet, role: .repeated), length)
        }
        let packet = stream.emptyPadding()
        let empty = UInt8(clamping: max(1, bytes))
        let length = stream.length(of: packet, isRepeat: true) + Int(empty)
        stream.countPadding(length)
        return (PacedPacket(sender: stream.id, packet: packet, role: .padding(empty)), length)
    }

    func sendAgain(_ number: SequenceNumber, of stream: OutgoingStream, now: MonotonicTime) {
        guard phase == .secured, let srtp else { return }
        guard waitingCount < streams.configuration.outgoingCapacity else {
            streams.dropped.outgoingFull += 1
            return
        }
        let planned = stream.planRepeat(
            of: number, roundTrip: streams.roundTrip, now: now, hasRoom: { control?.hasRoomToRepeat($0) ?? true })
        guard let packet = planned else { return }
        let length = stream.length(of: packet, isRepeat: true)
        streams.pathReports.sent(bytes: length + SendingControl.overhead, now: now)
        if let control {
            let isGranted = control.enqueue(
                PacedPacket(sender: stream.id, packet: packet, role: .repeated), length: length,
                kind: .retransmission, now: now)
            if !isGranted { pace(now: now) }
            return
        }
        let isSealed = stream.writeRepeat(of: packet, in: &scratch.head) { head, rest in
            srtp.protectRTP(&head, rest, into: &outgoing)
        }
        if isSealed != true { streams.dropped.unprotectable += 1 }
    }

    /// Begins another stream on the sender: earlier packets are not resent, and the clock is cleared.
    public func forget(_ id: SenderID) {
        guard let stream = streams.sender(id) else { return }
        control?.grantAll(of: id)
        seal(into: &outgoing)
        stream.forgetSent()
        stream.clearClock()
    }

    /// Interrupts the sender's stream: none of its frames is resent. Requests for earlier packets get empty ones, because a
    /// receiver waits for them before the frames that follow the interruption.
    public func withholdSent(_ id: SenderID) {
        guard let stream = streams.sender(id) else { return }
        control?.grantAll(of: id)
        seal(into: &outgoing)
        stream.withholdSent()
    }

    /// Encrypts the granted packets, each with its transport-wide number. So numbers are in the order of sending.
    func sealGranted(by control: SendingControl, into batch: inout DatagramBatch) {
        guard !control.granted.isEmpty, let srtp else { return }
        control.drain { granted, stamp in
            guard let stream = streams.sender(granted.sender) else { return nil }
            let before = batch.used
            let isSealed =
                switch granted.role {
                case .media:
                    stream.write(granted.packet, stamp: stamp, in: &scratch.head) { head, rest in
                        srtp.protectRTP(&head, rest, into: &batch)
                    }
                case .repeated:
                    stream.writeRepeat(of: granted.packet, stamp: stamp, in: &scratch.head) { head, rest in
                        srtp.protectRTP(&head, rest, into: &batch)
                    }
                case .padding(let bytes):
                    stream.writePadding(
                        granted.packet, bytes: bytes, stamp: stamp, in: &scratch.head
                    ) { head, rest in srtp.protectRTP(&head, rest, into: &batch) }
                }
            guard isSealed == true else {
                streams.dropped.unprotectable += 1
                return nil
            }
            return (batch.used - before, stream.extensions.transportNumber != nil)
        }
    }

    // MARK: Receiving

    /// Handles the reports about this end's numbers, and the estimates of a peer that has no such reports (REMB).
    func receiveEstimates(_ packets: [RTCPPacket], now: MonotonicTime) {
        for packet in packets {
            switch packet {
            case .transportFeedback(let feedback): control?.received(feedback, now: now)
            case .receiverEstimate(let estimate): receive(estimate, now: now)
            default: continue
            }
        }
        followReports(now: now)
        if control != nil { pace(now: now) }
    }

    /// Follows the losses that the peer reports, or that it reports nothing, as long as nothing else shows how much the path
    /// carries. A session that has had transport-wide numbers and sends nothing at present follows none.
    func followReports(now: MonotonicTime) {
        guard !streams.hasNumbers, control?.hasNumbers != true, control?.hasEstimate != true,
            control != nil || streams.pathReports.rate.isLimited
        else { return }
        followPath(now: now) { $0.follow(streams.pathReports, now: now) }
    }

    /// Lets the control follow what the peer tells about the path. Without a control, one begins.
    private func followPath(now: MonotonicTime, _ follow: (SendingControl) -> Void) {
        if let control { return follow(control) }
        // Before those that the pacer holds.
        seal(into: &outgoing)
        let control = SendingControl(startSettings, burst: streams.configuration.pacingBurst)
        if let demand { control.setDemand(demand, now: now) }
        follow(control)
        self.control = control
        beginControl(now: now)
    }

    /// A list of a REMB may have 255 streams, and its kept estimates are compared with each other. So they keep the streams of
    /// this end alone. An estimate about none of them counts for nothing.
    private func receive(_ estimate: ReceiverEstimate, now: MonotonicTime) {
        var estimate = estimate
        if !estimate.sources.isEmpty {
            estimate.sources = streams.sentSources(of: estimate.sources)
            guard !estimate.sources.isEmpty else { return }
        }
        let others = streams.audioRate(without: estimate.sources)
        followPath(now: now) { $0.received(estimate, others: others, now: now) }
    }

    func noteArrival(
        _ header: RTPHeader, _ packet: borrowing PacketBuffer, id: UInt8, now: MonotonicTime
    ) {
        guard let number = TransportSequence.read(id: id, header, in: packet) else { return }
        if arrivals == nil { arrivals = TransportFeedbackRecorder(sender: streams.ownSSRC) }
        arrivals?.received(number, media: header.ssrc, at: now)
    }

    /// Notes the arrival of a packet whose sender takes estimates, and sends one if it is due.
    func estimate(
        _ header: RTPHeader, _ packet: borrowing PacketBuffer, of route: StreamTable.Route, now: MonotonicTime
    ) {
        if incoming == nil { incoming = ArrivalEstimate() }
        let sent = streams.sendTime(of: route).flatMap { AbsoluteSendTime.read(id: $0, header, in: packet) }
        guard let rate = incoming?.received(bytes: packet.count + Self.datagramOverhead, sent: sent, at: now) else {
            return
        }
        let estimate = ReceiverEstimate(
            sender: streams.ownSSRC, bitsPerSecond: UInt64(min(rate.bitsPerSecond, 1e12)),
            sources: streams.estimatedSources)
        sendControl(streams.preamble + [.receiverEstimate(estimate)])
    }

    /// The headers of UDP and IPv4.
    private static let datagramOverhead = 28

    /// The worst of the losses in reports about streams whose sender takes estimates.
    func noteLosses(_ reports: [RTCPPacket]) {
        guard incoming != nil else { return }
        for case .receiverReport(_, let blocks) in reports {
            let lost = blocks.filter { streams.receiver($0.ssrc)?.configuration.takesEstimates == true }.map(
                \.fractionLost)
            if let worst = lost.max() { incoming?.reported(loss: Double(worst) / 256) }
        }
    }

    private func reportArrivals(now: MonotonicTime) {
        while let report = arrivals?.report(now: now) { sendControl(streams.preamble + [.transportFeedback(report)]) }
    }
}
