import Foundation
import MediaGraph
import PeerIO
import RTP
import RoomProtocol
import TestSupport
import Testing

@testable import ClientCore

/// A client that the server no longer knows, and that joins again.
@Suite struct RejoinTests {
    private static func participant(_ id: String, stream: Int) -> ParticipantInfo {
        ParticipantInfo(
            id: id, streams: [StreamInfo(id: stream, media: .video, codec: "VP8", extraValue: "", state: .live)])
    }

    @Test func `participants of a large room that are announced after 'joined' have not left`() async throws {
        try await onLoop { loop in
            let client = try Client(loop)
            client.enter()
            for (index, id) in ["p-2", "p-3", "p-4"].enumerated() {
                client.connection.handle(
                    .participantEntered(ParticipantEntered(participant: Self.participant(id, stream: 7 + index))))
            }
            let before = client.events.count
            client.connection.isRejoining = true
            client.connection.rejoined(
                Joined(version: 1, participant: "p-9", participants: [Self.participant("p-2", stream: 7)]))
            client.connection.handle(
                .participantEntered(ParticipantEntered(participant: Self.participant("p-3", stream: 8))))
            #expect(client.left.isEmpty && client.unpublished.isEmpty)
            // The server offers when it has announced all.
            client.connection.handle(.iceServers(ICEServersRenewed(iceServers: [])))
            #expect(client.left == ["p-4"] && client.unpublished.isEmpty)
            #expect(client.connection.others.map(\.id) == ["p-2", "p-3"])
            #expect(client.events.count == before + 2)
            client.connection.drop()
        }
    }

    @Test func `a further network begins another attempt, although one is on its way`() async throws {
        try await onLoop { loop in
            let client = try Client(loop, mayReturn: true)
            client.enterToStay()
            client.loseLink()
            #expect(client.openings.count == 1)
            client.connection.addressesChanged(to: ["192.0.2.1", "198.51.100.7"])
            #expect(client.openings.count == 2)
            client.openLink()
            #expect(client.sent.last?.contains(#""resume""#) == true)
            client.connection.drop()
        }
    }

    @Test func `a link that closes before the client has it costs one attempt`() async throws {
        try await onLoop { loop in
            let client = try Client(loop, mayReturn: true)
            client.enterToStay()
            client.loseLink()
            let sent = client.sent
            client.openLink(isOpen: false)
            #expect(client.sent == sent && client.connection.link == nil && client.connection.retry != nil)
            client.loseLink()
            client.openLink()
            #expect(client.sent.last?.contains(#""type":"resume""#) == true && client.ends == [])
            client.connection.drop()
        }
    }

