internal import Foundation
internal import RTP
internal import RoomProtocol

/// The client's side of a signalling connection, as a state machine that is told the time. It numbers requests, matches
/// replies, pings, and detects a server that vanished. It has no socket, clock or task.
///
/// It outlives its socket if the server lets the client resume: `keep` begins to keep the messages that the server has not
/// acknowledged, and `resumed` returns them for another socket.
struct SignallingSession {
    enum Output: Equatable {
        case send(String)
        /// The reply to request `id`, or the error that replaces it.
        case answer(id: Int, Result<ServerMessage, RoomError>)
        /// A message that is not a reply.
        case message(ServerMessage)
        /// A malformed message, or the server's complaint about one of ours. The connection continues.
        case notUnderstood(RoomError)
        /// The socket is of no use any longer. Requests wait for another one.
        case lost(RoomError)
        /// The participation ended with the socket. Requests wait for another `join`, with which they fail.
        case ended(RoomError)
    }

    /// The most pending requests. Further ones are refused.
    static let maximumPendingRequests = 256

    private let server: String
    private var lastRequest = 0
    private var deadlines: [Int: Deadline] = [:]
    private var ledger = MessageLedger<String>()
    /// Whether the server keeps this client without a socket.
    private(set) var isResumable = false
    /// Whether there is no socket, or one that has not resumed yet.
    private(set) var isSuspended = false
    /// The request to resume, and when it was sent.
    private var resumption: (id: Int, sent: MonotonicTime)?

    private struct Deadline {
        var kind: String
        var time: MonotonicTime
        /// Whether another socket has given it a later time.
        var isExtended = false
    }
    /// When each pending ping was sent.
    private var pings: [Int: MonotonicTime] = [:]
    /// The round trip of the last ping.
    private(set) var roundTrip: RTP.TimeInterval?
    /// When the newest ping or request to resume was sent that the server has answered. `.zero` before the first.
    private(set) var answered = MonotonicTime.zero
    private var lastHeard: MonotonicTime
    private var lastMedia = MonotonicTime.zero
    private var nextPing: MonotonicTime
    private(set) var hasEnded = false
    /// Messages of a later version.
    private(set) var ignoredMessages = 0

    init(server: String, now: MonotonicTime) {
        self.server = server
        lastHeard = now
        nextPing = now + SignsOfLife.pingInterval
    }

    /// When to call `handleTimeout`.
    var nextTimeout: MonotonicTime {
        guard !hasEnded else { return .never }
        guard !isSuspended else { return resumption.flatMap { deadlines[$0.id]?.time } ?? .never }
        let deadline = deadlines.values.map(\.time).min() ?? .never
        return min(nextPing, silenceEnds, deadline)
    }

    /// When the server counts as lost.
    private var silenceEnds: MonotonicTime {
        min(max(lastHeard, lastMedia) + SignsOfLife.silence, lastHeard + SignsOfLife.signallingSilence)
    }

    /// Numbers a request. The reply is an `.answer` with the same number.
    /// The text is nil while there is no socket: it waits for the next one.
    mutating func request(_ message: ClientMessage, now: MonotonicTime) throws(RoomError) -> (id: Int, text: String?) {
        guard !hasEnded else { throw RoomError(.roomReleased, "The connection to \(server) ended.") }
        guard deadlines.count < Self.maximumPendingRequests else {
            throw RoomError(
                .outOfOrder,
                "\(Self.maximumPendingRequests) requests to \(server) are pending, which is the limit. Send fewer at "
                    + "a time.")
        }
        let id = lastRequest + 1
        let text = try post(Envelope(id: id, message))
        lastRequest = id
        deadlines[id] = Deadline(kind: message.name, time: now + SignsOfLife.signallingSilence)
        return (id, text)
    }

    /// The text of a message, to send now. Nil while there is no socket: it waits for the next one. Throws if too many wait.
    mutating func post(_ envelope: Envelope<ClientMessage>) throws(RoomError) -> String? {
        let text = envelope.json()
        guard isResumable, envelope.message.isCounted else { return isSuspended ? nil : text }
        guard ledger.send(text, length: text.utf8.count) else {
            throw RoomError(
                .signallingFull, "Too many messages wait for \(server), which has not acknowledged the ones before.")
        }
        return isSuspended ? nil : text
    }

