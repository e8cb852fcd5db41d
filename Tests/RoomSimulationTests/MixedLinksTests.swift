import RTP
import RoomSimulation
import TestSupport
import Testing

/// A room whose viewers have links from 200 kbit/s to 20 Mbit/s, and whose publishers send three layers.
struct MixedLinksTests {
    /// The rate of a link, and the best layer that it carries beside audio.
    private static let links = [
        (200_000, 0), (300_000, 0), (800_000, 1), (1_000_000, 1), (4_000_000, 2), (20_000_000, 2),
    ]
    private static let publishers = 3

    private final class Stage {
        let simulation: Simulation
        let viewers: [(client: SimulatedClient, best: Int)]

        /// - Parameter areLate: viewers join when the publishers have paused what nobody watches. Otherwise, the videos
        ///   begin when everyone is there.
        init(clients: Int, areLate: Bool, seed: UInt64, loops: Int) {
            let simulation = Simulation(seed: seed, loops: loops, spreadsRooms: loops > 1)
            let publishers = (0..<MixedLinksTests.publishers).map { simulation.client("publisher \($0)") }
            let viewers = (0..<(clients - publishers.count - 1)).map { number in
                let (rate, best) = MixedLinksTests.links[number % MixedLinksTests.links.count]
                let link = Link(up: .init(delay: .milliseconds(20)), down: .init(delay: .milliseconds(20), rate: rate))
                return (client: simulation.client("viewer \(number)", link: link), best: best)
            }
            let speaker = simulation.client("speaker")
            self.simulation = simulation
            self.viewers = viewers
            for publisher in publishers {
                simulation.task {
                    try await publisher.join("hall")
                    if !areLate { try await simulation.sleep(for: .seconds(3)) }
                    try await publisher.publish(layers: VideoLayer.three)
                }
            }
            simulation.task {
                try await speaker.join("hall")
                try await speaker.publishAudio()
            }
            for (number, viewer) in viewers.enumerated() {
                let client = viewer.client
                simulation.task {
                    if areLate { try await simulation.sleep(for: .seconds(3)) }
                    try await client.join("hall")
                    try await client.wait { $0.streams.count { $0.isVideo } == publishers.count }
                    let videos = client.streams.filter(\.isVideo).map(\.id).sorted()
                    try await client.subscribe(to: videos[number % publishers.count])
                }
            }
        }
    }

    @Test(
        arguments: Soak.isOn ? [(10, false), (10, true), (50, false), (50, true)] : [(10, true), (50, false)],
        1...UInt64(Soak.rounds(1, soak: 10)))
    func `everyone gets the best layer that its link carries within seconds, and nobody starves`(
        room: (clients: Int, areLate: Bool), seed: UInt64
    ) throws {
        let stage = Stage(clients: room.clients, areLate: room.areLate, seed: seed, loops: seed % 2 == 0 ? 2 : 1)
        defer { stage.simulation.end() }
        _ = try stage.simulation.run(for: .seconds(3))
        let first = try stage.simulation.run(for: .seconds(5))
        let seconds = Soak.rounds(3, soak: 30)
        let report = try stage.simulation.run(for: .seconds(Int64(seconds)))
        for (client, best) in stage.viewers {
            func viewer(_ report: SimulationReport) throws -> SimulationReport.Viewer {
                try #require(report.viewers.first { $0.client == client.name })
            }
            let (before, after) = try (viewer(first), viewer(report))
            #expect(before.layer == best && after.layer == best, "\(best): \(before), \(after)")
            #expect(after.shown - before.shown >= 24 * seconds, "\(after)")
            #expect(after.longestFreeze < .milliseconds(400), "\(after)")
            func heard(_ report: SimulationReport) -> Int {
                report.listeners.first { $0.client == client.name }?.packets ?? 0
            }
            #expect(heard(report) - heard(first) >= 49 * seconds, "\(client.name)")
        }
        #expect(report.missingNumbers == 0)
    }

    /// 160x90 at 85 kbit/s with a keyframe of 2.6 kB each second, and a larger one.
    private static let recording: [VideoLayer] = {
        var layers = Array(VideoLayer.three.prefix(2))
        layers[0].payload = 330
        for index in layers.indices { (layers[index].keyframeInterval, layers[index].packetsPerKeyframe) = (25, 8) }
        return layers
    }()

    /// The queue of a link that is nearly full grows with each keyframe, and drains until the next one.
    @Test(arguments: [(rate: 190_000, videos: 1), (290_000, 2)], 1...UInt64(Soak.rounds(2, soak: 10)))
    func `a link that its audio and lowest layers nearly fill shows nearly all frames`(
        link: (rate: Int, videos: Int), seed: UInt64
    ) throws {
        let simulation = Simulation(seed: seed)
        defer { simulation.end() }
        let publishers = (0..<link.videos).map { simulation.client("publisher \($0)") }
        let (speaker, other) = (simulation.client("speaker"), simulation.client("other"))
        let viewer = simulation.client(
            "viewer",
            link: Link(up: .init(delay: .milliseconds(20)), down: .init(delay: .milliseconds(20), rate: link.rate)))
        for publisher in publishers {
            simulation.task {
                try await publisher.join("hall")
                try await publisher.publish(layers: Self.recording)
            }
        }
        simulation.task {
            try await speaker.join("hall")
            _ = try await speaker.publishAudio(payload: 150)
        }
        for client in [viewer, other] {
            simulation.task {
                try await client.join("hall")
                try await client.wait { $0.streams.count { $0.isVideo } == publishers.count }
                for video in client.streams.filter(\.isVideo).map(\.id).sorted() {
                    try await client.subscribe(to: video)
                }
            }
        }
        func shown(_ report: SimulationReport) -> [Int] {
            report.viewers.filter { $0.client == "viewer" }.map(\.shown)
        }
        let first = try simulation.run(for: .seconds(10))
        let report = try simulation.run(for: .seconds(20))
        let frames = zip(shown(report), shown(first)).map { $0 - $1 }
        #expect(frames.count == link.videos && frames.allSatisfy { $0 >= 480 }, "\(frames)")
    }
}