    /// One that the server has named before, or names in its reply to the other `join`.
    @Test(arguments: [true, false])
    func `a TURN server extends the time to join again`(isKnown: Bool) throws {
        let stage = try SteppedClient()
        let client = stage.client
        let relay = #"[{"urls":"turn:203.0.113.7","username":"u","credential":"p"}]"#
        client.join(servers: isKnown ? relay : "null", terms: #","resume":{"secret":"a secret","seconds":30}"#)
        client.connection.secured()
        client.beginRejoining()
        let join = client.connection.joinRequest
        func pass(_ seconds: Int) {
            for _ in 0..<seconds {
                stage.advance(by: .seconds(1))
                client.connection.receive(.heard)
            }
        }
        pass(9)
        let named = ICEServerInfo(urls: ["turn:203.0.113.7"], username: "u", credential: "p")
        let joined = Joined(version: 1, participant: "p-9", participants: [], iceServers: [named])
        client.hear(Envelope(id: join, ServerMessage.joined(joined)).json())
        pass(7)
        #expect(client.connection.link != nil && client.openings.isEmpty)
        pass(1)
        #expect(client.connection.link == nil && client.connection.isRejoining)
        client.connection.drop()
    }

    // MARK: - Publishing

    /// A node that subscribes to all others has to know its publisher before the streams come.
    @Test func `a client that has joined again tells its new id before it publishes`() async throws {
        try await onLoop { loop in
            let client = try Client(loop, mayReturn: true)
            client.enterToStay()
            client.connection.publish([TrackOffer(Track())]) { _ in }
            try client.acceptOffer(stream: 5)
            client.beginRejoining()
            client.reply(.joined(Joined(version: 1, participant: "p-9", participants: [])))
            guard case .joinedAgain("p-9")? = client.events.last else {
                Issue.record("\(client.events)")
                return client.connection.drop()
            }
            #expect(try client.offers.count == 1)
            client.connection.handle(.iceServers(ICEServersRenewed(iceServers: [])))
            #expect(try client.offers.count == 2)
            client.connection.drop()
        }
    }

    @Test(arguments: [true, false])
    func `a publication that waits until the client has joined again fails when the room is left`(isDropped: Bool)
        async throws
    {
        try await onLoop { loop in
            let client = try Client(loop, mayReturn: true)
            client.enterToStay()
            client.beginRejoining()
            var codes: [RoomError.Code?] = []
            for _ in 0..<2 { client.connection.publish([TrackOffer(Track())]) { codes.append($0.failure) } }
            #expect(codes == [])
            if isDropped { client.connection.drop() } else { client.connection.leave() }
            #expect(codes == [.roomReleased, .roomReleased] && client.connection.state == .ended)
            client.connection.publish([TrackOffer(Track())]) { codes.append($0.failure) }
            #expect(codes.count == 3)
        }
    }

    @Test(arguments: [true, false])
    func `a publication that is repeated when the client joins again fails when the room is left`(isDropped: Bool)
        async throws
    {
        try await onLoop { loop in
            let client = try Client(loop, mayReturn: true)
            client.enterToStay()
            var codes: [RoomError.Code?] = []
            client.connection.publish([TrackOffer(Track())]) { codes.append($0.failure) }
            client.beginRejoining()
            #expect(codes == [])
            if isDropped { client.connection.drop() } else { client.connection.leave() }
            #expect(codes == [.roomReleased])
            client.connection.publish([TrackOffer(Track())]) { codes.append($0.failure) }
            #expect(codes.count == 2)
        }
    }

    /// A client that has joined again, and whose track the server refuses.
    private static func rejoining(_ loop: EventLoop, refused code: RoomError.Code) throws -> (Client, Track) {
        let client = try Client(loop, mayReturn: true)
        client.enterToStay()
        let track = Track()
        client.connection.publish([TrackOffer(track)]) { _ in }
        try client.acceptOffer(id: 2, stream: 5)
        client.rejoin()
        client.reply(.error(Problem(RoomError(code, "No."))))
        return (client, track)
    }

    @Test func `media goes on while a server that restarted has too many announcements`() async throws {
        try await onLoop { loop in
            let (client, track) = try Self.rejoining(loop, refused: .tooManyRequests)
            #expect(client.problems.isEmpty && track.isConnected && client.connection.isRejoining)
            client.connection.drop()
        }
    }

    @Test func `media that the server does not take again has ended, and can be unpublished`() async throws {
        try await onLoop { loop in
            let (client, track) = try Self.rejoining(loop, refused: .publishRefused)
            let republished = client.events.compactMap { event -> [Int: Int]? in
                if case .republished(_, let streams) = event { streams } else { nil }
            }
            #expect(republished == [[:]] && client.problems == [.publishRefused] && !track.isConnected)
            var results: [RoomError.Code?] = []
            client.connection.unpublish([]) { results.append($0.failure) }
            #expect(results == [nil])
            client.connection.drop()
        }
    }

    @Test
    func `media that is unpublished by its former id ends, although the application does not know the new one yet`()
        async throws
    {
        try await onLoop { loop in
            let client = try Client(loop, mayReturn: true)
            client.enterToStay()
            let track = Track()
            client.connection.publish([TrackOffer(track)]) { _ in }
            try client.acceptOffer(stream: 5)
            client.rejoin()
            try client.acceptOffer(stream: 8)
            var codes: [RoomError.Code?] = []
            client.connection.unpublish([5]) { codes.append($0.failure) }
            #expect(client.ended == [[8]] && !track.isConnected)
            client.reply(.unpublished(StreamReferences(streams: [8])))
            #expect(codes == [nil])
            client.connection.drop()
        }
    }

    // MARK: - Without resuming

    /// The server lets nobody resume, so each loss of the link ends the participation.
    @Test func `calls while the link is lost take effect with another join, and nothing that ended comes back`()
        async throws
    {
        try await onLoop { loop in
            let client = try Client(loop, mayReturn: true)
            client.enter()
            try Self.watch(client)
            let (camera, screen) = (Track(), Track())
            var codes: [String: RoomError.Code?] = [:]
            client.connection.publish([TrackOffer(camera)]) { _ in }
            try client.acceptOffer(stream: 5)
            client.connection.publish([TrackOffer(screen)]) { codes["publish"] = $0.failure }
            client.connection.send(SendMessage(text: "before")) { codes["message"] = $0.failure }
            client.loseLink()
            client.connection.unpublish([5]) { codes["unpublish"] = $0.failure }
            client.connection.unsubscribe(7) { codes["unsubscribe"] = $0.failure }
            client.connection.send(SendMessage(text: "during")) { codes["later message"] = $0.failure }
            #expect(codes.isEmpty && !camera.isConnected && screen.isConnected)
            client.openLink()
            #expect(
                codes == [
                    "message": .connectionLost, "later message": .connectionLost, "unpublish": nil, "unsubscribe": nil,
                ])
            client.acceptJoin([Self.participant("p-2", stream: 7)])
            #expect(client.subscribed == [7] && client.connection.subscriptions.isEmpty)
            try client.acceptOffer(stream: 6)
            #expect(codes["publish"] == .some(nil) && client.connection.up?.tracks.map(\.stream) == [6])
            #expect(client.problems == [] && client.ends == [])
            client.connection.drop()
        }
    }