    // MARK: - Several sockets

    /// Keeps messages from now on: the server lets the client resume.
    mutating func keep() { isResumable = true }

    /// A request to resume, for another socket. The reply is an `.answer`.
    mutating func resume(
        token: String, participant: String, secret: String, now: MonotonicTime
    ) -> (id: Int, text: String) {
        if let resumption { deadlines[resumption.id] = nil }
        lastRequest += 1
        resumption = (lastRequest, now)
        deadlines[lastRequest] = Deadline(kind: "resume", time: now + SignallingDeadlines.exchange)
        let resume = Resume(token: token, participant: participant, secret: secret, received: ledger.received)
        return (lastRequest, Envelope(id: lastRequest, ClientMessage.resume(resume)).json())
    }

    /// Gives up the socket that was about to resume.
    mutating func abandonResumption() {
        if let resumption { deadlines[resumption.id] = nil }
        resumption = nil
    }

    /// The server continues. Returns an acknowledgement, which shows that the new secret has arrived, and the messages that it
    /// lacks. Throws for an impossible number.
    mutating func resumed(_ body: Resumed, now: MonotonicTime) throws(RoomError) -> [String] {
        guard ledger.acknowledged(body.received) else {
            throw RoomError(
                .enterResponseInvalid,
                "The server \(server) counts \(body.received) messages of this client, which sent others. Check its version."
            )
        }
        isSuspended = false
        if let resumption { answered = max(answered, resumption.sent) }
        resumption = nil
        let acknowledgement = Envelope(ClientMessage.ack(ledger.acknowledge())).json()
        heard(now: now)
        pings = [:]
        nextPing = now + SignsOfLife.pingInterval
        for id in deadlines.keys { deadlines[id]?.time = now + SignsOfLife.signallingSilence }
        return [acknowledgement] + ledger.unacknowledged
    }

    /// Begins again with another participation, whose `join` is next. Requests of the former one fail.
    mutating func beginAnew(now: MonotonicTime) -> [Output] {
        let lost = RoomError(
            .connectionLost,
            "The connection to \(server) was lost before the reply, and the client has joined the room again. Repeat the call."
        )
        let waiting = deadlines.keys.sorted()
        deadlines = [:]
        pings = [:]
        ledger = MessageLedger()
        (isResumable, isSuspended, resumption) = (false, false, nil)
        heard(now: now)
        lastMedia = .zero
        nextPing = now + SignsOfLife.pingInterval
        return waiting.map { .answer(id: $0, .failure(lost)) }
    }

    /// The socket is given up.
    mutating func suspend() {
        isSuspended = true
        abandonResumption()
    }

    private mutating func lose(_ error: RoomError) -> [Output] {
        suspend()
        return [isResumable ? .lost(error) : .ended(error)]
    }

    // MARK: - Input

    /// Data without a message arrived, such as a WebSocket ping.
    mutating func heard(now: MonotonicTime) { lastHeard = max(lastHeard, now) }

    /// Media arrived from the server at `time`, so it runs even if signalling is silent.
    mutating func heardMedia(at time: MonotonicTime) { lastMedia = max(lastMedia, time) }

    mutating func receive(_ text: String, now: MonotonicTime) -> [Output] {
        guard !hasEnded else { return [] }
        heard(now: now)
        return count(read(text, now: now))
    }

    /// Adds an acknowledgement if it is due.
    private mutating func count(_ outputs: [Output]) -> [Output] {
        guard isResumable, !isSuspended, ledger.isAcknowledgementDue else { return outputs }
        return outputs + [.send(Envelope(ClientMessage.ack(ledger.acknowledge())).json())]
    }

