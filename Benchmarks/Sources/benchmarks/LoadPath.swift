internal import Glibc
internal import ICELite
internal import PeerIO
internal import PeerLoop
internal import RTP

/// The way of a load client: one UDP socket, whose loop waits for all sockets with one `epoll`.
///
/// A loop with libnice's sockets polls each of them in every turn, so a thousand clients would measure themselves. This
/// end has one address and tries one of the server. On the loop only.
final class LoadPath: PeerPath {
    let isLite = false
    let consent = TimeInterval.seconds(50)
    let ufrag: String
    let password: String
    private(set) var ignoredCandidates = 0

    private static let checkInterval = TimeInterval.milliseconds(50)
    /// Between checks that keep the consent of a server that is lite (RFC 7675).
    private static let consentInterval = TimeInterval.seconds(5)
    private static let buffer: Int32 = 1 << 20
    /// Datagrams of one socket that are read before the next socket.
    private static let share = 32

    private let loop: EventLoop
    private let reader: LoadReader
    private let isControlling: Bool
    private let server: String
    private let key: OpenSSLSTUNKey
    private var remoteUfrag = ""
    private var remoteKey: OpenSSLSTUNKey?
    private var remote: TransportAddress?
    private var descriptor: Int32 = -1
    private var local: TransportAddress?
    private var isConnected = false
    private var timer: LoopTimer?
    private var message = PacketBuffer()
    private var received = [UInt8](repeating: 0, count: PacketBuffer.capacity)
    private let tieBreaker = UInt64.random(in: 0...UInt64.max)
    private var events: (ICEEvent) -> Void
    private var datagrams: (Span<UInt8>) -> Void

    /// - Parameter server: the IPv4 address to reach.
    init(
        loop: EventLoop, reader: LoadReader, role: ICERole, server: String, events: @escaping (ICEEvent) -> Void,
        datagrams: @escaping (Span<UInt8>) -> Void
    ) {
        var generator = SystemRandomNumberGenerator()
        let credentials = ICECredentials(using: &generator)
        ufrag = credentials.ufrag
        password = credentials.password
        key = OpenSSLSTUNKey(password: Array(credentials.password.utf8))
        self.loop = loop
        self.reader = reader
        self.server = server
        isControlling = role == .controlling
        self.events = events
        self.datagrams = datagrams
        timer = loop.makeTimer { [weak self] in self?.check() }
    }

    // MARK: Addresses

    func gather() throws(TransportError) {
        descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
        for option in [SO_RCVBUFFORCE, SO_SNDBUFFORCE] {
            var size = Self.buffer
            setsockopt(descriptor, SOL_SOCKET, option, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        guard let host = sourceAddress(), bind(to: host), let local else {
            throw TransportError(code: "transport.no-address", message: "A load client has no address: errno \(errno).")
        }
        reader.add(self, descriptor)
        events(.localCandidate("candidate:1 1 udp 2130706431 \(local.host) \(local.port) typ host"))
        events(.gatheringDone)
    }

    /// This machine's address on the way to the server.
    private func sourceAddress() -> in_addr? {
        let probe = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        defer { Glibc.close(probe) }
        guard var target = Self.socketAddress(server, 9), connect(probe, &target) else { return nil }
        return Self.name(of: probe)?.sin_addr
    }

    private func bind(to host: in_addr) -> Bool {
        var own = sockaddr_in()
        own.sin_family = sa_family_t(AF_INET)
        own.sin_addr = host
        let length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafePointer(to: &own) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { Glibc.bind(descriptor, $0, length) }
        }
        guard result == 0, let name = Self.name(of: descriptor) else { return false }
        local = TransportAddress(
            ipv4: UInt32(bigEndian: name.sin_addr.s_addr), port: UInt16(bigEndian: name.sin_port))
        return true
    }

    private func connect(_ descriptor: Int32, _ address: inout sockaddr_in) -> Bool {
        let length = socklen_t(MemoryLayout<sockaddr_in>.size)
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { Glibc.connect(descriptor, $0, length) == 0 }
        }
    }

    private static func socketAddress(_ host: String, _ port: UInt16) -> sockaddr_in? {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        return inet_pton(AF_INET, host, &address.sin_addr) == 1 ? address : nil
    }

