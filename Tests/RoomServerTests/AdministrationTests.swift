import Dispatch
import Foundation
import RTP
import RoomFixtures
import RoomProtocol
import ServerCore
import Testing
import TestSupport

@testable import RoomServer

private final class NoRooms: SignallingDelegate {
    func received(_ request: ClientRequest, from connection: SignallingConnection) {}
    func disconnected(_ connection: SignallingConnection, lost: MonotonicTime?) {}
    func findLastMedia(from connection: SignallingConnection, then: @escaping @Sendable (MonotonicTime) -> Void) {}
}

/// The requests of an administrator over HTTP.
@Suite(.serialized) struct AdministrationTests {
    private func request(
        _ method: String, _ path: String, _ server: RoomServer, key: String = "svc:a secret", headers: String = ""
    ) throws -> (status: Int, body: String) {
        try RawClient(port: server.port).request(
            "\(method) \(path) HTTP/1.1\r\nhost: 127.0.0.1:\(server.port)\r\n"
                + "authorization: Basic \(Data(key.utf8).base64EncodedString())\r\n" + headers)
    }

    private func rooms(of server: RoomServer) throws -> [RoomList.Room] {
        let (status, body) = try request("GET", "/v1/rooms", server)
        #expect(status == 200)
        return try JSONDecoder().decode(RoomList.self, from: Data(body.utf8)).rooms
    }

    private func closing(_ client: RawClient) throws -> Closing? {
        let message = try client.message { envelope in
            if case .closed = envelope.message { true } else { false }
        }
        guard case .closed(let closing) = message.message else { return nil }
        return closing
    }

    @Test func `the list has each room's participants on all loops, and the streams that they publish`() async throws {
        try await withServer(configured: { ($0.threads, $0.roomLoopSize) = (2, 1) }) { server, grant in
            #expect(try rooms(of: server).isEmpty)
            let (first, one) = try join(server, grant.accessToken)
            let (second, two) = try join(server, grant.accessToken)
            let (other, three) = try join(server, grant.accessToken, room: "garden")
            _ = try first.publish([.vp8, .opus])
            func entry(_ id: String, _ streams: Int) -> RoomList.Participant {
                .init(id: id, streams: streams, isConnected: true)
            }
            let list = try rooms(of: server)
            #expect(list.map(\.name) == ["garden", "kitchen"])
            #expect(list.first?.participants == [entry(three.participant, 0)])
            #expect(Set(list.last?.participants.map(\.id) ?? []) == [one.participant, two.participant])
            #expect(list.last?.participants.contains(entry(one.participant, 2)) == true)
            _ = (second, other)
        }
    }

