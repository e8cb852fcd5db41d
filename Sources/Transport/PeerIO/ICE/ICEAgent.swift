internal import CGLib
internal import CNice
internal import Glibc
internal import PeerLoop
internal import RTP

/// One ICE agent of libnice with one component, UDP only, trickling (RFC 8445, RFC 8838), and with relays over UDP, TCP
/// and TLS (RFC 8656). On its loop only.
///
/// libnice owns the sockets and replies to all STUN. It passes on other datagrams only from addresses that passed an
/// authenticated connectivity check, and drops the rest.
final class ICEAgent: PeerPath, PausedReader {
    /// RTP and RTCP share the one component (rtcp-mux).
    static let component: guint = 1
    /// The most remote candidates to try; further ones are ignored. A browser on a machine with several networks has
    /// about twenty. Each candidate gets seven checks from every local address. The limit keeps a description from
    /// making this end flood others (RFC 8445, section 19.5.1).
    static let remoteCandidateLimit = 32
    /// The most remote candidates to try at one address. Address translators show each socket as another port.
    static let remoteCandidateLimitPerAddress = 8
    /// The most local addresses to use.
    private static let localAddressLimit = 16
    /// Interval between connectivity checks in milliseconds. RFC 8445, section 14.2 recommends 50 for networks that
    /// checks may congest. A peer here has few pairs, and setting up fast matters.
    private static let pacing: guint = 5
    /// First retransmission time of a lost check in milliseconds, doubling. RFC 8445, section 14.3 has 500.
    private static let checkTimeout: guint = 100
    /// How often a request to a TURN server is sent (Rc in RFC 8489, section 6.2.1).
    private static let relayRequests: guint = 7
    /// Milliseconds without checks after which a connected agent stops its check timer.
    private static let idleTimeout: guint = 200
    /// How long libnice waits for the response to a check of the selected pair.
    let consent = TimeInterval.seconds(50)
    let isLite = false
    /// Bytes that a socket may queue in each direction, as the kernel counts them (about 2.3 KiB for a packet).
    private static let socketBuffer: Int32 = 1 << 20

    private(set) var ignoredCandidates = 0
    /// Whether the other end stopped to answer the checks of the selected pair. Nothing is sent to it then (RFC 7675,
    /// section 5.1).
    private var hasLostConsent = false
    let ufrag: String
    let password: String

    private let loop: EventLoop
    private let agent: OpaquePointer
    private let stream: guint
    private var handlers: [gulong] = []
    /// How many remote candidates were tried, by address.
    private var remoteCandidates: [String: Int] = [:]
    private let scopes: Set<AddressScope>
    private var isOpen = true
    private var relays: AgentRelays?
    private var hasReportedEnd = false
    private var hasRemoteCredentials = false
    private var remoteHasEnded = false
    /// Candidates that arrived before the credentials. libnice would check them without credentials, which fails their
    /// pairs for good; only checks by the peer revive a failed pair, and a lite peer sends none.
    private var earlyCandidates: [CandidateAttribute] = []
    /// The share of this agent in the turn `sharedTurn` of the loop.
    private var share = TurnShare(of: 0, at: .zero)
    private var sharedTurn = 0
    private var events: (ICEEvent) -> Void
    private var datagrams: (Span<UInt8>) -> Void

