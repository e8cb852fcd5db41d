import PeerLoop
import RTP
import Testing

@testable import RoomProtocol
@testable import ServerCore

/// A burst of packets from another part of a room.
@Suite struct PipeShareTests {
    private let loop = Loop(now: MonotonicTime(nanoseconds: 1_000_000_000))
    private let room: Room
    private let other = PartID(loop: 1, number: 1)

    init() throws {
        room = try partOfRoom(informedBy: other, on: loop)
    }

    private func batch(_ messages: [PipeMessage] = []) -> PipeBatch {
        PipeBatch(room: room.name, from: other, to: nil, messages)
    }

    /// A batch of packets with these numbers, and a message behind them.
    private func batch(_ numbers: Range<Int>, then message: PipeMessage) -> PipeBatch {
        var batch = batch()
        for number in numbers {
            var packet = PacketBuffer()
            let isShort = packet.assign([0x80, 96, 0, UInt8(number % 256)] + [UInt8](repeating: 0, count: 16))
            #expect(isShort)
            guard let header = RTPHeader(parsing: packet) else { continue }
            batch.append(packet, header, at: StreamPosition(epoch: 0, number: number), of: StreamLayerID(stream: 7))
        }
        batch.append(message)
        return batch
    }

    private var stream: PublishedStream? { room.pipes.first?.guests.first?.streams.first }

    /// Lets the loop continue. Returns how often other work could have run.
    private func finish() -> Int {
        var pauses = 0
        while loop.fireNextTimer() { pauses += 1 }
        return pauses
    }

    @Test func `a burst of packets lets other work run in between`() {
        room.receive(batch(0..<1000, then: .entered(ParticipantInfo(id: "p-2", streams: []))))
        #expect(stream?.layers[0].epoch == 0)
        #expect(room.pipes.first?.guests.count == 1)
        #expect(finish() == 1000 / 128)
        #expect(room.pipes.first?.guests.count == 2)
    }

    @Test func `a batch that arrives during a burst waits for its end`() {
        room.receive(batch(0..<200, then: .entered(ParticipantInfo(id: "p-2", streams: []))))
        room.receive(batch([.left("p-2")]))
        #expect(finish() == 1)
        #expect(room.pipes.first?.guests.map(\.info.id) == ["p-1"])
    }

    @Test func `a part that ends during a burst handles the rest of it first`() {
        room.receive(batch(0..<200, then: .ended))
        #expect(room.pipes.count == 1)
        #expect(finish() == 1)
        #expect(room.pipes.isEmpty)
    }

    @Test func `an own end during a burst discards the rest of it`() throws {
        room.receive(batch(0..<200, then: .entered(ParticipantInfo(id: "p-2", streams: []))))
        let pipe = try #require(room.pipes.first)
        room.end()
        #expect(finish() == 1)
        #expect(pipe.guests.isEmpty)
    }

    @Test func `a full pipe drops packets and their streams' clocks, and keeps the clocks of others`() {
        var sent: [PipeBatch] = []
        var links = LoopLinks(place: 0, others: { _ in [] }) { batch, _ in
            sent.append(batch)
            return true
        }
        links.window = 0
        let pipe = Pipe(other, of: room, loop: loop, links: links)
        var packet = PacketBuffer()
        packet.append([UInt8](repeating: 0, count: 16).span)
        packet.bytes[0] = 0x80
        guard let header = RTPHeader(parsing: packet) else { return }
        pipe.carry(packet, header, at: StreamPosition(epoch: 0, number: 1), of: StreamLayerID(stream: 7))
        let clock = SenderClock(ntp: NTPTime(rawValue: 1), rtp: RTPTimestamp(0), at: loop.now, clockRate: 90000)
        for stream in [7, 8] { pipe.send(.clock(StreamLayerID(stream: stream), clock)) }
        loop.endTurn()
        #expect(room.settings.packetsNotPiped == 1)
        let clocks = sent.flatMap(\.messages).compactMap {
            if case .clock(let id, _) = $0.message { id.stream } else { nil }
        }
        #expect(clocks == [8])
    }

    @Test func `a pipe forgets the measurements of a stream that the other part does not want any longer`() throws {
        var told = 0
        let links = LoopLinks(place: 0, others: { _ in [] }) { batch, _ in
            told += batch.messages.count { if case .measured = $0.message { true } else { false } }
            return true
        }
        let room = Room(
            try RoomName("kitchen"), part: PartID(loop: 0, number: 2), links: links,
            settings: .withoutSessions(on: loop))
        room.receive(batch([.introduction([])]))
        let pipe = try #require(room.pipes.first)
        func tell() -> Int {
            pipe.tell(LayerMeasurement(rate: 100_000), of: StreamLayerID(stream: 8))
            loop.endTurn()
            return told
        }
        #expect(tell() == 1 && tell() == 1)
        room.receive(batch([.unwanted(StreamLayerID(stream: 8))]))
        #expect(tell() == 2)
    }
}
