import Foundation
import Glibc
import NIOCore
import RTP
import RoomFixtures
import RoomProtocol
import TestSupport
import Testing

@testable import RoomServer

@Suite(.serialized) struct RoomServerTests {
    @Test func `a wrong secret is refused with a message and a code`() async throws {
        try await withServer { server, _ in
            let error = #expect(throws: RoomError.self) { try signIn(server, secret: "another") }
            #expect(error?.code == .serviceInvalid)
        }
    }

    @Test func `a new participant learns the others, and they learn who enters and leaves`() async throws {
        try await withServer { server, grant in
            let (first, alone) = try join(server, grant.accessToken)
            #expect(alone.participants.isEmpty)
            let (second, joined) = try join(server, grant.accessToken)
            #expect(joined.participants.map(\.id) == [alone.participant])
            let entered = try first.message { if case .participantEntered = $0.message { true } else { false } }
            #expect(
                entered.message
                    == .participantEntered(
                        ParticipantEntered(participant: ParticipantInfo(id: joined.participant, streams: []))))
            second.sendMessage(.leave, id: 2)
            #expect(try second.message { $0.id == 2 }.message == .left)
            let left = try first.message { if case .participantLeft = $0.message { true } else { false } }
            #expect(left.message == .participantLeft(ParticipantReference(participant: joined.participant)))
        }
    }

    @Test func `the down session has four audio slots and nine video receivers of all codecs`() async throws {
        try await withServer { server, grant in
            let (client, _) = try join(server, grant.accessToken)
            let message = try client.message { if case .offer = $0.message { true } else { false } }
            guard case .offer(let description) = message.message else { return }
            let offer = try SessionDescription(parsing: description.sdp)
            #expect(offer.media.count { $0.kind == .audio } == 4)
            let videos = offer.media.filter { $0.kind == .video }
            #expect(videos.count == 9)
            #expect(videos.allSatisfy { NegotiatedCodec.all(in: $0).map(\.codec) == [.vp8, .h264, .vp9] })
            #expect(offer.transport?.candidates.isEmpty == false)
            #expect(offer.transport?.candidates.allSatisfy { $0.contains(" 127.0.0.1 ") } == true)
        }
    }

    @Test func `an unknown message gets an error and the connection continues`() async throws {
        try await withServer { server, grant in
            let (client, _) = try join(server, grant.accessToken)
            client.sendText(#"{"type":"dance","id":5}"#)
            let refused = try client.message { $0.id == 5 }
            guard case .error(let problem) = refused.message else {
                Issue.record("\(refused)")
                return
            }
            #expect(problem.code == "protocol.unknown-message")
            client.sendMessage(.ping, id: 6)
            #expect(try client.message { $0.id == 6 }.message == .pong)
        }
    }

    @Test func `an unknown message that is no request is ignored`() async throws {
        try await withServer { server, grant in
            let (client, _) = try join(server, grant.accessToken)
            _ = try client.message { if case .offer = $0.message { true } else { false } }
            client.sendText(#"{"type":"dance"}"#)
            client.sendMessage(.ping, id: 6)
            let next = try client.message { if case .candidate = $0.message { false } else { true } }
            #expect(next == Envelope(id: 6, .pong))
        }
    }

    @Test func `a client of a later version joins with the version that the server has, or is refused`() async throws {
        try await withServer { server, grant in
            let client = try RawClient(port: server.port)
            #expect(try client.openWebSocket(port: server.port) == 101)
            let future = Join(version: 3, versions: [2, 3], token: grant.accessToken, room: "kitchen")
            #expect(try client.refusal(of: .join(future), id: 1) == "protocol.version")
            client.sendMessage(
                .join(Join(version: 3, versions: [1, 3], token: grant.accessToken, room: "kitchen")), id: 2)
            guard case .joined(let joined) = try client.message(where: { $0.id == 2 }).message else {
                Issue.record("The client did not join.")
                return
            }
            #expect(joined.version == 1)
        }
    }

    @Test func `the server tells whether a token is valid`() async throws {
        try await withServer { server, grant in
            func check(_ authorization: String, _ method: String = "GET") throws -> String {
                let (status, body) = try RawClient(port: server.port).request(
                    "\(method) /v1/sign-\(method == "GET" ? "in" : "out") HTTP/1.1\r\nhost: 127.0.0.1:\(server.port)\r\n"
                        + authorization)
                let problem = try? JSONDecoder().decode(Problem.self, from: Data(body.utf8))
                return "\(status) \(problem?.code ?? "")"
            }
            let valid = "authorization: Bearer \(grant.accessToken)\r\n"
            let wrong = ["", "authorization: Bearer made-up\r\n", "authorization: Basic \(grant.accessToken)\r\n"]
            let before = try ([valid, valid] + wrong).map { try check($0) }
            #expect(before == ["204 ", "204 ", "401 -11005", "401 -11005", "401 -11005"])
            let after = [try check(valid, "POST"), try check(valid)]
            #expect(after == ["204 ", "401 -11005"])
        }
    }

    @Test func `a participant gets the receivers that it asks for, up to the limit of the server`() async throws {
        try await withServer(configured: { $0.maximumReceivers = RoomServer.receiverLimit }) { server, grant in
            for (asked, granted) in [(30, 30), (100, 60)] {
                let client = try RawClient(port: server.port)
                #expect(try client.openWebSocket(port: server.port) == 101)
                let pool = ReceiverPool(initial: asked, maximum: asked, growth: 1)
                client.sendMessage(.join(Join(token: grant.accessToken, room: "kitchen", receivers: pool)), id: 1)
                guard case .joined(let joined) = try client.message(where: { $0.id == 1 }).message,
                    case .offer(let offer) = try client.message(where: {
                        if case .offer = $0.message { true } else { false }
                    }).message
                else {
                    Issue.record("The client did not join.")
                    return
                }
                #expect(joined.receivers?.maximum == granted)
                let description = try SessionDescription(parsing: offer.sdp)
                #expect(description.media.count { $0.kind == .video } == granted)
            }
        }
    }

    @Test func `signing out ends every participant that joined with the token`() async throws {
        try await withServer { server, grant in
            let (client, _) = try join(server, grant.accessToken)
            let (status, _) = try RawClient(port: server.port).request(
                "POST /v1/sign-out HTTP/1.1\r\nhost: 127.0.0.1:\(server.port)\r\n"
                    + "authorization: Bearer \(grant.accessToken)\r\n")
            #expect(status == 204)
            _ = try client.message { if case .closed = $0.message { true } else { false } }
            #expect(client.isClosedByServer())
            let error = #expect(throws: RoomError.self) { try join(server, grant.accessToken) }
            #expect(error?.code == .tokenInvalid)
        }
    }

    @Test func `a server that stops notifies its participants that the room is destroyed`() async throws {
        let server = try await startServer()
        let client = try join(server, signIn(server).accessToken).0
        await server.stop()
        let message = try client.message { if case .closed = $0.message { true } else { false } }
        guard case .closed(let closing) = message.message else { return }
        #expect(closing.reason == .destroyed)
    }

    @Test func `the page's token permits its one room and no other`() async throws {
        try await withServer { server, _ in
            let (status, body) = try RawClient(port: server.port).request(
                "GET /v1/page-token?room=kitchen HTTP/1.1\r\nhost: 127.0.0.1:\(server.port)\r\n")
            #expect(status == 200)
            let grant = try JSONDecoder().decode(AccessGrant.self, from: Data(body.utf8))
            _ = try join(server, grant.accessToken)
            let error = #expect(throws: RoomError.self) { try join(server, grant.accessToken, room: "cellar") }
            #expect(error?.code == .forbidden)
        }
    }

    @Test func `a used port is refused with a message, or the next free one is used`() async throws {
        try await withServer { server, _ in
            var configuration = server.configuration
            configuration.port = server.port
            let taken = configuration
            let error = await #expect(throws: RoomError.self) { try await RoomServer.start(taken).stop() }
            #expect(error?.code == .portInUse)
            #expect(error?.message.contains(String(server.port)) == true)
            configuration.portsTried = 50
            let second = try await RoomServer.start(configuration)
            #expect(second.port > server.port)
            await second.stop()
        }
    }
}

@Suite("S14 hostile WebSockets", .serialized) struct HostileWebSocketTests {
    @Test func `a foreign origin is refused`() async throws {
        try await withServer { server, _ in
            let client = try RawClient(port: server.port)
            #expect(try client.openWebSocket(port: server.port, headers: "origin: http://evil.example\r\n") == 403)
        }
    }

    @Test func `a message of 100 MB closes the connection after the first bytes of it`() async throws {
        try await withServer { server, grant in
            let (client, _) = try join(server, grant.accessToken)
            var head = client.frame([])
            head[1] = 0x80 | 127
            let length = (0..<8).reversed().map { UInt8(truncatingIfNeeded: 100_000_000 >> ($0 * 8)) }
            head.insert(contentsOf: length, at: 2)
            client.send(head)
            #expect(client.isClosedByServer())
            _ = try join(server, grant.accessToken)
        }
    }

    @Test func `a client that does not read is dropped while others continue`() async throws {
        try await withServer(configured: { $0.messageBurst = 10_000_000 }) { server, grant in
            let (slow, _) = try join(server, grant.accessToken)
            // Each of these gets an error that repeats nothing; the responses pile up unread.
            let question = slow.frame(Array(#"{"type":"subscribe","id":1,"stream":1}"#.utf8))
            let many = Array(repeatElement(question, count: 64).joined())
            var rounds = 0
            while rounds < 20_000, slow.send(many) { rounds += 1 }
            #expect(rounds < 20_000)
            let (other, _) = try join(server, grant.accessToken)
            other.sendMessage(.ping, id: 3)
            #expect(try other.message { $0.id == 3 }.message == .pong)
        }
    }

    @Test func `a client that sends too many messages gets an error, and is dropped`() async throws {
        try await withServer(configured: { $0.messageBurst = 50 }) { server, grant in
            let (client, _) = try join(server, grant.accessToken)
            let question = client.frame(Array(#"{"type":"ping","id":1}"#.utf8))
            client.send(Array(repeatElement(question, count: 60).joined()))
            let closed = try client.message { if case .closed = $0.message { true } else { false } }
            guard case .closed(let closing) = closed.message else { return }
            #expect(closing.code == RoomError.Code.tooManyRequests.name)
            #expect(client.isClosedByServer())
        }
    }

    @Test func `a client that sends too many bytes gets an error, and is dropped`() async throws {
        try await withServer { server, grant in
            let (client, _) = try join(server, grant.accessToken)
            let padding = String(repeating: "x", count: 200 * 1024)
            let question = client.frame(Array(#"{"type":"ping","id":1,"padding":"\#(padding)"}"#.utf8))
            client.send(Array(repeatElement(question, count: 12).joined()))
            let closed = try client.message { if case .closed = $0.message { true } else { false } }
            guard case .closed(let closing) = closed.message else { return }
            #expect(closing.code == RoomError.Code.tooManyRequests.name)
            #expect(client.isClosedByServer())
        }
    }

    @Test func `a client that requests pages and does not read them is dropped`() async throws {
        try await withServer { server, _ in
            let client = try RawClient(port: server.port)
            let request = Array("GET /main.js HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".utf8)
            let many = Array(repeatElement(request, count: 1000).joined())
            let start = ContinuousClock.now
            while client.send(many) {}
            #expect(ContinuousClock.now - start < .seconds(20))
        }
    }

    @Test func `a silent client is dropped`() async throws {
        try await withServer { server, grant in
            let (watcher, _) = try join(server, grant.accessToken)
            let (silent, joined) = try join(server, grant.accessToken)
            // The watcher answers pings while it waits. The silent one reads nothing and answers none.
            let left = try watcher.message { if case .participantLeft = $0.message { true } else { false } }
            #expect(left.message == .participantLeft(ParticipantReference(participant: joined.participant)))
            // It finds the reason among the pings that it has not read.
            let closed = try silent.message { if case .closed = $0.message { true } else { false } }
            guard case .closed(let closing) = closed.message else { return }
            #expect(closing.reason == .disconnected)
            #expect(closing.code == "1312")
            #expect(silent.isClosedByServer())
        }
    }

    @Test func `the log says why participants leave, and which joins are refused`() async throws {
        let log = LogLines()
        try await withServer(configured: {
            $0.log = log.logger
            $0.messageBurst = 20
            $0.maximumParticipants = 3
        }) { server, grant in
            let (polite, _) = try join(server, grant.accessToken)
            polite.sendMessage(.leave, id: 2)
            _ = try polite.message { $0.id == 2 }
            let (talkative, _) = try join(server, grant.accessToken)
            let question = talkative.frame(Array(#"{"type":"ping","id":1}"#.utf8))
            talkative.send(Array(repeatElement(question, count: 30).joined()))
            #expect(talkative.isClosedByServer())
            #expect(await eventually { log.all.contains("info left too many requests") })
            let (broken, _) = try join(server, grant.accessToken)
            // A ping in fragments (RFC 6455, section 5.5).
            broken.send([0x09, 0x80, 0, 0, 0, 0])
            #expect(broken.isClosedByServer())
            // The server closes the connection before the room's loop writes the line.
            #expect(await eventually { log.all.contains("info left protocol error") })
            _ = try join(server, grant.accessToken)
            #expect(await eventually { log.all.contains("info left connection closed") })
            let clients = try (0..<3).map { _ in try join(server, grant.accessToken).0 }
            #expect(throws: RoomError.self) { try join(server, grant.accessToken) }
            let (status, _) = try RawClient(port: server.port).request(
                "POST /v1/sign-out HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer \(grant.accessToken)\r\n")
            #expect(status == 204)
            for client in clients { #expect(client.isClosedByServer()) }
        }
        let left = log.all.filter { $0.hasPrefix("info left ") }.map { $0.dropFirst(10) }
        #expect(left.prefix(3) == ["leave", "too many requests", "protocol error"])
        #expect(left.suffix(3) == ["signed out", "signed out", "signed out"])
        #expect(log.all.contains { $0.hasPrefix("info join refused") && $0.hasSuffix("[server.full]") })
    }

    @Test func `a response to HEAD has no body`() async throws {
        try await withServer { server, _ in
            let client = try RawClient(port: server.port)
            let head = "/ HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n"
            let (status, body) = try client.request("HEAD \(head)")
            #expect(status == 200)
            #expect(body.isEmpty)
        }
    }

    @Test func `a port that needs privileges, and a taken one, are refused with their causes`() {
        let refused = HTTPListener.error(for: IOError(errnoCode: EACCES, reason: "bind"), host: "0.0.0.0", port: 80)
        #expect(refused.code == .listenFailed)
        #expect(refused.message.contains("Ports below 1024 need root or CAP_NET_BIND_SERVICE."))
        let taken = HTTPListener.error(for: IOError(errnoCode: EADDRINUSE, reason: "bind"), host: "::", port: 80)
        #expect(taken.code == .portInUse)
        #expect(taken.message.contains("--listen [::]:PORT"))
    }

    @Test func `a client whose join is refused does not stay, and learns why`() async throws {
        try await withServer { server, _ in
            let client = try RawClient(port: server.port)
            #expect(try client.openWebSocket(port: server.port) == 101)
            #expect(try client.refusal(of: .join(Join(token: "made up", room: "kitchen")), id: 1) == "-11005")
            let closed = try client.message { if case .closed = $0.message { true } else { false } }
            guard case .closed(let closing) = closed.message else { return }
            #expect(closing.code == "protocol.out-of-order")
            #expect(closing.message.contains("within 10 s"))
            #expect(client.isClosedByServer())
        }
    }

    @Test func `nothing is done for a connection that has not joined`() async throws {
        try await withServer { server, grant in
            let (_, victim) = try join(server, grant.accessToken)
            let client = try RawClient(port: server.port)
            #expect(try client.openWebSocket(port: server.port) == 101)
            // Another participant's id is useless: no message takes over a session.
            client.sendText(#"{"type":"subscribe","id":1,"stream":1,"participant":"\#(victim.participant)"}"#)
            guard case .error(let problem) = try client.message(where: { $0.id == 1 }).message else {
                Issue.record("not refused")
                return
            }
            #expect(problem.code == "protocol.out-of-order")
        }
    }
}