    /// Events and datagrams arrive on the loop, inside of calls of libnice, so the closures must not close the agent.
    init(
        loop: EventLoop, role: ICERole, scope: ListeningScope, ports: ClosedRange<UInt16>?,
        servers: ICEServers = ICEServers(), relayTimeout: TimeInterval = .seconds(3),
        events: @escaping (ICEEvent) -> Void,
        datagrams: @escaping (Span<UInt8>) -> Void
    ) throws(TransportError) {
        loop.preconditionOnLoop()
        guard
            let agent = nice_agent_new_full(loop.context, NICE_COMPATIBILITY_RFC5245, NICE_AGENT_OPTION_ICE_TRICKLE)
        else { throw TransportError(code: "transport.ice", message: "libnice created no ICE agent.") }
        do {
            scopes = try Self.listen(agent, on: scope)
        } catch {
            g_object_unref(UnsafeMutableRawPointer(agent))
            throw error
        }
        nice_agent_set_flag(agent, "upnp", 0)
        nice_agent_set_flag(agent, "ice-tcp", 0)
        // Requests consent about every 5 s and fails after 50 s without a response. libnice's "consent-freshness" fails
        // after 10 s, which one lost check with a long pause, or a network cut of 5 s, can exceed.
        nice_agent_set_flag(agent, "keepalive-conncheck", 1)
        nice_agent_set_flag(agent, "controlling-mode", role == .controlling ? 1 : 0)
        nice_agent_set_number(agent, "stun-pacing-timer", Self.pacing)
        nice_agent_set_number(agent, "stun-initial-timeout", Self.checkTimeout)
        // Up to 8 s in all. With libnice's default of three, a round trip above 0.5 s gets no allocation, and an outage of
        // that length ends one.
        if servers.servers.contains(where: { $0.kind != .stun }) {
            nice_agent_set_number(agent, "stun-max-retransmissions", Self.relayRequests)
        }
        nice_agent_set_flag(agent, "force-relay", servers.policy == .relay ? 1 : 0)
        Self.setReflector(agent, servers.servers)
        let stream = nice_agent_add_stream(agent, 1)
        var ufrag: UnsafeMutablePointer<gchar>?
        var password: UnsafeMutablePointer<gchar>?
        guard stream != 0, nice_agent_get_local_credentials(agent, stream, &ufrag, &password) != 0, let ufrag,
            let password
        else {
            g_object_unref(UnsafeMutableRawPointer(agent))
            throw TransportError(code: "transport.ice", message: "libnice created no ICE stream.")
        }
        self.ufrag = String(cString: ufrag)
        self.password = String(cString: password)
        g_free(ufrag)
        g_free(password)
        if let ports {
            nice_agent_set_port_range(
                agent, stream, Self.component, guint(ports.lowerBound), guint(ports.upperBound))
        }
        self.loop = loop
        self.agent = agent
        self.stream = stream
        self.events = events
        self.datagrams = datagrams
        // Unretained: `close()` removes the handlers before this object is released.
        let this = Unmanaged.passUnretained(self).toOpaque()
        connect("new-candidate-full", to: unsafeBitCast(candidateFound, to: GCallback.self), this)
        connect("candidate-gathering-done", to: unsafeBitCast(gatheringDone, to: GCallback.self), this)
        connect("component-state-changed", to: unsafeBitCast(stateChanged, to: GCallback.self), this)
        attach()
        relays = AgentRelays(
            servers, loop: loop, agent: agent, stream: stream,
            hasFour: scope.addresses.contains { !$0.contains(":") }, timeout: relayTimeout,
            onEnd: { [unowned self] in reportEnd() },
            onProblem: { [unowned self] in self.events(.impossible($0)) })
    }

    /// Sets the STUN server that tells this end its public address. libnice has one.
    private static func setReflector(_ agent: OpaquePointer, _ servers: [ICEServer]) {
        guard let usable = reflector(among: servers) else { return }
        nice_agent_set_text(agent, "stun-server", usable.host)
        nice_agent_set_number(agent, "stun-server-port", guint(usable.port))
    }

    /// The first STUN server that this end may ask.
    static func reflector(among servers: [ICEServer]) -> ICEServer? {
        servers.first { server in
            guard server.kind == .stun else { return false }
            // libnice resolves names itself, and only this end's user may name any host.
            guard server.origin != .configured else { return true }
            return AddressScope(server.host) != nil && (try? RelayAccess.addresses(of: server)) != nil
        }
    }

    deinit {
        assert(!isOpen, "an ICE agent must be closed before it is released")
    }

    /// Opens the sockets. The candidates follow as events. Throws if it cannot listen on any address.
    func gather() throws(TransportError) {
        try relays?.begin()
        guard nice_agent_gather_candidates(agent, stream) != 0 else {
            throw TransportError(
                code: "transport.no-address",
                message: "No UDP port could be opened on any listen address. Check the addresses and the limit on "
                    + "open files.")
        }
        enlargeSocketBuffers()
    }

