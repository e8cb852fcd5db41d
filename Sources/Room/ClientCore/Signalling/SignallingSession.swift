internal import Foundation
internal import RTP
internal import RoomProtocol

/// The client's side of a signalling connection, as a state machine that is told the time. It numbers requests, matches
/// replies, pings, and detects a server that vanished. It has no socket, clock or task.
struct SignallingSession {
    enum Output: Equatable {
        case send(String)
        /// The reply to request `id`, or the error that replaces it.
        case answer(id: Int, Result<ServerMessage, RoomError>)
        /// A message that is not a reply.
        case message(ServerMessage)
        /// A malformed message, or the server's complaint about one of ours. The connection continues.
        case notUnderstood(RoomError)
        /// The connection ended. Every request has its reply or error before this.
        case ended(RoomError)
    }

    /// The most pending requests. Further ones are refused.
    static let maximumPendingRequests = 256

    private let server: String
    private var lastRequest = 0
    private var deadlines: [Int: (kind: String, time: MonotonicTime)] = [:]
    /// When each pending ping was sent.
    private var pings: [Int: MonotonicTime] = [:]
    /// The round trip of the last ping.
    private(set) var roundTrip: RTP.TimeInterval?
    private var lastHeard: MonotonicTime
    private var lastMedia = MonotonicTime.zero
    private var nextPing: MonotonicTime
    private(set) var hasEnded = false
    /// Messages of a later version.
    private(set) var ignoredMessages = 0

    init(server: String, now: MonotonicTime) {
        self.server = server
        lastHeard = now
        nextPing = now + SignallingDeadlines.ping
    }

    /// When to call `handleTimeout`.
    var nextTimeout: MonotonicTime {
        guard !hasEnded else { return .never }
        let deadline = deadlines.values.map(\.time).min() ?? .never
        return min(nextPing, silenceEnds, deadline)
    }

    /// When the server counts as lost.
    private var silenceEnds: MonotonicTime {
        min(max(lastHeard, lastMedia) + SignallingDeadlines.silence, lastHeard + SignallingDeadlines.signallingSilence)
    }

    /// Numbers a request. The reply is an `.answer` with the same number.
    mutating func request(_ message: ClientMessage, now: MonotonicTime) throws(RoomError) -> (id: Int, text: String) {
        guard !hasEnded else { throw RoomError(.roomReleased, "The connection to \(server) ended.") }
        guard deadlines.count < Self.maximumPendingRequests else {
            throw RoomError(
                .outOfOrder,
                "\(Self.maximumPendingRequests) requests to \(server) are pending, which is the limit. Send fewer at "
                    + "a time.")
        }
        lastRequest += 1
        deadlines[lastRequest] = (message.kind, now + SignallingDeadlines.signallingSilence)
        return (lastRequest, Envelope(id: lastRequest, message).json())
    }

    /// Data without a message arrived, such as a WebSocket ping.
    mutating func heard(now: MonotonicTime) { lastHeard = max(lastHeard, now) }

    /// Media arrived from the server at `time`, so it runs even if signalling is silent.
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
                guard error.isUnknownNotification else { return [.notUnderstood(error.error)] }
                ignoredMessages += 1
                return []
            }
            return [.answer(id: id, .failure(error.error))]
        }
    }

    private func unsolicited(_ envelope: Envelope<ServerMessage>) -> [Output] {
        switch envelope.message {
        case .error(let problem): [.notUnderstood(problem.error)]
        // Replies without a request.
        case .joined, .published, .unpublished, .streamStateSet, .viewSet, .subscribed, .unsubscribed, .pong, .left: []
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
                    "The server \(server) has been silent for \(seconds) s: it was stopped, or the network was cut. "
                        + "Connect again when it is reachable."))
        }
        if let late = deadlines.min(by: { $0.key < $1.key }), now >= late.value.time {
            // The server may or may not have executed the request. Only a new connection makes both sides agree.
            let seconds = SignallingDeadlines.signallingSilence.nanoseconds / 1_000_000_000
            return end(
                RoomError(
                    .connectionLost,
                    "The server \(server) has not replied to '\(late.value.kind)' within \(seconds) s. Connect again, "
                        + "or check the server."))
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

    /// The socket closed, because of `error` if that is known.
    mutating func closed(_ error: RoomError? = nil) -> [Output] {
        guard !hasEnded else { return [] }
        return end(
            error
                ?? RoomError(
                    .connectionLost,
                    "The server \(server) closed the connection without a reason: it was stopped or crashed. Connect "
                        + "again when it runs."))
    }

    /// Ends the session. Pending requests fail with the error.
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
        case .unpublish: "unpublish"
        case .setStreamState: "setStreamState"
        case .answer: "answer"
        case .candidate: "candidate"
        case .subscribe: "subscribe"
        case .setView: "setView"
        case .unsubscribe: "unsubscribe"
        case .ping: "ping"
        case .leave: "leave"
        }
    }
}
