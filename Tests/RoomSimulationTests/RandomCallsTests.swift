import RTP
import RoomSimulation
import TestSupport
import Testing

/// Rooms whose applications make random calls. `make soak STAGES=random` runs 10,000 of them.
struct RandomCallsTests {
    @Test(arguments: 0..<8)
    func `after random calls, everyone gets what it asked for, and nothing else`(part: Int) throws {
        for seed in 1...UInt64(3) {
            var room = RandomCalls()
            room.rounds = 8
            room.loops = part.isMultiple(of: 2) ? 1 : 3
            let outcome = try room.run(seed: UInt64(part) * 1000 + seed)
            #expect(outcome.calls >= room.rounds, "seed \(seed)")
        }
    }

    /// Each has broken a promise: packets of a client that was leaving, old frames of paused videos, old frames from before a
    /// gap, timestamps by arrivals instead of clocks, and a layer that was not left as long as packets overtook each other.
    @Test(
        arguments: [
            1_000_031, 1_000_231, 1_000_317, 1_001_549, 1_002_858, 1_003_282, 1_003_480, 3_009_652, 6_001_074,
            7_004_150, 7_005_262, 7_006_885, 7_008_943, 8_006_227,
        ] as [UInt64])
    func `random calls that have once broken a promise keep it`(seed: UInt64) throws {
        var room = RandomCalls()
        room.loops = seed.isMultiple(of: 3) ? 3 : 1
        #expect(try room.run(seed: seed).framesShown > 0)
    }

    @Test func `calls on one video that do not wait for each other take effect in their order`() throws {
        let simulation = Simulation(seed: 3)
        defer { simulation.end() }
        let (ada, grace) = (simulation.client("ada"), simulation.client("grace", link: .cellular))
        let returned = Collected<Int>()
        simulation.task {
            for client in [ada, grace] { try await client.join("kitchen") }
            let video = try await ada.publish()
            try await grace.wait { $0.streams.map(\.id) == [video] }
            for round in 0..<4 {
                simulation.task("subscribe \(round)") {
                    try await grace.subscribe(to: video)
                    returned.append(round)
                }
                try await simulation.sleep(for: .milliseconds(1))
                guard round < 3 else { break }
                simulation.task("unsubscribe \(round)") { try await grace.unsubscribe(from: video) }
                try await simulation.sleep(for: .milliseconds(round == 1 ? 500 : 1))
                #expect(round != 1 || grace.watched.isEmpty)
            }
            try await grace.wait { $0.framesShown(of: video) > 25 }
            #expect(grace.watched == [video])
        }
        try simulation.run(for: .seconds(20))
        #expect(returned.all == [0, 1, 2, 3])
        #expect(grace.watched.count == 1)
    }

    @Test func `random calls repeat with their seed`() throws {
        let outcome = try RandomCalls().run(seed: 5)
        #expect(try outcome == RandomCalls().run(seed: 5))
        #expect(outcome.framesShown > 0)
    }
}
