import Glibc
import PeerIO
import PeerLoop
import PeerSession
import RTP
import Synchronization
import TestSupport

/// One end of a call under test, on its loop.
final class End {
    let peer: Peer
    var events: [PeerEvent] = []
    var eventTimes: [MonotonicTime] = []
    var packets: [(receiver: ReceiverID, header: RTPHeader, payload: [UInt8])] = []
    /// Receives this end's candidates.
    var passCandidate: (String) -> Void = { _ in }
    var passEnd: () -> Void = {}

    init(loop: EventLoop, configuration: PeerConfiguration) throws {
        peer = try Peer(loop: loop, configuration: configuration)
        peer.onEvent = { [unowned self] event in
            self.events.append(event)
            self.eventTimes.append(EventLoop.now)
            if case .localCandidate(let text) = event { self.passCandidate(text) }
            if case .gatheringDone = event { self.passEnd() }
        }
        peer.onMedia = { [unowned self] receiver, header, _, packet in
            let payload = Array(packet.bytes[header.payloadOffset..<header.payloadEnd])
            self.packets.append((receiver, header, payload))
        }
    }

    var securedAt: MonotonicTime? {
        for (event, time) in zip(events, eventTimes) {
            if case .secured = event { return time }
        }
        return nil
    }

    var profile: SRTPProfile? {
        for case .secured(let profile) in events { return profile }
        return nil
    }

    var failure: TransportError? {
        for case .failed(let error) in events { return error }
        return nil
    }

    var isClosedByPeer: Bool { events.contains { if case .closed = $0 { true } else { false } } }
}

/// Two peers, one stream each way, and the signalling between them.
struct Call: Sendable {
    static let video = SSRC(0x0bad_cafe)
    static let repair = SSRC(0x0bad_f00d)
    static let audio = SSRC(0x0dea_dbee)

    struct Options: Sendable {
        var offererCertificate: Certificate?
        var answererCertificate: Certificate?
        /// The signalled fingerprints, if they are not the true ones.
        var fingerprintOfOfferer: Fingerprint?
        var fingerprintOfAnswerer: Fingerprint?
        var scope = ListeningScope.loopback
        var offererImpairment: Impairment?
        /// Video with NACK and RTX.
        var repairs = false
        /// Rewrites candidates in transit: (candidate, whether it is the offerer's).
        var route: (@Sendable (String, Bool) -> String)?
        var connectTimeout = TimeInterval.seconds(15)
        var silence = TimeInterval.seconds(5)
        var consent = TimeInterval.seconds(30)
        var pathTimeout = TimeInterval.zero
        var offererServers = ICEServers()
        var relayTimeout = TimeInterval.seconds(3)
        /// The answerer's port. Nil gives it an ICE agent.
        var answererPort: LoopBound<MediaPort>?
    }

    let loop: EventLoop
    let offerer: LoopBound<End>
    let answerer: LoopBound<End>
    let started: MonotonicTime
    /// The offerer sends video, the answerer audio.
    let videoSender: SenderID
    let videoReceiver: ReceiverID
    let audioSender: SenderID

    /// Negotiates with candidates trickled both ways. `isSecured` reports when media can flow.
    static func begin(on loop: EventLoop, _ options: Options = Options()) async throws -> Call {
        let result: Result<Call, any Error> = await onLoop(loop) {
            Result { try Call(loop: loop, options) }
        }
        return try result.get()
    }

    private init(loop: EventLoop, _ options: Options) throws {
        started = EventLoop.now
        func end(
            _ role: ICERole, _ certificate: Certificate?, _ impairment: Impairment?,
            port: LoopBound<MediaPort>? = nil, servers: ICEServers = ICEServers()
        ) throws -> End {
            var configuration = PeerConfiguration(
                iceRole: role, certificate: try certificate ?? Certificate(), cname: "test", scope: options.scope,
                impairment: impairment)
            configuration.connectTimeout = options.connectTimeout
            configuration.silence = options.silence
            configuration.consent = options.consent
            configuration.pathTimeout = options.pathTimeout
            configuration.port = port
            configuration.servers = servers
            configuration.relayTimeout = options.relayTimeout
            return try End(loop: loop, configuration: configuration)
        }
        let offerer = try end(
            .controlling, options.offererCertificate, options.offererImpairment, servers: options.offererServers)
        let answerer = try end(.controlled, options.answererCertificate, nil, port: options.answererPort)
        self.loop = loop
        self.offerer = LoopBound(offerer, loop: loop)
        self.answerer = LoopBound(answerer, loop: loop)
        videoSender = offerer.peer.addSender(
            SenderConfiguration(
                ssrc: Self.video, retransmissionSSRC: options.repairs ? Self.repair : nil,
                clockRate: 90000, retransmissionPayloadTypes: options.repairs ? [96: 97] : [:]))
        videoReceiver = answerer.peer.addReceiver(
            ReceiverConfiguration(
                ssrc: Self.video, retransmissionSSRC: options.repairs ? Self.repair : nil, mid: "v",
                clockRate: 90000, payloadTypes: [96], retransmissionPayloadTypes: options.repairs ? [96: 97] : [:],
                nack: options.repairs))
        audioSender = answerer.peer.addSender(
            SenderConfiguration(ssrc: Self.audio, clockRate: 48000))
        _ = offerer.peer.addReceiver(
            ReceiverConfiguration(
                ssrc: Self.audio, mid: "a", clockRate: 48000, payloadTypes: [111], nack: false))
        trickle(from: self.offerer, to: self.answerer, options, isOfferer: true)
        trickle(from: self.answerer, to: self.offerer, options, isOfferer: false)

        var offer = offerer.peer.local
        if let lie = options.fingerprintOfOfferer { offer.fingerprints = [lie] }
        try offerer.peer.start()
        try answerer.peer.start()
        try answerer.peer.setRemote(offer, dtlsRole: .client)
        var answer = answerer.peer.local
        answer.setup = .active
        answer.candidates = []
        answer.endOfCandidates = false
        if let lie = options.fingerprintOfAnswerer { answer.fingerprints = [lie] }
        try offerer.peer.setRemote(answer, dtlsRole: .server)
    }

