import RTP
import RoomProtocol
import TestSupport
import Testing

@testable import ClientCore
@testable import RoomSimulation

/// Spatial layers of VP9 (SVC): each viewer gets the layer that its link and view ask for, out of one stream.
struct SpatialLayerTests {
    /// One publishes VP9, and the viewers watch from the beginning.
    private final class Stage: @unchecked Sendable {
        let simulation: Simulation
        let ada: SimulatedClient
        let viewers: [SimulatedClient]
        /// All of these are used on the simulator's thread alone.
        private(set) var camera: SpatialCamera?
        private(set) var sinks: [SpatialViewer] = []

        init(seed: UInt64 = 11, loops: Int = 1, _ links: [Link] = [.wired], publisher: Link = .wired) {
            simulation = Simulation(seed: seed, loops: loops, spreadsRooms: loops > 1)
            ada = simulation.client("ada", link: publisher)
            let simulation = simulation
            viewers = links.enumerated().map { simulation.client("viewer \($0)", link: $1) }
        }

        func begin(spatialLayers: Int? = 3, _ then: @escaping @Sendable (Int) async throws -> Void = { _ in }) {
            simulation.task { [self] in
                try await ada.join("kitchen")
                for viewer in viewers { try await viewer.join("kitchen") }
                let camera = try SpatialCamera(ada, of: try #require(ada.connection))
                self.camera = camera
                try camera.publish(spatialLayers: spatialLayers)
                for viewer in viewers {
                    try await viewer.wait { !$0.streams.isEmpty }
                    let (connection, id) = (try #require(viewer.connection), viewer.streams[0].id)
                    let sink = SpatialViewer { [weak connection] in connection?.requestKeyframe(of: id) }
                    sinks.append(sink)
                    connection.subscribe(id, to: { _ in sink }) { _ in }
                }
                try await then(viewers[0].streams[0].id)
            }
        }

        func run(_ seconds: Double) throws {
            try simulation.run(for: .milliseconds(Int64(seconds * 1000)))
        }

        func checkDecodable() {
            for sink in sinks {
                #expect(sink.undecodable == 0 && sink.incomplete == 0, "\(sink.undecodable) \(sink.incomplete)")
                #expect(sink.unmarked == 0 && sink.lost == 0, "\(sink.unmarked) \(sink.lost)")
            }
        }

        deinit { camera?.end() }
    }

    private static func link(_ rate: Int) -> Link {
        Link(up: .init(delay: .milliseconds(20)), down: .init(delay: .milliseconds(20), rate: rate))
    }

    @Test(arguments: 1...UInt64(Soak.rounds(2, soak: 20)), [1, 2])
    func `each viewer gets the spatial layer that its link carries, and only frames that it can decode`(
        seed: UInt64, loops: Int
    ) throws {
        let stage = Stage(seed: seed, loops: loops, [Self.link(200_000), Self.link(800_000), Self.link(5_000_000)])
        stage.begin()
        try stage.run(30)
        #expect(stage.sinks.map(\.layer) == [0, 1, 2])
        stage.checkDecodable()
        for sink in stage.sinks {
            #expect(sink.pictures.count > 25 * 26, "\(sink.pictures.count)")
            // No temporal layer is left out of one that the link carries.
            let steps = zip(sink.pictures, sink.pictures.dropFirst()).map { ($1.id &- $0.id) & 0x7fff }
            #expect(steps.allSatisfy { $0 == 1 }, "\(steps)")
            let bases = zip(sink.pictures, sink.pictures.dropFirst()).map { $1.tl0 &- $0.tl0 }
            #expect(bases.allSatisfy { $0 <= 1 }, "\(bases)")
        }
        #expect((stage.camera?.keyframes ?? 0) < 12)
    }

    @Test func `a view asks for a lower layer, which begins without a keyframe, and for a higher one, with one`() throws
    {
        let stage = Stage()
        let viewer = stage.viewers[0]
        stage.begin { [simulation = stage.simulation] video in
            for profile in [SimulatedClient.ViewProfile.low, .high, .mid, .high] {
                try await simulation.sleep(for: .seconds(4))
                try await viewer.setView(of: video, profile: profile)
            }
        }
        try stage.run(3.5)
        var seen: [(layer: Int?, keyframes: Int)] = []
        for _ in 0..<5 {
            seen.append((stage.sinks[0].layer, stage.camera?.keyframes ?? 0))
            try stage.run(4)
        }
        #expect(seen.map(\.layer) == [2, 0, 2, 1, 2])
        #expect(seen[1].keyframes == seen[0].keyframes && seen[3].keyframes == seen[2].keyframes, "\(seen)")
        #expect(seen[2].keyframes == seen[1].keyframes + 1 && seen[4].keyframes == seen[3].keyframes + 1, "\(seen)")
        stage.checkDecodable()
        let rises = zip(stage.sinks[0].pictures, stage.sinks[0].pictures.dropFirst()).filter { $1.spatial > $0.spatial }
        #expect(rises.count >= 2 && rises.allSatisfy { $1.isKeyframe }, "\(rises)")
        let steps = zip(stage.sinks[0].pictures, stage.sinks[0].pictures.dropFirst()).map { ($1.id &- $0.id) & 0x7fff }
        #expect(steps.allSatisfy { $0 == 1 }, "\(steps)")
    }

    /// Packets overtake those of other frames, or repairs come several frames later.
    @Test(arguments: 1...UInt64(2), [(jitter: 45, loss: 0.0), (jitter: 15, loss: 0.02)])
    func `changes of the layer cost no frame where packets of the publisher are late or lost`(
        seed: UInt64, path: (jitter: Int, loss: Double)
    ) throws {
        let stage = Stage(
            seed: seed,
            publisher: Link(delay: .milliseconds(20), jitter: .milliseconds(Int64(path.jitter)), loss: path.loss))
        let viewer = stage.viewers[0]
        let profiles = [SimulatedClient.ViewProfile.low, .high, .mid, .low, .mid, .high]
        stage.begin { [simulation = stage.simulation] video in
            for place in 0..<30 {
                try await simulation.sleep(for: .seconds(2))
                try await viewer.setView(of: video, profile: profiles[place % profiles.count])
            }
        }
        try stage.run(65)
        stage.checkDecodable()
        let pictures = stage.sinks[0].pictures
        #expect(pictures.count > 25 * 55, "\(pictures.count)")
        let changes = zip(pictures, pictures.dropFirst()).count { $0.spatial != $1.spatial }
        #expect(changes > 10, "\(changes)")
    }

    @Test func `a link that does not carry the lowest layer gets it without its higher temporal layers`() throws {
        let stage = Stage([Self.link(70_000), Self.link(5_000_000)])
        stage.begin()
        try stage.run(30)
        stage.checkDecodable()
        let recent = stage.sinks[0].pictures.suffix(60)
        #expect(recent.allSatisfy { $0.spatial == 0 })
        let counts = (0..<3).map { layer in recent.count { $0.temporal == layer } }
        // Of a stream that is not thinned, half of the frames are of the highest layer.
        #expect(counts[0] > 25 && counts[2] * 2 < counts[0], "\(counts)")
        #expect(stage.sinks[1].layer == 2)
        #expect(stage.sinks[1].pictures.suffix(60).contains { $0.temporal == 2 })
    }

    @Test func `temporal layers come back behind a frame that allows it, without a keyframe`() throws {
        let stage = Stage([Self.link(70_000), Self.link(5_000_000)])
        stage.begin()
        try stage.run(20)
        let keyframes = stage.camera?.keyframes
        stage.viewers[0].setLink(Self.link(180_000))
        try stage.run(20)
        #expect(stage.sinks[0].pictures.suffix(60).contains { $0.temporal == 2 })
        #expect(stage.camera?.keyframes == keyframes)
        stage.checkDecodable()
    }

    @Test func `a layer that the publisher leaves out costs its viewers no frame`() throws {
        let stage = Stage()
        stage.begin()
        try stage.run(10)
        #expect(stage.sinks[0].layer == 2)
        let keyframes = stage.camera?.keyframes
        stage.camera?.sentLayers = 2
        try stage.run(10)
        #expect(stage.sinks[0].layer == 1)
        #expect(stage.camera?.keyframes == keyframes)
        stage.checkDecodable()
        let steps = zip(stage.sinks[0].pictures, stage.sinks[0].pictures.dropFirst()).map { ($1.id &- $0.id) & 0x7fff }
        #expect(steps.allSatisfy { $0 == 1 }, "\(steps)")
    }

    @Test func `without a stated number of spatial layers, all of them are forwarded as one stream`() throws {
        let stage = Stage([Self.link(5_000_000)])
        stage.begin(spatialLayers: nil)
        try stage.run(5)
        #expect(stage.sinks[0].layer == 2)
        stage.checkDecodable()
    }
}