    @Test func `a link that is lost before the reply to another join costs one attempt`() async throws {
        try await onLoop { loop in
            let client = try Client(loop, mayReturn: true)
            client.enterToStay()
            client.beginRejoining()
            client.connection.lost(.disconnected, RoomError(.connectionLost, "The address is gone."))
            client.loseLink()
            client.openLink()
            #expect(client.connection.link != nil)
            client.acceptJoin()
            #expect(client.connection.participant == "p-9")
            client.connection.drop()
        }
    }

    // MARK: - Subscribing

    /// A client that joins again, and has called `subscribe` for stream 7 of p-2 before the loss.
    private static func subscribing(_ loop: EventLoop, _ codes: Collected<RoomError.Code?>) throws -> Client {
        let client = try Client(loop, mayReturn: true)
        client.enterToStay()
        client.connection.handle(.participantEntered(ParticipantEntered(participant: participant("p-2", stream: 7))))
        client.connection.subscribe(7, to: { _ in Sink() }) { codes.append($0.failure) }
        client.beginRejoining()
        #expect(codes.all == [] && client.subscribed == [7])
        return client
    }

    @Test func `a subscription without a reply before a loss is granted when the client has joined again`()
        async throws
    {
        try await onLoop { loop in
            let codes = Collected<RoomError.Code?>()
            let client = try Self.subscribing(loop, codes)
            client.acceptJoin([Self.participant("p-2", stream: 7)])
            #expect(codes.all == [] && client.subscribed == [7, 7])
            // Another loss comes before the reply.
            client.loseLink()
            client.openLink()
            client.acceptJoin([Self.participant("p-2", stream: 7)])
            client.hear(try downOffer(1, revision: 1))
            #expect(codes.all == [] && client.subscribed == [7, 7, 7])
            client.reply(.subscribed(Subscribed(stream: 7, mid: "0")))
            #expect(codes.all == [nil] && client.connection.subscriptions[7] != nil && client.problems == [])
            client.connection.drop()
        }
    }

    /// Before the server's reply to `join`, and before it has announced all participants.
    @Test(arguments: [false, true])
    func `a video that is subscribed while the client joins again is granted afterwards`(isAccepted: Bool) async throws
    {
        try await onLoop { loop in
            let client = try Client(loop, mayReturn: true)
            client.enterToStay()
            let known = Self.participant("p-2", stream: 7)
            client.connection.handle(.participantEntered(ParticipantEntered(participant: known)))
            var codes: [RoomError.Code?] = []
            func subscribe() { client.connection.subscribe(7, to: { _ in Sink() }) { codes.append($0.failure) } }
            client.beginRejoining()
            if !isAccepted { subscribe() }
            client.reply(.joined(Joined(version: 1, participant: "p-9", participants: [known])))
            if isAccepted { subscribe() }
            #expect(codes == [] && client.subscribed == [])
            client.hear(try downOffer(1, revision: 1))
            #expect(codes == [] && client.subscribed == [7])
            client.reply(.subscribed(Subscribed(stream: 7, mid: "0")))
            #expect(codes == [nil] && client.connection.subscriptions[7] != nil)
            client.connection.drop()
        }
    }

