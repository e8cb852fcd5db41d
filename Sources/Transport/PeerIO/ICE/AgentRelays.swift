internal import CNice
internal import Dispatch
internal import PeerLoop
internal import RTP

/// The TURN servers of one ICE agent: finds their addresses, gives them to libnice, and knows why none works. On the loop
/// only.
///
/// libnice keeps the first relayed address that it gets, so the servers come in stages: UDP, then TCP, then TLS. A stage
/// begins if the ones before have given nothing in time, and the agent is not connected by then. So a direct way costs no
/// allocation.
///
/// Names, TLS and trials of servers block, so they have threads of their own.
final class AgentRelays {
    /// How long a direct way may take before the first stage, if one is allowed.
    private static let headStart = TimeInterval.milliseconds(300)
    /// From one stage to the next.
    private static let stage = TimeInterval.milliseconds(400)
    /// The limit of each wait for a server in seconds.
    private static let stepLimit: UInt32 = 3
    private static let threads = DispatchQueue(label: "turn", attributes: .concurrent)

    let policy: ICEPolicy
    /// Why no server works, as far as it is known.
    var problem: TransportError? { problems.first }
    /// Whether libnice has got a relayed address.
    private(set) var hasRelay = false

    private let loop: EventLoop
    private let agent: OpaquePointer
    private let stream: UInt32
    private let servers: [ICEServer]
    /// The servers that libnice has, in its order.
    private var added: [ICEServer] = []
    private var tunnels: [RelayTunnel] = []
    private var problems: RelayProblems
    private let hasFour: Bool
    private let timeout: TimeInterval
    private var preparing = 0
    private var trials = 0
    /// The work of threads for this agent.
    private var works: [RelayWork] = []
    private var stages: [[ICEServer]] = []
    /// Whether the direct way still has its head start.
    private var isWaiting = false
    private var hasBegun = false
    private var isConnected = false
    private var isTested = false
    private var hasTimedOut = false
    private var isOpen = true
    private var timer: LoopTimer?
    /// Whether libnice has ended its search, as far as it has the servers.
    private var hasGathered = false
    private let onEnd: () -> Void
    private let onProblem: (TransportError) -> Void

    /// - Parameters:
    ///   - hasFour: whether the agent has an IPv4 address of its own.
    ///   - timeout: how long libnice may take for an allocation before this end asks the servers for the reason.
    ///   - onEnd: called when all addresses of this end are known.
    ///   - onProblem: called if there is no relay, and nothing else to use.
    init(
        _ servers: ICEServers, loop: EventLoop, agent: OpaquePointer, stream: UInt32, hasFour: Bool,
        timeout: TimeInterval, onEnd: @escaping () -> Void, onProblem: @escaping (TransportError) -> Void
    ) {
        self.servers = servers.servers.filter { $0.kind != .stun }
        problems = RelayProblems(self.servers)
        self.hasFour = hasFour
        self.timeout = timeout
        policy = servers.policy
        self.loop = loop
        self.agent = agent
        self.stream = stream
        self.onEnd = onEnd
        self.onProblem = onProblem
    }

    /// Adds the first servers, before libnice gathers. Throws if only relays are allowed, and there is none.
    func begin() throws(TransportError) {
        guard !servers.isEmpty || policy == .all else {
            throw TransportError(
                code: "turn.missing",
                message: "Only TURN servers may be used, but none is known. Name one, or let the room server name one.")
        }
        guard !hasBegun else { return }
        hasBegun = true
        stages = ICEServer.Transport.allCases.map { transport in servers.filter { $0.relayTransport == transport } }
            .filter { !$0.isEmpty }
        guard policy == .all, !stages.isEmpty else { return beginStage() }
        isWaiting = true
        timer = loop.schedule(after: Self.headStart) { [weak self] in
            self?.isWaiting = false
            self?.beginStage()
        }
    }

    /// Whether no further server is needed.
    private var isEnough: Bool { hasRelay || isConnected }

    /// Adds the servers of the next stage. Asks for the reason if there is none.
    private func beginStage() {
        guard isOpen, !isEnough, !stages.isEmpty else { return }
        let next = stages.removeFirst()
        for server in next {
            if let address = AddressScope.canonical(server.host), server.relayTransport == .udp {
                do throws(TransportError) {
                    _ = try RelayAccess.addresses(of: server)
                    add(server, at: address, server.port)
                } catch {
                    problems.note(error, of: server)
                }
            } else {
                preparing += 1
                prepare(server)
            }
        }
        timer?.disarm()
        timer = loop.schedule(after: stages.isEmpty ? timeout : Self.stage) { [weak self] in
            guard let self else { return }
            if stages.isEmpty { timedOut() } else { beginStage() }
        }
    }

