import Foundation
import Glibc
import RTP
import RoomFixtures
import RoomProtocol
import TestFixtures
import Testing
import TestSupport

@testable import RoomServer

@Suite("S18 sessions opened and dropped", .serialized) struct QuotaTests {
    @Test func `a full server refuses participants with a code, and accepts others when some have left`() async throws {
        try await withServer(configured: { $0.maximumParticipants = 3 }) { server, grant in
            var clients = try (0..<3).map { _ in try join(server, grant.accessToken).0 }
            let error = #expect(throws: RoomError.self) { try join(server, grant.accessToken) }
            #expect(error?.code == .serverFull)
            clients[0].sendMessage(.leave, id: 2)
            _ = try clients[0].message { $0.id == 2 }
            clients.append(try join(server, grant.accessToken).0)
        }
    }

    @Test func `a page's token is for as many participants as a page may need, at a time`() async throws {
        try await withServer { server, _ in
            let (_, body) = try RawClient(port: server.port).request(
                "GET /v1/page-token?room=kitchen HTTP/1.1\r\nhost: 127.0.0.1:\(server.port)\r\n")
            let token = try JSONDecoder().decode(AccessGrant.self, from: Data(body.utf8)).accessToken
            var clients = try (0..<Seats.perPageToken).map { _ in try join(server, token).0 }
            let error = #expect(throws: RoomError.self) { try join(server, token) }
            #expect(error?.code == .tooManyRequests)
            clients[0].sendMessage(.leave, id: 2)
            _ = try clients[0].message { $0.id == 2 }
            clients.append(try join(server, token).0)
        }
    }

    @Test func `a client that sends a lot before it joins loses its connection`() async throws {
        try await withServer { server, grant in
            let client = try RawClient(port: server.port)
            #expect(try client.openWebSocket(port: server.port) == 101)
            // The begin of a frame of 256 KiB that never ends.
            client.send([0x81, 0x80 | 127, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0])
            client.send([UInt8](repeating: 32, count: JoinLimitHandler.limit))
            #expect(throws: RawClientError.self) { try client.message { _ in false } }
            // Clients that have joined may send as much, also at once.
            let ping = Envelope(id: 7, ClientMessage.ping).json() + String(repeating: " ", count: 20_000)
            let frame = client.frame(Array(ping.utf8))
            for _ in 0..<20 {
                let (joined, _) = try join(server, grant.accessToken)
                joined.send(frame)
                _ = try joined.message { $0.id == 7 }
            }
        }
    }

    /// 100,000 sessions in `make soak`.
    @Test func `sessions that are opened and dropped leave no descriptors, threads or memory`() async throws {
        let rounds = Soak.rounds(30, soak: 1000)
        try await withMedia { server, grant, loop in
            var before: (descriptors: Int, threads: Int, kilobytes: Int)?
            for round in 0..<rounds {
                let crowd = try await Crowd(50, in: server, token: grant.accessToken, room: "hall", loop: loop)
                crowd.join()
                crowd.announceUnheard()
                await crowd.leave()
                // The rooms have handled all of it, and the end of the turn has closed the sockets.
                _ = await server.busiestTurn
                #expect(await server.portCounts == (0, 0))
                let now = (entries(of: "/proc/self/fd"), entries(of: "/proc/self/task"), residentKilobytes())
                // The first rounds fill caches.
                if round == rounds / 2 { before = now }
                guard let before, round == rounds - 1 else { continue }
                #expect(now.0 <= before.descriptors + 4)
                #expect(now.1 <= before.threads + 4)
                // A leaked session takes more than 30 KB.
                #expect(now.2 - before.kilobytes < (rounds - 1 - rounds / 2) * 100 * 8)
            }
        }
    }
}

func entries(of folder: String) -> Int {
    (try? FileManager.default.contentsOfDirectory(atPath: folder).count) ?? 0
}

private func residentKilobytes() -> Int {
    let pages = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8))?.split(separator: " ") ?? []
    return pages.count > 1 ? (Int(pages[1]) ?? 0) * 4 : 0
}
