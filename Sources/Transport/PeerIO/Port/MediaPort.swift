internal import ICELite
internal import PeerLoop
package import RTP

/// One UDP port for all peers of a loop, with ICE-lite (RFC 8445, section 2.5): a server's end, which other ends reach
/// by its own addresses. On its loop only. Call `close()` before the last release.
///
/// Datagrams that peers send during a turn leave together at its end. A silent peer costs nothing but the answers to its
/// checks.
///
/// With a `PortGroup`, several loops share the port. Each has a socket of its own, and hands over the datagrams that the
/// kernel gives to the wrong one: checks by the ufrag, which names the loop, and others by the pair of addresses. The loop
/// of a session answers a check through the loop that received it, which learns from the answer whose the pair is.
package final class MediaPort: TurnMember, PausedReader {
    package let loop: EventLoop
    /// The port that all peers use.
    package var number: UInt16 { socket.address.port }

    private let socket: DatagramSocket
    private var source: ReadableSource?
    @exclusivity(unchecked) private var agent: ICELiteAgent<OpenSSLSTUNKey>
    /// The paths of peers by the index of their session.
    @exclusivity(unchecked) private var paths: [PortPath?] = []
    private var answer = PacketBuffer()
    private var random = SystemRandomNumberGenerator()
    @exclusivity(unchecked) private var isTouched = false
    /// The datagrams that the socket has received, and that are not handled yet.
    @exclusivity(unchecked) private var received = 0..<0
    @exclusivity(unchecked) private var isPaused = false
    private var pausedTurn = 0
    private var expiry: LoopTimer?
    /// The connections of clients whose network blocks UDP. Nil without a TCP port.
    private var streams: StreamListener?
    /// The TCP port that clients are told. Nil without one.
    package let tcpNumber: UInt16?
    private let group: PortGroup?
    /// This loop's place in the group.
    private let place: Int
    private var bell: ReadableSource?
    /// The datagrams that other loops handed over, the next one to handle, and the place of its bytes.
    @exclusivity(unchecked) private var handed = DatagramBundle()
    private var nextHanded = (item: 0, start: 0)
    /// The datagrams to hand over to each loop, and the loops that have some.
    private var departing: [DatagramBundle]
    private var destinations: [Int] = []
    private var handedOver = 0

    /// Addresses that clients are told besides those of this machine, such as that of a 1:1 NAT before it.
    private let publicAddresses: [String]
    /// How many peers have a session.
    package var sessionCount: Int { agent.count }
    /// How many pairs of addresses lead to a session.
    package var pairCount: Int { agent.pairCount }

    /// The time without checks after which a peer's path is lost (RFC 7675, section 5.1).
    package static let consent = TimeInterval.seconds(30)

    /// Opens the port at an address of this machine: a literal IPv4 or IPv6 address, 0.0.0.0 or ::.
    ///
    /// - Parameters:
    ///   - port: 0 means any free one.
    ///   - publicAddresses: literal addresses at which others reach this port.
    ///   - tcpPort: the TCP port for clients whose network blocks UDP. Nil for none; 0 means any free one. The loop at place
    ///     0 listens. With several loops, it needs a group.
    ///   - group: the loops that share the port. The loop at place 0 opens it first; the others then give its number.
    package init(
        loop: EventLoop, address: String, port: UInt16, tcpPort: UInt16? = nil, publicAddresses: [String] = [],
        consent: TimeInterval = MediaPort.consent, proofTime: TimeInterval = StreamListener.proofTime,
        group: PortGroup? = nil, place: Int = 0
    ) throws(TransportError) {
        loop.preconditionOnLoop()
        guard let own = TransportAddress(literal: address, port: port) else {
            throw TransportError(
                code: "transport.no-address",
                message: "\(address) is not a listen address. Use a literal address, such as 192.168.1.5 or 0.0.0.0.")
        }
        self.loop = loop
        self.publicAddresses = publicAddresses
        self.group = group
        self.place = place
        let loops = group?.count ?? 1
        agent = ICELiteAgent(consent: consent, place: place, of: loops)
        departing = Array(repeating: DatagramBundle(), count: loops)
        socket = try Self.open(own, joinsOthers: place > 0)
        if socket.address.ipv4 != nil, let other = publicAddresses.first(where: { $0.contains(":") }) {
            throw TransportError(
                code: "transport.no-address",
                message:
                    "The public address \(other) is IPv6, but the port at \(address) has only IPv4. Listen on 0.0.0.0.")
        }
        if socket.address.ipv4 == nil, !socket.address.isAny,
            let other = publicAddresses.first(where: { !$0.contains(":") })
        {
            throw TransportError(
                code: "transport.no-address",
                message:
                    "The public address \(other) is IPv4, but the port at \(address) has only IPv6. Listen on [::].")
        }
        if place == 0, loops > 1 { try socket.share() }
        (streams, tcpNumber) = try Self.openStreams(
            tcpPort, at: socket.address, loop: loop, consent: consent, proofTime: proofTime, place: place)
        streams?.receive = { [unowned self] in receiveStream($0, on: $1) }
        streams?.transfer = { [group] transfer, place in group?.pass(transfer, to: place) }
        if streams != nil { group?.join(LoopBound(self, loop: loop), at: place) }
        source = ReadableSource(descriptor: socket.descriptor, context: loop.context) { [unowned self] in becomeReady()
        }
        expiry = loop.makeTimer { [unowned self] in expire() }
        if let inbox = group?.inboxes[place], inbox.bell >= 0 {
            bell = ReadableSource(descriptor: inbox.bell, context: loop.context) { [unowned self] in
                inbox.silence()
                receive(fromSocket: false)
            }
        }
    }

    private static func openStreams(
        _ port: UInt16?, at address: TransportAddress, loop: EventLoop, consent: TimeInterval, proofTime: TimeInterval,
        place: Int
    ) throws(TransportError) -> (StreamListener?, UInt16?) {
        guard let port else { return (nil, nil) }
        let streams = StreamListener(loop: loop, consent: consent, proofTime: proofTime)
        guard place == 0 else { return (streams, port) }
        try streams.listen(at: TransportAddress(ipv6: address.high, address.low, port: port, transport: .tcp))
        return (streams, streams.number)
    }

    /// An IPv6 socket at :: has IPv4 as well, unless the kernel lacks IPv6.
    private static func open(
        _ address: TransportAddress, joinsOthers: Bool
    ) throws(TransportError) -> DatagramSocket {
        let any = TransportAddress(ipv6: 0, 0, port: address.port)
        if address.isAny, let socket = try? DatagramSocket(at: any, joinsOthers: joinsOthers) { return socket }
        return try DatagramSocket(at: address, joinsOthers: joinsOthers)
    }

    deinit {
        assert(source == nil, "a media port must be closed before it is released")
    }

    /// Closes the socket. Close the peers before.
    package func close() {
        loop.preconditionOnLoop()
        group?.leave(place)
        streams?.close()
        for source in [source, bell] { source?.remove() }
        source = nil
        bell = nil
        socket.end()
        expiry?.disarm()
    }

    package var statistics: MediaPortStatistics {
        MediaPortStatistics(
            ignored: ICEIgnored.allCases.reduce(0) { $0 + agent.count(of: $1) } + socket.tooLong,
            overflowed: socket.overflows, refused: socket.refused, handedOver: handedOver,
            notTakenOver: group?.inboxes[place].dropped ?? 0, unsent: socket.unsent,
            streams: streams?.count ?? 0, streamsRefused: streams?.dropped ?? 0)
    }

    /// Makes the kernel give all datagrams of the port to one loop of the group, for tests.
    func steer(to place: Int) { socket.steer(to: place) }

    /// Bytes that a busy server wants the kernel to queue in each direction.
    package static let wantedBuffer = DatagramSocket.wantedBuffer

    /// Bytes that the kernel lets the socket queue for receiving and for sending, and what a busy server wants.
    package var buffers: (receive: Int, send: Int, wanted: Int) {
        (socket.buffers.receive, socket.buffers.send, DatagramSocket.wantedBuffer)
    }

    // MARK: Sessions

    /// Opens a session with new credentials.
    func open() -> (session: ICESessionID, credentials: ICECredentials) {
        while true {
            let credentials = ICECredentials(using: &random, at: place)
            if let session = agent.add(credentials) { return (session, credentials) }
        }
    }

    /// Gives a session new credentials. The former ones hold until the other end uses the new ones.
    func restart(_ session: ICESessionID) -> (ufrag: String, password: String) {
        while true {
            let credentials = ICECredentials(using: &random, at: place)
            if agent.restart(session, credentials) { return (credentials.ufrag, credentials.password) }
        }
    }

    func attach(_ path: PortPath, to session: ICESessionID) {
        while paths.count <= session.index { paths.append(nil) }
        paths[session.index] = path
    }

    func close(_ session: ICESessionID) {
        paths[session.index] = nil
        agent.remove(session)
    }

    func setRemoteUfrag(_ ufrag: String, of session: ICESessionID) {
        agent.setRemoteUfrag(ufrag, of: session)
    }

    // MARK: Receiving

    /// The most datagrams of all peers in one turn.
    package static let datagramShare = 256

    private func becomeReady() {
        if socket.isBlocked {
            socket.flush()
            flush()
        }
        receive(fromSocket: true)
    }

    /// Handles a share of the waiting datagrams: those that other loops handed over, and those of the socket.
    private func receive(fromSocket: Bool) {
        guard !isPaused else { return }
        var share = TurnShare(of: Self.datagramShare, at: loop.turnClock())
        var mayGoOn = true
        var isDrained = !fromSocket
        while mayGoOn {
            if received.isEmpty, handed.isEmpty {
                if !isDrained {
                    received = 0..<socket.receive()
                    isDrained = received.count < DatagramSocket.most
                }
                // Another loop hands an answer over before it sends on the pair. So the lease is found here before the
                // first datagram that needs it is handled.
                group?.inboxes[place].take(into: &handed)
            }
            if !handed.isEmpty {
                handleHandedOver(now: loop.readClock())
            } else if let index = received.popFirst() {
                if let datagram = socket.datagram(index) {
                    handle(datagram.bytes, on: datagram.pair, through: nil, now: loop.readClock())
                }
            } else {
                break
            }
            loop.countDatagram()
            mayGoOn = share.spend(at: loop.turnClock())
        }
        handOver()
        loop.busiest.datagrams = max(loop.busiest.datagrams, share.used)
        // Also without leftovers: the inbox may hold what another loop handed over during the pause before this share,
        // and the bell has ended.
        guard !mayGoOn else { return }
        isPaused = true
        pausedTurn = loop.turn
        loop.resumeNextTurn(self)
    }

    func resume() {
        // Called at the end of the turn of the pause too.
        guard pausedTurn != loop.turn else { return loop.resumeNextTurn(self) }
        isPaused = false
        if source != nil { receive(fromSocket: true) }
    }

    /// - Parameter through: the loop that received the datagram, nil for this one.
    @inline(__always)
    private func handle(
        _ datagram: UnsafeRawBufferPointer, on pair: AddressPair, through: Int?, now: MonotonicTime
    ) {
        let bytes = datagram.bindMemory(to: UInt8.self)
        switch agent.receive(bytes.span, from: pair.remote, to: pair.local, now: now, answer: &answer) {
        case .media(let session): paths[session.index]?.received(bytes.span)
        case .check(let session, let isSelected):
            answer.bytes.withUnsafeBytes {
                let response = UnsafeRawBufferPointer(rebasing: $0[..<answer.count])
                if let through {
                    hand(.answer, response, on: pair, to: through)
                } else {
                    send(on: pair) { $0.append(response) }
                }
            }
            if isSelected, let path = agent.path(of: session) { paths[session.index]?.selected(path.pair) }
            if agent.nextTimeout < expiry?.deadline ?? .never { expiry?.arm(at: agent.nextTimeout) }
        case .elsewhere(let other):
            // A datagram passes from one loop to another once.
            guard through == nil else { return }
            handedOver += 1
            hand(bytes[0] < 4 ? .check : .media, datagram, on: pair, to: other)
        case .ignored: break
        }
    }

    // MARK: TCP

    /// Handles a datagram of a TCP connection.
    private func receiveStream(_ datagram: UnsafeRawBufferPointer, on pair: AddressPair) -> StreamListener.Verdict {
        let bytes = datagram.bindMemory(to: UInt8.self)
        let now = loop.readClock()
        loop.countDatagram()
        switch agent.receive(bytes.span, from: pair.remote, to: pair.local, now: now, answer: &answer) {
        case .media(let session):
            paths[session.index]?.received(bytes.span)
            return .useful
        case .check(let session, let isSelected):
            answer.bytes.withUnsafeBytes {
                let response = UnsafeRawBufferPointer(rebasing: $0[..<answer.count])
                _ = streams?.send(on: pair) { $0.append(response) }
            }
            if isSelected, let path = agent.path(of: session) { paths[session.index]?.selected(path.pair) }
            if agent.nextTimeout < expiry?.deadline ?? .never { expiry?.arm(at: agent.nextTimeout) }
            return .useful
        case .elsewhere(let other): return .elsewhere(other)
        case .ignored: return .useless
        }
    }

    /// Takes over a connection that the loop at place 0 has accepted.
    func adopt(_ transfer: StreamListener.Transfer) {
        guard let streams, source != nil else {
            StreamListener.refuse(transfer)
            return
        }
        streams.adopt(transfer)
    }

    // MARK: Loops of a group

    /// Handles the next datagram that another loop handed over.
    private func handleHandedOver(now: MonotonicTime) {
        let item = handed.items[nextHanded.item]
        handed.bytes.withUnsafeBytes { bytes in
            let datagram = UnsafeRawBufferPointer(
                rebasing: bytes[nextHanded.start..<(nextHanded.start + item.count)])
            switch item.meaning {
            case .check, .media: handle(datagram, on: item.pair, through: item.from, now: now)
            case .answer:
                if agent.lease(item.pair, to: item.from, now: now) { send(on: item.pair) { $0.append(datagram) } }
            }
        }
        nextHanded = (nextHanded.item + 1, nextHanded.start + item.count)
        guard nextHanded.item == handed.items.count else { return }
        handed.removeAll()
        nextHanded = (0, 0)
    }

    private func hand(
        _ meaning: DatagramBundle.Meaning, _ datagram: UnsafeRawBufferPointer, on pair: AddressPair, to other: Int
    ) {
        if departing[other].isEmpty { destinations.append(other) }
        departing[other].append(meaning, datagram, on: pair, from: place)
    }

    /// Hands over what waits.
    private func handOver() {
        guard !destinations.isEmpty, let group else { return }
        for other in destinations { group.inboxes[other].add(&departing[other]) }
        destinations.removeAll(keepingCapacity: true)
    }

    private func expire() {
        while let session = agent.nextExpired(now: loop.now) { paths[session.index]?.expired() }
        expiry?.arm(at: agent.nextTimeout)
    }

    // MARK: Sending

    /// Queues the datagrams that a closure appends, which leave at the end of the turn. Returns their number.
    @inline(__always)
    @discardableResult
    func send(on pair: AddressPair, _ fill: (inout DatagramBatch) -> Void) -> Int {
        if !isTouched {
            isTouched = true
            loop.atEndOfTurn(self)
        }
        return socket.send(on: pair, fill)
    }

    /// Sends the datagrams that a closure appends over the TCP connection of a pair, at once. Returns how many it has taken
    /// and refused.
    func sendStream(on pair: AddressPair, _ fill: (inout DatagramBatch) -> Void) -> (sent: Int, refused: Int) {
        streams?.send(on: pair, fill) ?? loop.refuse(fill)
    }

    package func sendEarly() { flush() }

    package func endTurn() {
        isTouched = false
        flush()
    }

    /// Sends what waits. A full queue of the kernel calls again when it has room.
    private func flush() {
        handOver()
        if !socket.isBlocked { socket.flush() }
        source?.awaitsWriting = socket.isBlocked
    }

    /// The addresses that a peer within this scope is told, the public ones first.
    package func addresses(within scope: ListeningScope) -> [String] {
        let all = socket.address.isAny ? scope.addresses : [socket.address.host]
        let own = socket.address.ipv4 == nil ? all : all.filter { !$0.contains(":") }
        return publicAddresses + own.filter { !publicAddresses.contains($0) }
    }

    /// Whether machines of other networks may reach one of the port's addresses.
    package var isPublic: Bool { addresses(within: .anyButLoopback).contains { AddressScope($0) == .global } }

    /// Whether a text is a literal IPv4 or IPv6 address that another machine may reach.
    package static func isReachableAddress(_ text: String) -> Bool {
        switch AddressScope(text) {
        case .global, .local: true
        case .loopback, .linkLocal, .unusable, nil: false
        }
    }

    /// A literal address in its usual form: RFC 5952, and IPv4 for an IPv4 address inside IPv6. Nil for other texts.
    package static func canonicalAddress(_ text: String) -> String? {
        TransportAddress(literal: text, port: 0).flatMap { AddressScope.canonical($0.host) }
    }

    /// The candidates of the port for a peer within this scope (RFC 8839, section 5.1).
    func candidates(within scope: ListeningScope) -> [String] {
        let addresses = addresses(within: scope)
        let datagrams = addresses.enumerated().map { place, address in
            // Type preference of a host candidate, local preference, component 1 (RFC 8445, section 5.1.2.1).
            let priority = 126 << 24 | (65535 - place) << 8 | 255
            return "candidate:\(place + 1) 1 udp \(priority) \(address) \(number) typ host"
        }
        guard let tcpNumber else { return datagrams }
        // Less than UDP, and the direction preference of a passive host candidate (RFC 6544, sections 4.2 and 4.5).
        return datagrams
            + addresses.enumerated().map { place, address in
                let priority = 90 << 24 | (4 << 13 | (8191 - place)) << 8 | 255
                return "candidate:\(addresses.count + place + 1) 1 tcp \(priority) \(address) \(tcpNumber) typ host "
                    + "tcptype passive"
            }
    }
}

/// Counters of a `MediaPort` since its creation.
package struct MediaPortStatistics: Sendable {
    /// Datagrams of strangers, unauthenticated checks, and datagrams that are too long.
    package var ignored: Int
    /// Datagrams that the kernel dropped, because the loop did not read them in time.
    package var overflowed: Int
    /// Outgoing datagrams that were dropped: the kernel refused them, or the queue was full.
    package var refused: Int
    /// Received datagrams that were handed over to another loop.
    package var handedOver: Int
    /// Datagrams that other loops handed over, and that were dropped because too many waited.
    package var notTakenOver: Int
    /// Runs of datagrams that wait now, because the kernel's queue is full.
    package var unsent: Int
    /// TCP connections that are open now.
    package var streams: Int
    /// Outgoing datagrams that a TCP connection did not take.
    package var streamsRefused: Int
}
