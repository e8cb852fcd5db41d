import RTP
import RoomSimulation
import TestSupport
import Testing

/// A listener whose link does not carry the audio of all who speak. Four streams of 64 kbit/s need 364 kbit/s of the path.
struct NarrowListenerTests {
    private static func link(_ rate: Int, loss: Double = 0) -> Link {
        Link(up: .init(delay: .milliseconds(20)), down: .init(delay: .milliseconds(20), loss: loss, rate: rate))
    }

    private final class Room {
        let simulation: Simulation
        let grace: SimulatedClient
        private let speakers: [SimulatedClient]
        private(set) var streams: [Int] = []

        /// - Parameters:
        ///   - loudest: who speaks louder than the other three, from 0 to 3
        ///   - payload: of all packets
        init(_ rate: Int, loss: Double = 0, loudest: Int, payload: Int = 160, seed: UInt64 = 1) throws {
            simulation = Simulation(seed: seed)
            let (simulation, names) = (simulation, ["ada", "lin", "mo", "zoe"])
            speakers = names.map { simulation.client($0) }
            grace = simulation.client("grace", link: NarrowListenerTests.link(rate, loss: loss))
            let published = Collected<Int>()
            simulation.task { [speakers, grace] in
                try await grace.join("kitchen")
                for (number, speaker) in speakers.enumerated() {
                    try await speaker.join("kitchen")
                    let level: UInt8 = number == loudest ? 25 : 45
                    let stream = try await speaker.publishAudio(payload: payload) { now in
                        Int(now.nanoseconds / 1_000_000) % 500 < 400 ? level : 70
                    }
                    published.append(stream)
                }
                _ = try await grace.publishAudio(payload: 20)
            }
            try simulation.run(for: .seconds(2))
            streams = published.all
        }

        func run(_ seconds: Int64) throws { try simulation.run(for: .seconds(seconds)) }

        /// The speakers that the listener hears.
        var heard: Set<Int> { Set(grace.heard.compactMap { streams.firstIndex(of: $0) }) }

        /// The share of packets of a speaker that the listener had not got after 60 ms.
        func missing(of speaker: Int, seconds: Int64) throws -> Double {
            let log = simulation.logAudio(of: streams[speaker], to: grace)
            let start = simulation.now
            try run(seconds)
            let end = simulation.now
            try run(3)
            let outcome = log.outcome(from: start, to: end)
            return Double(outcome.missing) / Double(max(1, outcome.arrivals.count))
        }
    }

    @Test(arguments: zip([0, 3], [1, 2] as [UInt64]))
    func `on 150 kbit/s, the loudest speaker is heard, and nothing of it is late`(loudest: Int, seed: UInt64) throws {
        let room = try Room(150_000, loudest: loudest, seed: seed)
        defer { room.simulation.end() }
        try room.run(20)
        #expect(room.heard == [loudest])
        let missing = try room.missing(of: loudest, seconds: 60)
        #expect(missing < 0.01, "\(missing)")
    }

    /// Each of them sends 500 kbit/s, so that too much is on its way for anything but audio.
    @Test func `a link that audio alone overfills carries fewer streams, too`() throws {
        let room = try Room(150_000, loudest: 3, payload: 1200)
        defer { room.simulation.end() }
        try room.run(30)
        #expect(room.heard.count == 1, "\(room.heard)")
    }

    @Test func `all are heard again after the link carries more`() throws {
        let room = try Room(150_000, loudest: 2)
        defer { room.simulation.end() }
        try room.run(20)
        #expect(room.heard == [2])
        room.grace.setLink(Self.link(2_000_000))
        try room.run(40)
        #expect(room.heard == [0, 1, 2, 3])
        #expect(try room.missing(of: 0, seconds: 20) == 0)
    }

    @Test func `on a link that carries all of them, all are heard, also after an outage`() throws {
        let room = try Room(600_000, loudest: 1)
        defer { room.simulation.end() }
        try room.run(20)
        #expect(room.heard == [0, 1, 2, 3])
        #expect(try room.missing(of: 0, seconds: 20) == 0)
        room.grace.cutMedia()
        try room.run(2)
        room.grace.reconnect()
        try room.run(20)
        #expect(room.heard == [0, 1, 2, 3])
    }

    @Test func `losses without a queue leave all speakers to hear`() throws {
        let room = try Room(2_000_000, loss: 0.2, loudest: 1)
        defer { room.simulation.end() }
        for _ in 0..<12 {
            try room.run(5)
            #expect(room.heard == [0, 1, 2, 3])
        }
    }
}
