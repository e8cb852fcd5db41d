internal import CongestionControl
public import RTP

/// One peer as a state machine: demultiplexing, DTLS, SRTP, streams, reports and repair.
///
/// It has no clock, socket, thread or lock. Its owner passes datagrams of the pair that ICE validated, with the time.
/// It drains what is to be sent after every call, polls events, and calls `handleTimeout` at `nextTimeout`. One owner,
/// one thread.
///
/// Does not allocate for media packets once the streams run.
public final class PeerSession {
    enum Phase {
        case idle
        case handshaking
        case secured
        case ended
    }

    private let dtls: any DTLSEngine
    private let makeSRTP: (inout SRTPKeys) throws -> SRTPEngine
    @exclusivity(unchecked) package private(set) var srtp: SRTPEngine?
    let streams: StreamTable
    /// The longest payload that `send` accepts.
    public let maximumPayloadLength: Int
    @exclusivity(unchecked) private(set) var phase = Phase.idle
    private var isConnected = false
    private var isStarted = false
    package private(set) var role = DTLSRole.client
    private var expected: [Fingerprint] = []
    /// When the next report is due.
    @exclusivity(unchecked) package private(set) var nextReport = MonotonicTime.never
    /// When a report is due at the latest. Media and clocks make `nextReport` earlier.
    @exclusivity(unchecked) private var latestReport = MonotonicTime.never
    /// How many reports were sent since the last media packet in either direction.
    @exclusivity(unchecked) private var reportsWithoutMedia = 0
    @exclusivity(unchecked) private var isHandshakeReleased = false
    @exclusivity(unchecked) private var liveness: Liveness
    let scratch: SessionScratch
    /// How fast to send. Nil while nothing shows how much the path carries.
    @exclusivity(unchecked) var control: SendingControl?
    /// The rate that all streams together can use, for a control that begins later.
    @exclusivity(unchecked) var demand: Int?
    /// When there was last a queue on the path, and how many copies a packet may carry since the last choice.
    @exclusivity(unchecked) var queuedAt: MonotonicTime?
    @exclusivity(unchecked) var mostCopies = 2
    /// When packets of the peer with transport-wide numbers arrived. Nil before the first.
    @exclusivity(unchecked) var arrivals: TransportFeedbackRecorder?
    /// The estimate for a peer that takes some. Nil before its first packet.
    @exclusivity(unchecked) var incoming: ArrivalEstimate?
    /// Media packets to send, which `drain` encrypts.
    @exclusivity(unchecked) private var planned: [(sender: SenderID, packet: SentPacket)] = []
    /// Handshake, reports and retransmissions to send, and media of senders that have ended or changed to another store.
    @exclusivity(unchecked) var outgoing = DatagramBatch()

    /// - Parameters:
    ///   - scratch: shared by all sessions of a thread.
    ///   - makeSRTP: called once, when the handshake has finished.
    public init(
        dtls: any DTLSEngine, configuration: PeerSessionConfiguration, scratch: SessionScratch = SessionScratch(),
        makeSRTP: @escaping (inout SRTPKeys) throws -> SRTPEngine
    ) {
        self.dtls = dtls
        self.scratch = scratch
        self.makeSRTP = makeSRTP
        streams = StreamTable(configuration: configuration)
        maximumPayloadLength = configuration.maximumPacketLength - RTPHeader.minimumLength
        liveness = Liveness(silence: configuration.silence, consent: configuration.consent)
    }

    /// How many datagrams `drain` would add.
    public var outgoingCount: Int { outgoing.count + planned.count + (control?.granted.count ?? 0) }
    /// How many packets wait, those that the pacer holds included.
    var waitingCount: Int { outgoing.count + planned.count + (control?.count ?? 0) }

    /// Appends the datagrams to send, in order. Encrypts media packets directly into the batch.
    public func drain(into batch: inout DatagramBatch) {
        if !outgoing.isEmpty {
            batch.append(outgoing)
            outgoing.removeAll()
        }
        seal(into: &batch)
    }

