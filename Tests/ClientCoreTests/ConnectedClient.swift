import Foundation
import MediaGraph
import PeerIO
import PeerLoop
import RTP
import RoomProtocol
import Testing
import TestSupport

@testable import ClientCore

final class Track: EncodedTrack {
    let codec: Codec
    var streamState = StreamState.live
    private(set) var isConnected = true

    init(_ codec: Codec = .vp8) { self.codec = codec }

    var encoderStatistics: MediaStatistics.VideoEncoder? { nil }
    func requestKeyframe() {}
    func disconnect() { isConnected = false }
}

/// A connection, its sent messages and its events.
final class Client {
    let server: ServerAddress
    let room: RoomName
    private(set) var sent: [String] = []
    private(set) var isClosed = false
    private(set) var events: [RoomEvent] = []
    /// The attempts to open another link, which the test answers.
    private(set) var openings: [(Result<OpenedLink, RoomError>) -> Void] = []
    private var attempts = 0
    private var made: RoomConnection?

    /// With peers that have sockets.
    convenience init(
        _ loop: EventLoop, seed: UInt64 = 1, options: ConnectionOptions = ConnectionOptions(), mayReturn: Bool = false
    ) throws {
        let certificate = try Certificate()
        try self.init(loop, seed: seed, options: options, mayReturn: mayReturn) { request throws(TransportError) in
            try Peer(
                loop: loop,
                configuration: PeerConfiguration(
                    iceRole: request.role, certificate: certificate, cname: request.cname,
                    scope: .reaching(request.server)))
        }
    }

    /// - Parameter mayReturn: whether it tries to return when its link is lost.
    init(
        _ loop: Loop, seed: UInt64 = 1, options: ConnectionOptions = ConnectionOptions(), mayReturn: Bool = false,
        makePeer: @escaping (PeerRequest) throws(TransportError) -> Peer
    ) throws {
        server = try ServerAddress("ws://127.0.0.1:1")
        room = try RoomName("room")
        made = RoomConnection(
            loop: loop, options: options,
            environment: RoomEnvironment(
                seed: seed, makePeer: makePeer, wallClock: { NTPTime(unixNanoseconds: $0.nanoseconds) },
                openLink: mayReturn ? { [unowned self] _, then in openings.append(then) } : nil)
        ) { [unowned self] in events.append($0) }
    }

    var connection: RoomConnection {
        guard let made else { preconditionFailure("a client without a connection") }
        return made
    }

    var link: SignallingLink {
        SignallingLink(
            remoteAddress: "127.0.0.1", send: { [unowned self] in sent.append($0) },
            close: { [unowned self] in isClosed = true })
    }

    /// - Parameter terms: further fields of the server's reply.
    func join(version: Int = 1, servers: String = "null", terms: String = "") {
        #expect(connection.begin())
        #expect(connection.signIn(to: server))
        connection.join(room, token: "a token", over: link)
        hear(
            #"{"type":"joined","id":1,"version":\#(version),"participant":"p-1","participants":[],"iceServers":\#(servers)\#(terms)}"#
        )
    }

    /// Joins, as if media could flow already.
    func enter(terms: String = "") {
        join(terms: terms)
        connection.secured()
    }

    /// Loses the link, and begins an attempt to open another one.
    func loseLink() {
        connection.receive(.closed(nil))
        attempts += 1
        // Further addresses let it try at once.
        connection.addressesChanged(to: Set((1...attempts).map { "192.0.2.\($0)" }))
    }