    @Test func `an answer of several MiB arrives whole, and so does the next one of the connection`() async throws {
        let loop = ServerStatistics.Loop(
            rooms: 1, participants: 2, streams: 3, received: 4, sent: 5, handedOver: 6,
            turns: .init(count: 0, busySeconds: 0, longestSeconds: 0, times: []),
            drops: .init(
                unread: 0, unsent: 0, notTakenOver: 0, notPiped: 0, outgoingFull: 0, unprotectable: 0, ignored: 0),
            queues: .init(work: 0, unsent: 0))
        let whole = ServerStatistics(seconds: 1, loops: Array(repeating: loop, count: 20_000))
        let routes = Routes(
            service: ServiceKey(id: "svc", secret: "a secret"), tokens: AccessTokens(),
            origins: OriginPolicy(isLoopbackOnly: false, isOpen: true), revoked: { _ in }, statistics: { whole },
            administration: Administration(hosts: [], removals: Removals()))
        let delegate = NoRooms()
        let listener = try await HTTPListener.start(
            host: "127.0.0.1", ports: 0...0, routes: routes, messagePace: Pace(burst: 1, interval: .seconds(1)),
            delegate: delegate)
        let port = listener.port
        @Sendable func request() throws -> [String] {
            let client = try RawClient(port: port)
            let key = Data("svc:a secret".utf8).base64EncodedString()
            return try ["statistics", "health"].map { path in
                try client.request(
                    "GET /v1/\(path) HTTP/1.1\r\nhost: 127.0.0.1:\(port)\r\nauthorization: Basic \(key)\r\n"
                ).body
            }
        }
        // The answer is made on the threads of tasks, of which a client that waits must take none.
        let answers = try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(with: Result { try request() }) }
        }
        await listener.stop()
        #expect(answers[0].utf8.count > 4 * HTTPListener.maximumUnsent)
        #expect(try JSONDecoder().decode(ServerStatistics.self, from: Data(answers[0].utf8)) == whole)
        #expect(answers[1].contains("ok"))
    }

    @Test func `only the service's secret lists and ends rooms, and no page of another server does`() async throws {
        try await withServer { server, grant in
            let (client, me) = try join(server, grant.accessToken)
            let paths = [
                ("GET", "/v1/rooms"), ("DELETE", "/v1/rooms/kitchen"),
                ("DELETE", "/v1/rooms/kitchen/participants/\(me.participant)"),
            ]
            for (method, path) in paths {
                #expect(try request(method, path, server, key: "svc:wrong").status == 401)
                #expect(try request(method, path, server, headers: "origin: http://elsewhere\r\n").status == 403)
            }
            for path in ["/v1/rooms/", "/v1/rooms/a%20b", "/v1/rooms/%ff", "/v1/rooms//participants/x"] {
                #expect(try request("DELETE", path, server).status == 400)
            }
            for path in ["/v1/rooms/kitchen/participants", "/v1/rooms/kitchen/streams/1", "/v1/rooms/a/b/c/d"] {
                #expect(try request("DELETE", path, server).status == 404)
            }
            #expect(try rooms(of: server).map(\.participants.count) == [1])
            _ = client
        }
    }

    @Test func `a removed participant is told so, and the others see that it left`() async throws {
        try await withServer { server, grant in
            let (stays, _) = try join(server, grant.accessToken)
            let (goes, gone) = try join(server, grant.accessToken)
            let path = "/v1/rooms/kitchen/participants/\(gone.participant)"
            let (status, body) = try request("DELETE", path, server)
            #expect(status == 200)
            #expect(try JSONDecoder().decode(Removal.self, from: Data(body.utf8)).participants == [gone.participant])
            #expect(try closing(goes)?.reason == .kicked)
            #expect(goes.isClosedByServer())
            _ = try stays.message { envelope in
                if case .participantLeft(let left) = envelope.message {
                    left.participant == gone.participant
                } else {
                    false
                }
            }
            let (again, refusal) = try request("DELETE", path, server)
            #expect(again == 404 && refusal.contains("participant.unknown"))
            // Its token is still valid.
            _ = try join(server, grant.accessToken)
        }
    }

    @Test func `a room that is ended ends on all its loops, and may begin again`() async throws {
        try await withServer(configured: { ($0.threads, $0.roomLoopSize) = (2, 1) }) { server, grant in
            let clients = try (0..<3).map { _ in try join(server, grant.accessToken).0 }
            let (other, _) = try join(server, grant.accessToken, room: "garden")
            #expect(try request("DELETE", "/v1/rooms/kitchen", server).status == 200)
            for client in clients {
                #expect(
                    try closing(client)
                        == Closing(
                            reason: .destroyed, error: RoomError(.roomEnded, "The administrator ended the room.")))
            }
            #expect(try rooms(of: server).map(\.name) == ["garden"])
            await eventually("the seats") { server.directory.seats.taken.reduce(0, +) == 1 }
            let (status, body) = try request("DELETE", "/v1/rooms/kitchen", server)
            #expect(status == 404 && body.contains("room.unknown"))
            _ = try join(server, grant.accessToken)
            _ = other
        }
    }

    @Test func `a participant that is removed while its connection is lost cannot resume, and is told why`()
        async throws
    {
        try await withServer { server, grant in
            let client = try RawClient(port: server.port)
            #expect(try client.openWebSocket(port: server.port) == 101)
            client.sendMessage(.join(Join(token: grant.accessToken, room: "kitchen", resume: true)), id: 1)
            guard case .joined(let joined) = try client.message(where: { $0.id == 1 }).message,
                let terms = joined.resume
            else { throw RoomError(.enterResponseInvalid, "not joined") }
            client.endSending()
            await eventually("the loss") {
                (try? rooms(of: server))?.first?.participants.first?.isConnected == false
            }
            #expect(
                try request("DELETE", "/v1/rooms/kitchen/participants/\(joined.participant)", server).status == 200)
            let next = try RawClient(port: server.port)
            #expect(try next.openWebSocket(port: server.port) == 101)
            next.sendMessage(
                .resume(
                    Resume(
                        token: grant.accessToken, participant: joined.participant, secret: terms.secret, received: 1)),
                id: 1)
            #expect(try closing(next)?.reason == .kicked)
            #expect(next.isClosedByServer())
        }
    }
}