    @Test func `a subscription that waits for another join ends with its stream, or as the application wants`()
        async throws
    {
        try await onLoop { loop in
            let (ended, unwanted) = (Collected<RoomError.Code?>(), Collected<RoomError.Code?>())
            let client = try Self.subscribing(loop, ended)
            client.acceptJoin()
            #expect(ended.all == [.noSuchStream] && client.left == ["p-2"] && client.subscribed == [7])
            client.connection.drop()
            let other = try Self.subscribing(loop, unwanted)
            other.connection.unsubscribe(7) { unwanted.append($0.failure) }
            #expect(unwanted.all == [nil, nil])
            other.acceptJoin([Self.participant("p-2", stream: 7)])
            #expect(other.subscribed == [7] && unwanted.count == 2)
            other.connection.drop()
        }
    }

    @Test(arguments: [true, false])
    func `a subscription that waits for another join fails when the room is left`(isDropped: Bool) async throws {
        try await onLoop { loop in
            let codes = Collected<RoomError.Code?>()
            let client = try Self.subscribing(loop, codes)
            if isDropped { client.connection.drop() } else { client.connection.leave() }
            #expect(codes.all == [.roomReleased] && client.connection.state == .ended)
        }
    }

    // MARK: - Views

    /// A client that watches stream 7 of p-2.
    private static func watching(_ loop: EventLoop) throws -> Client {
        let client = try Client(loop, mayReturn: true)
        client.enterToStay()
        try watch(client)
        return client
    }

    private static func watch(_ client: Client) throws {
        client.connection.handle(.participantEntered(ParticipantEntered(participant: participant("p-2", stream: 7))))
        client.hear(try downOffer(1, revision: 1))
        client.connection.subscribe(7, to: { _ in Sink() }) { _ in }
        client.reply(.subscribed(Subscribed(stream: 7, mid: "0")))
    }

    /// The views that the server was asked for, with the last subscription.
    private static func askedViews(_ client: Client) -> [StreamView] {
        client.sent.compactMap { text -> StreamView? in
            switch try? Envelope<ClientMessage>(json: .init(text.utf8)).message {
            case .subscribe(let body), .setView(let body): body.view
            default: nil
            }
        }
    }

    /// Before the loss, before the server's reply to `join`, and before it has announced all participants.
    @Test(arguments: 0..<3)
    func `a view that is set while the client returns holds when it has joined again`(moment: Int) async throws {
        try await onLoop { loop in
            let client = try Self.watching(loop)
            let paused = StreamView(isPaused: true)
            var codes: [RoomError.Code?] = []
            func pause() { client.connection.setView(paused, of: 7) { codes.append($0.failure) } }
            if moment == 0 { pause() }
            client.beginRejoining()
            if moment == 1 { pause() }
            client.reply(
                .joined(
                    Joined(version: 1, participant: "p-9", participants: [Self.participant("p-2", stream: 7)])))
            if moment == 2 { pause() }
            #expect(codes == [nil])
            client.connection.handle(.iceServers(ICEServersRenewed(iceServers: [])))
            #expect(Self.askedViews(client).last == paused)
            #expect(client.connection.subscriptions[7]?.view == paused)
            client.connection.drop()
        }
    }

    @Test func `the view that the server has accepted last stays if it refuses others`() async throws {
        try await onLoop { loop in
            let client = try Self.watching(loop)
            var codes: [RoomError.Code?] = []
            func set(_ view: StreamView) { client.connection.setView(view, of: 7) { codes.append($0.failure) } }
            let refusal = ServerMessage.error(Problem(RoomError(.tooManyRequests, "Later.")))
            set(StreamView(profile: .mid))
            client.reply(.viewSet(StreamReference(stream: 7)))
            let last = try #require(client.sent.last)
            let first = try #require(try Envelope<ClientMessage>(json: .init(last.utf8)).id)
            set(StreamView(profile: .low))
            set(StreamView(isPaused: true))
            for id in [first + 1, first + 2] { client.hear(Envelope(id: id, refusal).json()) }
            #expect(codes == [nil, .tooManyRequests, .tooManyRequests])
            #expect(client.connection.subscriptions[7]?.view == StreamView(profile: .mid))
            client.connection.drop()
        }
    }

    @Test func `a subscription that the server does not grant again ends, with its cause`() async throws {
        try await onLoop { loop in
            let client = try Self.watching(loop)
            client.rejoin([Self.participant("p-2", stream: 7)])
            client.reply(.error(Problem(RoomError(.receiversExhausted, "All are in use."))))
            #expect(client.connection.subscriptions.isEmpty && client.problems == [])
            guard case .subscriptionEnded("p-2", stream: 7, let error)? = client.events.last else {
                Issue.record("\(client.events)")
                return client.connection.drop()
            }
            #expect(error.code == .receiversExhausted)
            client.connection.drop()
        }
    }

