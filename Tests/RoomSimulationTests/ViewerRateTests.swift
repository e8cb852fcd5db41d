import RTP
import RoomSimulation
import Testing

/// Viewers whose links carry a third of a video of 1.2 Mbit/s.
struct ViewerRateTests {
    private static let narrow = Link(
        up: .init(delay: .milliseconds(20)), down: .init(delay: .milliseconds(20), rate: 400_000))

    /// The second half of a run.
    private struct Outcome {
        var shown: [String: Int] = [:]
        /// Of the newest frame at the end of each second, in milliseconds, shortest first.
        var delays: [String: [Double]] = [:]
        var report: SimulationReport
    }

    /// One publishes, and the viewers watch.
    private func run(
        follows: Bool, temporalLayers: Int = 1, loops: Int = 1, seed: UInt64 = 11, viewers: [(name: String, link: Link)]
    ) throws -> Outcome {
        let simulation = Simulation(seed: seed, loops: loops, spreadsRooms: loops > 1)
        let ada = simulation.client("ada")
        let others = viewers.map { simulation.client($0.name, link: $0.link) }
        simulation.task {
            try await ada.join("kitchen")
            for other in others { try await other.join("kitchen") }
            let video = try await ada.publish(
                VideoFormat(
                    packetsPerFrame: 6, packetsPerKeyframe: 12, payload: 1000, followsRate: follows,
                    temporalLayers: temporalLayers))
            try await ada.publishAudio()
            for other in others {
                try await other.wait { $0.streams.contains { $0.id == video } }
                try await other.subscribe(to: video)
            }
        }
        let first = try simulation.run(for: .seconds(10))
        var outcome = Outcome(report: first)
        for _ in 0..<20 {
            outcome.report = try simulation.run(for: .seconds(1))
            for viewer in outcome.report.viewers {
                if let delay = viewer.trueLatency {
                    outcome.delays[viewer.client, default: []].append(delay.milliseconds)
                }
            }
        }
        for viewer in outcome.report.viewers {
            let before = first.viewers.first { $0.client == viewer.client }?.shown ?? 0
            outcome.shown[viewer.client] = viewer.shown - before
            outcome.delays[viewer.client]?.sort()
        }
        return outcome
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `an encoder follows the link of its only viewer: every frame arrives, and soon`(seed: UInt64) throws {
        let outcome = try run(follows: true, seed: seed, viewers: [("grace", Self.narrow)])
        let delays = try #require(outcome.delays["grace"])
        #expect(try #require(outcome.shown["grace"]) > 24 * 20)
        #expect(delays[delays.count / 2] < 120, "\(delays)")
        #expect(try #require(delays.last) < 300, "\(delays)")
    }

    @Test func `a viewer with a narrow link misses groups of frames, and the others miss nothing`() throws {
        let outcome = try run(follows: true, viewers: [("grace", Self.narrow), ("lin", .wired)])
        #expect(try #require(outcome.shown["lin"]) >= 25 * 20 - 2)
        let shown = try #require(outcome.shown["grace"])
        #expect(shown >= 10 && shown < 25 * 20 * 2 / 3, "\(shown)")
        // A frame that is left out must not cost the others the bits of a keyframe.
        #expect(outcome.report.keyframes < 20)
    }

    /// The rate of the link, and the part of the frames that it carries, for three layers of 1.2 Mbit/s.
    @Test(arguments: [(600_000, 4), (900_000, 2)], [1, 2, 3, 4] as [UInt64])
    func `of a video with temporal layers, a narrow viewer sees every second or fourth frame, and others all`(
        link: (rate: Int, part: Int), seed: UInt64
    ) throws {
        let narrow = Link(up: .init(delay: .milliseconds(20)), down: .init(delay: .milliseconds(20), rate: link.rate))
        let outcome = try run(
            follows: true, temporalLayers: 3, seed: seed, viewers: [("grace", narrow), ("lin", .wired)])
        #expect(try #require(outcome.shown["lin"]) >= 25 * 20 - 2)
        let shown = try #require(outcome.shown["grace"])
        #expect(shown >= 25 * 20 / link.part * 9 / 10, "\(shown)")
        // The time before a frame that is shown at the end of a second.
        let delays = try #require(outcome.delays["grace"])
        #expect(try #require(delays.last) < 600, "\(delays)")
        #expect(outcome.report.keyframes < 8, "\(outcome.report.keyframes)")
    }

    @Test func `many narrow viewers cost a wide one few keyframes`() throws {
        let narrow = (1...5).map { ("viewer \($0)", Self.narrow) }
        let outcome = try run(follows: true, viewers: narrow + [("lin", .wired)])
        #expect(try #require(outcome.shown["lin"]) >= 25 * 20 - 2)
        for viewer in narrow { #expect(try #require(outcome.shown[viewer.0]) >= 10) }
        #expect(outcome.report.keyframes < 25, "\(outcome.report.keyframes)")
    }

    @Test func `a camera that cannot follow becomes whole groups of frames for its only viewer`() throws {
        let outcome = try run(follows: false, viewers: [("grace", Self.narrow)])
        let shown = try #require(outcome.shown["grace"])
        #expect(shown > 30 && shown < 25 * 20 * 2 / 3, "\(shown)")
        #expect(try #require(outcome.report.viewers.first).longestFreeze < .seconds(6))
    }

    @Test func `the publisher follows a viewer on another loop of the server too`() throws {
        // The publisher enters on the first loop, and the viewer on the second.
        let outcome = try run(follows: true, loops: 2, viewers: [("grace", Self.narrow)])
        let delays = try #require(outcome.delays["grace"])
        #expect(try #require(outcome.shown["grace"]) > 24 * 20)
        #expect(delays[delays.count / 2] < 130, "\(delays)")
    }

    @Test func `the limit ends when the link carries everything again, and when the viewer leaves`() throws {
        let simulation = Simulation(seed: 12)
        let ada = simulation.client("ada")
        let (grace, lin) = (simulation.client("grace", link: Self.narrow), simulation.client("lin"))
        simulation.task {
            for client in [ada, grace, lin] { try await client.join("kitchen") }
            let video = try await ada.publish(
                VideoFormat(packetsPerFrame: 6, packetsPerKeyframe: 12, payload: 1000, followsRate: true))
            try await grace.wait { !$0.streams.isEmpty }
            try await grace.subscribe(to: video)
            try await simulation.sleep(for: .seconds(10))
            grace.setLink(.wired)
            try await simulation.sleep(for: .seconds(20))
            grace.setLink(Self.narrow)
            try await simulation.sleep(for: .seconds(10))
            try await lin.subscribe(to: video)
            try await grace.unsubscribe(from: video)
        }
        /// Bits per second of both links over the next two seconds.
        func rate() throws -> Double {
            let before = try simulation.run(for: .zero).bytes
            return Double(try simulation.run(for: .seconds(2)).bytes - before) * 8 / 2
        }
        _ = try simulation.run(for: .seconds(8))
        let narrow = try rate()
        _ = try simulation.run(for: .seconds(18))
        let wide = try rate()
        _ = try simulation.run(for: .seconds(8))
        let narrowAgain = try rate()
        _ = try simulation.run(for: .seconds(8))
        let another = try rate()
        #expect(narrow < 1_000_000 && narrowAgain < 1_000_000, "\(narrow) \(narrowAgain)")
        #expect(wide > 2_300_000 && another > 2_300_000, "\(wide) \(another)")
    }
}
