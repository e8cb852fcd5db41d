import Foundation
import PeerIO
import PeerLoop
import RoomFixtures
import RoomProtocol
import Testing
import TestSupport

@testable import RoomServer

@Suite(.serialized) struct StatisticsTests {
    @Test func `the statistics count rooms, participants, streams and packets of each loop`() async throws {
        try await withMedia(configured: { $0.threads = 2 }) { server, grant, loop in
            let publisher = try MediaClient(server, grant, room: "kitchen", loop: loop)
            let (up, streams) = try await publisher.publish()
            let other = try join(server, grant.accessToken, room: "garden").0
            let subscriber = try MediaClient(server, grant, room: "kitchen", loop: loop)
            let down = try await subscriber.watch()
            try subscriber.subscribe(streams[0])
            #expect(await packetsFlow(20, from: up, to: down, on: loop))
            let statistics = try readStatistics(of: server)
            #expect(statistics.seconds > 0)
            #expect(statistics.loops.map(\.rooms) == [1, 1])
            #expect(statistics.loops.map(\.participants) == [2, 1])
            #expect(statistics.loops.map(\.streams) == [1, 0])
            #expect(statistics.loops[0].sent >= 20)
            #expect(statistics.loops.map(\.received).reduce(0, +) >= 20)
            for loop in statistics.loops {
                #expect(loop.turns.count > 0)
                #expect(loop.turns.times.map(\.turns).reduce(0, +) == loop.turns.count)
                #expect(loop.turns.longestSeconds <= loop.turns.busySeconds)
                #expect(loop.turns.busySeconds < statistics.seconds)
                #expect(loop.drops.unsent == 0)
            }
            _ = other
            await publisher.close()
            await subscriber.close()
        }
    }

    @Test func `statistics need the service's secret, and name no room`() async throws {
        try await withServer { server, grant in
            let client = try join(server, grant.accessToken, room: "very-secret-name").0
            for authorization in ["", "authorization: Bearer \(grant.accessToken)\r\n", "authorization: Basic !\r\n"] {
                let (status, body) = try self.request(server, authorization)
                #expect(status == 401 && body.contains("-11002"))
            }
            let (status, body) = try request(server, Self.basic("svc:a wrong secret"))
            #expect(status == 401 && body.contains("-11003"))
            let (right, text) = try request(server, Self.basic("svc:a secret"))
            #expect(right == 200 && text.contains("\"rooms\":1") && !text.contains("very-secret-name"))
            #expect(!text.contains(grant.accessToken))
            // A page of another origin in the administrator's browser.
            let (foreign, _) = try request(server, Self.basic("svc:a secret") + "origin: http://elsewhere\r\n")
            #expect(foreign == 403)
            _ = client
        }
    }

    @Test func `a connection can ask for the statistics again`() async throws {
        try await withServer { server, _ in
            let client = try RawClient(port: server.port)
            for _ in 0..<3 {
                let (status, body) = try client.request(
                    "GET /v1/statistics HTTP/1.1\r\nhost: 127.0.0.1:\(server.port)\r\n"
                        + Self.basic("svc:a secret"))
                #expect(status == 200 && body.contains("loops"))
            }
        }
    }

    private static func basic(_ key: String) -> String {
        "authorization: Basic \(Data(key.utf8).base64EncodedString())\r\n"
    }

    private func request(_ server: RoomServer, _ headers: String) throws -> (status: Int, body: String) {
        try RawClient(port: server.port).request(
            "GET /v1/statistics HTTP/1.1\r\nhost: 127.0.0.1:\(server.port)\r\n" + headers)
    }
}
