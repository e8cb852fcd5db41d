internal import Foundation
internal import ICELite
internal import PeerLoop
internal import PeerSession
internal import RTP
internal import RoomProtocol
internal import ServerCore

/// The room server: the product's rooms and sessions, with a port and connections of the simulation.
final class SimulatedServer {
    static let address = TransportAddress(ipv4: 0xc000_0201, port: 7880)

    /// From one loop to another.
    private static let hop = TimeInterval.microseconds(100)

    private var random: RandomSource
    /// Empty while the server does not run.
    private var loops: [ServerLoop] = []
    private let count: Int
    private let numbers = StreamNumbers()
    private var connections: [ServerConnection] = []
    /// Whether no loop accepts a batch of another one.
    var refusesPipes = false
    /// Batches from one loop to another, while they are held.
    private var held: [() -> Void]?
    /// The packets that left one loop for another.
    private(set) var piped = (packets: 0, bytes: 0)
    /// The bytes of packets that may be on their way from one loop to another. Nil means the product's number.
    var window: Int?
    private unowned let simulation: World

    /// - Parameter loops: how many loops it has. A client is on the loop of its number.
    init(seed: UInt64, loops: Int, in simulation: World) {
        random = RandomSource(seed: seed)
        count = loops
        self.simulation = simulation
    }

    /// How many sessions the ports have.
    var sessions: Int { loops.reduce(0) { $0 + $1.port.sessions } }
    var participants: Int { loops.reduce(0) { $0 + $1.rooms.counts.participants } }
    var notPiped: Int { loops.reduce(0) { $0 + $1.rooms.counts.notPiped } }
    var rooms: [Int] { loops.map(\.rooms.counts.rooms) }

    /// Starts the server. Does nothing while it runs.
    func start() {
        guard loops.isEmpty else { return }
        for place in 0..<count {
            let loop = place == 0 ? simulation.loop : FurtherLoop(of: simulation.loop)
            let address = TransportAddress(ipv4: 0xc000_0201, port: Self.address.port + UInt16(place))
            let port = ServerPort(loop: loop, address: address, seed: random.next()) {
                [unowned simulation] datagram, to in simulation.deliver(datagram, toClientAt: to)
            }
            let settings = SessionSettings(loop: loop, random: RandomSource(seed: random.next())) {
                [unowned self, unowned port] _, _ in makePeer(port, on: loop)
            }
            let rooms = Rooms(settings: settings, numbers: numbers, links: links(of: place)) { _ in }
            loops.append(ServerLoop(loop, port: port, rooms: rooms))
        }
    }

    private func links(of place: Int) -> LoopLinks {
        var links = LoopLinks(
            place: place, others: { [count] _ in Array(0..<count) },
            send: { [unowned self] batch, loop in
                guard !refusesPipes else { return false }
                // After the end of the server's process, nothing leaves.
                if !loops.isEmpty { pass(batch, to: loops[loop]) }
                return true
            })
        if let window { links.window = window }
        return links
    }

    private func pass(_ batch: PipeBatch, to loop: ServerLoop) {
        piped.packets += batch.packetCount
        piped.bytes += batch.byteCount
        let deliver = { loop.turn { loop.rooms.receive(batch) } }
        if held != nil { held?.append(deliver) } else { simulation.after(Self.hop, deliver) }
    }

    /// Holds all batches between the loops, as if both were busy, or delivers them.
    func holdPipes(_ holds: Bool) {
        for deliver in held ?? [] { simulation.after(Self.hop, deliver) }
        held = holds ? [] : nil
    }

    private func makePeer(_ port: ServerPort, on loop: Loop) -> Peer {
        let session = simulation.makeSession(cname: SessionSettings.cname, name: random.next())
        do throws(TransportError) {
            return try Peer(loop: loop, session: session, connectTimeout: .seconds(15)) {
                ServerPath(port: port, events: $0, datagrams: $1)
            }
        } catch {
            preconditionFailure("a simulated path opens always: \(error)")
        }
    }

    /// Ends the server's process: connections break, and nothing is sent.
    func kill() {
        guard !loops.isEmpty else { return }
        for loop in loops { loop.port.isDead = true }
        // TCP tells the clients.
        for connection in connections { connection.end() }
        for loop in loops { loop.turn { loop.rooms.close() } }
        forget()
    }

