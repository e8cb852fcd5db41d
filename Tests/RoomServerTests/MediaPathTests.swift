import PeerIO
import PeerLoop
import RoomProtocol
import Testing
import TestSupport

@testable import RoomServer

/// How media finds its way between clients and the server.
@Suite(.serialized) struct MediaPathTests {
    @Test(arguments: RoomServer.ICE.allCases)
    func `media flows from a publisher to a subscriber`(ice: RoomServer.ICE) async throws {
        try await withMedia(configured: { $0.ice = ice }) { server, grant, loop in
            let publisher = try MediaClient(server, grant, loop: loop)
            let (up, streams) = try await publisher.publish()
            let subscriber = try MediaClient(server, grant, loop: loop)
            let down = try await subscriber.watch()
            try subscriber.subscribe(streams[0])
            #expect(await packetsFlow(20, from: up, to: down, on: loop))
            await publisher.close()
            await subscriber.close()
        }
    }

    @Test func `all sessions use the port of the server`() async throws {
        try await withMedia(configured: { $0.ice = .lite }) { server, grant, loop in
            let media = try #require(server.media)
            #expect(media.addresses == ["127.0.0.1"])
            let publisher = try MediaClient(server, grant, loop: loop)
            let (up, _) = try await publisher.publish()
            #expect(await eventually { await onLoop(loop) { up.value.isSecured } })
            let pair = await onLoop(loop) { up.value.peer.selectedPair }
            #expect(pair?.remote == "127.0.0.1:\(media.ports.lowerBound)")
            await publisher.close()
        }
    }

    @Test func `a chosen media port that is in use prevents the start, and another is used for the default`()
        async throws
    {
        let first = try await startServer { $0.ice = .lite }
        let port = try #require(first.media?.ports.lowerBound)
        let error = await #expect(throws: RoomError.self) {
            try await startServer {
                $0.ice = .lite
                $0.mediaPorts = UInt16(port)...UInt16(port)
            }.stop()
        }
        #expect(error?.code == .portInUse)
        #expect(error?.message.contains("\(port)") == true)
        let second = try await startServer {
            $0.ice = .lite
            $0.port = port
        }
        #expect(second.media.map { $0.ports != port...port } == true)
        #expect(second.media?.busyPort == port)
        #expect(first.media?.busyPort == nil)
        await second.stop()
        await first.stop()
    }

    @Test func `clients are told the public address first`() async throws {
        let server = try await startServer {
            $0.ice = .lite
            $0.publicAddresses = ["203.0.113.5"]
        }
        #expect(server.media?.addresses == ["203.0.113.5", "127.0.0.1"])
        await server.stop()
    }
}
