import ClientCore
import enum MediaGraph.QualityLimitation
import RTP
import RoomSimulation
import Testing

/// A publisher of audio alone. Audio has no RTX, so no padding and no probes: reports of its packets are all there is.
struct AudioRateTests {
    private func narrow(_ rate: Int) -> Link {
        Link(up: .init(delay: .milliseconds(20), rate: rate), down: .init(delay: .milliseconds(20)))
    }

    private struct Room {
        let simulation = Simulation(seed: 7)
        let ada: SimulatedClient
        let grace: SimulatedClient

        init(_ link: Link, followsRate: Bool, statistics: Bool = false) {
            (ada, grace) = (simulation.client("ada", link: link), simulation.client("grace"))
            if statistics { ada.statisticsInterval = .seconds(1) }
            let (ada, grace) = (ada, grace)
            simulation.task {
                try await grace.join("kitchen")
                try await ada.join("kitchen")
                _ = try await ada.publishAudio(payload: 160, followsRate: followsRate)
            }
        }

        /// The packets that were missing after 60 ms, as a share, and the bytes of the others.
        func listen(seconds: Int64) throws -> (missing: Double, bitsPerSecond: Double) {
            let log = simulation.logAudio()
            let start = simulation.now
            try simulation.run(for: .seconds(seconds))
            let end = simulation.now
            try simulation.run(for: .seconds(3))
            let outcome = log.outcome(from: start, to: end)
            return (
                Double(outcome.missing) / Double(outcome.arrivals.count),
                Double(outcome.bytes) * 8 / Double(seconds)
            )
        }
    }

    @Test func `on 40 kbit/s, the encoder follows, and audio arrives in time`() throws {
        let room = Room(narrow(40_000), followsRate: true)
        defer { room.simulation.end() }
        try room.simulation.run(for: .seconds(20))
        let heard = try room.listen(seconds: 60)
        #expect(heard.missing < 0.15, "\(heard)")
        // The link counts no headers of UDP and IP, which are 11 kbit/s.
        #expect((25_000...51_200).contains(heard.bitsPerSecond), "\(heard)")
    }

    @Test func `without an encoder that follows, little arrives in time`() throws {
        let room = Room(narrow(40_000), followsRate: false)
        defer { room.simulation.end() }
        try room.simulation.run(for: .seconds(20))
        #expect(try room.listen(seconds: 20).missing > 0.5)
    }

    @Test func `the bitrate returns with the link`() throws {
        let room = Room(narrow(40_000), followsRate: true)
        defer { room.simulation.end() }
        try room.simulation.run(for: .seconds(30))
        room.ada.setLink(narrow(1_000_000))
        try room.simulation.run(for: .seconds(60))
        let heard = try room.listen(seconds: 20)
        #expect(heard.missing == 0 && heard.bitsPerSecond > 85_000, "\(heard)")
    }

    @Test func `after 2 s without delivery, the bitrate from before returns within 4 s`() throws {
        let room = Room(narrow(1_000_000), followsRate: true)
        defer { room.simulation.end() }
        try room.simulation.run(for: .seconds(20))
        room.ada.cutMedia()
        try room.simulation.run(for: .seconds(2))
        room.ada.reconnect()
        try room.simulation.run(for: .seconds(4))
        let heard = try room.listen(seconds: 5)
        #expect(heard.missing == 0 && heard.bitsPerSecond > 85_000, "\(heard)")
    }

    @Test func `statistics name the network as the cause of a lower bitrate`() throws {
        let room = Room(narrow(40_000), followsRate: true, statistics: true)
        defer { room.simulation.end() }
        try room.simulation.run(for: .seconds(20))
        let audio = try #require(room.ada.statistics.last?.figures.published.first)
        #expect(audio.limitation == .network && audio.wishedBitsPerSecond == 64_000, "\(audio)")
        #expect(try #require(audio.limitedBitsPerSecond) < 30_000, "\(audio)")
        room.ada.setLink(narrow(1_000_000))
        try room.simulation.run(for: .seconds(60))
        #expect(room.ada.statistics.last?.figures.published.first?.limitation == QualityLimitation.none)
    }

    @Test func `on a link that carries it, audio keeps its bitrate`() throws {
        let room = Room(narrow(120_000), followsRate: true)
        defer { room.simulation.end() }
        let heard = try room.listen(seconds: 60)
        #expect(heard.missing < 0.01 && heard.bitsPerSecond > 80_000, "\(heard)")
    }
}
