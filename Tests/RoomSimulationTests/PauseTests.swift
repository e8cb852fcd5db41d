import RTP
import RoomProtocol
import TestSupport
import Testing

@testable import ClientCore
@testable import RoomSimulation

/// Videos that their viewers pause.
struct PauseTests {
    @Test(arguments: [1, 2]) func `a paused video shows nothing, and goes on within a second at a newer frame`(
        loops: Int
    )
        throws
    {
        let simulation = Simulation(seed: 1, loops: loops, spreadsRooms: loops > 1)
        let clients = ["ada", "grace", "hopper"].map { simulation.client($0) }
        simulation.task {
            for client in clients { try await client.join("kitchen") }
            let video = try await clients[0].publish()
            for client in clients[1...] {
                try await client.wait { $0.streams.map(\.id) == [video] }
                try await client.subscribe(to: video)
                try await client.wait { $0.framesShown(of: video) > 25 }
            }
            for pause in [200, 1500, 10_000] as [Int64] {
                clients[1].setPaused(true, video)
                try await simulation.sleep(for: .milliseconds(150))
                let shown = clients[1].framesShown(of: video)
                try await simulation.sleep(for: .milliseconds(pause))
                #expect(clients[1].framesShown(of: video) == shown)
                clients[1].setPaused(false, video)
                try await simulation.sleep(for: .milliseconds(1200))
                #expect(clients[1].framesShown(of: video) > shown)
            }
        }
        let report = try simulation.run(for: .seconds(30))
        // The other viewer sees every frame.
        #expect(report.viewers.contains { $0.shown > 25 * 24 && $0.skippedPackets == 0 }, "\(report)")
        #expect(report.missingNumbers == 0)
        simulation.end()
    }

    @Test func `a pause of the only video is no reason to restart ICE, neither in it nor behind it`() throws {
        let simulation = Simulation(seed: 3)
        let (ada, grace) = (simulation.client("ada"), simulation.client("grace"))
        simulation.task {
            for client in [ada, grace] { try await client.join("kitchen") }
            let video = try await ada.publish()
            try await grace.wait { $0.streams.map(\.id) == [video] }
            try await grace.subscribe(to: video)
            for pause in [12, 20, 31] as [Int64] {
                try await grace.wait { $0.framesShown(of: video) > 25 }
                grace.setPaused(true, video)
                try await simulation.sleep(for: .seconds(pause))
                grace.setPaused(false, video)
                try await simulation.sleep(for: .seconds(12))
                #expect(grace.connection?.down?.revision == 1, "after a pause of \(pause) s")
            }
        }
        _ = try simulation.run(for: .seconds(120))
        simulation.end()
    }

    @Test func `frames that the link lost before a pause are shown neither during the pause nor after it`() throws {
        let world = World(seed: 1, encryption: .checked)
        defer { world.end() }
        let check = DeliveryCheck()
        world.deliveries = check
        let (ada, grace) = (world.client("ada", link: .wired), world.client("grace", link: .wired))
        world.task("kitchen") {
            for client in [ada, grace] { try await client.join("kitchen") }
            let video = try await ada.publish()
            world.deliveries?.want([.init(client: grace.number, stream: video)], ending: [:], now: .zero)
            try await grace.wait { $0.streams.map(\.id) == [video] }
            try await grace.subscribe(to: video)
            try await grace.wait { $0.framesShown(of: video) > 25 }
            grace.setLoss(1)
            try await world.sleep(for: .milliseconds(100))
            grace.setPaused(true, video)
            try await world.sleep(for: .milliseconds(50))
            grace.heal()
            let shown = grace.framesShown(of: video)
            try await world.sleep(for: .seconds(2))
            #expect(grace.framesShown(of: video) == shown)
            grace.setPaused(false, video)
            try await grace.wait { $0.framesShown(of: video) > shown + 25 }
        }
        let report = try world.run(for: .seconds(10))
        #expect(report.viewers[0].shown > 50)
        #expect(check.oldestFrame < .seconds(1))
    }

    /// Viewers fail the simulation if numbers have a gap, or a frame is older than one before.
    @Test(arguments: 0..<Soak.rounds(2, soak: 20))
    func `pauses at random moments leave no gap in the numbers, and never show an old frame`(part: Int) throws {
        for seed in 1...UInt64(Soak.rounds(10, soak: 25)) { try pause(seed: UInt64(part) * 1000 + seed) }
    }

