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

    /// 0.1 % are left by two copies on one link, and twice that on two. The first reports take a few seconds.
    @Test(arguments: [LossRow.Place.viewer, .publisher, .both])
    func `with 10 % loss, less than one packet of audio in a hundred is missing after 60 ms`(
        place: LossRow.Place
    ) throws {
        let outcome = try LossRow(place, loss: 0.1, roundTrip: 200).runAudio(seconds: 60, seed: 1, payload: 160)
        #expect(outcome.arrivals.count == 3000)
        #expect(outcome.missing < 30)
    }

    /// Congestion control lets little video through at such losses. Audio does not wait behind that.
    @Test func `with 20 % loss, audio is not held back`() throws {
        let outcome = try LossRow(loss: 0.2, roundTrip: 100).runAudio(seconds: 60, seed: 1, payload: 160)
        #expect(outcome.missing < 90)
    }

    @Test func `without losses, audio has no copies`() throws {
        let outcome = try LossRow(loss: 0, roundTrip: 100).runAudio(seconds: 30, seed: 1, payload: 160)
        #expect(outcome.missing == 0 && outcome.copiedBytes == 0)
    }
}
