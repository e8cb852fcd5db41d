import PeerIO
import PeerSession
import RTP
import RoomSimulation
import Testing

/// Faults of links, clients and the server, one at a time.
struct FaultTests {
    private final class Call {
        let simulation: Simulation
        let ada: SimulatedClient
        let grace: SimulatedClient

        /// Ada publishes, Grace watches.
        init(
            seed: UInt64, link: Link = .wired, encryption: Simulation.Encryption = .checked,
            returnTimeout: TimeInterval = .seconds(120)
        ) {
            simulation = Simulation(seed: seed, encryption: encryption)
            ada = simulation.client("ada", link: link)
            grace = simulation.client("grace", link: link)
            for client in [ada, grace] { client.returnTimeout = returnTimeout }
            simulation.task { [ada, grace] in
                try await ada.join("kitchen")
                let video = try await ada.publish()
                try await grace.join("kitchen")
                try await grace.subscribe(to: video)
            }
        }
    }

    @Test func `without a return, a cut of five seconds is survived, and one of fifteen ends the room with an error`()
        throws
    {
        for (seconds, survives) in [(5, true), (15, false)] {
            let call = Call(seed: 3, returnTimeout: .zero)
            try call.simulation.run(for: .seconds(5))
            call.grace.cut()
            try call.simulation.run(for: .seconds(Int64(seconds)))
            call.grace.reconnect()
            let report = try call.simulation.run(for: .seconds(20))
            #expect(call.grace.isConnected == survives)
            #expect((call.grace.endError == nil) == survives)
            #expect(report.viewers.first.map { $0.longestFreeze >= .seconds(5) } == true || !survives)
        }
    }

    @Test func `without a return, the end of the server's process ends the room with an error`() throws {
        let call = Call(seed: 5, returnTimeout: .zero)
        try call.simulation.run(for: .seconds(5))
        call.simulation.killServer()
        try call.simulation.run(for: .seconds(12))
        #expect(!call.ada.isConnected)
        #expect(!call.grace.isConnected)
        #expect(call.grace.endError != nil)
    }

    @Test func `a restarted encoder is shown again within a second and a round trip`() throws {
        let call = Call(seed: 6)
        try call.simulation.run(for: .seconds(5))
        call.ada.restartSources()
        let report = try call.simulation.run(for: .seconds(5))
        let viewer = try #require(report.viewers.first)
        #expect(viewer.shown > 230)
        #expect(viewer.longestFreeze <= .milliseconds(1100))
    }

    /// A keyframe's packets overtake each other on both ways. Each start of a stream that waits for another keyframe costs a
    /// second.
    @Test func `a stream starts within half a second though its first packets arrive in any order`() throws {
        var late = 0
        for seed in UInt64(1)...20 {
            let link = Link(delay: .milliseconds(20), jitter: .milliseconds(15))
            let call = Call(seed: seed, link: link)
            let report = try call.simulation.run(for: .seconds(5))
            let first = try #require(report.viewers.first?.firstFrame)
            if first > .milliseconds(500) { late += 1 }
        }
        #expect(late == 0)
    }

    @Test func `receivers get unbroken numbers through all switches when publishers lose nothing`() throws {
        let simulation = Simulation(seed: 11)
        let publishers = ["ada", "bob"].map { simulation.client($0) }
        let viewers = ["grace", "joan", "mary"].map { simulation.client($0, link: .cellular) }
        simulation.task {
            var videos: [Int] = []
            for publisher in publishers {
                try await publisher.join("kitchen")
                videos.append(try await publisher.publish(VideoFormat(packetsPerFrame: 3)))
            }
            for viewer in viewers { try await viewer.join("kitchen") }
            for _ in 0..<12 {
                for viewer in viewers {
                    for video in videos { try await viewer.subscribe(to: video) }
                    try await simulation.sleep(for: .milliseconds(700))
                    for video in videos { try await viewer.unsubscribe(from: video) }
                }
                publishers[0].restartSources()
            }
        }
        let report = try simulation.run(for: .seconds(45))
        #expect(report.viewers.count == 72)
        #expect(report.viewers.reduce(0) { $0 + $1.shown } > 300)
        #expect(report.missingNumbers == 0)
    }

    @Test func `an error of the application is a failure with the seed and the time`() throws {
        let simulation = Simulation(seed: 9)
        let client = simulation.client("ada")
        simulation.task("early bird") { try await client.publish() }
        let failure = #expect(throws: SimulationFailure.self) { try simulation.run(for: .seconds(1)) }
        #expect(failure?.seed == 9)
        #expect(failure?.problem == "early bird: ada is in no room.")
    }

    @Test func `an application that lets no time pass is a failure`() throws {
        let yielding = Simulation(seed: 10)
        yielding.task { while true { await Task.yield() } }
        let sleeping = Simulation(seed: 10)
        sleeping.task { while true { try await sleeping.sleep(for: .zero) } }
        for simulation in [yielding, sleeping] {
            defer { simulation.end() }
            let failure = #expect(throws: SimulationFailure.self) { try simulation.run(for: .seconds(1)) }
            #expect(failure?.problem.hasPrefix("An application does not wait") == true)
        }
    }

    /// Those with checked encryption are in the scoreboard.
    @Test func `a room with faults and real encryption keeps its promises`() throws {
        var room = FaultyRoom()
        room.clients = 5
        let report = try room.run(seed: 3, encryption: .engine { try OpenSSLSRTP(keys: &$0) })
        #expect(!report.viewers.isEmpty)
    }
}