    func seal(into batch: inout DatagramBatch) {
        if let control { sealGranted(by: control, into: &batch) }
        guard !planned.isEmpty else { return }
        defer { planned.removeAll(keepingCapacity: true) }
        guard let srtp else { return }
        for (sender, packet) in planned {
            guard let stream = streams.sender(sender) else { continue }
            let isSealed = stream.write(packet, in: &scratch.head) { head, rest in
                srtp.protectRTP(&head, rest, into: &batch)
            }
            if isSealed != true { streams.dropped.unprotectable += 1 }
        }
    }

    /// Of packets to send and to send again. Without the stores that senders forward from.
    package var memory: PacketMemory {
        let capacity = streams.configuration.outgoingCapacity
        let plan = MemoryLayout<(sender: SenderID, packet: SentPacket)>.stride
        var memory = PacketMemory(
            held: outgoing.bytes.count + planned.capacity * plan,
            limit: capacity * (PacketBuffer.capacity + plan))
        if let control { memory += control.memory(for: capacity) }
        for case let sender? in streams.senders { memory += sender.memory }
        return memory
    }

    public var localFingerprint: Fingerprint { dtls.localFingerprint }
    /// How long the peer may not respond to media.
    package var consent: TimeInterval { streams.configuration.consent }
    /// Whether media can flow.
    public var isSecured: Bool { phase == .secured }
    /// Whether the session failed or was closed by either end.
    public var isEnded: Bool { phase == .ended }
    /// When the last SRTP or SRTCP packet arrived, or the handshake finished. `.zero` before.
    public var lastReceived: MonotonicTime { liveness.lastReceived }
    /// When this end sent the newest report to which the peer has replied. `.zero` before the first reply.
    public var lastAnswered: MonotonicTime { streams.lastAnswered }

    /// The peer restarts ICE: it has as long as before to respond to media.
    public func extendConsent(now: MonotonicTime) { liveness.extendConsent(now: now) }

    // MARK: Life cycle

    /// Sets the role and fingerprints of the description. The handshake begins when the transport is connected too.
    /// Ignores a second call, because a session has one handshake.
    public func start(role: DTLSRole, expecting fingerprints: [Fingerprint], now: MonotonicTime) {
        guard !isStarted, phase == .idle else { return }
        isStarted = true
        self.role = role
        expected = fingerprints
        beginIfReady(now: now)
    }

    /// ICE validated a pair: datagrams are sent and accepted from now on.
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

