internal import ICELite
internal import PeerLoop
internal import RTP

/// The one UDP port of the simulated server: ICE-lite, without a socket.
final class ServerPort {
    let address: TransportAddress
    fileprivate let loop: Loop
    private var agent = ICELiteAgent<CheckSum>()
    private var paths: [ServerPath?] = []
    private var random: RandomSource
    private var answer = PacketBuffer()
    private lazy var expiry = loop.makeTimer { [unowned self] in expire() }
    private let deliver: (Span<UInt8>, TransportAddress) -> Void
    /// Whether the server's process has ended, so that nothing leaves.
    var isDead = false

    init(
        loop: Loop, address: TransportAddress, seed: UInt64, deliver: @escaping (Span<UInt8>, TransportAddress) -> Void
    ) {
        self.loop = loop
        self.address = address
        self.deliver = deliver
        random = RandomSource(seed: seed)
    }

    /// Sends a datagram to an address.
    func send(_ datagram: Span<UInt8>, _ address: TransportAddress) {
        if !isDead { deliver(datagram, address) }
    }

    /// How many sessions are open.
    var sessions: Int { agent.count }

    func open(_ path: ServerPath) -> (session: ICESessionID, credentials: ICECredentials) {
        while true {
            let credentials = ICECredentials(using: &random)
            guard let session = agent.add(credentials) else { continue }
            while paths.count <= session.index { paths.append(nil) }
            paths[session.index] = path
            return (session, credentials)
        }
    }

    func restart(_ session: ICESessionID) -> ICECredentials {
        while true {
            let credentials = ICECredentials(using: &random)
            if agent.restart(session, credentials) { return credentials }
        }
    }

    func setRemoteUfrag(_ ufrag: String, of session: ICESessionID) { agent.setRemoteUfrag(ufrag, of: session) }

    func close(_ session: ICESessionID) {
        paths[session.index] = nil
        agent.remove(session)
    }

    func receive(_ datagram: Span<UInt8>, from remote: TransportAddress) {
        switch agent.receive(datagram, from: remote, to: address, now: loop.now, answer: &answer) {
        case .media(let session): paths[session.index]?.received(datagram)
        case .check(let session, let isSelected):
            send(answer.bytes.span.extracting(0..<answer.count), remote)
            if isSelected, let path = agent.path(of: session) { paths[session.index]?.selected(path.pair.remote) }
            if agent.nextTimeout < expiry.deadline { expiry.arm(at: agent.nextTimeout) }
        case .elsewhere, .ignored: break
        }
    }

    private func expire() {
        while let session = agent.nextExpired(now: loop.now) { paths[session.index]?.expired() }
        expiry.arm(at: agent.nextTimeout)
    }

    func end() { expiry.disarm() }
}

/// The way of one peer of the server through its port.
final class ServerPath: PeerPath {
    private let port: ServerPort
    private(set) var ufrag = ""
    private(set) var password = ""
    let isLite = true
    let consent = TimeInterval.seconds(30)
    private var session: ICESessionID?
    private var remote: TransportAddress?
    private var events: (ICEEvent) -> Void
    private var datagrams: (Span<UInt8>) -> Void

    init(port: ServerPort, events: @escaping (ICEEvent) -> Void, datagrams: @escaping (Span<UInt8>) -> Void) {
        self.port = port
        self.events = events
        self.datagrams = datagrams
        let opened = port.open(self)
        session = opened.session
        ufrag = opened.credentials.ufrag
        password = opened.credentials.password
    }

    var selectedPair: (local: String, remote: String)? {
        remote.map { (port.address.description, $0.description) }
    }

    func gather() throws(TransportError) {
        events(
            .localCandidate("candidate:1 1 udp 2130706431 \(port.address.host) \(port.address.port) typ host"))
        events(.gatheringDone)
    }

    func setRemote(ufrag: String, password: String) -> Bool {
        if let session { port.setRemoteUfrag(ufrag, of: session) }
        return true
    }

    func restart() -> Bool {
        if let session { (ufrag, password) = { ($0.ufrag, $0.password) }(port.restart(session)) }
        return true
    }

    func send(_ fill: (inout DatagramBatch) -> Void) -> (sent: Int, refused: Int) {
        guard let remote else { return port.loop.refuse(fill) }
        return port.loop.withBatch(fill) { batch in
            batch.forEach { port.send($0, remote) }
            return (batch.count, 0)
        }
    }

    func close() {
        guard let session else { return }
        self.session = nil
        remote = nil
        events = { _ in }
        datagrams = { _ in }
        port.close(session)
    }

    func selected(_ remote: TransportAddress) {
        self.remote = remote
        events(.connected)
    }

    func expired() {
        remote = nil
        events(.failed)
    }

    func received(_ datagram: Span<UInt8>) { datagrams(datagram) }
}
