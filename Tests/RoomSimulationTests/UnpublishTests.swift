import RTP
import TestSupport
import Testing

@testable import ClientCore
@testable import RoomSimulation

/// Clients that publish, unpublish and publish again.
struct UnpublishTests {
    @Test func `a viewer loses an unpublished video and sees the next one of its m-line`() throws {
        let simulation = Simulation(seed: 1)
        let ada = simulation.client("ada")
        let grace = simulation.client("grace")
        simulation.task {
            try await ada.join("kitchen")
            try await grace.join("kitchen")
            for round in 0..<3 {
                let video = try await ada.publish()
                try await grace.wait { $0.streams.map(\.id) == [video] }
                try await grace.subscribe(to: video)
                try await grace.wait { $0.framesShown(of: video) > 30 }
                try await ada.unpublish(video)
                try await grace.wait { $0.streams.isEmpty && $0.watched.isEmpty }
                // An up session without streams stays alive.
                if round == 0 { try await simulation.sleep(for: .seconds(60)) }
            }
        }
        let report = try simulation.run(for: .seconds(90))
        #expect(ada.isConnected)
        #expect(report.viewers.count == 3)
        #expect(report.viewers.allSatisfy { $0.shown > 30 && $0.skippedPackets == 0 })
        #expect(report.missingNumbers == 0)
    }

    /// As fast as the server lets a client publish.
    @Test func `m-lines are reused, so that the last of many publications goes on as the first one`() throws {
        let rounds = Soak.rounds(500, soak: 10_000)
        let simulation = Simulation(seed: 3)
        defer { simulation.end() }
        let (ada, grace) = (simulation.client("ada"), simulation.client("grace"))
        let shown = Collected<Int>()
        let lines = Collected<[Substring]>()
        let seconds = Collected<Double>()
        simulation.task {
            for client in [ada, grace] { try await client.join("kitchen") }
            for round in 1...rounds {
                let begun = simulation.time.seconds
                let video = try await ada.publish()
                seconds.append(simulation.time.seconds - begun)
                if round == 1 || round == rounds {
                    try await grace.wait { $0.streams.map(\.id) == [video] }
                    try await grace.subscribe(to: video)
                    try await grace.wait { $0.framesShown(of: video) > 30 }
                    shown.append(grace.framesShown(of: video))
                    lines.append(try #require(ada.connection?.up).offer().split(separator: "\r\n"))
                }
                try await ada.unpublish(video)
                try await simulation.sleep(for: .milliseconds(500))
            }
        }
        try simulation.run(for: .seconds(Int64(rounds) * 6 / 10 + 10))
        try #require(lines.count == 2 && seconds.count == rounds && ada.isConnected)
        let (first, last) = (lines.all[0], lines.all[1])
        #expect(last.count { $0.hasPrefix("m=") } == 1 && last.count == first.count)
        let slowest = seconds.all.dropFirst().max() ?? 0
        print("the slowest of \(rounds) publications took \(slowest) s, and the first one \(seconds.all[0]) s")
        // Links differ from packet to packet.
        #expect(slowest < 2 * seconds.all[0])
    }

    @Test func `a video that ends cannot be ended again`() throws {
        let simulation = Simulation(seed: 2)
        let ada = simulation.client("ada")
        simulation.task("again") {
            try await ada.join("kitchen")
            let video = try await ada.publish()
            try await ada.unpublish(video)
            try await ada.unpublish(video)
        }
        let failure = #expect(throws: SimulationFailure.self) { try simulation.run(for: .seconds(5)) }
        #expect(failure?.problem == "again: This client does not publish stream 1.")
    }

    /// Every client ends its video and publishes another one again and again, on links with loss and with cuts. At the
    /// end, all see the last video of each.
    @Test(arguments: 1...UInt64(Soak.rounds(3, soak: 6)))
    func `videos that end and begin under faults are seen by all in the end`(
        seed: UInt64
    ) throws {
        let simulation = Simulation(seed: seed)
        defer { simulation.end() }
        let links = [Link.wired, .wifi, .cellular, .wifi]
        let clients = links.enumerated().map { simulation.client("client \($0)", link: $1) }
        for (index, client) in clients.enumerated() {
            simulation.task(client.name) { try await Self.publishAgainAndAgain(client, in: simulation) }
            simulation.task("\(client.name) watches") { try await Self.watch(client, in: simulation) }
            let begin = TimeInterval.milliseconds(Int64(4000 + 3500 * index) + Int64(seed * 317))
            simulation.after(begin) { client.cut() }
            simulation.after(begin + .milliseconds(Int64(500 * (index + 1)))) { client.reconnect() }
        }
        try simulation.run(for: .seconds(40))
        for client in clients {
            #expect(client.isConnected)
            #expect(client.streams.count == clients.count - 1)
            #expect(Set(client.watched) == Set(client.streams.map(\.id)))
        }
        let before = clients.map { client in client.watched.map { client.framesShown(of: $0) } }
        try simulation.run(for: .seconds(5))
        for (client, before) in zip(clients, before) {
            let shown = zip(client.watched, before).map { client.framesShown(of: $0) - $1 }
            #expect(shown.allSatisfy { $0 > 50 }, "\(client.name) has shown \(shown)")
        }
    }

    private static func publishAgainAndAgain(_ client: SimulatedClient, in simulation: Simulation) async throws {
        try await client.join("room")
        while true {
            let video = try await client.publish(VideoFormat(packetsPerKeyframe: 3))
            guard simulation.time < .seconds(25) else { return }
            try await simulation.sleep(for: .milliseconds(700))
            try await client.unpublish(video)
        }
    }

    private static func watch(_ client: SimulatedClient, in simulation: Simulation) async throws {
        try await client.wait(until: \.isConnected)
        while true {
            let known = client.streams
            guard let next = known.first(where: { !client.watched.contains($0.id) }) else {
                try await client.wait { $0.streams != known }
                continue
            }
            // It may have ended meanwhile.
            do { try await client.subscribe(to: next.id) } catch { try await simulation.sleep(for: .milliseconds(100)) }
        }
    }
}