    /// Enters a room to which it may return.
    func enterToStay() { enter(terms: #","resume":{"secret":"a secret","seconds":30}"#) }

    /// The attempt to open another link succeeds.
    ///
    /// - Parameter isOpen: whether the link has not closed meanwhile
    func openLink(isOpen: Bool = true) {
        var link = link
        link.isOpen = { isOpen }
        openings.removeLast()(.success(OpenedLink(link: link, token: "a token", address: server)))
    }

    /// Loses the link, cannot resume over another one, and asks to join again.
    func beginRejoining() {
        loseLink()
        openLink()
        reply(.error(Problem(RoomError(.notResumable, "The participant is not known."))))
    }

    /// Joins again in a room with these participants.
    func rejoin(_ others: [ParticipantInfo] = []) {
        beginRejoining()
        acceptJoin(others)
    }

    func acceptJoin(_ others: [ParticipantInfo] = []) {
        reply(.joined(Joined(version: 1, participant: "p-9", participants: others)))
        // The server has announced all participants.
        connection.handle(.iceServers(ICEServersRenewed(iceServers: [])))
    }

    /// Replies to the newest request.
    func reply(_ message: ServerMessage) {
        let requests = sent.compactMap { try? Envelope<ClientMessage>(json: Data($0.utf8)).id }
        hear(Envelope(id: requests.last, message).json())
    }

    /// Replies to the last offer, which has one new stream, or restarts ICE. Its request has this number, or is the last one of all
    /// offers.
    func acceptOffer(id: Int? = nil, stream: Int? = nil) throws {
        let id = try id ?? #require(lastOffer)
        let requests = try sent.map { try Envelope<ClientMessage>(json: Data($0.utf8)).message }
        guard case .publish(let body) = requests.last(where: { if case .publish = $0 { true } else { false } }) else {
            return
        }
        let offer = try SessionDescription(parsing: body.sdp)
        let announced = body.streams.first?.mid
        let mids = (connection.up?.tracks ?? []).filter { $0.stream != nil }.map(\.sender.mid) + [announced]
        let transport = TransportDescription(
            iceUfrag: "abcd", icePwd: "abcdefghijklmnopqrstuv",
            fingerprints: [Fingerprint(algorithm: "sha-256", digest: Array(repeating: 7, count: 32))], setup: .passive)
        let streams = try offer.media.filter { !$0.isRejected && mids.contains($0.mid) }.map {
            try UpDescription.stream($0.mid, of: offer)
        }
        let answer = UpDescription.answer(to: offer, taking: streams, sessionID: 1, transport: transport)
        let published = Published(
            sdp: answer.serialized(), streams: zip([announced], [stream]).compactMap(Self.published))
        hear(Envelope(id: id, ServerMessage.published(published)).json())
    }

    private static func published(_ mid: String?, _ stream: Int?) -> Published.Stream? {
        guard let mid, let stream else { return nil }
        return Published.Stream(mid: mid, stream: stream)
    }

    /// The number of the last request to publish.
    var lastOffer: Int? {
        sent.compactMap { text -> Int? in
            let envelope = try? Envelope<ClientMessage>(json: Data(text.utf8))
            guard case .publish = envelope?.message else { return nil }
            return envelope?.id
        }.last
    }

    /// The room has too many announcements for the last offer.
    func postponeOffer() {
        let refusal = RoomError(.tooManyRequests, "Try again later.")
        hear(Envelope(id: lastOffer, ServerMessage.error(Problem(refusal))).json())
    }

    func hear(_ text: String) { connection.receive(.text(text)) }

    var percents: [Int] {
        events.compactMap { if case .connecting(let percent) = $0 { percent } else { nil } }
    }

    var unpublished: [Int] {
        events.compactMap { if case .streamUnpublished(_, let info) = $0 { info.id } else { nil } }
    }

    /// The participants that left.
    var left: [String] {
        events.compactMap { if case .participantLeft(let info) = $0 { info.id } else { nil } }
    }

    var changed: [StreamState] {
        events.compactMap { if case .streamChanged(_, let info, _) = $0 { info.state } else { nil } }
    }

    /// The changes of the others' streams.
    var reported: [StreamChange] {
        events.compactMap { if case .streamChanged(_, _, let change) = $0 { change } else { nil } }
    }

    var problems: [RoomError.Code] {
        events.compactMap { if case .problem(let error) = $0 { error.code } else { nil } }
    }

    /// The attributes that the server was told with publications.
    var announced: [StreamAttributes] {
        sent.flatMap { text -> [StreamAttributes] in
            guard case .publish(let body) = try? Envelope<ClientMessage>(json: Data(text.utf8)).message else {
                return []
            }
            return body.streams.map(\.attributes)
        }
    }

    /// The changes that the server was told.
    var changes: [StreamChange] {
        sent.compactMap { text in
            guard case .setStream(let body) = try? Envelope<ClientMessage>(json: Data(text.utf8)).message else {
                return nil
            }
            return body.change
        }
    }

    /// The states that the server was told.
    var states: [StreamState] {
        sent.compactMap { text in
            guard case .setStream(let body) = try? Envelope<ClientMessage>(json: Data(text.utf8)).message else {
                return nil
            }
            return body.change.state
        }
    }

    /// The code of each end.
    var ends: [RoomError.Code?] {
        events.compactMap { event -> RoomError.Code?? in
            if case .ended(_, let error) = event { .some(error?.code) } else { nil }
        }
    }

    /// The videos that the server was asked for.
    var subscribed: [Int] {
        sent.compactMap { text in
            guard case .subscribe(let body) = try? Envelope<ClientMessage>(json: Data(text.utf8)).message else {
                return nil
            }
            return body.stream
        }
    }

    /// The streams that the server was told to end.
    var ended: [[Int]] {
        sent.compactMap { text in
            guard case .unpublish(let body) = try? Envelope<ClientMessage>(json: Data(text.utf8)).message else {
                return nil
            }
            return body.streams
        }
    }

    /// The offers of the up session.
    var offers: [SessionDescription] {
        get throws {
            try sent.compactMap { text in
                guard case .publish(let body) = try Envelope<ClientMessage>(json: Data(text.utf8)).message else {
                    return nil
                }
                return try SessionDescription(parsing: body.sdp)
            }
        }
    }
}

/// Runs the test as one piece of work of a loop.
func onLoop(_ test: @escaping @Sendable (EventLoop) throws -> Void) async throws {
    let loop = EventLoop(name: "client")
    defer { loop.shutdown() }
    try await onLoop(loop) { try test(loop) }
}

/// Runs the closure on the loop and returns its result.
func onLoop<Value: Sendable>(
    _ loop: EventLoop, _ body: @Sendable () throws -> Value
) async rethrows -> Value {
    try await OnExecutor(loop).run(body)
}
