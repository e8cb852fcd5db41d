public import RTP

/// One peer as a state machine: demultiplexing, DTLS, SRTP, streams, reports and repair.
///
/// It has no clock, socket, thread or lock. Its owner hands in what arrives from the pair that ICE validated, says what
/// time it is, sends what lies in `outgoing` after every call, polls events, and calls `handleTimeout` at
/// `nextTimeout`. One owner, one thread.
///
/// Nothing is allocated for a media packet on its way in or out once the streams are warm.
public final class PeerSession<DTLS: DTLSEngine, SRTP: SRTPEngine> {
    private enum Phase {
        case idle
        case handshaking
        case secured
        case ended
    }

    private let dtls: DTLS
    package private(set) var srtp: SRTP?
    private let streams: StreamTable
    private var phase = Phase.idle
    private var isConnected = false
    private var isStarted = false
    private var role = DTLSRole.client
    private var expected: [Fingerprint] = []
    private var nextReport = MonotonicTime.never
    private var liveness: Liveness
    /// Where a packet is built and encrypted.
    private var scratch = PacketBuffer()
    /// Where a packet to be repeated comes from.
    private var stored = PacketBuffer()
    private var control = PacketBuffer()

    /// Datagrams to send, in order. The owner sends them after every call and then calls `removeAll` on it.
    public var outgoing = DatagramBatch()

    public init(dtls: DTLS, configuration: PeerSessionConfiguration) {
        self.dtls = dtls
        streams = StreamTable(configuration: configuration)
        liveness = Liveness(silence: configuration.silence, consent: configuration.consent)
    }

    public var localFingerprint: Fingerprint { dtls.localFingerprint }
    /// Whether media can flow.
    public var isSecured: Bool { phase == .secured }
    /// Whether the session failed or was closed by either end.
    public var isEnded: Bool { phase == .ended }
    /// When the peer last proved to be there: by an SRTP or SRTCP packet, or by the end of the handshake. `.zero` before.
    public var lastReceived: MonotonicTime { liveness.lastReceived }

    // MARK: The session's life

    /// Sets what the description says. The handshake begins when the transport is connected too. A second call is
    /// ignored: a session has one handshake.
    public func start(role: DTLSRole, expecting fingerprints: [Fingerprint], now: MonotonicTime) {
        guard !isStarted, phase == .idle else { return }
        isStarted = true
        self.role = role
        expected = fingerprints
        beginIfReady(now: now)
    }

    /// ICE has validated a pair: from now on datagrams are sent and taken.
    public func transportConnected(now: MonotonicTime) {
        guard !isConnected, phase == .idle else { return }
        isConnected = true
        beginIfReady(now: now)
    }

    private func beginIfReady(now: MonotonicTime) {
        guard isStarted, isConnected, phase == .idle else { return }
        phase = .handshaking
        dtls.start(role: role, expecting: expected, now: now)
        followHandshake(now: now)
    }

    /// Sends BYE and close_notify and ends the session. Idempotent.
    public func close(now: MonotonicTime) {
        guard phase != .ended else { return }
        if phase == .secured {
            let sources = streams.senders.compactMap { $0.flatMap { $0.hasSent ? $0.configuration.ssrc : nil } }
            if !sources.isEmpty { sendControl(streams.preamble + Self.byes(sources)) }
        }
        if phase == .secured || phase == .handshaking {
            dtls.close()
            drainHandshake()
        }
        end()
    }

    private static func byes(_ sources: [SSRC]) -> [RTCPPacket] {
        stride(from: 0, to: sources.count, by: 31).map { .bye(Array(sources[$0..<min($0 + 31, sources.count)])) }
    }

    private func end() {
        phase = .ended
        nextReport = .never
        srtp = nil
    }

    private func fail(_ reason: String) {
        streams.events.push(.failed(reason))
        end()
    }

    // MARK: What arrives

