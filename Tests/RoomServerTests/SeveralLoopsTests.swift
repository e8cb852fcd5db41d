import Foundation
import NIOCore
import NIOEmbedded
import PeerIO
import PeerLoop
import RTP
import RoomFixtures
import RoomProtocol
import Testing
import TestSupport

@testable import RoomServer
@testable import ServerCore

/// A server whose rooms are on two loops.
@Suite(.serialized) struct SeveralLoopsTests {
    @Test(arguments: RoomServer.ICE.allCases)
    func `rooms share the loops evenly, and media flows in each of them`(ice: RoomServer.ICE) async throws {
        try await withMedia(configured: { ($0.threads, $0.ice) = (2, ice) }) { server, grant, loop in
            let names = ["kitchen", "garden", "hall", "attic"]
            var clients: [MediaClient] = []
            for name in names {
                let publisher = try MediaClient(server, grant, room: name, loop: loop)
                let (up, streams) = try await publisher.publish()
                let subscriber = try MediaClient(server, grant, room: name, loop: loop)
                let down = try await subscriber.watch()
                try subscriber.subscribe(streams[0])
                #expect(await packetsFlow(20, from: up, to: down, on: loop))
                clients += [publisher, subscriber]
            }
            #expect(server.directory.seats.taken == [4, 4])
            for client in clients {
                client.raw.sendMessage(.leave, id: 9)
                _ = try client.raw.message { $0.id == 9 }
                await client.close()
            }
            #expect(server.directory.seats.taken == [0, 0])
        }
    }

    @Test func `all participants of a room are on one loop`() async throws {
        try await withServer(configured: { $0.threads = 2 }) { server, grant in
            let clients = try (0..<5).map { _ in try join(server, grant.accessToken).0 }
            #expect(server.directory.seats.taken == [5, 0])
            let (visitor, joined) = try join(server, grant.accessToken)
            #expect(joined.participants.count == 5)
            _ = (clients, visitor)
        }
    }

    @Test func `a client whose join failed may join a room on another loop`() async throws {
        try await withServer(configured: { $0.threads = 2 }) { server, grant in
            let (kitchen, _) = try join(server, grant.accessToken)
            let client = try RawClient(port: server.port)
            #expect(try client.openWebSocket(port: server.port) == 101)
            #expect(try client.refusal(of: .join(Join(token: "none", room: "kitchen")), id: 1) == "-11005")
            #expect(try client.refusal(of: .subscribe(ViewOfStream(stream: 1)), id: 2) == "protocol.out-of-order")
            #expect(try client.refusal(of: .join(Join(token: grant.accessToken, room: "hall")), id: 3) == nil)
            #expect(server.directory.seats.taken == [1, 1])
            let again = Join(token: grant.accessToken, room: "kitchen")
            #expect(try client.refusal(of: .join(again), id: 4) == "protocol.out-of-order")
            #expect(server.directory.seats.taken == [1, 1])
            _ = kitchen
        }
    }

    @Test func `a join that the loop of the room refuses leaves its seat and its connection free`() async throws {
        let loop = PeerIO.EventLoop(name: "closed")
        let seats = Seats(loops: 1, maximum: 10)
        let certificate = try Certificate()
        let host = RoomHost(loop: loop, seats: seats, log: LogQueue(LogLines().logger), numbers: StreamNumbers()) {
            SessionSettings(loop: $0, certificate: certificate, scope: .loopback, impairment: nil)
        }
        let tokens = AccessTokens()
        let directory = RoomDirectory(hosts: [host], seats: seats, tokens: tokens)
        let wire = Wire()
        let channel = try await NIOAsyncTestingChannel { try $0.pipeline.syncOperations.addHandler(wire) }
        let connection = SignallingConnection(id: 1, channel: channel)
        await host.close()
        let token = try tokens.issue(.everyRoom, lifetime: .seconds(60), now: PeerIO.EventLoop.now).accessToken
        let envelope = Envelope<ClientMessage>(id: 1, .join(Join(token: token, room: "kitchen")))
        directory.received(ClientRequest(envelope), from: connection)
        #expect(await eventually { wire.frames == 1 })
        #expect(seats.taken == [0])
        // NIO cannot describe the channel of a connection that an expectation prints.
        let isBound = connection.host != nil
        #expect(!isBound)
        loop.shutdown()
        // A loop that takes no more work.
        directory.received(ClientRequest(envelope), from: connection)
        #expect(seats.taken == [0])
        let isEnding = connection.isEnding
        #expect(isEnding)
    }

    @Test func `a client that resumes while it is removed is told why, and does not join again`() async throws {
        let loop = PeerIO.EventLoop(name: "busy")
        let seats = Seats(loops: 1, maximum: 10)
        let certificate = try Certificate()
        let host = RoomHost(loop: loop, seats: seats, log: LogQueue(LogLines().logger), numbers: StreamNumbers()) {
            SessionSettings(loop: $0, certificate: certificate, scope: .loopback, impairment: nil)
        }
        let (tokens, removals) = (AccessTokens(), Removals())
        let directory = RoomDirectory(hosts: [host], seats: seats, tokens: tokens, removals: removals)
        seats.occupy(try seats.reserve(in: RoomName("kitchen")), by: "ann")
        let wire = Wire()
        let channel = try await NIOAsyncTestingChannel { try $0.pipeline.syncOperations.addHandler(wire) }
        let connection = SignallingConnection(id: 1, channel: channel)
        let token = try tokens.issue(.everyRoom, lifetime: .seconds(60), now: PeerIO.EventLoop.now).accessToken
        let free = DispatchSemaphore(value: 0)
        loop.execute { free.wait() }
        directory.received(
            ClientRequest(
                Envelope(id: 1, .resume(Resume(token: token, participant: "ann", secret: "secret", received: 1)))),
            from: connection)
        let closing = Closing(reason: .kicked, error: RoomError(.roomReleased, "The administrator removed ann."))
        removals.note("ann", closing, now: PeerIO.EventLoop.now)
        free.signal()
        #expect(await eventually { connection.isEnding })
        // The reason, and the end of the connection.
        #expect(await eventually { wire.frames == 2 })
        await host.close()
        loop.shutdown()
    }

