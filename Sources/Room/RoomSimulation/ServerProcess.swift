internal import ICELite
internal import PeerLoop
internal import PeerSession
internal import RTP
internal import RoomProtocol
internal import ServerCore

/// One run of the server's process: the rooms and the port of each of its loops.
final class ServerProcess {
    private struct Shard {
        let port: ServerPort
        let rooms: Rooms
    }

    private var shards: [Shard] = []
    /// The loop of each room, by its place. A room stays there.
    private var placed: [RoomName: Int] = [:]
    private var connections: [ServerConnection] = []
    /// The client whose message is being handled. It numbers its own sessions, so that clients of other rooms do not change
    /// their random numbers.
    private var handled: SimulatedClient?
    private var isDead = false
    /// Wrong secrets of clients that wanted to resume.
    var wrongSecrets = 0
    private let spreadsRooms: Bool
    private unowned let simulation: World

    init(seed: UInt64, numbers: StreamNumbers, spreadsRooms: Bool, hops: LoopHops, in simulation: World) {
        self.spreadsRooms = spreadsRooms
        self.simulation = simulation
        var random = RandomSource(seed: seed)
        for (index, loop) in simulation.loops.enumerated() {
            let port = ServerPort(
                loop: loop, address: SimulatedServer.address(of: index), seed: random.next()
            ) { [unowned simulation] datagram, to in simulation.deliver(datagram, toClientAt: to) }
            let settings = SessionSettings(loop: loop, random: RandomSource(seed: random.next())) {
                [unowned self, unowned port] _, _ in makePeer(port, on: loop)
            }
            let links =
                spreadsRooms
                ? hops.links(of: index, count: simulation.loops.count) { [weak self] in self?.rooms(at: $0) } : .none
            let rooms = Rooms(
                settings: settings, numbers: numbers, links: links,
                record: { [unowned self] stream throws(RoomError) in try record(stream) }, note: { _ in })
            shards.append(Shard(port: port, rooms: rooms))
        }
    }

    private func record(_ stream: RecordedStream) throws(RoomError) -> any RecordingSink {
        guard let log = simulation.recordingLog else {
            throw RoomError(.recordingUnavailable, "The simulation does not record.")
        }
        return LoggedRecording(stream, to: log)
    }

    var sessions: Int { shards.reduce(0) { $0 + $1.port.sessions } }
    var participants: Int { shards.reduce(0) { $0 + $1.rooms.counts.participants } }
    var memory: PacketMemory {
        shards.reduce(into: PacketMemory()) { $0 += $1.rooms.memory }
    }

    private func rooms(at place: Int) -> Rooms? { isDead ? nil : shards[place].rooms }

    /// How many rooms each loop has.
    var roomCounts: [Int] { shards.map(\.rooms.counts.rooms) }
    /// Packets that did not fit into a pipe.
    var notPiped: Int { shards.reduce(0) { $0 + $1.rooms.counts.notPiped } }

    /// The rooms of the loop on which this client joins this room. A new one is placed on the loop with the fewest
    /// participants, as the product does.
    func rooms(with name: RoomName, for client: SimulatedClient) -> Rooms {
        guard !spreadsRooms else { return shards[client.number % shards.count].rooms }
        let least = shards.indices.min {
            shards[$0].rooms.counts.participants < shards[$1].rooms.counts.participants
        }
        let place = placed[name] ?? least ?? 0
        placed[name] = place
        return shards[place].rooms
    }

    /// The rooms that keep a participant.
    func rooms(of participant: String) -> Rooms? { shards.first { $0.rooms.has(participant) }?.rooms }

    /// The rooms of the first loop, which refuse messages of clients that have not joined.
    var anyRooms: Rooms { shards[0].rooms }

    /// Handles a message of a client.
    func handle(_ client: SimulatedClient, _ body: () -> Void) {
        handled = client
        defer { handled = nil }
        body()
    }

    private func makePeer(_ port: ServerPort, on loop: Loop) -> Peer {
        guard let handled else { preconditionFailure("a client's message makes each session") }
        let session = simulation.makeSession(
            cname: SessionSettings.cname, name: handled.nextSession(), isServer: true)
        do throws(TransportError) {
            return try Peer(
                loop: loop, session: session, connectTimeout: .seconds(15), pathTimeout: SessionSettings.defaultGrace
            ) {
                ServerPath(port: port, events: $1, datagrams: $2)
            }
        } catch {
            preconditionFailure("a simulated path opens always: \(error)")
        }
    }

    func receive(_ datagram: Span<UInt8>, at port: UInt16, from remote: TransportAddress) {
        let place = Int(port) - Int(SimulatedServer.address(of: 0).port)
        if shards.indices.contains(place) { shards[place].port.receive(datagram, from: remote) }
    }

    func connect(_ client: SimulatedClient) -> ServerConnection {
        let connection = ServerConnection(client, process: self, simulation: simulation)
        connections.removeAll { $0.isEnding }
        connections.append(connection)
        return connection
    }

    /// See `Rooms.layers`, for each loop.
    var layers: [[ServerStatistics.Layer]] { shards.map(\.rooms.layers) }

    /// When the server last left a frame of a stream out for a client, because its link had no room. `.zero` if it never did.
    func lastLeftOut(of stream: Int, for client: SimulatedClient) -> MonotonicTime {
        connections.last { $0.belongs(to: client) }?.lastLeftOut(of: stream) ?? .zero
    }

    /// Ends the process: connections break, and nothing is sent.
    func kill() {
        for shard in shards { shard.port.isDead = true }
        isDead = true
        // TCP tells the clients.
        for connection in connections { connection.end() }
        for shard in shards { shard.rooms.close() }
        connections = []
    }

    /// Call it in a later turn than `kill`: the ends of turn of the peers come first.
    func close() {
        for shard in shards { shard.port.end() }
    }
}