    /// Sets the peer's credentials, and tries the candidates that arrived before them.
    func setRemote(ufrag: String, password: String) -> Bool {
        guard nice_agent_set_remote_credentials(agent, stream, ufrag, password) != 0 else { return false }
        hasRemoteCredentials = true
        for candidate in earlyCandidates { tryCandidate(candidate) }
        earlyCandidates = []
        if remoteHasEnded { remoteCandidatesEnded() }
        return true
    }

    /// Tries another address of the peer. Unusable candidates are counted and ignored (RFC 8839, section 5.1).
    func addRemoteCandidate(_ attribute: String) {
        guard isOpen, remoteCandidates.values.reduce(0, +) < Self.remoteCandidateLimit,
            let candidate = try? CandidateAttribute(attribute), candidate.scope.isOpen(to: scopes),
            remoteCandidates[candidate.address, default: 0] < Self.remoteCandidateLimitPerAddress
        else {
            ignoredCandidates += 1
            return
        }
        remoteCandidates[candidate.address, default: 0] += 1
        if hasRemoteCredentials { tryCandidate(candidate) } else { earlyCandidates.append(candidate) }
    }

    private func tryCandidate(_ candidate: CandidateAttribute) {
        guard let parsed = nice_agent_parse_remote_candidate_sdp(agent, stream, "a=" + candidate.text) else {
            ignoredCandidates += 1
            return
        }
        let list = g_slist_append(nil, parsed)
        nice_agent_set_remote_candidates(agent, stream, Self.component, list)
        g_slist_free(list)
        nice_candidate_free(parsed)
    }

    func remoteCandidatesEnded() {
        guard isOpen else { return }
        remoteHasEnded = true
        guard hasRemoteCredentials else { return }
        nice_agent_peer_candidate_gathering_done(agent, stream)
    }

    func send(_ fill: (inout DatagramBatch) -> Void) -> (sent: Int, refused: Int) {
        guard isOpen, !hasLostConsent else { return loop.refuse(fill) }
        return loop.withBatch(fill) { loop.outbox.send($0, agent: agent, stream: stream) }
    }

    /// The local and the remote address in use, as `address:port`.
    var selectedPair: (local: String, remote: String)? {
        var local: UnsafeMutablePointer<NiceCandidate>?
        var remote: UnsafeMutablePointer<NiceCandidate>?
        guard isOpen, nice_agent_get_selected_pair(agent, stream, Self.component, &local, &remote) != 0, let local,
            let remote
        else { return nil }
        return (Self.text(of: &local.pointee.addr), Self.text(of: &remote.pointee.addr))
    }

    var relayProblem: TransportError? { relays?.hasRelay == false ? relays?.problem : nil }
    var hasRelay: Bool { relays?.hasRelay == true }

    var route: MediaRoute? {
        var local: UnsafeMutablePointer<NiceCandidate>?
        var remote: UnsafeMutablePointer<NiceCandidate>?
        guard isOpen, nice_agent_get_selected_pair(agent, stream, Self.component, &local, &remote) != 0, let local,
            let remote
        else { return nil }
        let kind = Self.kind(of: local.pointee.type)
        let server = kind == .relayed ? relays?.server(ofPriority: local.pointee.priority) : nil
        return MediaRoute(
            local: kind, remote: Self.kind(of: remote.pointee.type), transport: server?.relayTransport ?? .udp,
            relay: server?.place)
    }

    private static func kind(of type: NiceCandidateType) -> MediaRoute.Kind {
        switch type {
        case NICE_CANDIDATE_TYPE_SERVER_REFLEXIVE: .serverReflexive
        case NICE_CANDIDATE_TYPE_PEER_REFLEXIVE: .peerReflexive
        case NICE_CANDIDATE_TYPE_RELAYED: .relayed
        default: .host
        }
    }

