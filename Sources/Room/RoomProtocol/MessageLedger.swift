/// The messages of one end of a signalling connection that the other end may lack, and the number of those that it has
/// received. Another connection can continue with them.
///
/// Nothing in a message numbers it: both ends count. `ServerMessage.isCounted` and `ClientMessage.isCounted` tell which
/// messages count.
package struct MessageLedger<Message: Sendable>: Sendable {
    /// The most messages that may be unacknowledged. 1000 participants of a room that come at once are 3000.
    package static var countLimit: Int { 4096 }
    /// The most bytes of these messages, with `overhead` for each. As many as may wait for a client that does not read.
    package static var byteLimit: Int { 1024 * 1024 }
    /// An end acknowledges at the latest after this many messages.
    package static var acknowledgedAfter: Int { 256 }
    /// Or after this many bytes: a fraction of what the other end keeps.
    package static var bytesAcknowledgedAfter: Int { 128 * 1024 }
    private static var overhead: Int { 128 }

    /// The number of messages that this end has received.
    package private(set) var received = 0
    /// The last `received` that the other end was told, and the bytes since.
    private var (told, untoldBytes) = (0, 0)
    private var acknowledged = 0
    private var kept: [(message: Message, bytes: Int)] = []
    private var bytes = 0

    package init() {}

    /// The messages that the other end has not acknowledged, oldest first.
    package var unacknowledged: [Message] { kept.map(\.message) }
    /// Whether the other end has acknowledged all messages.
    package var isSettled: Bool { kept.isEmpty }
    /// Whether the other end does not know yet that messages arrived.
    package var owesAcknowledgement: Bool { received > told }
    /// Whether an acknowledgement is due now.
    package var isAcknowledgementDue: Bool {
        received - told >= Self.acknowledgedAfter || untoldBytes >= Self.bytesAcknowledgedAfter
    }

    /// - Parameter length: in bytes, about
    package mutating func receive(length: Int = 0) {
        received += 1
        untoldBytes += length
    }

    /// Keeps a message. Returns false if there are too many: a connection cannot continue without them.
    ///
    /// - Parameters:
    ///   - length: in bytes, about.
    ///   - isDispensable: whether a connection can continue without the message, which is not sent if this returns false. Such
    ///     messages leave half of the place to the others.
    package mutating func send(_ message: Message, length: Int, isDispensable: Bool = false) -> Bool {
        let size = length + Self.overhead
        let share = isDispensable ? 2 : 1
        guard kept.count < Self.countLimit / share, bytes + size <= Self.byteLimit / share else { return false }
        kept.append((message, size))
        bytes += size
        return true
    }

    /// The number to tell the other end, which then knows it.
    package mutating func acknowledge() -> Acknowledgement {
        (told, untoldBytes) = (received, 0)
        return Acknowledgement(received: received)
    }

    /// The other end has received this many messages. Returns false for a number that it cannot have, and changes nothing.
    package mutating func acknowledged(_ count: Int) -> Bool {
        guard count >= acknowledged, count - acknowledged <= kept.count else { return false }
        let known = count - acknowledged
        bytes -= kept[..<known].reduce(0) { $0 + $1.bytes }
        kept.removeFirst(known)
        acknowledged = count
        return true
    }

    /// Forgets all messages, because no connection will continue.
    package mutating func close() { (kept, bytes) = ([], 0) }
}

extension ClientMessage {
    /// Whether it counts among the messages that a `resume` continues.
    package var isCounted: Bool {
        switch self {
        case .join, .resume, .ack, .ping: false
        case .publish, .unpublish, .setStream, .setStreamState, .streamReduced, .answer, .candidate, .restartICE,
            .subscribe, .setView, .unsubscribe, .message, .leave:
            true
        }
    }
}

extension ServerMessage {
    /// Whether it counts among the messages that a `resume` continues.
    package var isCounted: Bool {
        switch self {
        case .joined, .resumed, .ack, .pong, .closed: false
        case .published, .unpublished, .streamSet, .streamStateSet, .viewSet, .subscribed, .unsubscribed, .messageSent,
            .left, .error, .offer, .candidate, .participantEntered, .participantLeft, .streamPublished,
            .streamUnpublished, .streamChanged,
            .receiverAssigned, .streamLimit, .streamQuality, .userMessage, .iceServers:
            true
        }
    }

    /// An upper bound of the bytes that its long texts take in JSON.
    package var textLength: Int {
        switch self {
        case .published(let body): body.sdp.lengthInJSON
        case .offer(let body): body.sdp.lengthInJSON
        case .error(let body): body.message.lengthInJSON
        case .closed(let body): body.message.lengthInJSON
        case .candidate(let body): body.candidate.lengthInJSON
        case .participantEntered(let body): body.participant.streams.reduce(0) { $0 + Self.length(of: $1) + 64 }
        case .streamPublished(let body): Self.length(of: body.stream)
        case .streamChanged(let body):
            Self.length(of: body.change.state) + (body.change.extraValue?.lengthInJSON ?? 0)
                + (body.change.sort?.lengthInJSON ?? 0)
        case .userMessage(let body): body.length
        case .iceServers(let body): body.iceServers.count * 1024
        default: 0
        }
    }

    private static func length(of stream: StreamInfo) -> Int {
        length(of: stream.state) + stream.attributes.extraValue.lengthInJSON + stream.attributes.sort.lengthInJSON
    }

    private static func length(of state: StreamState?) -> Int {
        if case .waiting(let text) = state { text.lengthInJSON } else { 0 }
    }
}
