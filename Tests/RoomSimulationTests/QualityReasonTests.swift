import RTP
import RoomProtocol
import Testing

@testable import RoomSimulation

/// Why viewers get a video worse than its publisher could send it, as the server tells them.
struct QualityReasonTests {
    private static func link(_ rate: Int) -> Link { LayerTests.link(rate) }

    @Test(arguments: [1, 2])
    func `viewers learn that their links carry less, and those that get all learn nothing`(loops: Int) throws {
        let stage = LayerTests.Stage(loops: loops, [Self.link(200_000), Self.link(700_000), Self.link(5_000_000)])
        stage.begin()
        _ = try stage.run(25)
        for viewer in stage.viewers.prefix(2) {
            let last = try #require(viewer.qualities.last)
            #expect(last.contains(": your link carries "), "\(viewer.name): \(viewer.qualities)")
            #expect(viewer.qualities.count <= 4, "\(viewer.qualities)")
        }
        #expect(stage.viewers[2].qualities.isEmpty, "\(stage.viewers[2].qualities)")
    }

    @Test func `a viewer learns that its link carries less, and that it carries all again`() throws {
        let stage = LayerTests.Stage([Self.link(5_000_000), Self.link(5_000_000)])
        let viewer = stage.viewers[0]
        stage.begin()
        _ = try stage.run(15)
        #expect(viewer.qualities.isEmpty, "\(viewer.qualities)")
        viewer.setLink(Self.link(200_000))
        _ = try stage.run(15)
        #expect(viewer.qualities.last?.contains("your link carries") == true, "\(viewer.qualities)")
        viewer.setLink(Self.link(5_000_000))
        _ = try stage.run(60)
        #expect(viewer.qualities.last?.hasSuffix(": all") == true, "\(viewer.qualities)")
    }

    /// A probe shows at once that the link carries much more than the video needs, with most seeds. An estimate that hardly
    /// suffices keeps the message for 3 s.
    @Test func `frames are missing no longer as soon as the link carries all of them again`() throws {
        let delays = try (1...8).map { try Self.delayOfRecovery(seed: $0).seconds }.sorted()
        // A change lasts for a second before it is told, and is looked for each half second.
        #expect(delays[delays.count / 2] < 2.5, "\(delays)")
        #expect(delays[delays.count - 1] < 5.5, "\(delays)")
    }

    /// From the last frame that the server left out until the viewer knows that it gets all.
    private static func delayOfRecovery(seed: UInt64) throws -> TimeInterval {
        let simulation = Simulation(seed: seed)
        let ada = simulation.client("ada")
        let viewer = simulation.client("viewer", link: Self.link(300_000))
        let other = simulation.client("other", link: Self.link(5_000_000))
        simulation.task {
            for client in [ada, viewer, other] { try await client.join("kitchen") }
            let video = try await ada.publish(VideoFormat(packetsPerFrame: 3, payload: 1000, temporalLayers: 3))
            for client in [viewer, other] {
                try await client.wait { !$0.streams.isEmpty }
                try await client.subscribe(to: video)
            }
        }
        try simulation.run(for: .seconds(20))
        let stream = try #require(viewer.streams.first?.id)
        #expect(viewer.qualities.last?.contains("your link carries") == true, "\(viewer.qualities)")
        viewer.setLink(Self.link(5_000_000))
        var told = MonotonicTime?.none
        for _ in 0..<600 where told == nil {
            try simulation.run(for: .milliseconds(100))
            if viewer.qualities.last?.hasSuffix(": all") == true { told = simulation.now }
        }
        let leftOut = try #require(simulation.world.server.process?.lastLeftOut(of: stream, for: viewer))
        #expect(leftOut > .zero)
        return try #require(told) - leftOut
    }

    @Test func `a viewer learns that its view asks for no more`() throws {
        let stage = LayerTests.Stage()
        let viewer = stage.viewers[0]
        stage.begin { video in try await viewer.setView(of: video, profile: .low) }
        _ = try stage.run(10)
        #expect(viewer.qualities.map { $0.drop { $0 != ":" } } == [": your view asks for no more"])
    }

    @Test func `a viewer learns that a publisher is not heard, and that it is back`() throws {
        let simulation = Simulation(seed: 5)
        let (ada, grace) = (simulation.client("ada"), simulation.client("grace"))
        simulation.task {
            for client in [ada, grace] { try await client.join("kitchen") }
            let video = try await ada.publish(VideoFormat())
            try await grace.wait { !$0.streams.isEmpty }
            try await grace.subscribe(to: video)
            try await simulation.sleep(for: .seconds(5))
            ada.cut()
            try await simulation.sleep(for: .seconds(6))
            ada.reconnect()
        }
        _ = try simulation.run(for: .seconds(20))
        // In between, the publisher's link is not known yet.
        #expect(
            grace.qualities.first?.hasSuffix(": its publisher's connection is lost") == true, "\(grace.qualities)")
        #expect(grace.qualities.last?.hasSuffix(": all") == true, "\(grace.qualities)")
    }

    @Test func `the only viewer of an encoder that follows it learns that its link is the reason`() throws {
        let simulation = Simulation(seed: 5)
        let (ada, grace) = (simulation.client("ada"), simulation.client("grace", link: Self.link(400_000)))
        simulation.task {
            for client in [ada, grace] { try await client.join("kitchen") }
            let video = try await ada.publish(
                VideoFormat(packetsPerFrame: 6, packetsPerKeyframe: 12, payload: 1000, followsRate: true))
            try await grace.wait { !$0.streams.isEmpty }
            try await grace.subscribe(to: video)
        }
        _ = try simulation.run(for: .seconds(20))
        let first = try #require(grace.qualities.first)
        #expect(first.contains("your link carries"), "\(grace.qualities)")
        #expect(grace.qualities.count < 6, "\(grace.qualities)")
    }
}
