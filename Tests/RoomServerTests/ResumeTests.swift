import RoomFixtures
import RoomProtocol
import Testing
import TestSupport

@testable import RoomServer

/// WebSockets that end, and others that resume.
@Suite(.serialized) struct ResumeTests {
    private func enter(_ server: RoomServer, _ token: String) throws -> (client: RawClient, joined: Joined) {
        let client = try connect(server)
        client.sendMessage(.join(Join(token: token, room: "kitchen", resume: true)), id: 1)
        guard case .joined(let joined) = try client.message(where: { $0.id == 1 }).message else {
            throw RoomError(.enterResponseInvalid, "no 'joined'")
        }
        return (client, joined)
    }

    /// - Parameter address: as a proxy on this machine names it. Loopback itself is exempt from limits.
    private func connect(_ server: RoomServer, from address: String? = nil) throws -> RawClient {
        let client = try RawClient(port: server.port)
        let headers = address.map { "X-Forwarded-For: \($0)\r\n" } ?? ""
        #expect(try client.openWebSocket(port: server.port, headers: headers) == 101)
        return client
    }

    private func resume(_ client: RawClient, _ token: String, _ participant: String, _ secret: String, id: Int = 1)
        throws -> ServerMessage
    {
        client.sendMessage(
            .resume(Resume(token: token, participant: participant, secret: secret, received: 1)), id: id)
        return try client.message { $0.id == id }.message
    }

    private func code(_ message: ServerMessage) -> String? {
        if case .error(let problem) = message { problem.code } else { nil }
    }

    @Test func `a client whose TCP connection ends resumes, and one that says goodbye does not`() async throws {
        try await withServer { server, grant in
            let (first, joined) = try enter(server, grant.accessToken)
            let terms = try #require(joined.resume)
            #expect(terms.seconds == 30 && terms.secret.utf8.count == 22)
            first.endSending()
            #expect(first.isClosedByServer())
            let second = try connect(server)
            guard case .resumed(let resumed) = try resume(second, grant.accessToken, joined.participant, terms.secret)
            else {
                Issue.record("not resumed")
                return
            }
            // Close code 1000.
            second.send([0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe8])
            #expect(second.isClosedByServer())
            await eventually("the leave") {
                server.directory.seats.taken == [0] || server.directory.seats.taken.allSatisfy { $0 == 0 }
            }
            let third = try connect(server)
            #expect(code(try resume(third, grant.accessToken, joined.participant, resumed.secret)) == "resume.unknown")
            // The same connection may join.
            third.sendMessage(.join(Join(token: grant.accessToken, room: "kitchen")), id: 2)
            guard case .joined = try third.message(where: { $0.id == 2 }).message else {
                Issue.record("not joined")
                return
            }
        }
    }

    @Test func `guesses at a participant are limited, and then its right secret is refused too, but nobody else's`()
        async throws
    {
        try await withServer { server, grant in
            let (_, joined) = try enter(server, grant.accessToken)
            let (_, neighbour) = try enter(server, grant.accessToken)
            let terms = try #require(joined.resume)
            let guesser = try connect(server, from: "192.0.2.7")
            for id in 1...10 {
                #expect(
                    code(try resume(guesser, grant.accessToken, joined.participant, "guess \(id)", id: id))
                        == "resume.unknown")
            }
            #expect(
                code(try resume(guesser, grant.accessToken, joined.participant, terms.secret, id: 11))
                    == "server.too-many-requests")
            // Others at this address are not affected, nor the participant at another one.
            let other = try connect(server, from: "192.0.2.8")
            guard case .resumed = try resume(other, grant.accessToken, joined.participant, terms.secret) else {
                Issue.record("not resumed")
                return
            }
            let secret = try #require(neighbour.resume?.secret)
            guard case .resumed = try resume(guesser, grant.accessToken, neighbour.participant, secret, id: 12) else {
                Issue.record("not resumed")
                return
            }
        }
    }

    @Test func `guesses that do not wait for their answers are refused unread, and so are their tokens`() async throws {
        try await withServer { server, grant in
            let (_, joined) = try enter(server, grant.accessToken)
            let terms = try #require(joined.resume)
            let guesser = try connect(server, from: "192.0.2.7")
            let guess = Resume(token: grant.accessToken, participant: joined.participant, secret: "guess", received: 1)
            let stolen = Resume(token: "none", participant: joined.participant, secret: terms.secret, received: 1)
            let messages = [guess, stolen] + Array(repeating: guess, count: 40)
            guesser.send(
                messages.enumerated().flatMap { id, resume in
                    guesser.frame(Array(Envelope(id: id + 1, ClientMessage.resume(resume)).json().utf8))
                })
            // Not in their order: the directory refuses some itself.
            let codes = try messages.map { _ in code(try guesser.message { $0.id != nil }.message) }
            // Each is compared with its token checked and its guess counted, or not at all.
            #expect(codes.count { $0 == "resume.unknown" } <= 10)
            #expect(codes.allSatisfy { $0 != nil })
        }
    }

    @Test func `a token of another room, or of none, resumes nothing`() async throws {
        try await withServer(open: true) { server, grant in
            let (_, joined) = try enter(server, grant.accessToken)
            let secret = try #require(joined.resume?.secret)
            let http = try RawClient(port: server.port)
            let page = try http.request(
                "GET /v1/page-token?room=attic HTTP/1.1\r\nHost: 127.0.0.1:\(server.port)\r\n\r\n")
            let token = try #require(page.body.split(separator: "\"").first { $0.utf8.count == 43 }.map(String.init))
            let client = try connect(server)
            #expect(code(try resume(client, token, joined.participant, secret, id: 1)) == "resume.unknown")
            #expect(code(try resume(client, "none", joined.participant, secret, id: 2)) == "-11005")
            guard case .resumed = try resume(client, grant.accessToken, joined.participant, secret, id: 3) else {
                Issue.record("not resumed")
                return
            }
        }
    }

    @Test func `participants without a connection take seats until their time is over`() async throws {
        try await withServer(configured: {
            $0.maximumParticipants = 3
            $0.graceSeconds = 1
        }) { server, grant in
            for _ in 0..<3 { try enter(server, grant.accessToken).client.endSending() }
            #expect(throws: RoomError.self) { try enter(server, grant.accessToken) }
            await eventually("free seats") { server.directory.seats.taken.allSatisfy { $0 == 0 } }
            _ = try enter(server, grant.accessToken)
        }
    }
}