    /// Takes one datagram from the validated pair; `.media` leaves the decrypted packet in the buffer.
    public func receive(_ packet: inout PacketBuffer, now: MonotonicTime) -> Received {
        guard packet.count > 0 else {
            streams.dropped.unknownProtocol += 1
            return .nothing
        }
        guard phase != .ended else {
            streams.dropped.afterEnd += 1
            return .nothing
        }
        // RFC 7983 section 7.
        switch packet.bytes[0] {
        case 20...63:
            receiveHandshake(packet, now: now)
            return .nothing
        case 128...191:
            guard phase == .secured, let srtp else {
                if isConnected { streams.dropped.beforeSecured += 1 } else { streams.dropped.beforeConnected += 1 }
                return .nothing
            }
            guard packet.count >= 2 else {
                streams.dropped.malformed += 1
                return .nothing
            }
            // RTCP packet types seen through the RTP header's second byte (RFC 5761 section 4).
            if (192...223).contains(packet.bytes[1]) {
                receiveControl(&packet, srtp, now: now)
                return .nothing
            }
            return receiveMedia(&packet, srtp, now: now)
        default:
            streams.dropped.unknownProtocol += 1
            return .nothing
        }
    }

    private func receiveHandshake(_ packet: borrowing PacketBuffer, now: MonotonicTime) {
        guard phase != .idle else {
            streams.dropped.beforeConnected += 1
            return
        }
        dtls.receive(packet, now: now)
        followHandshake(now: now)
    }

    private func receiveMedia(_ packet: inout PacketBuffer, _ srtp: SRTP, now: MonotonicTime) -> Received {
        guard var header = RTPHeader(parsingProtected: packet) else {
            streams.dropped.malformed += 1
            return .nothing
        }
        guard let route = streams.route(header, packet) else { return .nothing }
        guard srtp.unprotectRTP(&packet) else {
            streams.refused(header, now: now)
            return .nothing
        }
        if let surplus = streams.opened(header.ssrc, by: route) { srtp.forget(surplus) }
        heard(now: now)
        guard header.resolvePadding(in: packet) else {
            streams.dropped.malformed += 1
            return .nothing
        }
        return streams.receive(&packet, header, by: route, now: now)
    }

    private func receiveControl(_ packet: inout PacketBuffer, _ srtp: SRTP, now: MonotonicTime) {
        guard packet.count >= 8 else {
            streams.dropped.malformed += 1
            return
        }
        let ssrc = SSRC(packet.uint32(at: 4))
        guard streams.admits(ssrc) else {
            streams.dropped.unknownSSRC += 1
            return
        }
        guard srtp.unprotectRTCP(&packet) else {
            streams.failedAuthentication(now: now)
            return
        }
        if let surplus = streams.opened(ssrc) { srtp.forget(surplus) }
        heard(now: now)
        guard let packets = RTCPPacket.parse(packet) else {
            streams.dropped.malformed += 1
            return
        }
        streams.receive(packets, now: now) { stream, lost in
            for number in lost { sendAgain(number, of: stream, now: now) }
        }
    }

    private func heard(now: MonotonicTime) {
        if liveness.received(now: now) { streams.events.push(.heard) }
    }

    // MARK: DTLS

    private func drainHandshake() { dtls.drain(into: &outgoing) }

    private func followHandshake(now: MonotonicTime) {
        drainHandshake()
        switch dtls.progress {
        case .handshaking:
            break
        case .connected(let profile):
            guard phase == .handshaking else { return }
            guard var keys = dtls.exportKeys() else { return fail("DTLS yields no keys for \(profile.rawValue).") }
            do {
                srtp = try SRTP(keys: &keys)
            } catch {
                fail("SRTP could not be set up with \(profile.rawValue): \(error).")
                return
            }
            phase = .secured
            nextReport = now + reportDelay / 2
            liveness.start(now: now)
            streams.events.push(.secured(profile))
        case .failed(let reason):
            fail(reason)
        case .closed:
            streams.events.push(.closed)
            end()
        }
    }

