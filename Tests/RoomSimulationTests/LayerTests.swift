import RTP
import RoomProtocol
import TestSupport
import Testing

@testable import RoomSimulation

/// Simulcast: which layer each viewer gets, and that it sees one seamless video. Each viewer also checks timestamps.
struct LayerTests {
    static func link(_ rate: Int) -> Link {
        Link(up: .init(delay: .milliseconds(20)), down: .init(delay: .milliseconds(20), rate: rate))
    }

    /// One publishes three layers, and the viewers watch from the beginning.
    struct Stage {
        let simulation: Simulation
        let ada: SimulatedClient
        let viewers: [SimulatedClient]

        let layers: [VideoLayer]

        init(
            seed: UInt64 = 11, loops: Int = 1, publisher: Link = .wired, layers: [VideoLayer] = VideoLayer.three,
            _ links: [Link] = [.wired]
        ) {
            self.layers = layers
            simulation = Simulation(seed: seed, loops: loops, spreadsRooms: loops > 1)
            ada = simulation.client("ada", link: publisher)
            let simulation = simulation
            viewers = links.enumerated().map { simulation.client("viewer \($0)", link: $1) }
        }

        func begin(_ then: @escaping @Sendable (Int) async throws -> Void = { _ in }) {
            simulation.task { [ada, viewers, layers] in
                try await ada.join("kitchen")
                for viewer in viewers { try await viewer.join("kitchen") }
                let video = try await ada.publish(layers: layers)
                for viewer in viewers {
                    try await viewer.wait { $0.streams.contains { $0.id == video } }
                    try await viewer.subscribe(to: video)
                }
                try await then(video)
            }
        }

        func run(_ seconds: Double) throws -> SimulationReport {
            try simulation.run(for: .milliseconds(Int64(seconds * 1000)))
        }

        func layers(in report: SimulationReport) -> [Int?] {
            viewers.map { viewer in report.viewers.last { $0.client == viewer.name }?.layer }
        }
    }

    @Test(arguments: 1...UInt64(Soak.rounds(3, soak: 50)), [1, 2])
    func `each viewer gets the layer that its link carries within five seconds, and keeps it`(seed: UInt64, loops: Int)
        throws
    {
        let stage = Stage(seed: seed, loops: loops, [Self.link(200_000), Self.link(700_000), Self.link(5_000_000)])
        stage.begin()
        // Joining takes about a second.
        let soon = stage.layers(in: try stage.run(6))
        #expect(soon == [0, 1, 2])
        let report = try stage.run(30)
        #expect(stage.layers(in: report) == [0, 1, 2])
        for viewer in report.viewers {
            #expect(viewer.longestFreeze < .milliseconds(300), "\(viewer)")
            #expect(viewer.shown > 24 * 33, "\(viewer)")
            #expect(viewer.switches <= 3, "\(viewer)")
        }
    }

    @Test(arguments: 1...UInt64(Soak.rounds(2, soak: 20)))
    func `one viewer alone gets the highest layer with fewer bits, and not one below`(seed: UInt64) throws {
        let stage = Stage(seed: seed, [Self.link(1_300_000)])
        stage.begin()
        var layers = stage.layers(in: try stage.run(10))
        #expect(layers == [2])
        let report = try stage.run(20)
        layers = stage.layers(in: report)
        #expect(layers == [2])
        let viewer = try #require(report.viewers.first)
        #expect(viewer.longestFreeze < .milliseconds(600) && viewer.switches <= 3, "\(viewer)")
        #expect(viewer.shown > 24 * 26, "\(viewer)")
        let limit = try #require(stage.ada.layerLimit)
        #expect((700_000...1_300_000).contains(limit), "\(limit)")
    }

    @Test func `two viewers get the layers that their links carry, because each would take bits from the other`() throws
    {
        let stage = Stage([Self.link(1_300_000), Self.link(5_000_000)])
        stage.begin()
        let report = try stage.run(20)
        #expect(stage.layers(in: report) == [1, 2])
        #expect(stage.ada.layerLimit == nil)
    }