    private func pause(seed: UInt64) throws {
        var random = Seeded(seed)
        let loops = Int.random(in: 1...2, using: &random)
        let simulation = Simulation(seed: seed, loops: loops, spreadsRooms: loops > 1)
        let clients = (0..<4).map { simulation.client("\($0)", link: $0.isMultiple(of: 2) ? .wifi : .wired) }
        simulation.task {
            var random = Seeded(seed + 1_000_000)
            for client in clients { try await client.join("kitchen") }
            let video = try await clients[0].publish()
            for client in clients[1...] {
                try await client.wait { $0.streams.map(\.id) == [video] }
                try await client.subscribe(to: video)
            }
            for _ in 0..<30 {
                let client = clients[Int.random(in: 1...3, using: &random)]
                client.setPaused(.random(using: &random), video)
                try await simulation.sleep(for: .milliseconds(.random(in: 0...700, using: &random)))
            }
            for client in clients[1...] { client.setPaused(false, video) }
            try await simulation.sleep(for: .milliseconds(1500))
            let shown = clients[1...].map { $0.framesShown(of: video) }
            try await simulation.sleep(for: .seconds(1))
            for (client, before) in zip(clients[1...], shown) {
                #expect(client.framesShown(of: video) > before + 15, "seed \(seed)")
            }
        }
        try simulation.run(for: .seconds(20))
        simulation.end()
    }

    @Test func `a video that is subscribed while it is paused begins when it goes on`() throws {
        let simulation = Simulation(seed: 3)
        let (ada, grace) = (simulation.client("ada"), simulation.client("grace"))
        simulation.task {
            for client in [ada, grace] { try await client.join("kitchen") }
            let video = try await ada.publish()
            try await grace.wait { $0.streams.map(\.id) == [video] }
            try await grace.subscribe(to: video, StreamView(isPaused: true))
            try await simulation.sleep(for: .seconds(5))
            #expect(grace.framesShown(of: video) == 0)
            grace.setPaused(false, video)
            try await simulation.sleep(for: .seconds(2))
            #expect(grace.framesShown(of: video) > 15)
        }
        try simulation.run(for: .seconds(15))
        simulation.end()
    }

    @Test func `a narrow link carries all of the other video while one is paused`() throws {
        let simulation = Simulation(seed: 5)
        let ada = simulation.client("ada")
        let narrow = Link(up: .init(delay: .milliseconds(20)), down: .init(delay: .milliseconds(20), rate: 400_000))
        let (grace, hopper) = (simulation.client("grace", link: narrow), simulation.client("hopper"))
        simulation.task {
            for client in [ada, grace, hopper] { try await client.join("kitchen") }
            // 240 kbit/s each.
            let format = VideoFormat(packetsPerKeyframe: 2, payload: 1150)
            let videos = [try await ada.publish(format), try await ada.publish(format)]
            for (client, video) in [(grace, videos[0]), (grace, videos[1]), (hopper, videos[0])] {
                try await client.wait { $0.streams.contains { $0.id == video } }
                try await client.subscribe(to: video)
            }
            try await simulation.sleep(for: .seconds(20))
            grace.setPaused(true, videos[0])
            try await simulation.sleep(for: .seconds(10))
            let before = grace.framesShown(of: videos[1])
            try await simulation.sleep(for: .seconds(10))
            #expect(grace.framesShown(of: videos[1]) - before > 245)
        }
        try simulation.run(for: .seconds(45))
        simulation.end()
    }

    @Test func `nobody is told that a paused video does not flow`() throws {
        let simulation = Simulation(seed: 4)
        let (ada, grace) = (simulation.client("ada"), simulation.client("grace"))
        simulation.task {
            for client in [ada, grace] { try await client.join("kitchen") }
            let video = try await ada.publish()
            try await grace.wait { $0.streams.map(\.id) == [video] }
            try await grace.subscribe(to: video)
            try await grace.wait { $0.framesShown(of: video) > 25 }
            grace.setPaused(true, video)
            try await simulation.sleep(for: .seconds(30))
            #expect(grace.interruptions.isEmpty && grace.qualities.isEmpty && grace.isConnected)
        }
        try simulation.run(for: .seconds(40))
        simulation.end()
    }
}