    @Test func `a subscription that finds no place for its end stays, and can be ended later`() async throws {
        try await onLoop { loop in
            let client = try Self.watching(loop)
            let first = client.sent.count
            for _ in 0..<SignallingSession.maximumPendingRequests {
                client.connection.setView(StreamView(profile: .low), of: 7) { _ in }
            }
            var codes: [RoomError.Code?] = []
            client.connection.unsubscribe(7) { codes.append($0.failure) }
            #expect(codes == [.outOfOrder] && client.connection.subscriptions[7] != nil)
            let view = try #require(try Envelope<ClientMessage>(json: .init(client.sent[first].utf8)).id)
            client.hear(Envelope(id: view, ServerMessage.viewSet(StreamReference(stream: 7))).json())
            client.connection.unsubscribe(7) { codes.append($0.failure) }
            #expect(client.connection.subscriptions[7] == nil)
            client.reply(.unsubscribed(StreamReference(stream: 7)))
            #expect(codes == [.outOfOrder, nil])
            client.connection.drop()
        }
    }

    // MARK: - The end

    @Test func `nothing but the end is reported when the server removes a client that joins again`() async throws {
        try await onLoop { loop in
            let client = try Self.watching(loop)
            client.connection.publish([TrackOffer(Track())]) { _ in }
            try client.acceptOffer(id: 3, stream: 8)
            client.rejoin([Self.participant("p-2", stream: 7)])
            let before = client.events.count
            let removal = RoomError(.roomReleased, "The administrator removed this participant.")
            client.connection.handle(.closed(Closing(reason: .kicked, error: removal)))
            #expect(client.events.count == before + 1 && client.ends == [.roomReleased])
        }
    }

    @Test func `a client that the server closes because it joins again too late opens another link`() async throws {
        try await onLoop { loop in
            let client = try Client(loop, mayReturn: true)
            client.enterToStay()
            client.beginRejoining()
            let lateness = RoomError(.outOfOrder, "No 'join' succeeded within 10 s.")
            client.hear(Envelope(ServerMessage.closed(Closing(reason: .disconnected, error: lateness))).json())
            #expect(client.ends == [] && client.connection.link == nil && client.connection.retry != nil)
            client.loseLink()
            client.openLink()
            client.acceptJoin()
            #expect(client.connection.participant == "p-9")
            client.connection.drop()
        }
    }

    /// The link is lost before or after the session.
    @Test(arguments: [true, false], [true, false])
    func `a client whose session the server closed asks whether it was removed before it joins again`(
        isLostBefore: Bool, isRemoved: Bool
    ) throws {
        let stage = try SteppedClient()
        let client = stage.client
        client.enterToStay()
        let up = try client.connection.makeUpSession()
        if isLostBefore { client.loseLink() }
        up.onEvent?(.ended(nil))
        stage.advance(by: .milliseconds(1100))
        #expect(client.connection.absence?.mustRejoin == true)
        if !isLostBefore { client.loseLink() }
        client.openLink()
        #expect(client.sent.last?.contains(#""type":"resume""#) == true)
        if isRemoved {
            let removal = RoomError(.roomReleased, "The administrator removed this participant.")
            client.hear(Envelope(ServerMessage.closed(Closing(reason: .kicked, error: removal))).json())
            #expect(client.ends == [.roomReleased])
        } else {
            client.reply(.error(Problem(RoomError(.notResumable, "The participant is not known."))))
            #expect(client.sent.last?.contains(#""type":"join""#) == true && client.ends == [])
        }
        client.connection.drop()
    }

    @Test func `a session that fails while another link is opened begins no second attempt`() async throws {
        try await onLoop { loop in
            let client = try Client(loop, mayReturn: true)
            client.enterToStay()
            client.rejoin()
            let up = try client.connection.makeUpSession()
            client.loseLink()
            #expect(client.openings.count == 1 && client.connection.retry == nil)
            up.onEvent?(.ended(TransportError(code: "transport.timeout", message: "No answer.")))
            #expect(client.connection.retry == nil)
            client.connection.drop()
        }
    }
}

private final class Sink: IncomingSink {
    func begin(_ stream: ClientCore.IncomingStream) {}
    func receive(_ packet: Span<UInt8>) {}
    func end() {}
}