    @Test func `a small view gets the lowest layer that covers it, and a profile caps the layers`() throws {
        let stage = Stage()
        let viewer = stage.viewers[0]
        stage.begin { video in
            try await stage.simulation.sleep(for: .seconds(4))
            try await viewer.setView(of: video, width: 160, height: 90)
            try await stage.simulation.sleep(for: .seconds(4))
            try await viewer.setView(of: video, width: 161 * 2, height: 180)
            try await stage.simulation.sleep(for: .seconds(4))
            try await viewer.setView(of: video, width: 1920, height: 1080)
            try await stage.simulation.sleep(for: .seconds(4))
            try await viewer.setView(of: video, profile: .mid)
            try await stage.simulation.sleep(for: .seconds(4))
            try await viewer.setView(of: video, profile: .low, width: 1920, height: 1080)
        }
        // Each time before the view changes.
        for (step, expected) in [2, 0, 1, 2, 1, 0].enumerated() {
            let layers = stage.layers(in: try stage.run(step == 0 ? 3.5 : 4))
            #expect(layers == [expected])
        }
    }

    @Test(arguments: 1...UInt64(Soak.rounds(3, soak: 50)))
    func `switching back and forth is seamless`(seed: UInt64) throws {
        let stage = Stage(seed: seed)
        let viewer = stage.viewers[0]
        let simulation = stage.simulation
        stage.begin { video in
            try await simulation.sleep(for: .seconds(4))
            for round in 0..<20 {
                try await viewer.setView(of: video, profile: [.low, .high, .mid][round % 3])
                try await simulation.sleep(for: .seconds(2))
            }
        }
        let report = try stage.run(45)
        let seen = try #require(report.viewers.first)
        #expect(seen.switches >= 18 && seen.skippedPackets == 0, "\(seen)")
        #expect(seen.longestFreeze < .milliseconds(150), "\(seen)")
        #expect(seen.shown > 25 * 42, "\(seen)")
        #expect(report.missingNumbers == 0)
    }

    @Test func `the server's statistics count layers, their subscribers and their rates`() throws {
        let stage = Stage([Self.link(200_000), .wired, .wired])
        stage.begin()
        _ = try stage.run(8)
        let layers = try #require(stage.simulation.world.server.process?.layers.first)
        #expect(layers.map(\.streams) == [1, 1, 1])
        #expect(layers.map(\.subscribers) == [1, 0, 2])
        #expect(layers.map(\.watched) == [1, 0, 1] && layers.map(\.delivered) == [1, 0, 1])
        #expect(layers[1].bitsPerSecond == 0)
        #expect(abs(layers[0].bitsPerSecond - 113_000) < 10_000 && abs(layers[2].bitsPerSecond - 1_700_000) < 150_000)
    }

    @Test(arguments: 1...UInt64(Soak.rounds(3, soak: 50)), [1, 2])
    func `layers survive lossy links, changing rates and views, on one loop and on two`(seed: UInt64, loops: Int) throws
    {
        let stage = Stage(seed: seed, loops: loops, [.cellular, Self.link(600_000), .wired])
        let (viewers, simulation) = (stage.viewers, stage.simulation)
        stage.begin { video in
            for round in 0..<8 {
                try await simulation.sleep(for: .seconds(3))
                try await viewers[0].setView(of: video, profile: round % 2 == 0 ? .low : .high)
                viewers[1].setLink(Self.link(round % 2 == 0 ? 3_000_000 : 250_000))
                try await viewers[2].setView(of: video, width: [160, 320, 640][round % 3], height: 90)
                if round == 5 { stage.ada.setLayer(2, isDelivered: false) }
                if round == 6 { stage.ada.setLayer(2, isDelivered: true) }
            }
            for viewer in viewers { viewer.heal() }
            for viewer in viewers { try await viewer.setView(of: video, profile: .mid) }
        }
        let before = try stage.run(40)
        let report = try stage.run(3)
        for (old, viewer) in zip(before.viewers, report.viewers) {
            #expect(viewer.shown - old.shown > 55, "\(viewer)")
            #expect(viewer.longestFreeze < .seconds(4), "\(viewer)")
        }
        #expect(stage.layers(in: report)[2] == 1)
    }