    private static func name(of descriptor: Int32) -> sockaddr_in? {
        var name = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafeMutablePointer(to: &name) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        return result == 0 ? name : nil
    }

    func setRemote(ufrag: String, password: String) -> Bool {
        remoteUfrag = ufrag
        remoteKey = OpenSSLSTUNKey(password: Array(password.utf8))
        return true
    }

    /// Takes the first UDP candidate at the server's address.
    func addRemoteCandidate(_ attribute: String) {
        let parts = attribute.split(separator: " ")
        guard remote == nil, parts.count > 5, parts[1] == "1", parts[2].lowercased() == "udp", parts[4] == server,
            let port = UInt16(parts[5]), var address = Self.socketAddress(server, port),
            connect(descriptor, &address)
        else {
            ignoredCandidates += 1
            return
        }
        remote = TransportAddress(ipv4: UInt32(bigEndian: address.sin_addr.s_addr), port: port)
        check()
    }

    var selectedPair: (local: String, remote: String)? {
        guard isConnected, let local, let remote else { return nil }
        return (local.description, remote.description)
    }

    // MARK: Checks

    private func check() {
        guard descriptor >= 0, let remoteKey, remote != nil else { return }
        timer?.arm(at: loop.now + (isConnected ? Self.consentInterval : Self.checkInterval))
        message.beginSTUN(
            .request, STUNTransaction(high: .random(in: 0...UInt32.max), low: .random(in: 0...UInt64.max)))
        let name = Array("\(remoteUfrag):\(ufrag)".utf8)
        let place = message.addAttribute(STUNAttribute.username, count: name.count)
        for (index, byte) in name.enumerated() { message.bytes[place + index] = byte }
        message.setUInt32(0x6eff_ffff, at: message.addAttribute(STUNAttribute.priority, count: 4))
        let role = isControlling ? STUNAttribute.iceControlling : STUNAttribute.iceControlled
        message.setUInt64(tieBreaker, at: message.addAttribute(role, count: 8))
        if isControlling { _ = message.addAttribute(STUNAttribute.useCandidate, count: 0) }
        message.addIntegrity(with: remoteKey)
        message.addFingerprint()
        sendMessage()
    }

    private func receiveSTUN(_ datagram: Span<UInt8>) {
        guard let request = STUNMessage(parsing: datagram), let remote else { return }
        switch request.kind {
        case .request:
            guard request.isSigned(with: key, in: datagram) else { return }
            STUNResponse.success(remote).write(to: request, in: datagram, signedWith: key, into: &message)
            sendMessage()
            // The controlling end selects the pair.
            if !isControlling, request.nominates { connected() }
        case .success: if isControlling { connected() }
        case .error, .indication: break
        }
    }

    private func connected() {
        guard !isConnected else { return }
        isConnected = true
        timer?.arm(at: loop.now + Self.consentInterval)
        events(.connected)
    }

    private func sendMessage() {
        _ = message.bytes.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, message.count, 0) }
    }

    // MARK: Datagrams

    func send(_ fill: (inout DatagramBatch) -> Void) -> (sent: Int, refused: Int) {
        guard isConnected else { return loop.refuse(fill) }
        return loop.withBatch(fill) { batch in
            var sent = 0
            batch.forEach { datagram in
                datagram.withUnsafeBytes {
                    if Glibc.send(descriptor, $0.baseAddress, $0.count, 0) == $0.count { sent += 1 }
                }
            }
            return (sent, batch.count - sent)
        }
    }

    /// Reads a share of what the socket has.
    func read() {
        for _ in 0..<Self.share {
            guard descriptor >= 0 else { return }
            let count = received.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, 0) }
            guard count > 0 else { return }
            loop.now = EventLoop.now
            let datagram = received.span.extracting(0..<count)
            if datagram[0] < 4 { receiveSTUN(datagram) } else { datagrams(datagram) }
        }
    }

    func close() {
        guard descriptor >= 0 else { return }
        reader.remove(descriptor)
        Glibc.close(descriptor)
        descriptor = -1
        timer?.disarm()
        events = { _ in }
        datagrams = { _ in }
    }
}
