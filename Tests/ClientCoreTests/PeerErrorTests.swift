import Foundation
import PeerIO
import PeerLoop
import PeerSession
import RTP
import RoomProtocol
import Testing
import TestSupport

@testable import ClientCore

/// The codes of peers that fail. Their paths are the test.
@Suite(.timeLimit(.minutes(1))) struct PeerErrorTests {
    /// A client on a loop, and the paths of its peers. Used on the loop.
    private final class Stage: @unchecked Sendable {
        static let absent = TransportError(code: "transport.ice", message: "There is no agent.")
        let loop = EventLoop(name: "client")
        private(set) var paths: [StillPath] = []
        var hasPaths = true
        private var made: Client?

        var client: Client {
            guard let made else { preconditionFailure("a stage without a client") }
            return made
        }

        func make() throws {
            let certificate = try Certificate()
            made = try Client(loop) { [unowned self] request throws(TransportError) in
                try Peer.still(on: loop, certificate, connectTimeout: .seconds(15), servers: request.servers) {
                    [unowned self] servers, events throws(TransportError) in
                    guard self.hasPaths else { throw Self.absent }
                    let path = StillPath(self.loop, servers, events)
                    self.paths.append(path)
                    return path
                }
            }
        }

        /// The client receives, and publishes a track.
        func publish() throws {
            client.hear(try downOffer(1, revision: 1))
            client.connection.publish([TrackOffer(Track())]) { _ in }
            try client.acceptOffer(id: 2, stream: 7)
        }

        func run<Value: Sendable>(_ body: @escaping @Sendable (Stage) throws -> Value) async throws -> Value {
            try await onLoop(loop) { try body(self) }
        }
    }

    /// Runs the test with a client that has joined.
    private func onStage(_ test: (Stage) async throws -> Void) async throws {
        let stage = Stage()
        try await stage.run { stage in
            try stage.make()
            stage.client.enter(terms: #","resume":{"secret":"s","seconds":30}"#)
        }
        do {
            try await test(stage)
        } catch {
            Issue.record("\(error)")
        }
        try await stage.run { $0.client.connection.drop() }
        stage.loop.shutdown()
    }

    private func ends(_ stage: Stage) async throws -> [RoomError.Code?] { try await stage.run { $0.client.ends } }

    @Test func `a peer that cannot be created ends the connection, and fails a publication`() async throws {
        try await onStage { stage in
            let codes = try await stage.run { stage -> [RoomError.Code?] in
                stage.hasPaths = false
                var codes: [RoomError.Code?] = []
                stage.client.connection.publish([TrackOffer(Track())]) { codes.append($0.failure) }
                stage.client.hear(try downOffer(1, revision: 1))
                return codes
            }
            #expect(codes == [.peerFailed])
            #expect(try await ends(stage) == [.peerFailed])
        }
    }

    @Test func `a peer that can never connect ends the connection`() async throws {
        try await onStage { stage in
            try await stage.run { stage in
                stage.client.hear(try downOffer(1, revision: 1))
                stage.paths[0].events(.impossible(TransportError(code: "transport.unreachable", message: "No way.")))
            }
            #expect(await eventually { (try? await ends(stage)) == [.mediaConnectionFailed] })
        }
    }

    @Test func `a peer whose path is lost ends the connection`() async throws {
        try await onStage { stage in
            try await stage.run { stage in
                stage.client.hear(try downOffer(1, revision: 1))
                stage.paths[0].events(.connected)
                stage.paths[0].events(.failed)
            }
            #expect(await eventually { (try? await ends(stage)) == [.mediaConnectionLost] })
        }
    }

    @Test func `descriptions that restart ICE and cannot be made are problems, and the connection goes on`()
        async throws
    {
        try await onStage { stage in
            try await stage.run { stage in
                let client = stage.client
                try stage.publish()
                for path in stage.paths { path.events(.connected) }
                stage.hasPaths = false
                client.connection.restartICE()
                #expect(client.problems == [.offerNotMade])
                let again = try downOffer(1, revision: 2).replacing(
                    "abcdefghijklmnopqrstuv", with: "abcdefghijklmnopqrstuw")
                client.hear(again)
                #expect(client.problems == [.offerNotMade, .answerNotMade] && client.ends == [])
                // One restart in five seconds.
                let sent = client.sent.count
                client.connection.restartICE()
                #expect(client.sent.count == sent)
            }
        }
    }

    @Test func `a restart of ICE asks the server for that of the down session, and offers that of the up session`()
        async throws
    {
        try await onStage { stage in
            try await stage.run { stage in
                let client = stage.client
                try stage.publish()
                let offers = try client.offers.count
                client.connection.restartICE()
                #expect(client.sent.contains { $0.contains("restartICE") })
                #expect(try client.offers.count == offers + 1 && client.problems == [])
            }
        }
    }

    @Test func `restarts of ICE use the TURN servers that the server named last`() async throws {
        try await onStage { stage in
            try await stage.run { stage in
                let client = stage.client
                try stage.publish()
                for path in stage.paths { path.events(.connected) }
                let named = ICEServerInfo(urls: ["turn:192.0.2.9"], username: "later", credential: "p")
                client.connection.handle(.iceServers(ICEServersRenewed(iceServers: [named])))
                client.connection.restartICE()
                client.hear(
                    try downOffer(1, revision: 2).replacing("abcdefghijklmnopqrstuv", with: "abcdefghijklmnopqrstuw"))
                #expect(stage.paths.map { $0.servers.servers.map(\.username) } == [[], [], ["later"], ["later"]])
            }
        }
    }

    @Test func `a restart of ICE while an offer is pending follows its answer, once`() async throws {
        try await onStage { stage in
            try await stage.run { stage in
                let client = stage.client
                try stage.publish()
                client.connection.publish([TrackOffer(Track())]) { _ in }
                client.connection.restartICE()
                #expect(try client.offers.count == 2)
                try client.acceptOffer(id: 3, stream: 8)
                #expect(try client.offers.count == 3 && client.problems == [])
                client.hear(#"{"type":"error","id":4,"code":"1310","message":"Not now."}"#)
                #expect(try client.offers.count == 3)
            }
        }
    }

    @Test func `packets and bytes that the socket refuses count as sent, both`() async throws {
        try await onStage { stage in
            try await stage.run { stage in
                stage.client.hear(try downOffer(1, revision: 1))
                stage.paths[0].events(.connected)
            }
            let isCounted = await eventually {
                let transport = try? await stage.run { $0.client.connection.makeStatistics().down?.transport }
                return transport.map { $0.bytesSent > 0 && $0.packetsSent > 0 } ?? false
            }
            #expect(isCounted)
        }
    }

    @Test func `another participation that grants fewer receivers is a problem, unless the one before granted as many`()
        async throws
    {
        let loop = EventLoop(name: "client")
        let call = try await onLoop(loop) { try Call(loop) }
        #expect(await eventually { await onLoop(loop) { call.isSecured } })
        let counts = await onLoop(loop) {
            [nil, 2, 2, 1, nil, 1].map { (maximum: Int?) in
                call.client.connection.maximumReceivers = maximum
                let connection = call.client.connection
                (connection.isRejoining, connection.hasRejoined, connection.hasRepublished) = (true, true, true)
                connection.finishRejoining()
                return call.client.problems.count { $0 == .settingInvalid }
            }
        }
        #expect(counts == [0, 1, 1, 2, 2, 3])
        await onLoop(loop) {
            call.server.close()
            call.client.connection.drop()
        }
        loop.shutdown()
    }

    @Test func `a client that leaves while it joins again reports nothing of its return`() async throws {
        let loop = EventLoop(name: "client")
        let call = try await onLoop(loop) { try Call(loop) }
        #expect(await eventually { await onLoop(loop) { call.isSecured } })
        await onLoop(loop) {
            let (client, connection) = (call.client, call.client.connection)
            connection.maximumReceivers = 1
            (connection.isRejoining, connection.hasRejoined, connection.hasRepublished) = (true, true, true)
            connection.leave()
            let before = client.events.count
            connection.finishRejoining()
            #expect(client.events.count == before)
            call.server.close()
            connection.drop()
        }
        loop.shutdown()
    }

    @Test func `a server that closes a session ends the connection`() async throws {
        let loop = EventLoop(name: "client")
        let call = try await onLoop(loop) { try Call(loop) }
        #expect(await eventually { await onLoop(loop) { call.isSecured } })
        await onLoop(loop) { call.server.close() }
        #expect(await eventually { await onLoop(loop) { call.client.ends } == [.peerClosed] })
        await onLoop(loop) { call.client.connection.drop() }
        loop.shutdown()
    }

    /// A client whose down session has a peer instead of the server. Used on the loop.
    private final class Call: @unchecked Sendable {
        let client: Client
        let server: Peer

        init(_ loop: EventLoop) throws {
            client = try Client(loop)
            client.enter()
            server = try Peer(
                loop: loop,
                configuration: PeerConfiguration(iceRole: .controlling, certificate: try Certificate(), cname: "server")
            )
            try server.start()
            let receiver = Receiver(mid: "0", media: .video, ssrc: SSRC(7000), retransmissionSSRC: nil)
            let offer = DownDescription.offer(
                sessionID: 1, revision: 1, receivers: [receiver], transport: server.local, cname: "server")
            let description = Description(session: .down, sdp: offer.serialized(), revision: 1)
            client.hear(Envelope(ServerMessage.offer(description)).json())
            let answers = client.sent.compactMap { text -> Description? in
                guard case .answer(let body) = try? Envelope<ClientMessage>(json: .init(text.utf8)).message else {
                    return nil
                }
                return body
            }
            let answer = try SessionDescription(parsing: try #require(answers.first).sdp)
            try server.setRemote(try #require(answer.transport), dtlsRole: .server)
        }

        var isSecured: Bool { client.connection.down?.profile != nil && server.isSecured }
    }
}
