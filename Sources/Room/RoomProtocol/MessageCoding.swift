package import Foundation

/// A message with the number that matches a response to its request.
package struct Envelope<Message: Sendable & Equatable>: Sendable, Equatable {
    package var id: Int?
    package var message: Message

    package init(id: Int? = nil, _ message: Message) {
        self.id = id
        self.message = message
    }
}

private struct EnvelopeHead: Codable {
    var type: String
    var id: Int?
}

/// Writes `type` and `id` beside the fields of the message itself.
private struct Flattened<Body: Encodable>: Encodable {
    var head: EnvelopeHead
    var body: Body?

    func encode(to encoder: any Encoder) throws {
        try head.encode(to: encoder)
        try body?.encode(to: encoder)
    }
}

private struct NoBody: Codable {}

private func flatten(_ type: String, _ id: Int?, _ body: some Encodable) -> any Encodable {
    Flattened(head: EnvelopeHead(type: type, id: id), body: body)
}

private func encodeJSON(_ value: any Encodable) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // Strings, integers, booleans and finite numbers only: encoding them cannot fail.
    guard let data = try? encoder.encode(value) else { preconditionFailure("a signalling message did not encode") }
    return String(decoding: data, as: UTF8.self)
}

/// Why a received message is refused, with the id of its request if that is readable.
package struct MessageRefused: Error, Sendable, Equatable {
    package var id: Int?
    package var error: RoomError

    package init(id: Int?, error: RoomError) {
        self.id = id
        self.error = error
    }

    /// Whether it is a notification of a later version, to be ignored.
    package var isUnknownNotification: Bool { id == nil && error.code == .messageUnknown }
}

private func decodeHead(_ data: Data) throws(MessageRefused) -> EnvelopeHead {
    do {
        return try JSONDecoder().decode(EnvelopeHead.self, from: data)
    } catch {
        throw MessageRefused(
            id: nil,
            error: RoomError(
                .messageMalformed,
                "A message must be a JSON object with a text 'type' and, for a request, a number 'id'."))
    }
}

private func decodeBody<Body: Decodable>(
    _ type: Body.Type, _ head: EnvelopeHead, _ data: Data
) throws(MessageRefused) -> Body {
    do {
        return try JSONDecoder().decode(type, from: data)
    } catch {
        throw MessageRefused(
            id: head.id,
            error: RoomError(.messageMalformed, "The message '\(head.type)' \(explain(error))."))
    }
}

private func explain(_ error: any Error) -> String {
    switch error as? DecodingError {
    case .keyNotFound(let key, let context):
        let path = (context.codingPath + [key]).map(\.stringValue).joined(separator: ".")
        return "lacks the field '\(path)'"
    case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context):
        let path = context.codingPath.map(\.stringValue).joined(separator: ".")
        return path.isEmpty ? "is malformed" : "has an invalid value in '\(path)'"
    default: return "is malformed"
    }
}

private func unknown(_ head: EnvelopeHead) -> MessageRefused {
    MessageRefused(
        id: head.id,
        error: RoomError(.messageUnknown, "This version of the protocol has no message '\(head.type.prefix(40))'.")
    )
}

extension ClientMessage {
    /// The message's name on the wire.
    package var name: String {
        switch self {
        case .join: "join"
        case .resume: "resume"
        case .ack: "ack"
        case .publish: "publish"
        case .unpublish: "unpublish"
        case .setStream: "setStream"
        case .setStreamState: "setStreamState"
        case .streamReduced: "streamReduced"
        case .answer: "answer"
        case .candidate: "candidate"
        case .restartICE: "restartICE"
        case .subscribe: "subscribe"
        case .setView: "setView"
        case .unsubscribe: "unsubscribe"
        case .message: "message"
        case .ping: "ping"
        case .leave: "leave"
        }
    }
}

