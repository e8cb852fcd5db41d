import PeerIO
import PeerLoop
import RTP
import RoomFixtures
import RoomProtocol
import Testing
import TestSupport

@testable import RoomServer
@testable import ServerCore

@Suite(.serialized) struct CaptureTimeTests {
    @Test func `capture times of a later offer are read, and are exact once the publisher's clock is known`()
        async throws
    {
        try await withMedia { server, grant, loop in
            let publisher = try MediaClient(server, grant, loop: loop)
            let viewer = try MediaClient(server, grant, loop: loop)
            let (session, streams) = try await publisher.publish(midExtension: 4)
            let more = await onLoop(loop) { session.value.offerMore(midExtension: 4, captureTime: 5) }
            publisher.raw.sendMessage(.publish(more), id: 1001)
            _ = try publisher.raw.message { $0.id == 1001 }
            let watching = try await viewer.watch()
            try viewer.subscribe(streams[0])
            #expect(await eventually { await onLoop(loop) { session.value.isSecured } })
            let isExact = await eventually(within: 20) {
                await onLoop(loop) {
                    let time = NTPTime(unixNanoseconds: loop.now.nanoseconds)
                    session.value.peer.setClock(
                        session.value.senders[0], ntp: time, rtp: RTPTimestamp(0), at: loop.now)
                    session.value.send(captured: AbsoluteCaptureTime(time, clockOffset: 0))
                    return watching.value.received.contains { $0.captureTime?.clockOffset == 0 }
                }
            }
            #expect(isExact)
            // Before the publisher replied, its clock was unknown.
            let first = await onLoop(loop) { watching.value.received.first?.captureTime }
            #expect(first != nil && first?.clockOffset == nil)
            await publisher.close()
            await viewer.close()
        }
    }
}

@Suite struct PipeBatchTests {
    @Test func `the size of a batch is at least its memory`() throws {
        var batch = PipeBatch(room: try RoomName("kitchen"), from: PartID(loop: 0, number: 0), to: nil)
        let packet = vp8(1)
        guard let header = RTPHeader(parsing: packet) else { return }
        for number in 0..<100 {
            batch.append(
                packet, header, at: StreamPosition(epoch: 0, number: number), of: StreamLayerID(stream: 1))
        }
        #expect(batch.size >= batch.bytes.count + batch.packets.count * MemoryLayout<PipeBatch.Packet>.stride)
    }
}
