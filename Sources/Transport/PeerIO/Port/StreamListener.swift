internal import CLinux
internal import CNice
internal import Glibc
internal import ICELite
internal import PeerLoop
internal import RTP

/// The TCP connections of a media port, for clients whose network blocks UDP: passive candidates (RFC 6544), with each
/// datagram in a frame (RFC 4571). On its loop only.
///
/// Strangers can open connections, so everything is bounded: how many there are, how many an address has, and how long one
/// may last without an authenticated check. A connection has one buffer for an incoming frame, and at most one outgoing
/// frame that the kernel has taken in part. Frames that the kernel does not take are dropped.
final class StreamListener {
    /// The most connections of a loop. A further one replaces the oldest that has not proved itself.
    static let limit = 512
    /// The most connections of an IPv4 address, or of the /64 network of an IPv6 one.
    static let limitPerNetwork = 64
    /// How long a connection may last without an authenticated check.
    static let proofTime = TimeInterval.seconds(5)
    /// The most connections accepted in one turn.
    private static let acceptShare = 32

    /// How a datagram of a connection was received.
    enum Verdict {
        /// It belongs to a session.
        case useful
        case useless
        /// It is a check of a session on another loop.
        case elsewhere(Int)
    }

    /// A connection on its way to the loop of its session, with the bytes that it has sent.
    struct Transfer: Sendable {
        let descriptor: Int32
        let pair: AddressPair
        let bytes: [UInt8]
    }

    /// Frames that were dropped because a connection took no more.
    private(set) var dropped = 0
    var count: Int { connections.count }

    private let loop: EventLoop
    private let proofTime: TimeInterval
    private let consent: TimeInterval
    /// Handles a datagram. To be set before the loop's next turn, as `transfer`.
    var receive: (UnsafeRawBufferPointer, AddressPair) -> Verdict = { _, _ in .useless }
    /// Passes a connection on to the loop at a place.
    var transfer: (Transfer, Int) -> Void = { transfer, _ in refuse(transfer) }
    private var descriptor: Int32 = -1
    private var source: ReadableSource?
    private var connections: [AddressPair: StreamConnection] = [:]
    private var networks: [UInt64: Int] = [:]
    private var sweep: LoopTimer?
    private var pause: LoopTimer?

    init(loop: EventLoop, consent: TimeInterval, proofTime: TimeInterval) {
        self.loop = loop
        self.consent = consent
        self.proofTime = proofTime
    }

    /// Closes a connection that nobody takes over.
    static func refuse(_ transfer: Transfer) { Glibc.close(transfer.descriptor) }

    /// Listens at an address. Throws if another program uses the port.
    func listen(at wanted: TransportAddress) throws(TransportError) {
        let (socket, problem) = Self.open(wanted)
        guard socket >= 0 else {
            throw TransportError(
                code: problem == EADDRINUSE ? "transport.port-busy" : "transport.no-address",
                message: problem == EADDRINUSE
                    ? "Another program uses TCP port \(wanted.port) of \(wanted.host). Choose another port."
                    : "The TCP address \(wanted) cannot be opened: \(String(cString: strerror(problem))). Use an address of "
                        + "this machine, and a port from 1024.")
        }
        descriptor = socket
        source = ReadableSource(descriptor: socket, context: loop.context) { [unowned self] in accept() }
    }

    /// The port that it listens at. 0 without one.
    var number: UInt16 { Self.address(of: descriptor, getsockname)?.port ?? 0 }

    func close() {
        for timer in [sweep, pause] { timer?.disarm() }
        source?.remove()
        source = nil
        if descriptor >= 0 { Glibc.close(descriptor) }
        descriptor = -1
        for connection in Array(connections.values) { remove(connection) }
    }

    // MARK: - Connections