    // MARK: Streams

    public func addSender(_ configuration: SenderConfiguration) -> SenderID { streams.addSender(configuration) }

    /// Removes the sender and, if it has sent anything, says BYE for it.
    public func removeSender(_ id: SenderID, now: MonotonicTime) {
        guard let stream = streams.removeSender(id), stream.hasSent, phase == .secured else { return }
        sendControl(streams.preamble + [.bye([stream.configuration.ssrc])])
    }

    public func addReceiver(_ configuration: ReceiverConfiguration) -> ReceiverID {
        streams.addReceiver(configuration)
    }

    /// Removes the receiver; what still comes for it is dropped as of an unknown SSRC.
    public func removeReceiver(_ id: ReceiverID) { streams.removeReceiver(id) }

    /// Sends a media packet: its payload without padding, CSRCs and header extensions, under the sender's SSRC and the
    /// rewritten fields. The packet itself stays as it is.
    ///
    /// False when nothing was sent: the sender is gone, the session not secured, or the packet dropped and counted.
    @discardableResult
    public func send(
        _ packet: borrowing PacketBuffer, header: RTPHeader, rewrite: Rewrite, via id: SenderID, now: MonotonicTime
    ) -> Bool {
        guard phase == .secured, let srtp, let stream = streams.sender(id) else { return false }
        let limit = streams.configuration.maximumPacketLength
        let isFirst = !stream.hasSent
        guard stream.prepare(packet, header: header, rewrite: rewrite, limit: limit, in: &scratch) else {
            streams.dropped.unprotectable += 1
            return false
        }
        if isFirst, stream.clock != nil { nextReport = now }
        guard emit(srtp) else { return false }
        liveness.sent(now: now)
        return true
    }

    /// Encrypts what lies in `scratch` and queues it.
    private func emit(_ srtp: SRTP) -> Bool {
        guard outgoing.count < streams.configuration.outgoingCapacity else {
            streams.dropped.outgoingFull += 1
            return false
        }
        guard srtp.protectRTP(&scratch) else {
            streams.dropped.unprotectable += 1
            return false
        }
        outgoing.append(scratch)
        return true
    }

    private func sendAgain(_ number: SequenceNumber, of stream: OutgoingStream, now: MonotonicTime) {
        guard phase == .secured, let srtp else { return }
        let limit = streams.configuration.maximumPacketLength
        guard
            stream.prepareRepeat(
                of: number, roundTrip: streams.roundTrip, limit: limit, now: now, stored: &stored, in: &scratch)
        else { return }
        _ = emit(srtp)
    }

    /// Ties the sender's timestamps to wall-clock time; sender reports carry this line on to the moment they are sent.
    /// Without it a sender sends no reports.
    public func setClock(_ id: SenderID, ntp: NTPTime, rtp: RTPTimestamp, at: MonotonicTime) {
        guard let stream = streams.sender(id) else { return }
        let isFirst = stream.clock == nil
        let rate = stream.configuration.clockRate
        stream.setClock(SenderClock(ntp: ntp, rtp: rtp, at: at, clockRate: rate))
        if isFirst, stream.hasSent, phase == .secured { nextReport = min(nextReport, at) }
    }

    /// Sends no more reports for the sender until its next `setClock`.
    public func clearClock(_ id: SenderID) { streams.sender(id)?.clearClock() }

    /// What the sender carries from now on has nothing to do with what it carried before: packets sent so far are not
    /// repeated, and the clock is cleared.
    public func forget(_ id: SenderID) {
        guard let stream = streams.sender(id) else { return }
        stream.forgetSent()
        stream.clearClock()
    }

    /// What the receiver carries from now on begins with this number: earlier packets are dropped and no longer asked
    /// for. Returns the number as positions count it; nil before the first packet.
    public func discard(before number: SequenceNumber, on id: ReceiverID) -> Int? {
        streams.receiver(id)?.discard(before: number)
    }