extension Envelope where Message == ClientMessage {
    package func json() -> String {
        let name = message.name
        let value: any Encodable =
            switch message {
            case .join(let body): flatten(name, id, body)
            case .resume(let body): flatten(name, id, body)
            case .ack(let body): flatten(name, id, body)
            case .publish(let body): flatten(name, id, body)
            case .unpublish(let body): flatten(name, id, body)
            case .setStream(let body): flatten(name, id, body)
            case .setStreamState(let body): flatten(name, id, body)
            case .streamReduced(let body): flatten(name, id, body)
            case .answer(let body): flatten(name, id, body)
            case .candidate(let body): flatten(name, id, body)
            case .restartICE(let body): flatten(name, id, body)
            case .subscribe(let body): flatten(name, id, body)
            case .setView(let body): flatten(name, id, body)
            case .unsubscribe(let body): flatten(name, id, body)
            case .message(let body): flatten(name, id, body)
            case .ping: flatten(name, id, NoBody())
            case .leave: flatten(name, id, NoBody())
            }
        return encodeJSON(value)
    }

    /// Ignores unknown fields. Throws for an unknown message.
    package init(json: Data) throws(MessageRefused) {
        let head = try decodeHead(json)
        let message: ClientMessage =
            switch head.type {
            case "join": .join(try decodeBody(Join.self, head, json))
            case "resume": .resume(try decodeBody(Resume.self, head, json))
            case "ack": .ack(try decodeBody(Acknowledgement.self, head, json))
            case "publish": .publish(try decodeBody(Publish.self, head, json))
            case "unpublish": .unpublish(try decodeBody(StreamReferences.self, head, json))
            case "setStream": .setStream(try decodeBody(SetStream.self, head, json))
            case "setStreamState": .setStreamState(try decodeBody(SetStreamState.self, head, json))
            case "streamReduced": .streamReduced(try decodeBody(StreamReduced.self, head, json))
            case "answer": .answer(try decodeBody(Description.self, head, json))
            case "candidate": .candidate(try decodeBody(Candidate.self, head, json))
            case "restartICE": .restartICE(try decodeBody(SessionReference.self, head, json))
            case "subscribe": .subscribe(try decodeBody(ViewOfStream.self, head, json))
            case "setView": .setView(try decodeBody(ViewOfStream.self, head, json))
            case "unsubscribe": .unsubscribe(try decodeBody(StreamReference.self, head, json))
            case "message": .message(try decodeBody(SendMessage.self, head, json))
            case "ping": .ping
            case "leave": .leave
            default: throw unknown(head)
            }
        self.init(id: head.id, message)
    }
}

extension Envelope where Message == ServerMessage {
    package func json() -> String {
        let value: any Encodable =
            switch message {
            case .joined(let body): flatten("joined", id, body)
            case .resumed(let body): flatten("resumed", id, body)
            case .ack(let body): flatten("ack", id, body)
            case .published(let body): flatten("published", id, body)
            case .unpublished(let body): flatten("unpublished", id, body)
            case .streamSet(let body): flatten("streamSet", id, body)
            case .streamStateSet(let body): flatten("streamStateSet", id, body)
            case .viewSet(let body): flatten("viewSet", id, body)
            case .subscribed(let body): flatten("subscribed", id, body)
            case .unsubscribed(let body): flatten("unsubscribed", id, body)
            case .messageSent: flatten("messageSent", id, NoBody())
            case .pong: flatten("pong", id, NoBody())
            case .left: flatten("left", id, NoBody())
            case .error(let body): flatten("error", id, body)
            case .offer(let body): flatten("offer", id, body)
            case .candidate(let body): flatten("candidate", id, body)
            case .participantEntered(let body): flatten("participantEntered", id, body)
            case .participantLeft(let body): flatten("participantLeft", id, body)
            case .streamPublished(let body): flatten("streamPublished", id, body)
            case .streamUnpublished(let body): flatten("streamUnpublished", id, body)
            case .streamChanged(let body): flatten("streamChanged", id, body)
            case .receiverAssigned(let body): flatten("receiverAssigned", id, body)
            case .streamLimit(let body): flatten("streamLimit", id, body)
            case .streamQuality(let body): flatten("streamQuality", id, body)
            case .userMessage(let body): flatten("userMessage", id, body)
            case .iceServers(let body): flatten("iceServers", id, body)
            case .closed(let body): flatten("closed", id, body)
            }
        return encodeJSON(value)
    }

