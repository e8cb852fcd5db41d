import RTP
import RoomSimulation
import TestSupport
import Testing

/// A whole room of hundreds, in one thread.
struct LargeRoomTests {
    @Test func `a large room with faults keeps its promises, from one seed`() throws {
        var room = FaultyRoom()
        room.clients = Soak.rounds(25, soak: 150)
        room.watched = 2
        room.duration = .seconds(36)
        let report = try room.run(seed: 1)
        #expect(report.viewers.count >= 2 * room.clients)
        #expect(report.extremes.memory > 0)
    }
}
