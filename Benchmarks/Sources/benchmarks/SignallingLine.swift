internal import Foundation
internal import RoomProtocol
internal import Synchronization

/// The signalling of one load client, as docs/signalling.md has it: requests with their answers, and the server's offer.
final class SignallingLine: RoomSignalling {
    private struct State {
        var lastRequest = 0
        var waiting: [Int: CheckedContinuation<ServerMessage, any Error>] = [:]
        var offer: Description?
        var offerWaiter: CheckedContinuation<Description, any Error>?
        var ended = false
    }

    private let socket: TextSocket
    private let token: String
    private let state = Mutex(State())

    private init(_ socket: TextSocket, token: String) {
        self.socket = socket
        self.token = token
    }

    static func open(_ access: ServerAccess, token: String, from local: String?) async throws -> SignallingLine {
        let socket = try await TextSocket.open(
            host: access.host, port: access.port, path: Signalling.webSocketPath, from: local)
        let line = SignallingLine(socket, token: token)
        Task {
            await socket.read { line.take($0) }
            line.end()
        }
        return line
    }

    func join(_ room: String, answering: Answering) async throws {
        guard case .joined = try await request(.join(Join(token: token, room: room))) else {
            throw BenchmarkError("The server did not answer 'join'.")
        }
        let offer = try await offer()
        let answer = try await answering(offer.sdp)
        send(.answer(Description(session: .down, sdp: answer, revision: offer.revision)))
    }

    func publish(_ offer: String) async throws -> (answer: String, stream: Int) {
        let publish = Publish(sdp: offer, streams: [Publish.Stream(mid: "0")])
        guard case .published(let published) = try await request(.publish(publish)),
            let stream = published.streams.first?.stream
        else { throw BenchmarkError("The server did not answer 'publish'.") }
        return (published.sdp, stream)
    }

    func subscribe(to streams: [Int], answering: Answering) async throws -> [String] {
        var mids: [String] = []
        for stream in streams {
            guard case .subscribed(let answer) = try await request(.subscribe(ViewOfStream(stream: stream))) else {
                throw BenchmarkError("The server did not answer 'subscribe'.")
            }
            mids.append(answer.mid)
        }
        return mids
    }

    func leave() async { _ = try? await request(.leave) }

    private func take(_ json: Data) {
        guard let envelope = try? Envelope<ServerMessage>(json: json) else { return }
        if let id = envelope.id {
            let waiter = state.withLock { $0.waiting.removeValue(forKey: id) }
            if case .error(let problem) = envelope.message {
                waiter?.resume(throwing: problem.error)
            } else {
                waiter?.resume(returning: envelope.message)
            }
        } else if case .offer(let description) = envelope.message {
            let waiter = state.withLock { state in
                state.offer = description
                defer { state.offerWaiter = nil }
                return state.offerWaiter
            }
            waiter?.resume(returning: description)
        }
    }

    private func end() {
        let (waiting, offerWaiter) = state.withLock { state in
            state.ended = true
            defer {
                state.waiting = [:]
                state.offerWaiter = nil
            }
            return (state.waiting, state.offerWaiter)
        }
        let error = BenchmarkError("The server closed the signalling connection.")
        for waiter in waiting.values { waiter.resume(throwing: error) }
        offerWaiter?.resume(throwing: error)
    }

    private func request(_ message: ClientMessage) async throws -> ServerMessage {
        try await withCheckedThrowingContinuation { continuation in
            let id = state.withLock { state -> Int? in
                guard !state.ended else { return nil }
                state.lastRequest += 1
                state.waiting[state.lastRequest] = continuation
                return state.lastRequest
            }
            guard let id else {
                continuation.resume(throwing: BenchmarkError("The signalling connection has ended."))
                return
            }
            socket.send(Envelope(id: id, message).json())
        }
    }

    private func send(_ message: ClientMessage) { socket.send(Envelope(message).json()) }

    /// The server's first offer of the down session.
    private func offer() async throws -> Description {
        try await withCheckedThrowingContinuation { continuation in
            let offer = state.withLock { state -> Description? in
                if state.offer == nil { state.offerWaiter = continuation }
                return state.offer
            }
            if let offer { continuation.resume(returning: offer) }
        }
    }
}
