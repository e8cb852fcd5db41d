package import PeerSession
package import RTP

/// One peer connection: a path and a `PeerSession` with DTLS and SRTP, together on one loop.
///
/// Created and used on the loop only; every call asserts it. Events and media arrive there too. Packets sent during a
/// turn leave in one batch at its end. Call `close()` before the last release.
package final class Peer: TurnMember {
    package let loop: Loop
    /// Called at the end of the turn of an event, or directly after the datagram that causes it. Never called inside a
    /// call of the owner. May close the peer.
    @exclusivity(unchecked) package var onEvent: ((PeerEvent) -> Void)?
    /// Called for each decrypted media packet. The buffer is the loop's scratch, valid during the call only. May send
    /// on any peer of the loop, and close this one.
    package var onMedia: ((ReceiverID, RTPHeader, StreamPosition, borrowing PacketBuffer) -> Void)?
    /// The STUN and TURN servers of the paths that are made from now on.
    package var servers: ICEServers
    /// Deliberate loss. Nil means none.
    @exclusivity(unchecked) package var impairment: Impairment?

    private let connectTimeout: TimeInterval
    let session: PeerSession
    @exclusivity(unchecked) var path: (any PeerPath)?
    /// The path of an ICE restart, until it is connected.
    var successor: (any PeerPath)?
    /// Former paths, which close at the end of the turn.
    @exclusivity(unchecked) var retired: [any PeerPath] = []
    /// Nil after the end, because it may hold the owner of the peer.
    var makePath: PathMaker?
    /// Counts the paths: events of former ones are ignored.
    var (pathNumber, successorNumber, pathsMade) = (0, 0, 0)
    /// The addresses in use, to notice others.
    var addresses: String?
    @exclusivity(unchecked) var state = State.new
    @exclusivity(unchecked) var waiting: [PeerEvent] = []
    /// DTLS datagrams that arrived before ICE selected a pair or before the other end's description. The oldest are
    /// dropped first.
    private var early: [[UInt8]] = []
    @exclusivity(unchecked) private var pending = Pending.nothing
    /// When the session's timer fires.
    @exclusivity(unchecked) private var wakes = MonotonicTime.never
    @exclusivity(unchecked) private(set) var isRemoteSet = false
    /// That of the newest pair.
    var lastRoute: MediaRoute?
    @exclusivity(unchecked) var isConnected = false
    /// The path has tried all candidate pairs without success. A check of the other end may still arrive.
    private var isUnreachable = false
    let pathTimeout: TimeInterval
    /// Armed while the path is lost.
    var lossTimer: LoopTimer?
    @exclusivity(unchecked) var counters: PeerStatistics
    /// The session's drops that the loop has counted.
    @exclusivity(unchecked) private var countedDrops = (full: 0, unprotectable: 0)
    var description: TransportDescription
    @exclusivity(unchecked) private var sessionTimer: LoopTimer?
    private var connectTimer: LoopTimer?
    /// The part of `Loop.stalled` that the session knows.
    @exclusivity(unchecked) private var knownStalls = TimeInterval.zero

    enum State {
        case new
        case started
        /// Failed, or closed by the other end. Waits for `close()`.
        case over
        case closed
    }

    /// Work for the end of the turn.
    enum Pending {
        case nothing
        /// Only forwarded packets to send. They cause no events, and no deadline but that of the next report.
        case packets
        case all
    }

    // MARK: - Life

    /// Makes a path, which passes its events and datagrams to the closures.
    package typealias PathMaker = (
        _ servers: ICEServers, _ events: @escaping (ICEEvent) -> Void, _ datagrams: @escaping (Span<UInt8>) -> Void
    ) throws(TransportError) -> any PeerPath

    /// - Parameters:
    ///   - connectTimeout: from `setRemote` to the end of the DTLS handshake. Then the peer fails with
    ///     `transport.connect-timeout`.
    ///   - servers: the STUN and TURN servers.
    ///   - pathTimeout: for how long the peer waits for another path when it has lost its own. Then it fails with
    ///     `transport.connection-lost`.
    ///   - makePath: makes the path, and others for ICE restarts. They call the closures on the loop.
    package init(
        loop: Loop, session: PeerSession, connectTimeout: TimeInterval, servers: ICEServers = ICEServers(),
        impairment: Impairment? = nil, pathTimeout: TimeInterval = .zero,
        path makePath: @escaping PathMaker
    ) throws(TransportError) {
        loop.preconditionOnLoop()
        self.loop = loop
        self.session = session
        self.connectTimeout = connectTimeout
        self.servers = servers
        self.impairment = impairment
        self.pathTimeout = pathTimeout
        self.makePath = makePath
        counters = PeerStatistics(session: session.statistics)
        description = TransportDescription(
            iceUfrag: "", icePwd: "", fingerprints: [session.localFingerprint], setup: .actpass)
        let path = try makePath(
            servers, { [unowned self] event in handle(event, of: 0) }, { [unowned self] in receive($0) })
        self.path = path
        knownStalls = loop.stalled
        description.iceUfrag = path.ufrag
        description.icePwd = path.password
        description.isLite = path.isLite
        sessionTimer = loop.makeTimer { [unowned self] in self.handleTimeout() }
        connectTimer = loop.makeTimer { [unowned self] in self.giveUpConnecting() }
        lossTimer = loop.makeTimer { [unowned self] in self.giveUpWaiting() }
    }

    deinit {
        assert(path == nil, "a peer must be closed before it is released")
    }

    /// Opens the sockets. On return, `local` has the host candidates. They also follow as events at the end of the
    /// turn. After an error, it may be called again.
    package func start() throws(TransportError) {
        loop.preconditionOnLoop()
        guard state == .new, let path else { return }
        try path.gather()
        state = .started
    }

    /// Sends RTCP BYE and the DTLS close_notify, and closes the sockets at the end of the turn. No callback follows. A
    /// second call does nothing.
    package func close() {
        loop.preconditionOnLoop()
        guard state != .closed else { return }
        session.close(now: loop.now)
        flush()
        state = .closed
        onEvent = nil
        onMedia = nil
        waiting = []
        for timer in [sessionTimer, connectTimer, lossTimer] { timer?.disarm() }
        // The path may be calling the closing code, so it is released after that returns.
        touch()
    }

    // MARK: - Negotiation

    /// ICE credentials, fingerprint and the candidates so far. `setup` is actpass, as in an offer. An answer states its
    /// own choice (RFC 8842, section 5.3).
    package var local: TransportDescription { description }

    /// Sets the other end's part of the negotiation, with its candidates. Once.
    ///
    /// `dtlsRole` is our own role. Throws `transport.remote-description` without a fingerprint of SHA-256 or better,
    /// which an identity needs.
    package func setRemote(_ remote: TransportDescription, dtlsRole: DTLSRole) throws(TransportError) {
        loop.preconditionOnLoop()
        guard let path, state == .new || state == .started else { return }
        guard !isRemoteSet else { throw Self.refusal("it was set before") }
        guard Self.hasCredentials(remote) else {
            throw Self.refusal("its ICE credentials have a length that RFC 8839 does not allow")
        }
        let fingerprints = remote.fingerprints.filter { ["sha-256", "sha-384", "sha-512"].contains($0.algorithm) }
        guard !fingerprints.isEmpty else {
            throw Self.refusal("it has no certificate fingerprint of sha-256, sha-384 or sha-512")
        }
        guard path.setRemote(ufrag: remote.iceUfrag, password: remote.icePwd) else {
            throw Self.refusal("the ICE agent refuses its credentials")
        }
        isRemoteSet = true
        let now = loop.now
        session.start(role: dtlsRole, expecting: fingerprints, now: now)
        connectTimer?.arm(at: now + connectTimeout)
        for candidate in remote.candidates { path.addRemoteCandidate(candidate) }
        if remote.endOfCandidates { path.remoteCandidatesEnded() }
        receiveEarly()
        touch()
    }

    /// Tries another address of the other end. Unusable ones are counted and ignored.
    package func addRemoteCandidate(_ attribute: String) {
        loop.preconditionOnLoop()
        (successor ?? path)?.addRemoteCandidate(attribute)
    }

    /// No more candidates follow. The peer waits for the other end's checks until `connectTimeout`.
    package func remoteCandidatesEnded() {
        loop.preconditionOnLoop()
        (successor ?? path)?.remoteCandidatesEnded()
    }

    // MARK: - Media

    /// How many datagrams are sent before the turn ends. One system call sends at most this many, so a longer batch would
    /// only delay its first ones.
    private static let enough = 64

    package func addSender(_ configuration: SenderConfiguration) -> SenderID {
        touch()
        return session.addSender(configuration, now: loop.now)
    }

    /// See `PeerSession.setExtensions`.
    package func setExtensions(_ extensions: HeaderExtensionIDs, of sender: SenderID) {
        touch()
        session.setExtensions(extensions, of: sender, now: loop.now)
    }

    /// See `PeerSession.setRedundancy`.
    package func setRedundancy(_ payloadTypes: [UInt8: UInt8], of sender: SenderID) {
        session.setRedundancy(payloadTypes, of: sender)
    }

    /// See `PeerSession.setExtensions`.
    package func setExtensions(_ extensions: HeaderExtensionIDs, of receiver: ReceiverID) {
        session.setExtensions(extensions, of: receiver)
    }

    package func removeSender(_ sender: SenderID) {
        touch()
        session.removeSender(sender, now: loop.now)
    }

    package func addReceiver(_ configuration: ReceiverConfiguration) -> ReceiverID {
        touch()
        return session.addReceiver(configuration)
    }

    package func removeReceiver(_ receiver: ReceiverID) {
        touch()
        session.removeReceiver(receiver)
    }

    /// Queues a packet, which leaves encrypted at the end of the turn. Drops it before `.secured`.
    package func send(
        _ packet: borrowing PacketBuffer, header: RTPHeader, rewrite: Rewrite, via sender: SenderID
    ) {
        touch()
        noticeStall()
        session.send(packet, header: header, rewrite: rewrite, via: sender, now: loop.now)
        if session.outgoingCount >= Self.enough { flush() }
    }

    /// Queues a packet whose payload is in a store, likewise. See `PeerSession.forward`.
    package func forward(_ payload: Int?, of store: PacketStore, rewrite: Rewrite, via sender: SenderID) {
        touch(for: .packets)
        session.forward(payload, of: store, rewrite: rewrite, via: sender, now: loop.now)
        if session.outgoingCount >= Self.enough { flush() }
    }

    /// Ties the stream's RTP timestamps to the publisher's wall clock, for sender reports.
    package func setClock(_ sender: SenderID, ntp: NTPTime, rtp: RTPTimestamp, at time: MonotonicTime) {
        touch()
        session.setClock(sender, ntp: ntp, rtp: rtp, at: time)
    }

    /// See `PeerSession.clearClock`.
    package func clearClock(_ sender: SenderID) { session.clearClock(sender) }

    /// See `PeerSession.forget`.
    package func forget(_ sender: SenderID) { session.forget(sender) }

    /// See `PeerSession.withholdSent`.
    package func withholdSent(_ sender: SenderID) { session.withholdSent(sender) }

    /// See `PeerSession.discard`.
    package func discard(before number: SequenceNumber, on receiver: ReceiverID) -> Int? {
        touch()
        return session.discard(before: number, on: receiver, now: loop.now)
    }

    /// See `PeerSession.setDemand`.
    package func setDemand(bitsPerSecond: Int?) {
        touch()
        session.setDemand(bitsPerSecond: bitsPerSecond, now: loop.now)
    }

    /// See `PeerSession.isPaced`.
    package var isPaced: Bool { session.isPaced }

    /// See `PeerSession.isCongested`.
    package var isCongested: Bool { session.isCongested }

    /// See `PeerSession.canPad`.
    package var canPad: Bool { session.canPad }

    /// See `PeerSession.isQueueing`.
    package var isQueueing: Bool { session.isQueueing }

    /// The longest payload that `send` accepts.
    package var maximumPayloadLength: Int { session.maximumPayloadLength }

    package func requestKeyframe(_ receiver: ReceiverID) {
        touch()
        session.requestKeyframe(receiver, now: loop.now)
    }

    // MARK: - The turn

    /// Requests `endTurn`, which sends and reports the results of this turn.
    @inline(__always)
    func touch(for work: Pending = .all) {
        loop.preconditionOnLoop()
        let isNew = pending == .nothing
        if isNew || work == .all { pending = work }
        if isNew { loop.atEndOfTurn(self) }
    }

    package func sendEarly() {
        if state == .started { flush() }
    }

    package func endTurn() {
        let hasOnlyPackets = pending == .packets
        pending = .nothing
        if hasOnlyPackets, state == .started, session.onlySends(before: wakes) { return flush() }
        if !retired.isEmpty { closeRetired() }
        guard state != .closed else {
            counters.candidatesIgnored = path?.ignoredCandidates ?? 0
            for path in [path, successor] { path?.close() }
            (path, successor) = (nil, nil)
            makePath = nil
            return
        }
        deliverWaiting()
        deliverSessionEvents()
        guard state != .closed else { return }
        flush()
        let next = session.nextTimeout
        wakes = next
        if next != sessionTimer?.deadline { sessionTimer?.arm(at: next) }
    }

    private func closeRetired() {
        for path in retired { path.close() }
        retired = []
    }

    private func deliverWaiting() {
        guard !waiting.isEmpty else { return }
        let events = waiting
        waiting = []
        for event in events {
            if case .failed = event { end(with: event) } else { report(event) }
        }
    }

    private func deliverSessionEvents() {
        while state == .started || state == .new, let event = session.pollEvent() {
            switch event {
            case .secured(let profile):
                connectTimer?.disarm()
                report(.secured(profile))
            case .failed(let reason): fail(TransportError(code: "transport.dtls", message: reason))
            case .closed: end(with: .closed)
            case .keyframeRequested(let sender): report(.keyframeRequested(sender))
            case .lossBeyondRepair(let receiver): report(.lossBeyondRepair(receiver))
            case .refused(let receiver, let packets): report(.mediaRefused(receiver, packets: packets))
            case .unauthenticated(let packets): report(.unauthenticated(packets: packets))
            case .senderReport(let receiver, let sent): report(.senderReport(receiver, sent))
            case .bye(let receiver): report(.bye(receiver))
            case .roundTrip(let time): report(.roundTrip(time))
            case .sendingRate(let rate): report(.sendingRate(bitsPerSecond: rate))
            case .silent: report(.disconnected)
            case .heard: report(.connected)
            case .consentLost: fail(lost(after: session.consent))
            }
        }
    }

    private func report(_ event: PeerEvent) {
        onEvent?(event)
    }

    private func fail(_ error: TransportError) {
        end(with: .failed(error))
    }

    private func end(with event: PeerEvent) {
        guard state == .new || state == .started else { return }
        state = .over
        connectTimer?.disarm()
        lossTimer?.disarm()
        // A last alert of DTLS is still sent.
        flush()
        report(event)
    }

    private func flush() {
        guard let path, session.outgoingCount > 0 else { return }
        var (count, bytes) = (0, 0)
        let result = path.send { batch in
            let (first, used) = (batch.count, batch.used)
            session.drain(into: &batch)
            count = batch.count - first
            if impairment != nil { batch.remove(from: first) { impairment?.admitsOutgoing() == false } }
            bytes = batch.used - used
        }
        counters.datagramsSent += result.sent
        counters.bytesSent += bytes
        counters.datagramsRefused += result.refused
        loop.traffic.sent += result.sent
        loop.traffic.refused += result.refused
        counters.datagramsImpaired += count - result.sent - result.refused
        countDrops()
    }

    /// Adds the packets that the session has dropped since the last call to the loop's counts.
    private func countDrops() {
        let drops = session.dropsOfSending
        loop.traffic.outgoingFull += drops.full - countedDrops.full
        loop.traffic.unprotectable += drops.unprotectable - countedDrops.unprotectable
        countedDrops = drops
    }

    // MARK: - From the path

    func handle(_ event: ICEEvent) {
        switch event {
        case .localCandidate(let text):
            description.candidates.append(text)
            waiting.append(.localCandidate(text))
        case .gatheringDone:
            description.endOfCandidates = true
            waiting.append(.gatheringDone)
        case .connected:
            guard !isConnected else {
                reconnected()
                break
            }
            isConnected = true
            lastRoute = path?.route
            addresses = currentAddresses
            counters.routes += 1
            session.transportConnected(now: loop.now)
            receiveEarly()
            waiting.append(.connected)
        case .failed:
            guard state == .new || state == .started else { return }
            // Before the first pair, `connectTimeout` decides: checks through a relay or a slow network may arrive
            // late, and the path then continues.
            if isConnected {
                guard pathTimeout == .zero else {
                    lossTimer?.arm(at: loop.now + pathTimeout)
                    waiting.append(.pathLost)
                    break
                }
                waiting.append(.failed(lost(after: path?.consent ?? .zero)))
            } else {
                isUnreachable = true
            }
        case .impossible(let error):
            guard !isConnected, state == .new || state == .started else { return }
            waiting.append(.failed(error))
        }
        touch()
    }

    func receive(_ datagram: Span<UInt8>) {
        guard state == .started else { return }
        counters.datagramsReceived += 1
        counters.bytesReceived += datagram.count
        if impairment != nil, impairment?.admitsIncoming() == false {
            counters.datagramsImpaired += 1
            return
        }
        guard loop.scratch.fill(with: datagram) else {
            counters.datagramsTooLong += 1
            return
        }
        guard isReady || !keepEarly(datagram) else { return }
        noticeStall()
        switch session.receive(&loop.scratch, now: loop.now) {
        case .media(let receiver, let header, let position):
            onMedia?(receiver, header, position, loop.scratch)
            while case .media(let receiver, let header, let position)? = session.receiveCopy(
                into: &loop.scratch, now: loop.now)
            {
                onMedia?(receiver, header, position, loop.scratch)
            }
        case .nothing: deliverSessionEvents()
        }
        touch()
    }

    /// Whether the DTLS handshake has begun.
    private var isReady: Bool { isConnected && isRemoteSet }

    private func receiveEarly() {
        guard isReady else { return }
        for datagram in early {
            guard loop.scratch.fill(with: datagram.span) else { continue }
            _ = session.receive(&loop.scratch, now: loop.now)
        }
        early = []
    }

    /// Keeps the first DTLS flight of the other end, which sends it when its own first check succeeds: before ICE has
    /// selected a pair here, or, to a lite end, before its answer arrives. Both paths pass datagrams only from addresses
    /// that passed an authenticated check. Keeping the flight saves a retransmission.
    private func keepEarly(_ datagram: Span<UInt8>) -> Bool {
        guard !datagram.isEmpty, (20...63).contains(datagram[0]) else { return false }
        if early.count == Self.earlyCapacity { early.removeFirst() }
        early.append(datagram.indices.map { datagram[$0] })
        return true
    }

    /// A ClientHello with a post-quantum key share has two datagrams, and its retransmission two more.
    private static let earlyCapacity = 4

    // MARK: - Timers

    /// Tells the session for how long nothing read its socket.
    @inline(__always)
    private func noticeStall() {
        guard loop.stalled != knownStalls else { return }
        session.stalled(for: loop.stalled - knownStalls, now: loop.now)
        knownStalls = loop.stalled
    }

    private func handleTimeout() {
        noticeStall()
        session.handleTimeout(now: loop.now)
        touch()
    }

    private func giveUpWaiting() { fail(lost(after: (path?.consent ?? .zero) + pathTimeout)) }

    private func giveUpConnecting() {
        if !isConnected, let problem = path?.relayProblem { return fail(problem) }
        if isUnreachable, !isConnected {
            return fail(
                TransportError(
                    code: "transport.unreachable",
                    message: "No address of the peer could be reached. \(advice)."))
        }
        let reached =
            isConnected
            ? "its addresses respond, but the DTLS handshake did not finish"
            : "no address responded. \(advice)"
        fail(
            TransportError(
                code: "transport.connect-timeout",
                message: "The peer did not connect within \(Int(connectTimeout.seconds)) s: \(reached)."))
    }

    /// The fix if no address responds.
    private var advice: String {
        path?.hasRelay == true
            ? "The TURN server gave an address, so check that it may reach the peer (allowed-peer-ip), and external-ip"
            : "Check whether a firewall blocks UDP, or use a TURN server"
    }

    private func lost(after silence: TimeInterval) -> TransportError {
        if let relay = route?.relay {
            return TransportError(
                code: "transport.connection-lost",
                message:
                    "The connection through the TURN server \(relay) was lost: the server ended it, or the peer has "
                    + "not responded for \(Int(silence.seconds)) s. Check that the TURN server runs.")
        }
        return TransportError(
            code: "transport.connection-lost",
            message: "The connection to the peer was lost: it has not responded for \(Int(silence.seconds)) s.")
    }

    static func refusal(_ reason: String) -> TransportError {
        TransportError(
            code: "transport.remote-description", message: "The peer's transport description is unusable: \(reason).")
    }
}

extension PacketBuffer {
    /// Replaces the contents by a received datagram. Returns false if it is too long.
    mutating func fill(with datagram: Span<UInt8>) -> Bool {
        guard datagram.count <= bytes.count else { return false }
        count = 0
        append(datagram)
        return true
    }
}