    @Test func `participants of all loops leave with their token, and with their connection`() async throws {
        try await withServer(configured: { $0.threads = 2 }) { server, grant in
            let other = try await Task { try signIn(server) }.value
            var clients: [RawClient] = []
            for room in ["kitchen", "hall"] {
                for token in [grant.accessToken, other.accessToken] {
                    clients.append(try join(server, token, room: room).0)
                }
            }
            #expect(server.directory.seats.taken == [2, 2])
            server.directory.revoked(other.accessToken)
            #expect(await eventually { server.directory.seats.taken == [1, 1] })
            clients = []
            #expect(await eventually { server.directory.seats.taken == [0, 0] })
        }
    }

    @Test func `the limit of participants is for all loops together`() async throws {
        try await withServer(configured: { ($0.threads, $0.maximumParticipants) = (2, 3) }) { server, grant in
            let clients = try ["a", "b", "c"].map { try join(server, grant.accessToken, room: $0).0 }
            let error = #expect(throws: RoomError.self) { try join(server, grant.accessToken, room: "d") }
            #expect(error?.code == .serverFull)
            #expect(server.directory.seats.taken == [2, 1])
            _ = clients
        }
    }

    @Test func `with a port for each loop, a room's media uses the port of its loop`() async throws {
        let ports = try await freePorts(2)
        try await withMedia(configured: { ($0.threads, $0.mediaPorts) = (2, ports) }) { server, grant, loop in
            #expect(server.media?.ports == Int(ports.lowerBound)...Int(ports.upperBound))
            var used: [String?] = []
            var publishers: [MediaClient] = []
            for room in ["kitchen", "garden"] {
                let publisher = try MediaClient(server, grant, room: room, loop: loop)
                let (up, _) = try await publisher.publish()
                #expect(await eventually { await onLoop(loop) { up.value.isSecured } })
                used.append(await onLoop(loop) { up.value.peer.selectedPair?.remote })
                publishers.append(publisher)
            }
            for publisher in publishers { await publisher.close() }
            #expect(used == ports.map { "127.0.0.1:\($0)" })
        }
        let error = await #expect(throws: RoomError.self) {
            try await startServer { ($0.threads, $0.mediaPorts) = (3, ports) }.stop()
        }
        #expect(error?.message.contains("too few for 3 threads") == true)
    }

    /// Ports that were free, one after the other.
    private func freePorts(_ count: UInt16) async throws -> ClosedRange<UInt16> {
        while true {
            let server = try await startServer { $0.mediaPorts = 0...0 }
            let first = try #require(server.media.flatMap { UInt16(exactly: $0.ports.lowerBound) })
            await server.stop()
            guard first < .max - count else { continue }
            let range = first...(first + count - 1)
            guard let both = try? await startServer({ ($0.threads, $0.mediaPorts) = (Int(count), range) }) else {
                continue
            }
            await both.stop()
            return range
        }
    }

    @Test(arguments: [0, 65]) func `a number of threads that no port can have is refused`(threads: Int) async throws {
        let error = await #expect(throws: RoomError.self) { try await startServer { $0.threads = threads }.stop() }
        #expect(error?.message.contains("1 to 64") == true)
    }
}

@Suite struct SeatsTests {
    @Test func `a room is placed on the loop with the fewest participants, and stays there`() throws {
        let seats = Seats(loops: 3, maximum: 100)
        let loops = try ["a", "b", "c", "a", "a", "b", "d", "c", "e"].map {
            try seats.reserve(in: RoomName($0)).loop
        }
        #expect(loops == [0, 1, 2, 0, 0, 1, 2, 2, 1])
        #expect(seats.taken == [3, 3, 3])
    }

    @Test func `a room gets another loop when it is full on those that it has`() throws {
        let seats = Seats(loops: 3, maximum: 100, roomLoopSize: 2)
        _ = try seats.reserve(in: RoomName("other"))
        let room = try RoomName("large")
        let reserved = try (0..<9).map { _ in try seats.reserve(in: room) }
        #expect(reserved.map(\.loop) == [1, 1, 2, 2, 0, 0, 0, 1, 2])
        #expect(seats.loops(of: room) == [0, 1, 2])
        for seat in reserved.suffix(7) { seats.free(seat) }
        #expect(seats.loops(of: room) == [1])
        seats.free(reserved[0])
        #expect(try seats.reserve(in: room).loop == 1)
        #expect(seats.loops(of: try RoomName("none")) == [])
    }

    @Test func `a room that was left is placed again`() throws {
        let seats = Seats(loops: 2, maximum: 100)
        let first = try seats.reserve(in: RoomName("a"))
        let second = try seats.reserve(in: RoomName("a"))
        seats.free(first)
        #expect(try seats.reserve(in: RoomName("b")).loop == 1)
        let third = try seats.reserve(in: RoomName("a"))
        #expect(third.loop == 0)
        seats.free(second)
        seats.free(third)
        for _ in 0..<2 { _ = try seats.reserve(in: RoomName("c")) }
        #expect(try seats.reserve(in: RoomName("a")).loop == 1)
    }
}