    private func accept() {
        for _ in 0..<Self.acceptShare {
            let socket = clinux_accept(descriptor)
            guard socket >= 0 else {
                // Another reason is a connection that has ended before.
                if [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(-socket) { rest() }
                if [ECONNABORTED, EINTR].contains(-socket) { continue }
                return
            }
            guard let remote = Self.address(of: socket, getpeername), let local = Self.address(of: socket, getsockname)
            else {
                Glibc.close(socket)
                continue
            }
            var (size, on) = (Int32(128 << 10), Int32(1))
            let length = socklen_t(MemoryLayout<Int32>.size)
            setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &size, length)
            setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &on, length)
            add(socket, AddressPair(remote: remote, local: local))
        }
    }

    /// Without descriptors, the listening socket would stay readable and keep the loop busy.
    private func rest() {
        source?.remove()
        source = nil
        pause = loop.schedule(after: .seconds(1)) { [weak self] in
            guard let self, descriptor >= 0 else { return }
            source = ReadableSource(descriptor: descriptor, context: loop.context) { [unowned self] in accept() }
        }
    }

    /// Takes over a connection that another loop has accepted.
    func adopt(_ transfer: Transfer) {
        guard let connection = add(transfer.descriptor, transfer.pair) else { return }
        connection.preload(transfer.bytes)
        handle(connection)
    }

    @discardableResult
    private func add(_ socket: Int32, _ pair: AddressPair) -> StreamConnection? {
        let network = Self.network(of: pair.remote)
        if connections.count >= Self.limit { makeRoom() }
        guard connections.count < Self.limit, networks[network, default: 0] < Self.limitPerNetwork,
            connections[pair] == nil
        else {
            Glibc.close(socket)
            return nil
        }
        let connection = StreamConnection(socket, pair, since: loop.readClock())
        connections[pair] = connection
        networks[network, default: 0] += 1
        connection.source = ReadableSource(descriptor: socket, context: loop.context) {
            [unowned self, unowned connection] in ready(connection)
        }
        if sweep == nil { sweep = loop.makeTimer { [unowned self] in expire() } }
        if sweep?.deadline == .never { sweep?.arm(at: loop.now + .seconds(1)) }
        return connection
    }

    private func makeRoom() {
        let oldest = connections.values.filter { !$0.isProven }.min { $0.lastUseful < $1.lastUseful }
        if let oldest { remove(oldest) }
    }

    private func remove(_ connection: StreamConnection, closes: Bool = true) {
        guard connections.removeValue(forKey: connection.pair) != nil else { return }
        let network = Self.network(of: connection.pair.remote)
        networks[network, default: 1] -= 1
        if networks[network] == 0 { networks[network] = nil }
        connection.source?.remove()
        connection.source = nil
        if closes { Glibc.close(connection.descriptor) }
    }

    /// Ends connections that have proved nothing in time, and those that have gone quiet.
    private func expire() {
        let now = loop.now
        for connection in Array(connections.values)
        where now - connection.lastUseful >= (connection.isProven ? consent : proofTime) {
            remove(connection)
        }
        sweep?.arm(at: connections.isEmpty ? .never : now + .seconds(1))
    }

    private func ready(_ connection: StreamConnection) {
        connection.flush()
        switch connection.read() {
        case .open: handle(connection)
        case .ended: remove(connection)
        }
    }

    /// Handles the frames that are complete.
    private func handle(_ connection: StreamConnection) {
        while connections[connection.pair] === connection {
            switch connection.nextFrame() {
            case .none: return
            case .tooLong: return remove(connection)
            case .frame(let range):
                let verdict = connection.withBytes(range) { receive($0, connection.pair) }
                // The session may have ended, and this port with it.
                guard connections[connection.pair] === connection else { return }
                switch verdict {
                case .useful:
                    connection.isProven = true
                    connection.lastUseful = loop.now
                case .useless: break
                case .elsewhere(let place):
                    // Once, with its first check.
                    guard !connection.isProven else { break }
                    let bytes = connection.takeBytes(from: range)
                    remove(connection, closes: false)
                    transfer(
                        Transfer(descriptor: connection.descriptor, pair: connection.pair, bytes: bytes), place)
                    return
                }
            }
        }
    }

    /// Sends datagrams to a connection. Returns how many it has taken and refused.
    func send(on pair: AddressPair, _ fill: (inout DatagramBatch) -> Void) -> (sent: Int, refused: Int) {
        loop.withBatch(fill) { batch in
            let sent = connections[pair]?.send(batch) ?? 0
            dropped += batch.count - sent
            return (sent, batch.count - sent)
        }
    }

    // MARK: - Addresses

    private static func network(of address: TransportAddress) -> UInt64 {
        address.ipv4.map { UInt64($0) } ?? address.high
    }

    /// A socket at :: has IPv4 as well, unless the kernel lacks IPv6.
    private static func open(_ wanted: TransportAddress) -> (Int32, Int32) {
        let isFour = wanted.ipv4 != nil && !wanted.isAny
        let family = isFour ? AF_INET : AF_INET6
        let flags = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = socket(family, flags, 0)
        guard descriptor >= 0 else { return (-1, errno) }
        var (on, off) = (Int32(1), Int32(0))
        let length = socklen_t(MemoryLayout<Int32>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, length)
        var result: Int32
        if let four = wanted.ipv4, isFour {
            var name = sockaddr_in()
            name.sin_family = sa_family_t(AF_INET)
            name.sin_port = wanted.port.bigEndian
            name.sin_addr.s_addr = four.bigEndian
            result = withUnsafePointer(to: &name) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        } else {
            if wanted.isAny { setsockopt(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &off, length) }
            var name = sockaddr_in6()
            name.sin6_family = sa_family_t(AF_INET6)
            name.sin6_port = wanted.port.bigEndian
            if !wanted.isAny {
                withUnsafeMutableBytes(of: &name.sin6_addr) {
                    $0.storeBytes(of: wanted.high.bigEndian, as: UInt64.self)
                    $0.storeBytes(of: wanted.low.bigEndian, toByteOffset: 8, as: UInt64.self)
                }
            }
            result = withUnsafePointer(to: &name) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in6>.size))
                }
            }
        }
        if result == 0 { result = Glibc.listen(descriptor, 128) }
        guard result == 0 else {
            let problem = errno
            Glibc.close(descriptor)
            return (-1, problem)
        }
        return (descriptor, 0)
    }

    private static func address(
        of descriptor: Int32, _ ask: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) -> TransportAddress? {
        var name = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutablePointer(to: &name) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { ask(descriptor, $0, &length) }
        }
        guard result == 0 else { return nil }
        let isSix = Int32(name.ss_family) == AF_INET6
        return withUnsafeBytes(of: &name) { bytes in
            let port = UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt16.self))
            guard isSix else {
                return TransportAddress(
                    ipv4: UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self)), port: port,
                    transport: .tcp)
            }
            return TransportAddress(
                ipv6: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)),
                UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self)), port: port,
                transport: .tcp)
        }
    }
}
