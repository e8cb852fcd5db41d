import RTP
import RoomSimulation
import Testing

/// Recordings of a publisher whose link loses packets and lets others overtake.
struct RecordedLossTests {
    /// Nobody watches.
    private func record(
        _ link: Link, _ publish: @escaping @Sendable (SimulatedClient) async throws -> Int
    ) throws -> RecordingLog {
        let simulation = Simulation(seed: 5)
        defer { simulation.end() }
        let log = simulation.logRecording()
        let ada = simulation.client("ada", link: link)
        simulation.task {
            try await ada.join("kitchen")
            let stream = try await publish(ada)
            try await simulation.sleep(for: .seconds(60))
            try await ada.unpublish(stream)
        }
        _ = try simulation.run(for: .seconds(70))
        return log
    }

    @Test func `packets that the publisher repeats have their places, so that the file has no gap`() throws {
        let link = Link(delay: .milliseconds(40), jitter: .milliseconds(15), loss: 0.05)
        let video = VideoFormat(packetsPerFrame: 4, packetsPerKeyframe: 40, payload: 1000)
        let log = try record(link) { try await $0.publish(video, isRecorded: true) }
        #expect(log.lost > 200 && log.count > 5000, "\(log.lost) of \(log.count)")
        // A tenth of the requests get no repair, so two in a thousand stay lost with all their repairs.
        #expect((log.missing ?? .max) * 50 < log.lost, "\(log.missing ?? -1) of \(log.lost)")
        #expect(log.gap == nil)
    }

    @Test func `copies stand in for lost packets of audio, which nobody repeats`() throws {
        let log = try record(Link(delay: .milliseconds(40), loss: 0.05)) {
            try await $0.publishAudio(isRecorded: true)
        }
        #expect(log.lost > 100 && log.count > 2900, "\(log.lost) of \(log.count)")
        // Two losses in a row remain, or three.
        #expect((log.missing ?? .max) < 15, "\(log.missing ?? -1)")
    }
}