    private func forget() {
        let old = (loops, connections)
        loops = []
        connections = []
        // The ends of turn of the old peers come first.
        simulation.after(.zero) {
            for loop in old.0 { loop.end() }
            _ = old
        }
    }

    // MARK: - From the network

    func receive(_ datagram: Span<UInt8>, from remote: TransportAddress) {
        guard !loops.isEmpty, let number = World.number(ofClientAt: remote) else { return }
        loops[number % count].receive(datagram, from: remote)
    }

    /// A client connects. Nil if the server does not run.
    func connect(_ client: SimulatedClient) -> ServerConnection? {
        guard !loops.isEmpty else { return nil }
        let connection = ServerConnection(client, loop: loops[client.number % count], simulation: simulation)
        connections.removeAll { $0.isEnding }
        connections.append(connection)
        return connection
    }
}

/// The server's end of a signalling connection.
final class ServerConnection: ClientConnection {
    let place = ClientPlace.elsewhere
    private(set) var isEnding = false
    private var hasJoined = false
    private let loop: ServerLoop
    private unowned let client: SimulatedClient
    private unowned let simulation: World
    private var liveness: ClientLiveness
    private lazy var watch = simulation.loop.makeTimer { [unowned self] in check() }
    /// Delivers to this connection's client only.
    let number: Int

    init(_ client: SimulatedClient, loop: ServerLoop, simulation: World) {
        self.client = client
        self.loop = loop
        self.simulation = simulation
        number = client.nextConnection()
        liveness = ClientLiveness(now: simulation.loop.now)
        watch.arm(at: simulation.loop.now + ClientLiveness.pingInterval)
    }

    // MARK: - Towards the client

    func send(_ message: ServerMessage, answering id: Int?) {
        deliver(.text(Envelope(id: id, message).json()))
    }

    func didJoin() { hasJoined = true }

    func didNotJoin() {}

    func close(_ closing: Closing) {
        send(.closed(closing), answering: nil)
        end()
    }

    func end() {
        guard !isEnding else { return }
        deliver(.closed)
        isEnding = true
        watch.disarm()
    }

    private func deliver(_ input: PipeInput) {
        guard !isEnding else { return }
        client.deliverDown(input, of: number)
    }

    private func check() {
        switch liveness.verdict(now: simulation.loop.now, hasJoined: hasJoined) {
        case .alive: break
        case .gone: return lose()
        case .askForMedia:
            liveness.heardMedia(at: loop.rooms.lastMedia(from: self))
            if simulation.loop.now >= liveness.silenceEnds { return lose() }
        }
        deliver(.ping)
        let now = simulation.loop.now
        // The end of the silence comes first if it is before the next ping.
        let end = liveness.silenceEnds > now ? liveness.silenceEnds : .never
        watch.arm(at: min(now + ClientLiveness.pingInterval, end))
    }

    /// The client is silent.
    private func lose() {
        end()
        loop.turn { loop.rooms.disconnected(self) }
    }

    // MARK: - From the client

    func receive(_ input: PipeInput) {
        guard !isEnding || input == .closed else { return }
        liveness.heard(now: simulation.loop.now)
        switch input {
        case .ping: break
        case .closed:
            if !isEnding {
                isEnding = true
                watch.disarm()
            }
            loop.turn { loop.rooms.disconnected(self) }
        case .text(let text): handle(text)
        }
    }

    private func handle(_ text: String) {
        do throws(MessageRefused) {
            let envelope = try Envelope<ClientMessage>(json: Data(text.utf8))
            if case .ping = envelope.message, hasJoined { return send(.pong, answering: envelope.id) }
            loop.turn {
                loop.rooms.handle(ClientRequest(envelope), from: self, admission(envelope.message))
            }
        } catch {
            guard !error.isNews else { return }
            send(.error(Problem(error.error)), answering: error.id)
        }
    }

    private func admission(_ message: ClientMessage) -> Admission? {
        guard case .join(let join) = message, let room = try? RoomName(join.room) else { return nil }
        return Admission(room: room) {}
    }
}

/// One piece of input of a signalling connection.
enum PipeInput: Equatable {
    case text(String)
    /// A WebSocket ping or pong.
    case ping
    case closed
}
