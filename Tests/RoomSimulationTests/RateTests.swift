import RTP
import RoomSimulation
import Testing

/// A publisher whose link carries a third of its video.
struct RateTests {
    private struct Outcome {
        /// Of the frames shown at the end of each second, in milliseconds, shortest first.
        var delays: [Double] = []
        /// Bits of all links per second.
        var rate = 0.0
        var shown = 0
        var report: SimulationReport
    }

    /// Runs a room of two, the first of which publishes 1.2 Mbit/s over 400 kbit/s. Skips the first 10 s.
    private func run(follows: Bool, seconds: Int = 20) throws -> Outcome {
        let simulation = Simulation(seed: 7)
        let narrow = Link(
            up: .init(delay: .milliseconds(20), rate: 400_000), down: .init(delay: .milliseconds(20)))
        let ada = simulation.client("ada", link: narrow)
        let grace = simulation.client("grace")
        simulation.task {
            try await ada.join("kitchen")
            try await grace.join("kitchen")
            let video = try await ada.publish(
                VideoFormat(packetsPerFrame: 6, packetsPerKeyframe: 12, payload: 1000, followsRate: follows))
            try await ada.publishAudio()
            try await grace.subscribe(to: video)
        }
        let first = try simulation.run(for: .seconds(10))
        var outcome = Outcome(report: first)
        for _ in 0..<seconds {
            outcome.report = try simulation.run(for: .seconds(1))
            if let delay = outcome.report.viewers.first?.trueLatency { outcome.delays.append(delay.milliseconds) }
        }
        outcome.delays.sort()
        outcome.rate = Double(outcome.report.bytes - first.bytes) * 8 / Double(seconds)
        outcome.shown = (outcome.report.viewers.first?.shown ?? 0) - (first.viewers.first?.shown ?? 0)
        return outcome
    }

    @Test func `an encoder follows a narrow link: it uses most of it, and frames arrive soon`() throws {
        let outcome = try run(follows: true)
        // Each byte passes two links, and reports need a few percent.
        #expect(outcome.rate > 2 * 400_000 * 0.8 && outcome.rate < 2 * 400_000 * 1.1, "\(outcome.rate)")
        #expect(outcome.shown > 24 * 20, "\(outcome.shown)")
        #expect(outcome.delays[outcome.delays.count / 2] < 120, "\(outcome.delays)")
        #expect((outcome.delays.last ?? .infinity) < 250, "\(outcome.delays)")
    }

    @Test func `a camera that cannot follow loses whole groups of frames, and its viewers do not fall behind`() throws {
        let outcome = try run(follows: false)
        #expect(outcome.rate > 2 * 400_000 * 0.35 && outcome.rate < 2 * 400_000 * 1.1, "\(outcome.rate)")
        #expect(outcome.shown > 30 && outcome.shown < 25 * 20 * 2 / 3, "\(outcome.shown)")
        #expect(outcome.report.keyframes > 8)
        #expect((outcome.report.viewers.first?.longestFreeze ?? .zero) < .seconds(6))
    }
}
