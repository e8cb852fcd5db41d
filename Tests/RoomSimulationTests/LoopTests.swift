import RTP
import RoomSimulation
import TestSupport
import Testing

/// A server with several loops places rooms on them. Clients of a room see the same as on one loop.
struct LoopTests {
    /// Two rooms of three clients each, with faults. All clients publish and watch each other.
    private func views(seed: UInt64, loops: Int) throws -> [SimulationReport.Viewer] {
        let simulation = Simulation(seed: seed, loops: loops)
        defer { simulation.end() }
        let links = [Link.cellular, .wifi, .wired]
        let clients = (0..<6).map { simulation.client("client \($0)", link: links[$0 % 3]) }
        for (number, client) in clients.enumerated() {
            simulation.task(client.name) {
                try await simulation.sleep(for: .milliseconds(Int64(number) * 137))
                try await client.join(number < 3 ? "kitchen" : "garden")
                try await client.publish()
                try await client.wait { $0.streams.count == 2 }
                for stream in client.streams { try await client.subscribe(to: stream.id) }
            }
        }
        simulation.after(.seconds(6)) { clients[1].cut() }
        simulation.after(.seconds(9)) { clients[1].reconnect() }
        simulation.after(.seconds(10)) { clients[4].setLoss(0.2) }
        simulation.after(.seconds(12)) { clients[2].restartSources() }
        simulation.after(.seconds(14)) { clients[3].kill() }
        return try simulation.run(for: .seconds(20)).viewers
    }

    @Test func `clients see the same frames at the same times on two loops as on one`() throws {
        for seed in 1...UInt64(Soak.rounds(2, soak: 100)) {
            let one = try views(seed: seed, loops: 1)
            let two = try views(seed: seed, loops: 2)
            #expect(one.count == 12)
            #expect(one.reduce(0) { $0 + $1.shown } > 3000)
            #expect(one == two, "seed \(seed)")
        }
    }
}