    /// Sends BYE and close_notify, and ends the session. Idempotent.
    public func close(now: MonotonicTime) {
        guard phase != .ended else { return }
        if phase == .secured {
            seal(into: &outgoing)
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

    // MARK: Receiving

    /// Handles one datagram of the validated pair. For `.media`, the buffer has the decrypted packet.
    public func receive(_ packet: inout PacketBuffer, now: MonotonicTime) -> Received {
        guard packet.count > 0 else {
            streams.dropped.unknownProtocol += 1
            return .nothing
        }
        guard phase != .ended else {
            streams.dropped.afterEnd += 1
            return .nothing
        }
        // RFC 7983, section 7.
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
            // RTCP packet types read through the RTP header's second byte (RFC 5761, section 4).
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
        guard !isHandshakeReleased else {
            // A peer without streams sends no reports, so its silence means nothing.
            if packet.bytes[0] == Self.alert, streams.hasStreams { liveness.mayHaveClosed(now: now) }
            return
        }
        dtls.receive(packet, now: now)
        followHandshake(now: now)
    }

    private func receiveMedia(_ packet: inout PacketBuffer, _ srtp: SRTPEngine, now: MonotonicTime) -> Received {
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
        countMedia(now: now)
        if header.hasExtension, let id = streams.transportNumber(of: route) {
            noteArrival(header, packet, id: id, now: now)
        } else if streams.takesEstimates(route) {
            estimate(header, packet, of: route, now: now)
        }
        guard header.resolvePadding(in: packet) else {
            streams.dropped.malformed += 1
            return .nothing
        }
        return streams.receive(&packet, header, by: route, now: now)
    }

    private func receiveControl(_ packet: inout PacketBuffer, _ srtp: SRTPEngine, now: MonotonicTime) {
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
        defer { scratch.received.removeAll(keepingCapacity: true) }
        guard RTCPPacket.parse(packet, into: &scratch.received) else {
            streams.dropped.malformed += 1
            return
        }
        noticeStall(now: now)
        streams.receive(scratch.received, now: now) { stream, lost in
            for number in lost { sendAgain(number, of: stream, now: now) }
        }
        receiveEstimates(scratch.received, now: now)
        chooseCopies(now: now)
    }

    private func heard(now: MonotonicTime) {
        if liveness.received(now: now) { streams.events.push(.heard) }
        if !isHandshakeReleased, streams.configuration.releasesHandshake {
            isHandshakeReleased = true
            dtls.release()
        }
    }

    // MARK: DTLS

    /// The first byte of a DTLS record with an alert, such as close_notify (RFC 6347, section 4.1).
    private static let alert: UInt8 = 21

    private func drainHandshake() { dtls.drain(into: &outgoing) }

    private func followHandshake(now: MonotonicTime) {
        drainHandshake()
        switch dtls.progress {
        case .handshaking:
            break
        case .connected(let profile):
            guard phase == .handshaking else { return }
            guard var keys = dtls.exportKeys() else { return fail("DTLS exported no keys for \(profile.rawValue).") }
            do {
                srtp = try makeSRTP(&keys)
            } catch {
                fail("SRTP could not use \(profile.rawValue): \(error).")
                return
            }
            phase = .secured
            nextReport = now + reportDelay / 2
            latestReport = nextReport
            liveness.start(now: now)
            streams.events.push(.secured(profile))
            if control != nil { beginControl(now: now) }
        case .failed(let reason):
            fail(reason)
        case .closed:
            streams.events.push(.closed)
            end()
        }
    }

    // MARK: Streams

    /// Adds a stream that this end sends, with the header extensions that the peer accepts so far.
    public func addSender(_ configuration: SenderConfiguration, now: MonotonicTime) -> SenderID {
        let id = streams.addSender(configuration)
        setExtensions(configuration.extensions, of: id, now: now)
        return id
    }

    /// Sets the header extensions that the peer accepts for the sender. The others are not written.
    ///
    /// With transport-wide numbers, the session estimates how much the path carries, and spreads its packets over time. With
    /// the times of sending, the peer estimates it.
    public func setExtensions(_ extensions: HeaderExtensionIDs, of id: SenderID, now: MonotonicTime) {
        guard let stream = streams.sender(id) else { return }
        stream.extensions = extensions
        if (extensions.transportNumber ?? extensions.sendTime) != nil { beginControl(now: now) }
    }

    /// Sets the header extensions that the peer sends to the receiver.
    public func setExtensions(_ extensions: HeaderExtensionIDs, of id: ReceiverID) {
        streams.receiver(id)?.extensions = extensions
    }

    /// Removes the sender. Sends BYE for it if it has sent packets.
    public func removeSender(_ id: SenderID, now: MonotonicTime) {
        control?.grantAll(of: id)
        seal(into: &outgoing)
        guard let stream = streams.removeSender(id), stream.hasSent, phase == .secured else { return }
        if !streams.senders.contains(where: { $0 != nil }) { liveness.stoppedSending() }
        sendControl(streams.preamble + [.bye([stream.configuration.ssrc])])
    }

    public func addReceiver(_ configuration: ReceiverConfiguration) -> ReceiverID {
        streams.addReceiver(configuration)
    }

    /// Removes the receiver. Later packets for it are dropped as of an unknown SSRC.
    public func removeReceiver(_ id: ReceiverID) { streams.removeReceiver(id) }

    /// Sends a media packet under the sender's SSRC with the rewritten fields. Sends the payload, and the capture time and
    /// audio level of `header`, without padding, CSRCs and other header extensions. Does not change `packet`.
    ///
    /// Returns false if nothing is sent: the sender was removed, the session is not secured, or the packet was dropped
    /// and counted.
    @discardableResult
    public func send(
        _ packet: borrowing PacketBuffer, header: RTPHeader, rewrite: Rewrite, via id: SenderID, now: MonotonicTime
    ) -> Bool {
        guard phase == .secured, let stream = streams.sender(id) else { return false }
        let store = stream.ownStore()
        let payload = store.add(
            packet, header.payloadOffset..<header.payloadEnd, timestamp: rewrite.timestamp, marker: rewrite.marker,
            captureTime: header.captureTime, level: header.audioLevel, now: now)
        return plan(payload, of: store, rewrite, on: stream, now: now)
    }

    /// Sends a packet whose payload is in a store under the sender's SSRC with the rewritten fields. Nil is an empty
    /// payload. A sender that changes to another store still retransmits from the one before, until it changes again.
    ///
    /// Returns false if nothing is sent, as `send(_:header:rewrite:via:now:)` does.
    @discardableResult
    public func forward(
        _ payload: Int?, of store: PacketStore, rewrite: Rewrite, via id: SenderID, now: MonotonicTime
    ) -> Bool {
        guard phase == .secured, let stream = streams.sender(id) else { return false }
        return plan(payload, of: store, rewrite, on: stream, now: now)
    }

    private func plan(
        _ payload: Int?, of store: PacketStore, _ rewrite: Rewrite, on stream: OutgoingStream, now: MonotonicTime
    ) -> Bool {
        guard (payload.map { store.length(of: $0) } ?? 0) <= maximumPayloadLength else {
            streams.dropped.unprotectable += 1
            return false
        }
        guard waitingCount < streams.configuration.outgoingCapacity else {
            streams.dropped.outgoingFull += 1
            return false
        }
        // Packets of the store before are sealed from it.
        if !stream.sends(from: store) {
            control?.grantAll(of: stream.id)
            seal(into: &outgoing)
        }
        if !stream.hasSent, stream.clock != nil { nextReport = now }
        let (packet, length) = stream.note(payload, of: store, rewrite, now: now)
        streams.pathReports.sent(bytes: length + SendingControl.overhead, now: now)
        if let control {
            hold(packet, length: length, of: stream, control, now: now)
        } else {
            planned.append((stream.id, packet))
        }
        liveness.sent(now: now)
        countMedia(now: now)
        return true
    }

    private func countMedia(now: MonotonicTime) {
        let wasIdle = isIdle
        reportsWithoutMedia = 0
        if wasIdle { nextReport = min(nextReport, now + reportDelay) }
    }

    /// Whether reports are only a sign of life. The first two after media tell the peer its end (RFC 3550, section 6.4).
    private var isIdle: Bool { reportsWithoutMedia > 2 }

    /// Ties the sender's timestamps to wall-clock time. Sender reports extrapolate from it to the moment of sending.
    /// Without it, the sender sends no reports.
    public func setClock(_ id: SenderID, ntp: NTPTime, rtp: RTPTimestamp, at: MonotonicTime) {
        guard let stream = streams.sender(id) else { return }
        let isFirst = stream.clock == nil
        let rate = stream.configuration.clockRate
        stream.setClock(SenderClock(ntp: ntp, rtp: rtp, at: at, clockRate: rate))
        if isFirst, stream.hasSent, phase == .secured { nextReport = min(nextReport, at) }
    }

    /// Stops the sender's reports until its next `setClock`.
    public func clearClock(_ id: SenderID) { streams.sender(id)?.clearClock() }

    /// Begins another stream on the receiver at this number. Earlier packets are dropped and no longer requested.
    /// Returns the number as positions count it, or nil before the first packet.
    public func discard(before number: SequenceNumber, on id: ReceiverID, now: MonotonicTime) -> Int? {
        streams.receiver(id)?.discard(before: number, now: now)
    }

    /// Requests a keyframe (PLI), now or 200 ms after the last request. One call sends one request. Call again if no
    /// keyframe arrives.
    public func requestKeyframe(_ id: ReceiverID, now: MonotonicTime) {
        guard let stream = streams.receiver(id) else { return }
        stream.wantKeyframe()
        guard phase == .secured else { return }
        sendFeedback(now: now)
    }

    // MARK: Time

    /// When to call `handleTimeout`. A time in the past means immediately. Changes with every call.
    public var nextTimeout: MonotonicTime {
        switch phase {
        case .idle, .ended: .never
        case .handshaking: dtls.nextTimeout
        case .secured:
            min(min(streams.nextFeedback, nextReport), min(dtls.nextTimeout, liveness.nextTimeout), nextControl)
        }
    }

    /// Whether a turn that only sent packets changed nothing else: there are no events, and no timeout before `time`.
    package func onlySends(before time: MonotonicTime) -> Bool {
        nextReport >= time && (control.map { $0.nextTimeout >= time } ?? true) && streams.events.isEmpty
    }

    /// Handles everything that is due. Early calls do nothing.
    public func handleTimeout(now: MonotonicTime) {
        guard phase == .handshaking || phase == .secured else { return }
        if dtls.nextTimeout <= now {
            dtls.handleTimeout(now: now)
            followHandshake(now: now)
        }
        guard phase == .secured, isAlive(now: now) else { return }
        if nextReport <= now {
            noticeStall(now: now)
            reportsWithoutMedia += 1
            nextReport = now + reportDelay
            if isIdle { nextReport = (now + reportDelay * PeerSessionConfiguration.idleReportIntervals).idleTick }
            latestReport = nextReport
            if streams.hasStreams {
                let reports = streams.reports(now: now)
                noteLosses(reports)
                sendControl(reports + streams.feedback(now: now))
                followReports(now: now)
            }
        } else {
            sendFeedback(now: now)
        }
        if nextControl <= now { handleControlTimeout(now: now) }
    }

    /// A report that is overdue by more shows that this end stood still.
    private static let stall = TimeInterval.milliseconds(500)

    /// Replies that waited for this end would measure its stall.
    private func noticeStall(now: MonotonicTime) {
        if latestReport < now, now - latestReport > Self.stall { streams.forgetReports() }
    }

    /// Checks the peer's silence. Returns false if it ends the session.
    private func isAlive(now: MonotonicTime) -> Bool {
        switch liveness.handleTimeout(now: now) {
        case .silent: streams.events.push(.silent)
        case .lost:
            streams.events.push(.consentLost)
            end()
            return false
        case .closed:
            streams.events.push(.closed)
            end()
            return false
        case nil: break
        }
        return true
    }

    /// 0.5...1.5 times the interval, so that the reports of many sessions do not synchronise.
    private var reportDelay: TimeInterval {
        let interval = streams.configuration.reportInterval.nanoseconds
        return TimeInterval(nanoseconds: Int64.random(in: (interval / 2)...(interval * 3 / 2), using: &streams.random))
    }

    private func sendFeedback(now: MonotonicTime) {
        let packets = streams.feedback(now: now)
        if !packets.isEmpty { sendControl(streams.preamble + packets) }
    }

    /// Packs packets into as many compounds as necessary. Each begins with a report and the CNAME.
    func sendControl(_ packets: [RTCPPacket]) {
        scratch.control.count = 0
        let limit = PeerSessionConfiguration.maximumCompoundLength
        for packet in packets where !packet.append(to: &scratch.control, limit: limit) {
            emitControl()
            for opening in streams.preamble { _ = opening.append(to: &scratch.control, limit: limit) }
            _ = packet.append(to: &scratch.control, limit: limit)
        }
        emitControl()
    }

    private func emitControl() {
        defer { scratch.control.count = 0 }
        guard scratch.control.count > 0, let srtp else { return }
        guard outgoingCount < streams.configuration.outgoingCapacity else {
            streams.dropped.outgoingFull += 1
            return
        }
        guard srtp.protectRTCP(&scratch.control) else {
            streams.dropped.unprotectable += 1
            return
        }
        outgoing.append(scratch.control)
    }

    // MARK: Events

    public func pollEvent() -> PeerSessionEvent? { streams.events.pop() }
}

/// Memory for the packet that a session writes. No session keeps anything in it between two calls.
public final class SessionScratch {
    /// The head of the packet being encrypted.
    @exclusivity(unchecked) var head = PacketBuffer()
    /// The RTCP compound being written.
    var control = PacketBuffer()
    /// The RTCP compound being handled.
    @exclusivity(unchecked) var received: [RTCPPacket] = []

    public init() {}
}

extension MonotonicTime {
    /// The next multiple of 250 ms. Silent sessions report at these times, so that a loop wakes for many of them at once.
    fileprivate var idleTick: MonotonicTime {
        let tick = 250_000_000 as UInt64
        return MonotonicTime(nanoseconds: (nanoseconds + tick - 1) / tick * tick)
    }
}
