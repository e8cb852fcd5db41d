internal import ICELite
internal import PeerLoop
internal import RTP
internal import RoomProtocol
internal import ServerCore

/// The room server, which may be killed and started again.
final class SimulatedServer {
    private(set) var process: ServerProcess?
    private(set) var disturbance = Disturbance()
    private var random: RandomSource
    private let numbers = StreamNumbers()
    private let spreadsRooms: Bool
    let hops: LoopHops
    private unowned let simulation: World

    /// - Parameter spreadsRooms: whether a client is on the loop of its number. Otherwise, a room is on one loop.
    init(seed: UInt64, spreadsRooms: Bool, in simulation: World) {
        random = RandomSource(seed: seed)
        self.spreadsRooms = spreadsRooms
        hops = LoopHops(in: simulation)
        self.simulation = simulation
    }

    /// The address of a loop's port.
    static func address(of loop: Int) -> TransportAddress {
        TransportAddress(ipv4: 0xc000_0201, port: UInt16(7880 + loop))
    }

    /// How many sessions the ports have.
    var sessions: Int { process?.sessions ?? 0 }
    var participants: Int { process?.participants ?? 0 }

    /// Starts the server. Does nothing while it runs.
    func start() {
        guard process == nil else { return }
        process = ServerProcess(
            seed: random.next(), numbers: numbers, spreadsRooms: spreadsRooms, hops: hops, in: simulation)
        disturbance.isOngoing = false
        disturbance.note(simulation.loop.now)
    }

    /// Ends the server's process.
    func kill() {
        guard let process else { return }
        disturbance.isOngoing = true
        process.kill()
        self.process = nil
        simulation.after(.zero) { process.close() }
    }
}
