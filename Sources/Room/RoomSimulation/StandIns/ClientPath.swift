internal import ICELite
internal import PeerLoop
internal import RTP

/// A stand-in for libnice: a controlling ICE agent with one address, which reaches a lite server by checks
/// (RFC 8445, section 7.2), and asks for consent every 5 s (RFC 7675). As libnice does, it repeats a check without an answer:
/// after half a second, then after twice as long each time.
final class ClientPath: PeerPath {
    let ufrag: String
    let password: String
    let isLite = false
    let consent = TimeInterval.seconds(50)
    let address: TransportAddress

    private let loop: Loop
    private let send: (Span<UInt8>, TransportAddress) -> Void
    private var events: (ICEEvent) -> Void
    private var datagrams: (Span<UInt8>) -> Void
    private var random: RandomSource
    private var remote: (ufrag: String, key: CheckSum)?
    private var candidate: TransportAddress?
    private var isConnected = false
    private var lastAnswer = MonotonicTime.zero
    private var pending: [STUNTransaction] = []
    private var timer: LoopTimer?
    private var packet = PacketBuffer()

    private static let pacing = TimeInterval.milliseconds(50)
    private static let interval = TimeInterval.seconds(5)
    private static let firstRepeat = TimeInterval.milliseconds(500)
    /// From the newest check to the next one, if it is not answered.
    private var wait = ClientPath.firstRepeat

    init(
        loop: Loop, address: TransportAddress, seed: UInt64, send: @escaping (Span<UInt8>, TransportAddress) -> Void,
        events: @escaping (ICEEvent) -> Void, datagrams: @escaping (Span<UInt8>) -> Void
    ) {
        self.loop = loop
        self.address = address
        self.send = send
        self.events = events
        self.datagrams = datagrams
        random = RandomSource(seed: seed)
        let credentials = ICECredentials(using: &random)
        ufrag = credentials.ufrag
        password = credentials.password
        timer = loop.makeTimer { [unowned self] in check() }
    }

    var selectedPair: (local: String, remote: String)? {
        isConnected ? candidate.map { (address.description, $0.description) } : nil
    }

    func gather() throws(TransportError) {
        events(.localCandidate("candidate:1 1 udp 2130706431 \(address.host) \(address.port) typ host"))
        events(.gatheringDone)
    }

    func setRemote(ufrag: String, password: String) -> Bool {
        remote = (ufrag, CheckSum(password: Array(password.utf8)))
        begin()
        return true
    }

    func addRemoteCandidate(_ attribute: String) {
        let fields = attribute.split(separator: " ")
        guard candidate == nil, fields.count >= 6, let port = UInt16(fields[5]) else { return }
        let bytes = fields[4].split(separator: ".").compactMap { UInt32($0) }
        guard bytes.count == 4 else { return }
        candidate = TransportAddress(ipv4: bytes.reduce(0) { $0 << 8 | $1 & 0xff }, port: port)
        begin()
    }

    private func begin() {
        guard remote != nil, candidate != nil, !isConnected else { return }
        lastAnswer = loop.now
        timer?.arm(at: loop.now)
    }

    private func check() {
        guard let remote, let candidate else { return }
        guard loop.now - lastAnswer < consent else { return events(.failed) }
        let transaction = STUNTransaction(
            high: UInt32.random(in: 0 ... .max, using: &random), low: UInt64.random(in: 0 ... .max, using: &random))
        pending.append(transaction)
        if pending.count > 16 { pending.removeFirst() }
        packet.beginSTUN(.request, transaction)
        let username = "\(remote.ufrag):\(ufrag)"
        let value = packet.addAttribute(STUNAttribute.username, count: username.utf8.count)
        for (index, byte) in username.utf8.enumerated() { packet.bytes[value + index] = byte }
        packet.setUInt32(1_845_501_695, at: packet.addAttribute(STUNAttribute.priority, count: 4))
        _ = packet.addAttribute(STUNAttribute.useCandidate, count: 0)
        packet.setUInt64(1, at: packet.addAttribute(STUNAttribute.iceControlling, count: 8))
        packet.addIntegrity(with: remote.key)
        packet.addFingerprint()
        send(packet.bytes.span.extracting(0..<packet.count), candidate)
        timer?.arm(at: loop.now + (isConnected ? wait : Self.pacing))
        wait = min(wait + wait, Self.interval)
    }

    func receive(_ datagram: Span<UInt8>) {
        guard datagram.count > 0 else { return }
        if datagram[0] < 4 { return receiveAnswer(datagram) }
        if isConnected { datagrams(datagram) }
    }

    private func receiveAnswer(_ datagram: Span<UInt8>) {
        guard let message = STUNMessage(parsing: datagram), message.kind == .success,
            let place = pending.firstIndex(of: message.transaction), let remote,
            message.isSigned(with: remote.key, in: datagram)
        else { return }
        pending.remove(at: place)
        lastAnswer = loop.now
        wait = Self.firstRepeat
        timer?.arm(at: loop.now + Self.interval)
        guard !isConnected else { return }
        isConnected = true
        events(.connected)
    }

    func send(_ fill: (inout DatagramBatch) -> Void) -> (sent: Int, refused: Int) {
        guard isConnected, let candidate else { return loop.refuse(fill) }
        return loop.withBatch(fill) { batch in
            batch.forEach { send($0, candidate) }
            return (batch.count, 0)
        }
    }

    func close() {
        timer?.disarm()
        events = { _ in }
        datagrams = { _ in }
        isConnected = false
        candidate = nil
    }
}