    @Test func `a layer that nobody watches is paused at its publisher, and comes back when it is wanted`() throws {
        let stage = Stage()
        let (ada, viewer, simulation) = (stage.ada, stage.viewers[0], stage.simulation)
        stage.begin { video in
            try await simulation.sleep(for: .seconds(5))
            try await viewer.setView(of: video, profile: .low)
            try await simulation.sleep(for: .seconds(10))
            try await viewer.setView(of: video)
            try await simulation.sleep(for: .seconds(5))
            try await viewer.unsubscribe(from: video)
            try await simulation.sleep(for: .seconds(5))
            try await viewer.subscribe(to: video)
        }
        var layers = stage.layers(in: try stage.run(5))
        #expect(layers == [2] && ada.wantedLayers == ["q", "f"])
        _ = try stage.run(5)
        #expect(ada.wantedLayers == ["q"])
        let frames = ada.layerFrames
        layers = stage.layers(in: try stage.run(4))
        #expect(layers == [0])
        #expect(ada.layerFrames[1...] == frames[1...] && ada.layerFrames[0] > frames[0] + 95)
        layers = stage.layers(in: try stage.run(4))
        #expect(layers == [2] && ada.wantedLayers == ["q", "f"])
        _ = try stage.run(5.5)
        #expect(ada.wantedLayers == ["q"])
        let report = try stage.run(6)
        #expect(stage.layers(in: report) == [2])
        #expect(try #require(report.viewers.last?.firstFrame) < .milliseconds(300))
    }

    @Test(arguments: 1...UInt64(Soak.rounds(2, soak: 50)), [2_500_000, 20_000_000])
    func `a newcomer gets the highest layer within five seconds, also if nobody watched it before`(
        seed: UInt64, rate: Int
    ) throws {
        let stage = Stage(seed: seed, loops: seed % 2 == 0 ? 1 : 2, [.wired, Self.link(rate)])
        let (ada, viewers, simulation) = (stage.ada, stage.viewers, stage.simulation)
        let layers = stage.layers
        simulation.task {
            try await ada.join("kitchen")
            for viewer in viewers { try await viewer.join("kitchen") }
            let video = try await ada.publish(layers: layers)
            try await viewers[0].wait { $0.streams.contains { $0.id == video } }
            try await viewers[0].subscribe(to: video)
            try await viewers[0].setView(of: video, profile: .low)
            try await simulation.sleep(for: .seconds(20))
            try await viewers[1].subscribe(to: video)
        }
        _ = try stage.run(20)
        #expect(ada.wantedLayers == ["q"])
        // Subscribing takes less than a second.
        let soon = stage.layers(in: try stage.run(6))
        #expect(soon == [0, 2])
        let report = try stage.run(20)
        #expect(stage.layers(in: report) == [0, 2])
        let newcomer = try #require(report.viewers.last)
        #expect(newcomer.switches <= 3, "\(newcomer)")
    }

    @Test func `viewers go on with a lower layer when the publisher's top layer stops, and return to it`() throws {
        let stage = Stage([.wired, .wired])
        let (ada, simulation) = (stage.ada, stage.simulation)
        stage.begin { video in
            try await simulation.sleep(for: .seconds(5))
            ada.setLayer(2, isDelivered: false)
            try await simulation.sleep(for: .seconds(6))
            ada.setLayer(2, isDelivered: true)
        }
        var layers = stage.layers(in: try stage.run(5))
        #expect(layers == [2, 2])
        let report = try stage.run(4)
        #expect(stage.layers(in: report) == [1, 1])
        for viewer in report.viewers { #expect(viewer.longestFreeze < .milliseconds(1200), "\(viewer)") }
        layers = stage.layers(in: try stage.run(8))
        #expect(layers == [2, 2])
    }

    @Test func `a link that becomes narrow gets a lower layer at once, and a higher one when it is wide again`() throws
    {
        let stage = Stage([Self.link(5_000_000)])
        let (viewer, simulation) = (stage.viewers[0], stage.simulation)
        stage.begin { _ in
            try await simulation.sleep(for: .seconds(8))
            viewer.setLink(Self.link(300_000))
            try await simulation.sleep(for: .seconds(15))
            viewer.setLink(Self.link(5_000_000))
        }
        var layers = stage.layers(in: try stage.run(8))
        #expect(layers == [2])
        layers = stage.layers(in: try stage.run(4))
        #expect(layers == [0])
        // The estimate has collapsed, and recovers while the lowest layer flows.
        let narrow = try #require(try stage.run(6).viewers.first).shown
        let later = try #require(try stage.run(4).viewers.first).shown
        #expect(later - narrow > 90, "\(later - narrow)")
        layers = stage.layers(in: try stage.run(20))
        #expect(layers == [2])
    }
}