    private func timedOut() {
        hasTimedOut = true
        test()
    }

    /// The agent has a pair, with or without a relay.
    func connected() {
        isConnected = true
        timer?.disarm()
        for work in works { work.cancel() }
        endIfSettled()
    }

    /// libnice has ended its search for addresses.
    func gathered() {
        hasGathered = true
        endIfSettled()
    }

    /// libnice has got a relayed address.
    func found() {
        hasRelay = true
        timer?.disarm()
        for work in works { work.cancel() }
    }

    /// Ends the work of these servers, except for the tunnels, which it returns: libnice still frees its allocations
    /// through them.
    func close() -> [RelayTunnel] {
        isOpen = false
        timer?.disarm()
        for work in works { work.cancel() }
        defer { tunnels = [] }
        return tunnels
    }

    /// The server of a relayed candidate, by the place in libnice's list that its priority has (bits 6 to 8 of the local
    /// preference).
    func server(ofPriority priority: UInt32) -> ICEServer? {
        let place = Int(priority >> 14 & 7)
        return added.indices.contains(place) ? added[place] : nil
    }

    private func add(_ server: ICEServer, at address: String, _ port: UInt16) {
        let type = server.relayTransport == .udp ? NICE_RELAY_TYPE_TURN_UDP : NICE_RELAY_TYPE_TURN_TCP
        guard added.count < ICEServer.limit,
            nice_agent_set_relay_info(
                agent, stream, ICEAgent.component, address, UInt32(port), server.username, server.credential, type) != 0
        else { return }
        added.append(server)
        hasGathered = false
    }

    // MARK: - Names and connections

    /// The addresses of a server, or a connection to it.
    private enum Prepared: Sendable {
        case addresses([String])
        case connected(RelayStream)
        case failed(TransportError)
    }

    /// Runs `body` on a thread, then `after` on the loop, unless these servers are closed by then.
    private func run<Outcome: Sendable>(
        _ body: @escaping @Sendable (RelayWork) -> Outcome, after: @escaping @Sendable (AgentRelays, Outcome) -> Void
    ) {
        let work = RelayWork()
        works.append(work)
        let this = LoopBound(self, loop: loop)
        Self.threads.async {
            let outcome = body(work)
            this.loop.execute {
                this.value.works.removeAll { $0 === work }
                if this.value.isOpen { after(this.value, outcome) }
            }
        }
    }

    private func prepare(_ server: ICEServer) {
        run { work in
            do throws(TransportError) {
                return server.relayTransport == .udp
                    ? .addresses(try RelayAccess.addresses(of: server, during: work))
                    : .connected(try RelayAccess.connect(to: server, seconds: Self.stepLimit, during: work))
            } catch {
                return .failed(error)
            }
        } after: {
            $0.prepared(server, $1)
        }
    }

    private func prepared(_ server: ICEServer, _ result: Prepared) {
        preparing -= 1
        switch result {
        // A way is there by now. This one would cost an allocation.
        case _ where isEnough: break
        case .addresses(let all):
            for address in RelayAccess.firstOfEachFamily(all) { add(server, at: address, server.port) }
        case .connected(let stream):
            if let tunnel = RelayTunnel(to: stream, from: hasFour ? "127.0.0.1" : "::1", on: loop) {
                tunnels.append(tunnel)
                add(server, at: tunnel.address, tunnel.port)
            }
        case .failed(let error): problems.note(error, of: server)
        }
        endIfSettled()
        guard isOpen, hasTimedOut, preparing == 0, !isEnough, !isTested else { return }
        timer = loop.schedule(after: timeout) { [weak self] in self?.timedOut() }
    }

    private func endIfSettled() {
        guard isOpen, preparing == 0, hasGathered || added.isEmpty, !isWaiting || isConnected else { return }
        if !isEnough, !stages.isEmpty { return beginStage() }
        onEnd()
        if !isEnough { test() }
    }

    // MARK: - Reasons

    /// Asks the servers why they give no relay, when none is being prepared any more.
    private func test() {
        guard isOpen, !isEnough, !isTested, preparing == 0, stages.isEmpty, !servers.isEmpty else { return }
        timer?.disarm()
        isTested = true
        for server in problems.untested {
            trials += 1
            run { work -> TransportError? in
                do throws(TransportError) {
                    _ = try RelayTest.run(server, seconds: Self.stepLimit, during: work)
                    return nil
                } catch {
                    return error
                }
            } after: {
                $0.tried(server, $1)
            }
        }
        report()
    }

    private func tried(_ server: ICEServer, _ problem: TransportError?) {
        trials -= 1
        problems.note(problem, of: server)
        report()
    }

    private func report() {
        guard trials == 0, !isEnough, let problem, policy == .relay else { return }
        onProblem(problem)
    }
}
