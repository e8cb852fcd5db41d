internal import ICELite
internal import PeerLoop
internal import RTP

/// The way of one peer through a `MediaPort`. On the loop only.
final class PortPath: PeerPath {
    let isLite = true
    let consent = MediaPort.consent
    private(set) var ufrag: String
    private(set) var password: String
    private let port: MediaPort
    private let scope: ListeningScope
    private let session: ICESessionID
    @exclusivity(unchecked) private var isOpen = true
    /// The pair that the other end nominated, and that has not expired.
    @exclusivity(unchecked) private var pair: AddressPair?
    private var events: (ICEEvent) -> Void
    private var datagrams: (Span<UInt8>) -> Void

    /// Events and datagrams arrive on the loop, inside of calls of the port, so the closures must not close the path.
    init(
        port: MediaPort, scope: ListeningScope, events: @escaping (ICEEvent) -> Void,
        datagrams: @escaping (Span<UInt8>) -> Void
    ) {
        self.port = port
        self.scope = scope
        self.events = events
        self.datagrams = datagrams
        let opened = port.open()
        session = opened.session
        ufrag = opened.credentials.ufrag
        password = opened.credentials.password
        port.attach(self, to: session)
    }

    deinit {
        assert(!isOpen, "a port's path must be closed before it is released")
    }

    /// The port is open already: reports its candidates.
    func gather() {
        for candidate in port.candidates(within: scope) { events(.localCandidate(candidate)) }
        events(.gatheringDone)
    }

    func setRemote(ufrag: String, password: String) -> Bool {
        port.setRemoteUfrag(ufrag, of: session)
        return true
    }

    func restart() -> Bool {
        if isOpen { (ufrag, password) = port.restart(session) }
        return true
    }

    func send(_ fill: (inout DatagramBatch) -> Void) -> (sent: Int, refused: Int) {
        guard isOpen, let pair else { return port.loop.refuse(fill) }
        if pair.remote.transport == .tcp { return port.sendStream(on: pair, fill) }
        return (port.send(on: pair, fill), 0)
    }

    /// The local and the remote address in use, as `address:port`.
    var selectedPair: (local: String, remote: String)? {
        pair.map { ($0.local.description, $0.remote.description) }
    }

    /// Must not be called inside of the closures passed to init.
    func close() {
        guard isOpen else { return }
        isOpen = false
        events = { _ in }
        datagrams = { _ in }
        port.close(session)
    }

    // MARK: Called by the port

    func selected(_ pair: AddressPair) {
        self.pair = pair
        events(.connected)
    }

    func expired() {
        pair = nil
        events(.failed)
    }

    @inline(__always)
    func received(_ datagram: Span<UInt8>) { datagrams(datagram) }
}
