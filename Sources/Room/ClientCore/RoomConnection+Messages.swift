internal import PeerLoop
internal import RTP
package import RoomProtocol

/// The texts that wait for the server, and those of others that wait for the application.
struct MessageQueue {
    /// The most texts on their way to the server, so that requests and bytes remain for everything else.
    static let maximumPending = 8
    /// The most texts that wait for their turn, and the most bytes of JSON in them. Further ones are refused.
    static let maximumWaiting = 64
    static let maximumWaitingBytes = 256 * 1024
    /// The most texts of others before the room is connected, and the most bytes of JSON in them. Further ones are dropped.
    static let maximumEarly = 1024
    static let maximumEarlyBytes = 1024 * 1024

    struct Waiting {
        let message: SendMessage
        let length: Int
        let then: (Result<Void, RoomError>) -> Void
    }

    /// Counts each text when the server has replied, which has counted it before: a network may delay any of them.
    private var pace = MessagePace()
    private(set) var waiting: [Waiting] = []
    private var waitingBytes = 0
    /// Those on their way, oldest first.
    private(set) var pending: [SendMessage] = []
    /// Ends the wait for the pace.
    var turn: LoopTimer?

    private(set) var early: [UserMessage] = []
    private(set) var earlyDropped = 0
    private var earlyBytes = 0

    /// Returns false if too many wait.
    mutating func append(_ message: SendMessage, _ then: @escaping (Result<Void, RoomError>) -> Void) -> Bool {
        let length = message.length
        guard waiting.count < Self.maximumWaiting, waitingBytes + length <= Self.maximumWaitingBytes else {
            return false
        }
        waiting.append(Waiting(message: message, length: length, then: then))
        waitingBytes += length
        return true
    }

    /// How long a text has to wait until the server admits it, if those on their way arrive now or later.
    func delay(_ message: SendMessage, now: MonotonicTime) -> TimeInterval? {
        var pace = pace
        for message in pending { pace.count(message, now: now) }
        return pace.delay(message, now: now)
    }

    /// The first text goes on its way.
    mutating func sendFirst() {
        let first = waiting.removeFirst()
        waitingBytes -= first.length
        pending.append(first.message)
    }

    /// A text on its way has its reply, or has failed: the oldest one, as replies come in order.
    mutating func replied(now: MonotonicTime) { pace.count(pending.removeFirst(), now: now) }

    mutating func removeAll() -> [Waiting] {
        defer { (waiting, waitingBytes) = ([], 0) }
        return waiting
    }

    /// Keeps a text that comes before the room is connected.
    mutating func keep(_ message: UserMessage) {
        let length = message.length
        // No later one follows a gap.
        guard earlyDropped == 0, early.count < Self.maximumEarly, earlyBytes + length <= Self.maximumEarlyBytes else {
            earlyDropped += 1
            return
        }
        early.append(message)
        earlyBytes += length
    }

    mutating func takeEarly() -> (messages: [UserMessage], dropped: Int) {
        defer { (early, earlyDropped, earlyBytes) = ([], 0, 0) }
        return (early, earlyDropped)
    }
}

/// Texts that the applications of a room send each other.
extension RoomConnection {
    /// Sends a text to other participants, at the pace that the server admits. Calls `then` when the server has it, or with the
    /// reason why that is not known. Texts reach each participant in the order of these calls. Fails at once if too many wait.
    package func send(_ message: SendMessage, then: @escaping (Result<Void, RoomError>) -> Void) {
        guard state == .connected else {
            return then(
                .failure(RoomError(.roomReleased, "No room is connected. Join a room before you send messages.")))
        }
        guard !isBetweenJoins else { return then(.failure(Self.rejoining)) }
        do throws(RoomError) {
            try message.validate()
        } catch {
            return then(.failure(error))
        }
        guard messages.append(message, then) else {
            return then(
                .failure(
                    RoomError(
                        .tooManyRequests,
                        "\(messages.waiting.count) messages of this client wait already. The server takes 10 with 16 KiB a second. "
                            + "Wait for a result before you send more.")))
        }
        sendWaiting()
    }

    private func sendWaiting() {
        while let next = messages.waiting.first, messages.pending.count < MessageQueue.maximumPending,
            messages.turn == nil
        {
            guard state == .connected, !isBetweenJoins else { return }
            if let delay = messages.delay(next.message, now: loop.now) {
                messages.turn = loop.schedule(after: delay) { [weak self] in
                    self?.messages.turn = nil
                    self?.sendWaiting()
                }
                return
            }
            messages.sendFirst()
            request(.message(next.message)) { [weak self] result in
                if let self { messages.replied(now: loop.now) }
                next.then(Self.sent(result))
                self?.sendWaiting()
            }
        }
    }

    private static func sent(_ result: Result<ServerMessage, RoomError>) -> Result<Void, RoomError> {
        result.flatMap { reply in
            if case .messageSent = reply { return .success(()) }
            return .failure(
                RoomError(
                    .userMessageReplyInvalid,
                    "The server's reply to 'message' has the wrong type. Check its version."))
        }
    }

    /// Refuses the texts that wait, because the participation has ended.
    func failWaitingMessages(_ error: RoomError) {
        messages.turn?.disarm()
        messages.turn = nil
        for waiting in messages.removeAll() { waiting.then(.failure(error)) }
    }

    /// Others may write as soon as the server accepts the join.
    func heard(_ message: UserMessage) {
        switch state {
        case .connecting: messages.keep(message)
        case .connected: onEvent(.userMessage(message))
        case .idle, .leaving, .ended: break
        }
    }

    /// Reports the texts that came before the room was connected.
    func reportEarlyMessages() {
        let (early, dropped) = messages.takeEarly()
        for message in early { onEvent(.userMessage(message)) }
        guard dropped > 0 else { return }
        onEvent(
            .problem(
                RoomError(
                    .userMessageInvalid,
                    "\(dropped) messages of other participants were dropped, because too many came before the room was connected."
                )))
    }
}
