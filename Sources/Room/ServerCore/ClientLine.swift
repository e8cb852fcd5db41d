internal import RTP
internal import RoomProtocol

/// The messages between a participant and its client, over one connection after another. On the loop only.
///
/// While the client has no connection, messages wait here for the next one.
final class ClientLine {
    /// Nil while the client has none.
    private(set) var connection: (any ClientConnection)?
    /// Where the client was when it joined.
    let place: ClientPlace
    private var ledger = MessageLedger<Envelope<ServerMessage>>()
    /// The secrets that the client may have, the newest one first, until it shows that it has that. None if it does not resume.
    private var secrets: [String] = []
    private static let mostFormerSecrets = 3
    private var resumePace = Pace(burst: 10, interval: .seconds(2))
    /// Since when the client has no connection.
    private(set) var absentSince: MonotonicTime?
    /// The messages of other participants that found no place since the client was told.
    private var dropped = 0
    /// Called once, in the middle of any call, when the client is too far behind.
    var onOverflow: (() -> Void)?

    init(_ connection: any ClientConnection) {
        self.connection = connection
        place = connection.place
    }

    var isResumable: Bool { !secrets.isEmpty }

    /// Keeps messages from now on, until the client acknowledges them.
    func keep(secret: String) { secrets = [secret] }

    // MARK: - Towards the client

    func send(_ message: ServerMessage, answering id: Int? = nil) {
        guard keep(Envelope(id: id, message), length: message.textLength) else { return }
        connection?.send(message, answering: id)
    }

    /// Keeps a message that the caller sends to many clients. Returns the connection to send it to, if there is one.
    ///
    /// - Parameter length: the message's `textLength`.
    func note(_ message: ServerMessage, length: Int) -> (any ClientConnection)? {
        keep(Envelope(message), length: length) ? connection : nil
    }

    /// Returns whether the message may be sent. Messages of other participants are dropped rather than the participant, who
    /// is told so when it has a connection.
    private func keep(_ envelope: Envelope<ServerMessage>, length: Int) -> Bool {
        guard isResumable, envelope.message.isCounted else { return true }
        let isDispensable = envelope.message.isUserMessage
        guard !ledger.send(envelope, length: length, isDispensable: isDispensable) else { return true }
        guard !isDispensable else {
            dropped += 1
            return false
        }
        end()
        onOverflow?()
        return true
    }

    /// Tells the client that messages of other participants are missing.
    private func tellDropped() {
        guard dropped > 0 else { return }
        let count = dropped == 1 ? "1 message" : "\(dropped) messages"
        dropped = 0
        send(
            .error(
                Problem(
                    RoomError(
                        .userMessageInvalid,
                        "The server dropped \(count) of other participants, because this client did not read the ones before."
                    ))))
    }

    /// Keeps nothing any longer, because the participant leaves.
    func end() {
        secrets = []
        ledger.close()
    }

    // MARK: - From the client

    /// A message of the client arrived.
    func received(_ message: ClientMessage) {
        guard isResumable else { return }
        // It has the newest secret, which came before anything that it can answer on this connection.
        if secrets.count > 1 { secrets.removeLast(secrets.count - 1) }
        if message.isCounted { ledger.receive() }
    }

    /// A message arrived that cannot be read.
    func receivedUnreadable() {
        if isResumable { ledger.receive() }
    }

    /// Handles the client's count, and returns the own one if the client may lack it.
    func acknowledged(_ count: Int) throws(RoomError) {
        guard isResumable else { return }
        guard ledger.acknowledged(count) else { throw Self.impossible(count) }
        if ledger.owesAcknowledgement { connection?.send(.ack(ledger.acknowledge())) }
        tellDropped()
    }

    private static func impossible(_ count: Int) -> RoomError {
        RoomError(
            .messageMalformed,
            "The client cannot have received \(count) messages. Count those after 'joined', each once.")
    }

    // MARK: - Connections

    /// The connection broke.
    func detach(now: MonotonicTime) { (connection, absentSince) = (nil, now) }

    /// Whether this is the secret of the last `joined` or `resumed`, or of one before if the client may not have the last.
    func admits(_ secret: String) -> Bool {
        let guess = Array(secret.utf8)
        return secrets.reduce(false) { constantTimeEqual(Array($1.utf8), guess) || $0 }
    }

    /// Prepares to continue. Throws for an impossible count, or if the client resumes too often: each time, it gets all
    /// messages that it has not acknowledged.
    func prepare(for resume: Resume, now: MonotonicTime) throws(RoomError) {
        if let delay = resumePace.delay(now: now) {
            throw RoomError(
                .tooManyRequests,
                "The client resumes too often. Try again in \(Int(delay.seconds.rounded(.up))) s.")
        }
        resumePace.count(now: now)
        guard ledger.acknowledged(resume.received) else { throw Self.impossible(resume.received) }
    }

    /// Continues over another connection, with the messages that the client lacks.
    ///
    /// - Returns: the former connection, if it has not ended.
    func resume(
        _ resume: Resume, secret: String, answering id: Int?, over other: any ClientConnection
    ) -> (any ClientConnection)? {
        let replaced = connection
        (connection, absentSince) = (other, nil)
        // A client that does not get the newest one has the one that it has just shown, or one that was sent after that: the network may
        // have delayed this request.
        let former = secrets.filter { $0 != resume.secret }.prefix(Self.mostFormerSecrets - 1)
        secrets = [secret] + former + [resume.secret]
        other.send(.resumed(Resumed(received: ledger.acknowledge().received, secret: secret)), answering: id)
        for envelope in ledger.unacknowledged { other.send(envelope.message, answering: envelope.id) }
        tellDropped()
        return replaced
    }
}

extension ServerMessage {
    fileprivate var isUserMessage: Bool {
        if case .userMessage = self { true } else { false }
    }
}

/// Compares in a time that does not depend on where the two differ. Their lengths are not secret.
package func constantTimeEqual(_ a: [UInt8], _ b: [UInt8]) -> Bool {
    guard a.count == b.count else { return false }
    var difference: UInt8 = 0
    for index in a.indices { difference |= a[index] ^ b[index] }
    return difference == 0
}