    /// A malformed body has the code of its kind.
    package init(json: Data) throws(MessageRefused) {
        let head = try decodeHead(json)
        do throws(MessageRefused) {
            try self.init(head, json)
        } catch {
            guard error.error.code == .messageMalformed, let code = Self.code(ofMalformed: head) else { throw error }
            throw MessageRefused(id: error.id, error: RoomError(code, error.error.message))
        }
    }

    private static func code(ofMalformed head: EnvelopeHead) -> RoomError.Code? {
        switch head.type {
        case "joined": .enterResponseInvalid
        case "published": .publishReplyInvalid
        case "viewSet": .viewReplyInvalid
        case "offer": .offerInvalid
        case "error": head.id == nil ? .errorInvalid : .errorReplyInvalid
        case "streamPublished", "streamUnpublished", "streamChanged", "receiverAssigned": .streamMessageInvalid
        case "participantEntered", "participantLeft": .participantMessageInvalid
        case "streamQuality", "streamLimit": .qualityMessageInvalid
        case "userMessage": .userMessageInvalid
        default: nil
        }
    }

    private init(_ head: EnvelopeHead, _ json: Data) throws(MessageRefused) {
        let message: ServerMessage =
            switch head.type {
            case "joined": .joined(try decodeBody(Joined.self, head, json))
            case "resumed": .resumed(try decodeBody(Resumed.self, head, json))
            case "ack": .ack(try decodeBody(Acknowledgement.self, head, json))
            case "published": .published(try decodeBody(Published.self, head, json))
            case "unpublished": .unpublished(try decodeBody(StreamReferences.self, head, json))
            case "streamSet": .streamSet(try decodeBody(StreamReference.self, head, json))
            case "streamStateSet": .streamStateSet(try decodeBody(StreamReference.self, head, json))
            case "viewSet": .viewSet(try decodeBody(StreamReference.self, head, json))
            case "subscribed": .subscribed(try decodeBody(Subscribed.self, head, json))
            case "unsubscribed": .unsubscribed(try decodeBody(StreamReference.self, head, json))
            case "messageSent": .messageSent
            case "pong": .pong
            case "left": .left
            case "error": .error(try decodeBody(Problem.self, head, json))
            case "offer": .offer(try decodeBody(Description.self, head, json))
            case "candidate": .candidate(try decodeBody(Candidate.self, head, json))
            case "participantEntered": .participantEntered(try decodeBody(ParticipantEntered.self, head, json))
            case "participantLeft": .participantLeft(try decodeBody(ParticipantReference.self, head, json))
            case "streamPublished": .streamPublished(try decodeBody(StreamPublished.self, head, json))
            case "streamUnpublished": .streamUnpublished(try decodeBody(StreamUnpublished.self, head, json))
            case "streamChanged": .streamChanged(try decodeBody(StreamChanged.self, head, json))
            case "receiverAssigned": .receiverAssigned(try decodeBody(ReceiverAssigned.self, head, json))
            case "streamLimit": .streamLimit(try decodeBody(StreamLimit.self, head, json))
            case "streamQuality": .streamQuality(try decodeBody(StreamQuality.self, head, json))
            case "userMessage": .userMessage(try decodeBody(UserMessage.self, head, json))
            case "iceServers": .iceServers(try decodeBody(ICEServersRenewed.self, head, json))
            case "closed": .closed(try decodeBody(Closing.self, head, json))
            default: throw unknown(head)
            }
        self.init(id: head.id, message)
    }
}