    /// Closes the sockets. Must not be called inside of the closures passed to init.
    func close() {
        guard isOpen else { return }
        isOpen = false
        let hasRelay = relays?.hasRelay == true
        let tunnels = relays?.close() ?? []
        relays = nil
        events = { _ in }
        datagrams = { _ in }
        for handler in handlers { g_signal_handler_disconnect(UnsafeMutableRawPointer(agent), handler) }
        nice_agent_attach_recv(agent, stream, Self.component, loop.context, nil, nil)
        guard hasRelay || !tunnels.isEmpty else {
            nice_agent_remove_stream(agent, stream)
            g_object_unref(UnsafeMutableRawPointer(agent))
            return
        }
        // Frees the allocations first, for which libnice needs the agent: a round trip, or some seconds to a dead server.
        let farewell = Unmanaged.passRetained(Farewell(stream: stream, tunnels: tunnels)).toOpaque()
        g_main_context_push_thread_default(loop.context)
        nice_agent_close_async(agent, hasFreed, farewell)
        g_main_context_pop_thread_default(loop.context)
    }

    /// The stream and the tunnels that an agent still needs after its end, to free its allocations.
    fileprivate final class Farewell {
        let stream: guint
        let tunnels: [RelayTunnel]

        init(stream: guint, tunnels: [RelayTunnel]) { (self.stream, self.tunnels) = (stream, tunnels) }
    }

    // MARK: - Local addresses

    /// Adds the listen addresses, and returns the scopes of the addresses that may be tried.
    private static func listen(
        _ agent: OpaquePointer, on scope: ListeningScope
    ) throws(TransportError) -> Set<AddressScope> {
        var scopes: Set<AddressScope> = []
        for text in scope.addresses.prefix(localAddressLimit) {
            var address = NiceAddress()
            nice_address_init(&address)
            guard nice_address_set_from_string(&address, text) != 0,
                nice_agent_add_local_address(agent, &address) != 0
            else {
                throw TransportError(
                    code: "transport.no-address",
                    message: "\(text) is not a listen address. Use a literal IPv4 or IPv6 address.")
            }
            if let own = AddressScope(text) { scopes.insert(own) }
        }
        return scope == .anyTryingNoLoopback ? scopes.filter { if case .loopback = $0 { false } else { true } } : scopes
    }

    /// Enlarges the socket buffers. By default, Linux queues about ninety packets, less than one keyframe. With
    /// CAP_NET_ADMIN, all of it is granted, otherwise up to net.core.rmem_max and wmem_max.
    private func enlargeSocketBuffers() {
        guard let sockets = nice_agent_get_sockets(agent, stream, Self.component) else { return }
        defer { g_ptr_array_unref(sockets) }
        for index in 0..<Int(sockets.pointee.len) {
            guard let item = sockets.pointee.pdata[index] else { continue }
            let descriptor = g_socket_get_fd(item.assumingMemoryBound(to: GSocket.self))
            for (forced, plain) in [(SO_RCVBUFFORCE, SO_RCVBUF), (SO_SNDBUFFORCE, SO_SNDBUF)] {
                var size = Self.socketBuffer
                let length = socklen_t(MemoryLayout<Int32>.size)
                if setsockopt(descriptor, SOL_SOCKET, forced, &size, length) != 0 {
                    setsockopt(descriptor, SOL_SOCKET, plain, &size, length)
                }
            }
        }
    }

