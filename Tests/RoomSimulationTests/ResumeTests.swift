import PeerLoop
import RTP
import RoomProtocol
import ServerCore
import Testing

@testable import RoomSimulation

/// Participants whose clients lose their connections, or say so.
struct ResumeTests {
    @Test func `a client gets the messages that it lacks, in order, and other secrets each time`() throws {
        let stage = try Stage()
        let ada = try stage.join()
        let other = try stage.join()
        let received = ada.connection.counted.count
        stage.rooms.disconnected(ada.connection, lost: stage.loop.now)
        stage.rooms.disconnected(other.connection)
        let third = try stage.join()
        let again = stage.resume(ada, received: received)
        #expect(
            again.counted == [
                .participantLeft(ParticipantReference(participant: other.id)),
                .participantEntered(ParticipantEntered(participant: ParticipantInfo(id: third.id, streams: []))),
            ])
        #expect(again.secret != nil && again.secret != ada.secret)
        #expect(stage.rooms.counts.participants == 2)
    }

    @Test func `a request is answered once, however often its client sends it over`() throws {
        let stage = try Stage()
        let ada = try stage.join()
        stage.rooms.handle(
            ClientRequest(Envelope(id: 7, .unpublish(StreamReferences(streams: [1])))), from: ada.connection)
        stage.rooms.disconnected(ada.connection, lost: stage.loop.now)
        let again = stage.resume(ada, received: ada.connection.counted.count - 1)
        // The server has it, and the answer comes again.
        #expect(again.resumed?.received == 1)
        #expect(again.counted.count == 1 && again.error == .noSuchStream)
    }

    @Test func `wrong, foreign and replayed secrets are refused alike, and counted`() throws {
        let stage = try Stage()
        let (ada, other) = (try stage.join(), try stage.join())
        stage.rooms.disconnected(ada.connection, lost: stage.loop.now)
        for secret in ["", "x", String(ada.secret.dropLast()), ada.secret + "A", other.secret] {
            let refused = stage.resume(Member(id: ada.id, secret: secret, connection: ada.connection), received: 1)
            #expect(refused.error == .notResumable)
            #expect(refused.guesses == 1)
        }
        let unknown = stage.resume(Member(id: "p-nobody", secret: ada.secret, connection: ada.connection), received: 1)
        #expect(unknown.error == .notResumable)
        #expect(unknown.guesses == 0)
        let again = stage.resume(ada, received: 1)
        #expect(again.error == nil)
        // The client may not have got the new secret yet.
        let lost = stage.resume(ada, received: 1)
        #expect(lost.error == nil)
        // Now it has.
        stage.rooms.handle(ClientRequest(Envelope(.ack(Acknowledgement(received: 1)))), from: lost)
        let replayed = stage.resume(ada, received: 1)
        #expect(replayed.error == .notResumable)
        #expect(replayed.guesses == 1)
    }

    @Test func `a request to resume that the network delayed costs the client nothing`() throws {
        let stage = try Stage()
        let ada = try stage.join()
        stage.rooms.disconnected(ada.connection, lost: stage.loop.now)
        let again = stage.resume(ada, received: 1)
        // Sent before, over a connection that the client has given up.
        #expect(stage.resume(ada, received: 1).error == nil)
        let newest = Member(id: ada.id, secret: try #require(again.secret), connection: again)
        let last = stage.resume(newest, received: 1)
        #expect(last.error == nil)
        stage.rooms.handle(ClientRequest(Envelope(.ack(Acknowledgement(received: 1)))), from: last)
        #expect(stage.resume(newest, received: 1).error == .notResumable)
    }

    @Test func `the right secret without a checked token resumes nothing`() throws {
        let stage = try Stage()
        let ada = try stage.join()
        stage.rooms.disconnected(ada.connection, lost: stage.loop.now)
        #expect(stage.resume(ada, received: 1, isAdmitted: false).error == .outOfOrder)
        #expect(stage.resume(ada, received: 1).error == nil)
    }

    @Test func `a client that resumes without end is slowed down`() throws {
        let stage = try Stage()
        var ada = try stage.join()
        for _ in 0..<10 {
            let again = stage.resume(ada, received: 1)
            ada = Member(id: ada.id, secret: try #require(again.secret), connection: again)
        }
        #expect(stage.resume(ada, received: 1).error == .tooManyRequests)
        stage.advance(to: .seconds(2))
        #expect(stage.resume(ada, received: 1).error == nil)
    }

    @Test(arguments: [-1, 5, 1_000_000, Int.max, Int.min])
    func `an impossible count is refused, and the participant can still resume`(count: Int) throws {
        let stage = try Stage()
        let ada = try stage.join()
        stage.rooms.disconnected(ada.connection, lost: stage.loop.now)
        let refused = stage.resume(ada, received: count)
        #expect(refused.error == .messageMalformed)
        // Its time to join goes on.
        #expect(!refused.hasJoined)
        #expect(stage.resume(ada, received: 1).error == nil)
        let connection = stage.resume(ada, received: 1)
        stage.rooms.handle(ClientRequest(Envelope(.ack(Acknowledgement(received: count)))), from: connection)
        #expect(connection.error == .messageMalformed)
    }

    @Test func `another connection replaces one that seems to work, which cannot speak for the participant`() throws {
        let stage = try Stage()
        let ada = try stage.join()
        let again = stage.resume(ada, received: 1)
        #expect(again.error == nil)
        #expect(ada.connection.hasEnded)
        stage.rooms.handle(ClientRequest(Envelope(id: 1, .leave)), from: ada.connection)
        stage.rooms.disconnected(ada.connection)
        #expect(stage.rooms.counts.participants == 1)
        stage.rooms.handle(ClientRequest(Envelope(id: 1, .leave)), from: again)
        #expect(stage.rooms.counts.participants == 0)
    }

    @Test func `a participant that does not resume leaves after the grace period, and its seat is free`() throws {
        let stage = try Stage()
        let (ada, lin) = (try stage.join(), try stage.join())
        stage.rooms.disconnected(ada.connection, lost: stage.loop.now)
        stage.advance(to: .seconds(29))
        #expect(stage.rooms.counts.participants == 2 && stage.seats == 2)
        stage.advance(to: .seconds(31))
        #expect(stage.rooms.counts.participants == 1 && stage.seats == 1)
        #expect(lin.connection.counted.last == .participantLeft(ParticipantReference(participant: ada.id)))
        #expect(stage.resume(ada, received: 1).error == .notResumable)
    }

    @Test func `a client that has not asked for it, or that has left, is not kept`() throws {
        let stage = try Stage()
        let old = try stage.join(resumes: false)
        #expect(old.secret.isEmpty)
        stage.rooms.disconnected(old.connection, lost: stage.loop.now)
        let gone = try stage.join()
        stage.rooms.disconnected(gone.connection)
        #expect(stage.rooms.counts.participants == 0 && stage.seats == 0)
    }

    @Test func `a client that falls too far behind leaves, and nothing is kept for it`() throws {
        let stage = try Stage()
        let (ada, lin) = (try stage.join(), try stage.join())
        stage.rooms.disconnected(ada.connection, lost: stage.loop.now)
        for _ in 0...(MessageLedger<Int>.countLimit / 2) {
            let guest = try stage.join()
            stage.rooms.disconnected(guest.connection)
            stage.rooms.handle(
                ClientRequest(Envelope(.ack(Acknowledgement(received: lin.connection.counted.count)))),
                from: lin.connection)
        }
        stage.advance(to: .milliseconds(1))
        #expect(stage.rooms.counts.participants == 1)
        #expect(stage.resume(ada, received: 1).error == .notResumable)
    }

    @Test func `messages for which an absent client has no place are dropped, and it stays and is told`() throws {
        let stage = try Stage()
        let ada = try stage.join()
        let talkers = try (0..<6).map { _ in try stage.join() }
        stage.rooms.disconnected(ada.connection, lost: stage.loop.now)
        let text = String(repeating: "\u{1}", count: 5000)
        for second in 1...8 as ClosedRange<Int64> {
            for talker in talkers {
                let message = ClientMessage.message(SendMessage(text: text))
                stage.rooms.handle(ClientRequest(Envelope(id: 2, message)), from: talker.connection)
                let count = talker.connection.counted.count
                stage.rooms.handle(
                    ClientRequest(Envelope(.ack(Acknowledgement(received: count)))), from: talker.connection)
            }
            stage.advance(to: .seconds(second))
        }
        let last = try stage.join()
        let back = stage.resume(ada, received: ada.connection.counted.count)
        let heard = back.sent.count { if case .userMessage = $0 { true } else { false } }
        let entered = back.sent.contains {
            if case .participantEntered(let body) = $0 { body.participant.id == last.id } else { false }
        }
        // 512 KiB of 30 KB each, beside the other messages.
        #expect((14...17).contains(heard) && entered && back.error == .userMessageInvalid)
    }

    @Test func `the server acknowledges what it has when the client does`() throws {
        let stage = try Stage()
        let ada = try stage.join()
        for _ in 0..<3 {
            stage.rooms.handle(
                ClientRequest(Envelope(id: 1, .unpublish(StreamReferences(streams: [])))), from: ada.connection)
        }
        // One that nobody can read counts too.
        stage.rooms.handle(
            ClientRequest(MessageRefused(id: nil, error: RoomError(.messageUnknown, "Unknown."))), from: ada.connection)
        stage.rooms.handle(ClientRequest(Envelope(.ack(Acknowledgement(received: 4)))), from: ada.connection)
        #expect(ada.connection.sent.last == .ack(Acknowledgement(received: 4)))
        stage.rooms.handle(ClientRequest(Envelope(.ack(Acknowledgement(received: 4)))), from: ada.connection)
        #expect(ada.connection.sent.count { $0 == .ack(Acknowledgement(received: 4)) } == 1)
    }
}

private struct Member {
    let id: String
    let secret: String
    let connection: Connection
}

/// Rooms without clients: their connections are lists of messages.
private final class Stage {
    private let world = World(seed: 1, encryption: .checked)
    private let port: ServerPort
    let rooms: Rooms
    private let taken = Seats()
    var seats: Int { taken.count }

    private final class Seats { var count = 0 }

    var loop: Loop { world.loop }

    init() throws {
        let port = ServerPort(loop: world.loop, address: SimulatedServer.address(of: 5), seed: 1) { _, _ in }
        var names: UInt64 = 0
        let settings = SessionSettings(loop: world.loop, random: RandomSource(seed: 2)) { [unowned world] _, _ in
            names += 1
            do throws(TransportError) {
                return try Peer(
                    loop: world.loop, session: world.makeSession(cname: "server", name: names, isServer: true),
                    connectTimeout: .seconds(1000)
                ) { ServerPath(port: port, events: $1, datagrams: $2) }
            } catch {
                preconditionFailure("\(error)")
            }
        }
        rooms = Rooms(settings: settings, numbers: StreamNumbers()) { _ in }
        self.port = port
    }

    deinit {
        rooms.close()
        loop.endTurn()
        port.end()
        world.end()
    }

    func join(resumes: Bool = true) throws -> Member {
        let connection = Connection()
        taken.count += 1
        let admission = Admission(room: try RoomName("kitchen")) { [taken] in taken.count -= 1 }
        let join = Join(token: "token", room: "kitchen", resume: resumes)
        rooms.handle(ClientRequest(Envelope(id: 1, .join(join))), from: connection, admission)
        loop.endTurn()
        guard case .joined(let joined) = connection.sent.first else { throw RoomError(.enterResponseInvalid, "?") }
        return Member(id: joined.participant, secret: joined.resume?.secret ?? "", connection: connection)
    }

    func resume(_ member: Member, received: Int, isAdmitted: Bool = true) -> Connection {
        let connection = Connection()
        let resume = Resume(token: "token", participant: member.id, secret: member.secret, received: received)
        var request = ClientRequest(Envelope(id: 1, .resume(resume)))
        request.mayResume = isAdmitted
        rooms.handle(request, from: connection)
        loop.endTurn()
        return connection
    }

    func advance(to time: TimeInterval) {
        _ = try? world.run(for: time - world.time)
    }
}

private final class Connection: ClientConnection {
    let place = ClientPlace.elsewhere
    var isEnding: Bool { hasEnded }
    private(set) var hasEnded = false
    private(set) var hasJoined = false
    private(set) var sent: [ServerMessage] = []
    private(set) var guesses = 0

    func send(_ message: ServerMessage, answering id: Int?) { sent.append(message) }
    func didJoin() { hasJoined = true }
    func didNotJoin() {}
    func didGuess(at participant: String) { guesses += 1 }
    func close(_ closing: Closing) { hasEnded = true }
    func end() { hasEnded = true }

    /// The messages that count, without descriptions and candidates.
    var counted: [ServerMessage] { sent.filter(\.isCounted) }
    var resumed: Resumed? {
        for case .resumed(let body) in sent { return body }
        return nil
    }
    var secret: String? { resumed?.secret }
    var error: RoomError.Code? {
        for case .error(let problem) in sent { return problem.error.code }
        return nil
    }
}
