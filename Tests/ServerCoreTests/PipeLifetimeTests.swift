import PeerLoop
import RTP
import Testing

@testable import RoomProtocol
@testable import ServerCore

@Suite struct PipeLifetimeTests {
    /// The streams of another part of a room, and this part's end of the pipe, which a test ends.
    private func streamsAfter(_ end: (Room, Pipe) -> Void) throws -> (stream: Bool, pipe: Bool) {
        let loop = Loop(now: MonotonicTime(nanoseconds: 1_000_000_000))
        var room: Room? = try partOfRoom(informedBy: PartID(loop: 1, number: 1), on: loop)
        weak var pipe: Pipe?
        weak var stream: PublishedStream?
        do {
            pipe = room?.pipes.first
            stream = pipe?.guests.first?.streams.first
            loop.endTurn()
        }
        #expect(pipe != nil && stream != nil)
        if let room, let pipe { end(room, pipe) }
        loop.endTurn()
        room = nil
        return (stream != nil, pipe != nil)
    }

    @Test func `a stream passes on five clocks a second at most`() throws {
        _ = try streamsAfter { room, pipe in
            guard let stream = pipe.guests.first?.streams.first else { return }
            func clock(at milliseconds: UInt64) -> MonotonicTime? {
                room.receive(
                    PipeBatch(
                        room: room.name, from: pipe.other, to: nil,
                        [
                            .clock(
                                StreamLayerID(stream: 7),
                                SenderClock(
                                    ntp: NTPTime(unixNanoseconds: 0), rtp: RTPTimestamp(0),
                                    at: MonotonicTime(nanoseconds: milliseconds * 1_000_000), clockRate: 90000))
                        ]))
                return stream.layers[0].clock?.at
            }
            let first = clock(at: 1000)
            #expect(first != nil)
            #expect(clock(at: 1199) == first)
            #expect(clock(at: 1200) != first)
        }
    }

    @Test func `a part that ends releases the streams of the other parts`() throws {
        let left = try streamsAfter { room, _ in room.end() }
        #expect(!left.stream)
        #expect(!left.pipe)
    }

    @Test func `a part releases the streams of another part that ends`() throws {
        let left = try streamsAfter { room, pipe in
            room.receive(PipeBatch(room: room.name, from: pipe.other, to: nil, [.ended]))
        }
        #expect(!left.stream)
        #expect(!left.pipe)
    }
}