    private static func text(of address: inout NiceAddress) -> String {
        var buffer = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        nice_address_to_string(&address, &buffer)
        let host = buffer.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } } ?? ""
        let port = nice_address_get_port(&address)
        return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    // MARK: - Called from C

    private func connect(_ signal: String, to callback: GCallback, _ this: UnsafeMutableRawPointer) {
        handlers.append(
            g_signal_connect_data(
                UnsafeMutableRawPointer(agent), signal, callback, this, nil, GConnectFlags(rawValue: 0)))
    }

    fileprivate func found(_ candidate: UnsafeMutablePointer<NiceCandidate>) {
        loop.preconditionOnLoop()
        guard let line = nice_agent_generate_local_candidate_sdp(agent, candidate) else { return }
        defer { g_free(line) }
        let text = String(cString: line)
        if candidate.pointee.type == NICE_CANDIDATE_TYPE_RELAYED { relays?.found() }
        events(.localCandidate(text.hasPrefix("a=") ? String(text.dropFirst(2)) : text))
    }

    fileprivate func gathered() {
        loop.preconditionOnLoop()
        relays?.gathered()
    }

    /// libnice may find more addresses when a TURN server's own is known.
    private func reportEnd() {
        guard !hasReportedEnd else { return }
        hasReportedEnd = true
        events(.gatheringDone)
    }

    fileprivate func changed(to state: NiceComponentState) {
        loop.preconditionOnLoop()
        switch state {
        case NICE_COMPONENT_STATE_CONNECTED, NICE_COMPONENT_STATE_READY:
            // libnice would wake up at every `pacing` for five more seconds to check whether a component has failed,
            // which is pointless with a pair in use.
            nice_agent_set_number(agent, "idle-timeout", Self.idleTimeout)
            relays?.connected()
            hasLostConsent = false
            events(.connected)
        case NICE_COMPONENT_STATE_FAILED: failed()
        default: break
        }
    }

    /// No pair works any longer, or none has worked so far. libnice would go on sending to the selected one.
    func failed() {
        hasLostConsent = true
        events(.failed)
    }

    @inline(__always)
    fileprivate func received(_ datagram: Span<UInt8>) {
        loop.preconditionOnLoop()
        loop.readClock()
        if sharedTurn != loop.turn {
            sharedTurn = loop.turn
            share = TurnShare(of: EventLoop.datagramShare, at: loop.turnClock())
        }
        datagrams(datagram)
        guard isOpen else { return }
        let mayGoOn = share.spend(at: loop.turnClock())
        loop.busiest.datagrams = max(loop.busiest.datagrams, share.used)
        if !mayGoOn { pause() }
        loop.countDatagram()
    }

    /// Stops libnice from reading a socket until it is empty, which a fast sender could prevent. Without a receiver,
    /// libnice stops after the present datagram and leaves the others in the socket.
    private func pause() {
        nice_agent_attach_recv(agent, stream, Self.component, loop.context, nil, nil)
        loop.resumeNextTurn(self)
    }

    func resume() {
        if isOpen { attach() }
    }

    private func attach() {
        nice_agent_attach_recv(
            agent, stream, Self.component, loop.context, datagramReceived, Unmanaged.passUnretained(self).toOpaque())
    }
}

private func agent(_ data: gpointer?) -> ICEAgent? {
    data.map { Unmanaged<ICEAgent>.fromOpaque($0).takeUnretainedValue() }
}

private let candidateFound: @convention(c) (OpaquePointer?, UnsafeMutablePointer<NiceCandidate>?, gpointer?) -> Void = {
    _, candidate, data in
    if let candidate { agent(data)?.found(candidate) }
}

private let gatheringDone: @convention(c) (OpaquePointer?, guint, gpointer?) -> Void = { _, _, data in
    agent(data)?.gathered()
}

private let stateChanged: @convention(c) (OpaquePointer?, guint, guint, guint, gpointer?) -> Void = {
    _, _, _, state, data in
    agent(data)?.changed(to: NiceComponentState(rawValue: state))
}

private let hasFreed: GAsyncReadyCallback = { agent, _, data in
    guard let agent, let data else { return }
    let farewell = Unmanaged<ICEAgent.Farewell>.fromOpaque(data).takeRetainedValue()
    nice_agent_remove_stream(OpaquePointer(agent), farewell.stream)
    g_object_unref(UnsafeMutableRawPointer(agent))
    for tunnel in farewell.tunnels { tunnel.close() }
}

private func datagramReceived(
    _: OpaquePointer?, _: guint, _: guint, count: guint, bytes: UnsafeMutablePointer<gchar>?, data: gpointer?
) {
    let datagram = UnsafeRawBufferPointer(start: bytes, count: Int(count)).bindMemory(to: UInt8.self)
    agent(data)?.received(datagram.span)
}