    private mutating func read(_ text: String, now: MonotonicTime) -> [Output] {
        // On a socket that resumes, only the reply to that comes.
        let counts = isResumable && !isSuspended
        do throws(MessageRefused) {
            let envelope = try Envelope<ServerMessage>(json: Data(text.utf8))
            if case .ack(let body) = envelope.message { return acknowledged(body) }
            if counts, envelope.message.isCounted { ledger.receive(length: text.utf8.count) }
            guard !isSuspended || (resumption != nil && envelope.id == resumption?.id) else {
                if case .closed = envelope.message { return [.message(envelope.message)] }
                return []
            }
            if let id = envelope.id, let sent = pings.removeValue(forKey: id) {
                (roundTrip, answered) = (now - sent, max(answered, sent))
                return []
            }
            guard let id = envelope.id, deadlines.removeValue(forKey: id) != nil else {
                return unsolicited(envelope)
            }
            if case .error(let problem) = envelope.message { return [.answer(id: id, .failure(problem.error))] }
            return [.answer(id: id, .success(envelope.message))]
        } catch {
            if counts { ledger.receive(length: text.utf8.count) }
            guard let id = error.id, deadlines.removeValue(forKey: id) != nil else {
                guard error.isUnknownNotification else { return [.notUnderstood(error.error)] }
                ignoredMessages += 1
                return []
            }
            return [.answer(id: id, .failure(error.error))]
        }
    }

    private mutating func acknowledged(_ body: Acknowledgement) -> [Output] {
        guard isResumable, !isSuspended, !ledger.acknowledged(body.received) else { return [] }
        return [
            .notUnderstood(
                RoomError(
                    .messageMalformed,
                    "The server \(server) acknowledges \(body.received) messages, which this client has not sent."))
        ]
    }

    private func unsolicited(_ envelope: Envelope<ServerMessage>) -> [Output] {
        switch envelope.message {
        case .error(let problem): [.notUnderstood(problem.error)]
        // Replies without a request.
        case .joined, .resumed, .ack, .published, .unpublished, .streamSet, .streamStateSet, .viewSet, .subscribed,
            .unsubscribed,
            .messageSent, .pong, .left:
            []
        default: [.message(envelope.message)]
        }
    }

    mutating func handleTimeout(now: MonotonicTime) -> [Output] {
        guard !hasEnded else { return [] }
        guard !isSuspended else {
            guard nextTimeout <= now else { return [] }
            return lose(RoomError(.connectionLost, "The server \(server) has not replied to 'resume' in time."))
        }
        if now >= silenceEnds {
            let seconds = (now - lastHeard).nanoseconds / 1_000_000_000
            return lose(
                RoomError(
                    .connectionLost,
                    "The server \(server) has been silent for \(seconds) s: it was stopped, or the network was cut. "
                        + "Connect again when it is reachable."))
        }
        if let late = deadlines.min(by: { $0.key < $1.key }), now >= late.value.time {
            // The server may or may not have executed the request. Only a new connection makes both sides agree.
            let seconds = SignsOfLife.signallingSilence.nanoseconds / 1_000_000_000
            let error = RoomError(
                .connectionLost,
                "The server \(server) has not replied to '\(late.value.kind)' within \(seconds) s. Connect again, or check "
                    + "the server.")
            // Another socket shows whether the server has executed it, but a second silence is the server's own.
            guard !late.value.isExtended else {
                suspend()
                return [.ended(error)]
            }
            for id in deadlines.keys { deadlines[id]?.isExtended = true }
            return lose(error)
        }
        var outputs: [Output] = []
        if now >= nextPing {
            lastRequest += 1
            pings[lastRequest] = now
            outputs.append(.send(Envelope<ClientMessage>(id: lastRequest, .ping).json()))
            nextPing = now + SignsOfLife.pingInterval
            if isResumable, ledger.owesAcknowledgement || !ledger.isSettled {
                outputs.append(.send(Envelope(ClientMessage.ack(ledger.acknowledge())).json()))
            }
        }
        return outputs
    }

    /// The socket closed, because of `error` if that is known.
    mutating func closed(_ error: RoomError? = nil) -> [Output] {
        guard !hasEnded, !isSuspended || resumption != nil else { return [] }
        return lose(
            error
                ?? RoomError(
                    .connectionLost,
                    "The server \(server) closed the connection without a reason: it was stopped or crashed. Connect "
                        + "again when it runs."))
    }

    /// Ends the session for good. No reply follows.
    mutating func end() {
        hasEnded = true
        deadlines = [:]
    }
}
