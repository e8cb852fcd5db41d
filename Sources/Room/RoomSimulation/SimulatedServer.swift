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

    private var random: RandomSource
    private(set) var port: ServerPort?
    private(set) var rooms: Rooms?
    private let numbers = StreamNumbers()
    private var connections: [ServerConnection] = []
    private unowned let simulation: World

    init(seed: UInt64, in simulation: World) {
        random = RandomSource(seed: seed)
        self.simulation = simulation
    }

    /// How many sessions the port has.
    var sessions: Int { port?.sessions ?? 0 }
    var participants: Int { rooms?.counts.participants ?? 0 }

    /// Starts the server. Does nothing while it runs.
    func start() {
        guard rooms == nil else { return }
        let port = ServerPort(loop: simulation.loop, address: Self.address, seed: random.next()) {
            [unowned simulation] datagram, to in simulation.deliver(datagram, toClientAt: to)
        }
        self.port = port
        let settings = SessionSettings(loop: simulation.loop, random: RandomSource(seed: random.next())) {
            [unowned self, unowned port] _, _ in makePeer(port)
        }
        rooms = Rooms(settings: settings, numbers: numbers) { _ in }
    }

    private func makePeer(_ port: ServerPort) -> Peer {
        let session = simulation.makeSession(cname: SessionSettings.cname, name: random.next())
        do throws(TransportError) {
            return try Peer(loop: simulation.loop, session: session, connectTimeout: .seconds(15)) {
                ServerPath(port: port, events: $0, datagrams: $1)
            }
        } catch {
            preconditionFailure("a simulated path opens always: \(error)")
        }
    }

    /// Ends the server's process: connections break, and nothing is sent.
    func kill() {
        guard rooms != nil else { return }
        port?.isDead = true
        // TCP tells the clients.
        for connection in connections { connection.end() }
        rooms?.close()
        forget()
    }

    private func forget() {
        let old = (rooms, port, connections)
        rooms = nil
        port = nil
        connections = []
        // The ends of turn of the old peers come first.
        simulation.after(.zero) {
            old.1?.end()
            _ = old
        }
    }

    // MARK: - From the network

    func receive(_ datagram: Span<UInt8>, from remote: TransportAddress) { port?.receive(datagram, from: remote) }

    /// A client connects. Nil if the server does not run.
    func connect(_ client: SimulatedClient) -> ServerConnection? {
        guard let rooms else { return nil }
        let connection = ServerConnection(client, rooms: rooms, simulation: simulation)
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
    private let rooms: Rooms
    private unowned let client: SimulatedClient
    private unowned let simulation: World
    private var liveness: ClientLiveness
    private lazy var watch = simulation.loop.makeTimer { [unowned self] in check() }
    /// Delivers to this connection's client only.
    let number: Int

    init(_ client: SimulatedClient, rooms: Rooms, simulation: World) {
        self.client = client
        self.rooms = rooms
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
            liveness.heardMedia(at: rooms.lastMedia(from: self))
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
        rooms.disconnected(self)
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
            rooms.disconnected(self)
        case .text(let text): handle(text)
        }
    }

    private func handle(_ text: String) {
        do throws(MessageRefused) {
            let envelope = try Envelope<ClientMessage>(json: Data(text.utf8))
            if case .ping = envelope.message, hasJoined { return send(.pong, answering: envelope.id) }
            rooms.handle(ClientRequest(envelope), from: self, admission(envelope.message))
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
