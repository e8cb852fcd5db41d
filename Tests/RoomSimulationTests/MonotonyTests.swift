import RTP
import RoomSimulation
import TestSupport
import Testing

/// Asking for more never brings less of what was asked for before.
///
/// Links lose nothing here, and their rate suffices. With jitter or loss, more datagrams change the fate of the others.
struct MonotonyTests {
    private struct Request {
        var watched = 2
        var link: Link
    }

    /// The frames that a viewer shows of each of the first videos of five publishers, in the order of its subscriptions.
    private func shown(_ request: Request, _ format: VideoFormat, seed: UInt64) throws -> [Int] {
        let simulation = Simulation(seed: seed)
        defer { simulation.end() }
        let publishers = (0..<5).map { simulation.client("publisher \($0)") }
        let viewer = simulation.client("viewer", link: request.link)
        simulation.task {
            var videos: [Int] = []
            for publisher in publishers {
                try await publisher.join("kitchen")
                videos.append(try await publisher.publish(format))
            }
            try await viewer.join("kitchen")
            for video in videos.prefix(request.watched) { try await viewer.subscribe(to: video) }
        }
        // Nothing is on its way when the run ends.
        simulation.after(.seconds(7)) {
            for publisher in publishers { publisher.kill(closesConnection: false) }
        }
        return try simulation.run(for: .seconds(9)).viewers.filter { $0.client == "viewer" }.map(\.shown)
    }

    @Test func `watching more videos shows no fewer frames of the others`() throws {
        for seed in 1...UInt64(Soak.rounds(4, soak: 100)) {
            var random = Seeded(seed)
            let link = Link(
                up: .init(delay: .milliseconds(Int64.random(in: 1...80, using: &random)), rate: 2_000_000),
                down: .init(delay: .milliseconds(Int64.random(in: 1...80, using: &random)), rate: 8_000_000))
            let format = VideoFormat(
                framesPerSecond: Int.random(in: 10...30, using: &random),
                packetsPerFrame: Int.random(in: 1...3, using: &random), payload: 400)
            var before: [Int] = []
            for watched in [1, 2, 5] {
                let shown = try shown(Request(watched: watched, link: link), format, seed: seed)
                #expect(shown.count == watched)
                #expect(zip(before, shown).allSatisfy { $0 <= $1 }, "seed \(seed): \(before), then \(shown)")
                before = shown
            }
            #expect(before.allSatisfy { $0 > 50 })
        }
    }

    @Test func `a better link shows no fewer frames`() throws {
        for seed in 1...UInt64(Soak.rounds(3, soak: 100)) {
            var before: [Int] = []
            let lossy = Link(delay: .milliseconds(60), jitter: .milliseconds(15), loss: 0.1, burst: 0.5)
            for link in [lossy, .cellular, .wired] {
                let shown = try shown(Request(link: link), VideoFormat(), seed: seed)
                #expect(zip(before, shown).allSatisfy { $0 <= $1 }, "seed \(seed): \(before), then \(shown)")
                before = shown
            }
        }
    }
}