    /// The longest payload that `send` takes.
    public var maximumPayloadLength: Int {
        streams.configuration.maximumPacketLength - RTPHeader.minimumLength
    }

    /// Asks the peer for a keyframe (PLI), now or as soon as 200 ms have passed since the last request. One call makes
    /// one request; whoever sees no keyframe come asks again.
    public func requestKeyframe(_ id: ReceiverID, now: MonotonicTime) {
        guard let stream = streams.receiver(id) else { return }
        stream.wantKeyframe()
        guard phase == .secured else { return }
        sendFeedback(now: now)
    }

    // MARK: Time

    /// When `handleTimeout` wants to be called; a time in the past means at once. Changes with every call.
    public var nextTimeout: Deadline {
        switch phase {
        case .idle, .ended:
            return .never
        case .handshaking:
            return Deadline.never.earlier(dtls.nextTimeout, .handshake)
        case .secured:
            return streams.nextFeedback.earlier(nextReport, .report).earlier(dtls.nextTimeout, .handshake)
                .earlier(liveness.nextTimeout, .liveness)
        }
    }

    /// Does what is due. Early or needless calls do nothing.
    public func handleTimeout(now: MonotonicTime) {
        guard phase == .handshaking || phase == .secured else { return }
        if dtls.nextTimeout <= now {
            dtls.handleTimeout(now: now)
            followHandshake(now: now)
        }
        guard phase == .secured, isAlive(now: now) else { return }
        if nextReport <= now {
            nextReport = now + reportDelay
            if streams.hasStreams { sendControl(streams.reports(now: now) + streams.feedback(now: now)) }
        } else {
            sendFeedback(now: now)
        }
    }

    /// Judges the peer's silence; false when the session ends by it.
    private func isAlive(now: MonotonicTime) -> Bool {
        switch liveness.handleTimeout(now: now) {
        case .silent: streams.events.push(.silent)
        case .lost:
            streams.events.push(.consentLost)
            end()
            return false
        case nil: break
        }
        return true
    }

    /// 0.5...1.5 times the interval, so that the reports of many sessions do not fall into step.
    private var reportDelay: TimeInterval {
        let interval = streams.configuration.reportInterval.nanoseconds
        return TimeInterval(nanoseconds: Int64.random(in: (interval / 2)...(interval * 3 / 2), using: &streams.random))
    }

    private func sendFeedback(now: MonotonicTime) {
        let packets = streams.feedback(now: now)
        if !packets.isEmpty { sendControl(streams.preamble + packets) }
    }

    /// Packs packets into as many compounds as they need, each begun with a report and the CNAME.
    private func sendControl(_ packets: [RTCPPacket]) {
        control.count = 0
        let limit = PeerSessionConfiguration.maximumCompoundLength
        for packet in packets where !packet.append(to: &control, limit: limit) {
            emitControl()
            for opening in streams.preamble { _ = opening.append(to: &control, limit: limit) }
            _ = packet.append(to: &control, limit: limit)
        }
        emitControl()
    }

    private func emitControl() {
        defer { control.count = 0 }
        guard control.count > 0, let srtp else { return }
        guard outgoing.count < streams.configuration.outgoingCapacity else {
            streams.dropped.outgoingFull += 1
            return
        }
        guard srtp.protectRTCP(&control) else {
            streams.dropped.unprotectable += 1
            return
        }
        outgoing.append(control)
    }

    // MARK: What happened

    public func pollEvent() -> PeerSessionEvent? { streams.events.pop() }

    public var statistics: PeerSessionStatistics {
        PeerSessionStatistics(roundTrip: streams.roundTrip, dropped: streams.dropped)
    }

    /// Nil when the sender is gone.
    public func statistics(of id: SenderID) -> SenderStatistics? { streams.sender(id)?.statistics }

    /// Nil when the receiver is gone.
    public func statistics(of id: ReceiverID) -> ReceiverStatistics? { streams.receiver(id)?.statistics }
}
