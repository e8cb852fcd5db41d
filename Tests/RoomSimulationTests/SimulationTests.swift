import RTP
import RoomSimulation
import Testing

struct SimulationTests {
    /// Two clients: the first publishes, the second watches.
    private func call(seed: UInt64, link: Link = .wifi) -> (Simulation, ada: SimulatedClient, grace: SimulatedClient) {
        let simulation = Simulation(seed: seed)
        let ada = simulation.client("ada", link: link)
        let grace = simulation.client("grace", link: link)
        simulation.task {
            try await ada.join("kitchen")
            let video = try await ada.publish()
            try await grace.join("kitchen")
            try await grace.subscribe(to: video)
        }
        return (simulation, ada, grace)
    }

    @Test func `a subscriber sees every frame of a publisher on a link without loss`() throws {
        let (simulation, _, grace) = call(seed: 1, link: .wired)
        let report = try simulation.run(for: .seconds(10))
        let viewer = try #require(report.viewers.first)
        #expect(grace.isConnected)
        #expect(viewer.shown > 240)
        #expect(viewer.skippedPackets == 0)
        #expect(viewer.longestFreeze <= .milliseconds(50))
    }

    @Test func `the same seed gives the same datagrams, and another seed gives others`() throws {
        func digest(_ seed: UInt64) throws -> UInt64 { try call(seed: seed).0.run(for: .seconds(20)).digest }
        let first = try digest(7)
        #expect(try digest(7) == first)
        #expect(try digest(8) != first)
    }
}
