internal import Foundation
internal import Synchronization

/// The signalling of one load client of Janus: its WebSocket interface, with one handle of the VideoRoom plugin.
final class JanusLine: RoomSignalling {
    private struct State {
        var lastTransaction = 0
        var session: Int?
        /// The publisher's, and the subscriber's.
        var handles: [String: Int] = [:]
        var waiting: [String: CheckedContinuation<Reply, any Error>] = [:]
        var ended = false
    }

    private struct Request: Encodable {
        var janus: String
        var transaction = ""
        var sessionId: Int?
        var handleId: Int?
        var plugin: String?
        var body: Body?
        var jsep: Session?
    }

    private static let publisher = "publisher"
    private static let subscriber = "subscriber"

    private struct Body: Encodable {
        struct Stream: Encodable { var feed: Int }

        var request: String
        var room: Int?
        var ptype: String?
        var streams: [Stream]?
        var publishers: Int?
        var bitrate: Int?
    }

    private struct Session: Codable {
        var type: String
        var sdp: String
    }

    private struct Reply: Decodable, Sendable {
        struct Created: Decodable { var id: Int }
        struct Problem: Decodable { var reason: String }
        struct Plugin: Decodable { var data: Event }
        struct Event: Decodable {
            var id: Int?
            var error: String?
        }

        var janus: String
        var transaction: String?
        var data: Created?
        var plugindata: Plugin?
        var jsep: Session?
        var error: Problem?
    }

    private static let noSuchFeed = "No such feed"
    private static let roomExists = "already exists"
    private let socket: TextSocket
    private let state = Mutex(State())
    private let room = Mutex(0)

    private init(_ socket: TextSocket) { self.socket = socket }

    static func open(host: String, port: Int) async throws -> JanusLine {
        let socket = try await TextSocket.open(host: host, port: port, path: "/", subprotocol: "janus-protocol")
        let line = JanusLine(socket)
        Task {
            await socket.read { line.take($0) }
            line.end()
        }
        let session = try await line.request(Request(janus: "create")).data?.id
        line.state.withLock { $0.session = session }
        return line
    }

    private func attach(_ role: String) async throws {
        let handle = try await request(Request(janus: "attach", plugin: "janus.plugin.videoroom")).data?.id
        state.withLock { $0.handles[role] = handle }
    }

    /// Names of rooms are numbers. The room is made where it does not exist.
    func join(_ name: String, answering: Answering) async throws {
        guard let number = Int(name) else { throw BenchmarkError("Rooms of Janus are numbers, not '\(name)'.") }
        room.withLock { $0 = number }
        try await attach(Self.publisher)
        do {
            _ = try await request(
                Self.publisher, Body(request: "create", room: number, publishers: 100, bitrate: 0))
        } catch let problem as BenchmarkError where problem.description.contains(Self.roomExists) {}
    }

    func publish(_ offer: String) async throws -> (answer: String, stream: Int) {
        let joined = try await request(
            Self.publisher, Body(request: "join", room: room.withLock { $0 }, ptype: Self.publisher))
        let configured = try await request(
            Self.publisher, Body(request: "configure"), Session(type: "offer", sdp: offer))
        guard let feed = joined.plugindata?.data.id, let answer = configured.jsep?.sdp else {
            throw BenchmarkError("Janus did not accept the publisher.")
        }
        return (answer, feed)
    }

    func subscribe(to streams: [Int], answering: Answering) async throws -> [String] {
        try await attach(Self.subscriber)
        let join = Body(
            request: "join", room: room.withLock { $0 }, ptype: Self.subscriber,
            streams: streams.map { Body.Stream(feed: $0) })
        var answer: Reply?
        try await wait(upTo: 10, for: "A feed of Janus") {
            // A feed begins a little later than its client's transport.
            do {
                answer = try await request(Self.subscriber, join)
            } catch let problem as BenchmarkError where problem.description.contains(Self.noSuchFeed) {}
            return answer != nil
        }
        guard let offer = answer?.jsep?.sdp else { throw BenchmarkError("Janus offered nothing to a subscriber.") }
        let description = try await answering(offer)
        _ = try await request(Self.subscriber, Body(request: "start"), Session(type: "answer", sdp: description))
        // Janus numbers the m-lines of an offer from 0.
        return streams.indices.map { "\($0)" }
    }

    func leave() async {
        _ = try? await request(Request(janus: "destroy"))
        socket.close()
    }

    private func request(_ role: String, _ body: Body, _ jsep: Session? = nil) async throws -> Reply {
        let handle = state.withLock { $0.handles[role] }
        return try await request(Request(janus: "message", handleId: handle, body: body, jsep: jsep))
    }

    private func request(_ request: Request) async throws -> Reply {
        let reply = try await withCheckedThrowingContinuation { continuation in
            var request = request
            let isOpen = state.withLock { state in
                state.lastTransaction += 1
                request.transaction = "t\(state.lastTransaction)"
                request.sessionId = state.session
                if !state.ended { state.waiting[request.transaction] = continuation }
                return !state.ended
            }
            guard isOpen else {
                return continuation.resume(throwing: BenchmarkError("The connection to Janus has ended."))
            }
            let encoder = JSONEncoder()
            encoder.keyEncodingStrategy = .convertToSnakeCase
            do {
                socket.send(String(decoding: try encoder.encode(request), as: UTF8.self))
            } catch {
                state.withLock { $0.waiting.removeValue(forKey: request.transaction) }?.resume(throwing: error)
            }
        }
        if let problem = reply.error?.reason ?? reply.plugindata?.data.error {
            throw BenchmarkError("Janus refused '\(request.body?.request ?? request.janus)': \(problem).")
        }
        return reply
    }

    private func take(_ json: Data) {
        // An acknowledgement precedes the event that answers a request.
        guard let reply = try? JSONDecoder().decode(Reply.self, from: json), reply.janus != "ack",
            let transaction = reply.transaction
        else { return }
        state.withLock { $0.waiting.removeValue(forKey: transaction) }?.resume(returning: reply)
    }

    private func end() {
        let waiting = state.withLock { state in
            state.ended = true
            defer { state.waiting = [:] }
            return state.waiting
        }
        for waiter in waiting.values { waiter.resume(throwing: BenchmarkError("Janus closed the connection.")) }
    }
}
