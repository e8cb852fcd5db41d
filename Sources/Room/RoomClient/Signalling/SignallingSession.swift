internal import Foundation
internal import RTP
internal import RoomProtocol

/// The client's side of one signalling connection as a state machine that is told the time: it numbers requests, ties
/// answers to them, pings, and notices a server that vanished. It holds no socket, clock or task.
struct SignallingSession {
    enum Output: Equatable {
        case send(String)
        /// The answer to request `id`, or why there will be none.
        case answer(id: Int, Result<ServerMessage, RoomError>)
        /// Something that the server says by itself.
        case message(ServerMessage)
        /// A message that is not well formed, or the server's word about one of ours; the connection goes on.
        case notUnderstood(RoomError)
        /// The connection is over. Every request has been answered before.
        case ended(RoomError)
    }

    /// Requests without an answer yet, at most; the next one is refused.
    static let maximumPendingRequests = 256

    private let server: String
    private var lastRequest = 0
    private var deadlines: [Int: (kind: String, time: MonotonicTime)] = [:]
    /// When each ping without an answer was sent.
    private var pings: [Int: MonotonicTime] = [:]
    /// How long the last ping took to be answered.
    private(set) var roundTrip: RTP.TimeInterval?
    private var lastHeard: MonotonicTime
    private var lastMedia = MonotonicTime.zero
    private var nextPing: MonotonicTime
    private(set) var hasEnded = false

    init(server: String, now: MonotonicTime) {
        self.server = server
        lastHeard = now
        nextPing = now + SignallingDeadlines.ping
    }

    /// When `handleTimeout` wants to be called.
    var nextTimeout: MonotonicTime {
        guard !hasEnded else { return .never }
        let deadline = deadlines.values.map(\.time).min() ?? .never
        return min(nextPing, silenceEnds, deadline)
    }

    /// When the server is taken as gone.
    private var silenceEnds: MonotonicTime {
        min(max(lastHeard, lastMedia) + SignallingDeadlines.silence, lastHeard + SignallingDeadlines.patience)
    }

    /// Numbers a request; the answer comes as `.answer` with the same number.
    mutating func request(_ message: ClientMessage, now: MonotonicTime) throws(RoomError) -> (id: Int, text: String) {
        guard !hasEnded else { throw RoomError(.roomReleased, "The connection to \(server) has ended.") }
        guard deadlines.count < Self.maximumPendingRequests else {
            throw RoomError(
                .outOfOrder,
                "\(Self.maximumPendingRequests) requests to \(server) wait for their answers already: send fewer at "
                    + "a time.")
        }
        lastRequest += 1
        deadlines[lastRequest] = (message.kind, now + SignallingDeadlines.patience)
        return (lastRequest, Envelope(id: lastRequest, message).json())
    }

    /// Bytes came that are no message, such as a WebSocket ping.
    mutating func heard(now: MonotonicTime) { lastHeard = max(lastHeard, now) }

    /// Media last came from the server at `time`, so it lives even if nothing is heard here.
    mutating func heardMedia(at time: MonotonicTime) { lastMedia = max(lastMedia, time) }

    mutating func receive(_ text: String, now: MonotonicTime) -> [Output] {
        guard !hasEnded else { return [] }
        heard(now: now)
        do throws(MessageRefused) {
            let envelope = try Envelope<ServerMessage>(json: Data(text.utf8))
            if let id = envelope.id, let sent = pings.removeValue(forKey: id) {
                roundTrip = now - sent
                return []
            }
            guard let id = envelope.id, deadlines.removeValue(forKey: id) != nil else {
                return unsolicited(envelope)
            }
            if case .error(let problem) = envelope.message { return [.answer(id: id, .failure(problem.error))] }
            return [.answer(id: id, .success(envelope.message))]
        } catch {
            guard let id = error.id, deadlines.removeValue(forKey: id) != nil else {
                // A later version may have news that this one has no use for.
                return error.error.code == .messageUnknown ? [] : [.notUnderstood(error.error)]
            }
            return [.answer(id: id, .failure(error.error))]
        }
    }

    private func unsolicited(_ envelope: Envelope<ServerMessage>) -> [Output] {
        switch envelope.message {
        case .error(let problem): [.notUnderstood(problem.error)]
        // Answers to nothing that we asked.
        case .joined, .published, .subscribed, .unsubscribed, .pong, .left: []
        default: [.message(envelope.message)]
        }
    }

    mutating func handleTimeout(now: MonotonicTime) -> [Output] {
        guard !hasEnded else { return [] }
        if now >= silenceEnds {
            let seconds = (now - lastHeard).nanoseconds / 1_000_000_000
            return end(
                RoomError(
                    .connectionLost,
                    "The server \(server) has not been heard for \(seconds) s: it was stopped, or the network "
                        + "between was cut; connect again when it is back."))
        }
        if let late = deadlines.min(by: { $0.key < $1.key }), now >= late.value.time {
            // The server may have done what it was asked to or not: only the end makes both sides agree again.
            let seconds = SignallingDeadlines.patience.nanoseconds / 1_000_000_000
            return end(
                RoomError(
                    .connectionLost,
                    "The server \(server) has not answered '\(late.value.kind)' for \(seconds) s. Connect again, or "
                        + "check the server."))
        }
        var outputs: [Output] = []
        if now >= nextPing {
            lastRequest += 1
            pings[lastRequest] = now
            outputs.append(.send(Envelope<ClientMessage>(id: lastRequest, .ping).json()))
            nextPing = now + SignallingDeadlines.ping
        }
        return outputs
    }

    /// The socket has closed; `error` says why where that is known.
    mutating func closed(_ error: RoomError? = nil) -> [Output] {
        guard !hasEnded else { return [] }
        return end(
            error
                ?? RoomError(
                    .connectionLost,
                    "The server \(server) closed the connection without a word: it was stopped or has crashed; connect "
                        + "again when it is back."))
    }

    /// Ends the session: whatever waits is answered with the error.
    mutating func end(_ error: RoomError) -> [Output] {
        guard !hasEnded else { return [] }
        hasEnded = true
        let waiting = deadlines.keys.sorted()
        deadlines = [:]
        return waiting.map { .answer(id: $0, .failure(error)) } + [.ended(error)]
    }
}

extension ClientMessage {
    /// The message's name on the wire.
    var kind: String {
        switch self {
        case .join: "join"
        case .publish: "publish"
        case .answer: "answer"
        case .candidate: "candidate"
        case .subscribe: "subscribe"
        case .unsubscribe: "unsubscribe"
        case .ping: "ping"
        case .leave: "leave"
        }
    }
}
