import RTP
import RoomSimulation
import Testing

// The programs of docs/simulation.md.

@Test func `a viewer survives a cut of three seconds`() throws {
    let simulation = Simulation(seed: 7)
    defer { simulation.end() }
    let ada = simulation.client("ada")
    let grace = simulation.client("grace", link: .cellular)
    simulation.task("kitchen") {
        try await ada.join("kitchen")
        let video = try await ada.publish()
        try await grace.join("kitchen")
        try await grace.subscribe(to: video)
        try await grace.wait { $0.framesShown(of: video) >= 100 }
        grace.cut()
        try await simulation.sleep(for: .seconds(3))
        grace.reconnect()
    }
    let report = try simulation.run(for: .seconds(30))
    let viewer = try #require(report.viewers.first)
    #expect(viewer.longestFreeze < .seconds(5))
    #expect(viewer.shown > 500)
}

@Test(arguments: UInt64(1)...3) func `a room with faults recovers`(seed: UInt64) throws {
    var room = FaultyRoom()
    room.clients = 4
    room.faults = 10
    _ = try room.run(seed: seed)
}
