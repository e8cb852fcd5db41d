import MediaGraph
import PeerIO
import PeerLoop
import RTP
import RoomProtocol
import Testing
import TestSupport

@testable import ClientCore

/// The codes of faults of the server, each by a message of it. No time passes.
@Suite struct ErrorCodeTests {
    private final class Sink: IncomingSink {
        func begin(_ stream: ClientCore.IncomingStream) {}
        func receive(_ packet: Span<UInt8>) {}
        func end() {}
    }

    // MARK: - Malformed messages

    @Test func `a reply to 'join' that cannot be read ends the connection`() async throws {
        try await onLoop { loop in
            for reply in [#"{"type":"joined","id":1}"#, #"{"type":"pong","id":1}"#] {
                let client = try Client(loop)
                #expect(client.connection.begin() && client.connection.signIn(to: client.server))
                client.connection.join(client.room, token: "a token", over: client.link)
                client.hear(reply)
                #expect(client.ends == [.enterResponseInvalid])
            }
        }
    }

    @Test(arguments: [
        (#"{"type":"error"}"#, 1482), (#"{"type":"streamChanged"}"#, 1483), (#"{"type":"receiverAssigned"}"#, 1483),
        (#"{"type":"streamPublished"}"#, 1483), (#"{"type":"streamUnpublished"}"#, 1483),
        (#"{"type":"participantEntered"}"#, 1484), (#"{"type":"participantLeft"}"#, 1484),
        (#"{"type":"streamQuality"}"#, 1485), (#"{"type":"streamLimit"}"#, 1485), (#"{"type":"userMessage"}"#, 1486),
    ])
    func `a message of the server that cannot be read is a problem with the code of its kind`(
        message: String, code: Int
    ) async throws {
        try await onLoop { loop in
            let client = try Client(loop)
            client.enter()
            client.hear(message)
            #expect(client.problems == [.init(code)] && client.ends == [])
            client.connection.drop()
        }
    }

    @Test(arguments: [
        (#"{"type":"published","id":2}"#, 1472), (#"{"type":"pong","id":2}"#, 1472),
        (#"{"type":"error","id":2}"#, 1474),
        (#"{"type":"published","id":2,"sdp":"no description","streams":[]}"#, 1444),
        (#"{"type":"published","id":2,"sdp":"v=0","streams":[{"mid":"7","stream":1}]}"#, 1443),
        (#"{"type":"error","id":2,"code":"1431","message":"No."}"#, 1431),
        (#"{"type":"error","id":2,"code":"1441","message":"No."}"#, 1441),
    ])
    func `a reply to 'publish' that is of no use fails the publication with its fault`(
        reply: String, code: Int
    ) async throws {
        try await onLoop { loop in
            let client = try Client(loop)
            client.enter()
            var codes: [RoomError.Code?] = []
            client.connection.publish([TrackOffer(Track())]) { codes.append($0.failure) }
            client.hear(reply)
            #expect(codes == [.init(code)] && client.ends == [])
            client.connection.drop()
        }
    }

    @Test(arguments: [#"{"type":"viewSet","id":3}"#, #"{"type":"pong","id":3}"#])
    func `a reply to 'setView' that cannot be read fails the view`(reply: String) async throws {
        try await onLoop { loop in
            let client = try Client(loop)
            try subscribe(client)
            var codes: [RoomError.Code?] = []
            client.connection.setView(StreamView(profile: .low), of: 5) { codes.append($0.failure) }
            client.hear(reply)
            #expect(codes == [.viewReplyInvalid])
            client.connection.drop()
        }
    }

    // MARK: - Receivers

    @Test func `no video is asked for beyond the receivers that the server grants`() async throws {
        try await onLoop { loop in
            let client = try Client(loop, options: ConnectionOptions(receivers: ReceiverPool(maximum: 3)))
            client.enter(terms: #","receivers":{"initial":1,"maximum":1,"growth":1}"#)
            #expect(client.problems == [.settingInvalid])
            client.hear(Self.participant)
            var codes: [RoomError.Code?] = []
            for id in [5, 6] { client.connection.subscribe(id, to: { _ in Sink() }) { codes.append($0.failure) } }
            #expect(codes == [.receiversExhausted] && client.sent.count == 2)
            client.connection.unsubscribe(5) { _ in }
            client.connection.subscribe(6, to: { _ in Sink() }) { codes.append($0.failure) }
            #expect(codes.count == 1 && client.sent.count == 4)
            client.connection.drop()
        }
    }

    @Test func `a server that grants the receivers that were asked for causes no problem`() async throws {
        try await onLoop { loop in
            let client = try Client(loop)
            client.enter(terms: #","receivers":{"initial":9,"maximum":20,"growth":1}"#)
            #expect(client.problems == [])
            client.connection.drop()
        }
    }

    @Test func `a receiver that the server chose and that is not there fails the subscription, and is a problem later`()
        async throws
    {
        try await onLoop { loop in
            let client = try Client(loop)
            try subscribe(client)
            var codes: [RoomError.Code?] = []
            client.connection.subscribe(6, to: { _ in Sink() }) { codes.append($0.failure) }
            client.hear(#"{"type":"subscribed","id":3,"stream":6,"mid":"99"}"#)
            #expect(codes == [.receiverUnavailable] && client.problems == [])
            // The server has the subscription, and would refuse another one.
            #expect(client.sent.last == #"{"id":4,"stream":6,"type":"unsubscribe"}"#)
            client.hear(#"{"type":"receiverAssigned","mid":"98","media":"video","stream":5,"participant":"p-2"}"#)
            #expect(client.problems == [.receiverUnknown] && client.ends == [])
            client.connection.drop()
        }
    }

    @Test func `a codec that this version lacks has no receiver`() async throws {
        try await onLoop { loop in
            let client = try Client(loop)
            client.enter()
            client.hear(Self.participant)
            var codes: [RoomError.Code?] = []
            client.connection.subscribe(8, to: { _ in Sink() }) { codes.append($0.failure) }
            #expect(codes == [.receiverUnavailable] && client.sent.count == 1)
            client.connection.drop()
        }
    }

    // MARK: - Descriptions

    @Test func `without a usable first offer, or with a refused first answer, the connection ends`() async throws {
        try await onLoop { loop in
            func end(_ hear: (Client) throws -> Void) throws -> [RoomError.Code?] {
                let client = try Client(loop)
                client.join()
                try hear(client)
                return client.ends
            }
            #expect(try end { $0.hear(#"{"type":"offer"}"#) } == [.offerInvalid])
            let malformed = #"{"type":"offer","session":"down","sdp":"v=1","revision":1}"#
            let incomplete = try offer(1, revision: 1, withSSRCs: false)
            for offer in [malformed, incomplete] { #expect(try end { $0.hear(offer) } == [.downOfferUnusable]) }
            let usable = try offer(1, revision: 1)
            let ends = try end { client in
                client.hear(usable)
                client.hear(#"{"type":"error","code":"1433","message":"No."}"#)
            }
            #expect(ends == [.answerRefused])
        }
    }

    @Test func `a later offer that is of no use costs its receivers alone`() async throws {
        try await onLoop { loop in
            let client = try Client(loop)
            try subscribe(client)
            client.hear(try offer(2, revision: 2, withSSRCs: false))
            #expect(client.problems == [.growthFailed])
            client.hear(#"{"type":"offer"}"#)
            #expect(client.problems.last == .offerInvalid)
            client.hear(try offer(2, revision: 2))
            client.hear(#"{"type":"error","code":"1433","message":"No."}"#)
            #expect(client.problems.last == .growthRefused)
            client.hear(try offer(2, revision: 3))
            client.hear(#"{"type":"error","code":"1433","message":"No."}"#)
            #expect(client.problems.last == .answerRefused)
            #expect(client.problems.count == 4 && client.ends == [])
            client.connection.drop()
        }
    }

    @Test func `a candidate for a session that is not there is a problem`() async throws {
        try await onLoop { loop in
            let client = try Client(loop)
            client.enter()
            for session in ["up", "down"] {
                client.hear(#"{"type":"candidate","session":"\#(session)","candidate":""}"#)
            }
            #expect(client.problems == [.sessionReleased, .sessionReleased])
            client.hear(try offer(1, revision: 1))
            client.hear(#"{"type":"candidate","session":"down","candidate":""}"#)
            #expect(client.problems.count == 2)
            client.connection.drop()
        }
    }

    // MARK: - Signalling

    @Test func `a server that acknowledges nothing fills the queue of signalling, which ends the connection`()
        async throws
    {
        try await onLoop { loop in
            let client = try Client(loop)
            client.enter(terms: #","resume":{"secret":"s","seconds":30}"#)
            let candidate = Candidate(session: .up, candidate: String(repeating: "x", count: 64 * 1024))
            for _ in 0..<15 { client.connection.send(.candidate(candidate)) }
            #expect(client.ends == [])
            for _ in 0..<2 { client.connection.send(.candidate(candidate)) }
            #expect(client.ends == [.signallingFull])
        }
    }

    // MARK: - Helpers

    private static let participant =
        #"{"type":"participantEntered","participant":{"id":"p-2","streams":[{"id":5,"media":"video","codec":"VP8","extraValue":""},"#
        + #"{"id":6,"media":"video","codec":"VP8","extraValue":""},{"id":8,"media":"video","codec":"other","extraValue":""}]}}"#

    /// Enters, with one receiver that carries the video 5.
    private func subscribe(_ client: Client) throws {
        client.enter()
        client.hear(try offer(1, revision: 1))
        client.hear(Self.participant)
        client.connection.subscribe(5, to: { _ in Sink() }) { #expect($0.failure == nil) }
        client.hear(#"{"type":"subscribed","id":2,"stream":5,"mid":"0"}"#)
    }

    /// An offer of the down session with some receivers of video.
    private func offer(_ receivers: Int, revision: Int, withSSRCs: Bool = true) throws -> String {
        try downOffer(receivers, revision: revision, withSSRCs: withSSRCs)
    }
}

/// The message with an offer of the down session, with some receivers of video.
func downOffer(_ receivers: Int, revision: Int, withSSRCs: Bool = true) throws -> String {
    let transport = TransportDescription(
        iceUfrag: "abcd", icePwd: "abcdefghijklmnopqrstuv",
        fingerprints: [Fingerprint(algorithm: "sha-256", digest: Array(repeating: 7, count: 32))], setup: .actpass)
    var offer = DownDescription.offer(
        sessionID: 1, revision: revision,
        receivers: (0..<receivers).map {
            Receiver(mid: "\($0)", media: .video, ssrc: SSRC(UInt32(1000 + $0)), retransmissionSSRC: nil)
        }, transport: transport, cname: "server")
    if !withSSRCs { for index in offer.media.indices { offer.media[index].ssrcs = [] } }
    return Envelope(ServerMessage.offer(Description(session: .down, sdp: offer.serialized(), revision: revision)))
        .json()
}

extension Result where Failure == RoomError {
    var failure: RoomError.Code? { if case .failure(let error) = self { error.code } else { nil } }
}
