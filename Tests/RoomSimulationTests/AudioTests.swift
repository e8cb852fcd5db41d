import RTP
import RoomSimulation
import Testing

struct AudioTests {
    @Test func `audio is heard without a subscription, and ends with its publisher`() throws {
        let simulation = Simulation(seed: 4)
        defer { simulation.end() }
        let ada = simulation.client("ada"), grace = simulation.client("grace", link: .cellular)
        simulation.task {
            try await grace.join("kitchen")
            try await ada.join("kitchen")
            let video = try await ada.publish()
            let audio = try await ada.publishAudio()
            try await grace.wait { $0.heard == [audio] }
            try await grace.subscribe(to: video)
        }
        try simulation.run(for: .seconds(10))
        ada.kill()
        // The server keeps it for the grace period.
        let report = try simulation.run(for: .seconds(32))
        #expect(grace.heard.isEmpty)
        let listener = try #require(report.listeners.first)
        // 50 packets a second on a link that loses 2 %, or more in bursts. Audio is not repaired.
        #expect(listener.packets > 420 && listener.packets < 500)
        #expect(report.viewers.first.map { $0.shown > 200 } == true)
    }

    @Test func `the slots of all clients are full in a room with faults`() throws {
        var room = FaultyRoom()
        room.clients = 6
        room.watched = 1
        room.audio = 6
        room.duration = .seconds(39)
        let report = try room.run(seed: 2)
        #expect(report.listeners.count >= 6 * 4)
        #expect(report.listeners.reduce(0) { $0 + $1.packets } > 6 * 4 * 500)
    }
}