    private func trickle(
        from: LoopBound<End>, to: LoopBound<End>, _ options: Options, isOfferer: Bool
    ) {
        from.value.passCandidate = { text in
            let text = options.route?(text, isOfferer) ?? text
            loop.execute { to.value.peer.addRemoteCandidate(text) }
        }
        from.value.passEnd = { loop.execute { to.value.peer.remoteCandidatesEnded() } }
    }

    /// Waits for both ends to have keys. Returns whether they do.
    func isSecured(within seconds: Double = 5) async -> Bool {
        await eventually(within: seconds) {
            await onLoop(loop) { offerer.value.securedAt != nil && answerer.value.securedAt != nil }
        }
    }

    /// The time from the start of signalling until both ends have keys.
    func connectTime() async -> TimeInterval? {
        await onLoop(loop) {
            guard let a = offerer.value.securedAt, let b = answerer.value.securedAt else { return nil }
            return max(a, b) - started
        }
    }

    /// Sends packets first..<first+count of video from the offerer, `perTurn` in a turn of the loop.
    func sendVideo(_ count: Int, from first: Int = 0, perTurn: Int = 50, length: Int = 1000) async {
        var next = first
        while next < first + count {
            let numbers = next..<min(next + perTurn, first + count)
            await onLoop(loop) {
                for number in numbers { send(number, via: videoSender, of: offerer, type: 96, length: length) }
            }
            next = numbers.upperBound
        }
    }

    func sendAudio(_ count: Int) async {
        await onLoop(loop) {
            for number in 0..<count { send(number, via: audioSender, of: answerer, type: 111, length: 80) }
        }
    }

    func send(_ number: Int, via sender: SenderID, of end: LoopBound<End>, type: UInt8, length: Int) {
        var packet = PacketBuffer()
        _ = packet.assign(rtp(number, type: type, ssrc: 1, length: length))
        guard let header = RTPHeader(parsing: packet) else { return }
        end.value.peer.send(packet, header: header, rewrite: Rewrite(keeping: header), via: sender)
    }

    func videoReceived() async -> [Int] {
        await onLoop(loop) { answerer.value.packets.map { Int($0.header.sequenceNumber.rawValue) } }
    }

    func audioReceived() async -> Int { await onLoop(loop) { offerer.value.packets.count } }

    /// The UDP ports of both ends.
    func ports() async -> (offerer: UInt16, answerer: UInt16) {
        await onLoop(loop) {
            func port(_ end: End) -> UInt16 {
                end.peer.local.candidates.first.flatMap { UInt16($0.split(separator: " ")[5]) } ?? 0
            }
            return (port(offerer.value), port(answerer.value))
        }
    }

    func close() async {
        await onLoop(loop) {
            for end in [offerer.value, answerer.value] {
                end.peer.close()
                // The ends recognize each other by these.
                end.passCandidate = { _ in }
                end.passEnd = {}
            }
        }
        // Sockets close at the end of that turn.
        await onLoop(loop) {}
    }
}

/// An unencrypted RTP packet whose payload starts with its number.
func rtp(_ number: Int, type: UInt8, ssrc: UInt32, length: Int) -> [UInt8] {
    let timestamp = UInt32(truncatingIfNeeded: number * 3000)
    var bytes: [UInt8] = [0x80, type, UInt8(number >> 8 & 0xff), UInt8(number & 0xff)]
    for shift in [24, 16, 8, 0] { bytes.append(UInt8(timestamp >> shift & 0xff)) }
    for shift in [24, 16, 8, 0] { bytes.append(UInt8(ssrc >> shift & 0xff)) }
    bytes += (0..<length).map { UInt8(truncatingIfNeeded: $0 + number) }
    return bytes
}
