internal import RoomClient
internal import RoomProtocol

extension Room {
    /// Sends a message of the type `normal`.
    public func sendUserMessage(targets: [String], message: String) async -> Result<Void, any Error> {
        await sendUserMessage(targets: targets, message: message, type: SendMessage.defaultKind)
    }

    /// Sends a message of the type `normal`. The completion is called on the callback queue, in order with the events.
    public func sendUserMessage(
        targets: [String], message: String, completion: @escaping (Result<Void, any Error>) -> Void
    ) {
        sendUserMessage(targets: targets, message: message, type: SendMessage.defaultKind, completion: completion)
    }

    /// Sends a message of the type `normal`: the form of version 2.2.0.
    @available(*, deprecated, renamed: "sendUserMessage(targets:message:)")
    public func sendUserMessage(participantIds: [String], message: String) async -> Result<Void, any Error> {
        await sendUserMessage(targets: participantIds, message: message)
    }

    /// Sends a message of the type `normal`: the form of version 2.2.0. The completion is called on the callback queue.
    @available(*, deprecated, renamed: "sendUserMessage(targets:message:completion:)")
    public func sendUserMessage(
        participantIds: [String], message: String, completion: @escaping (Result<Void, any Error>) -> Void
    ) {
        sendUserMessage(targets: participantIds, message: message, completion: completion)
    }
}

extension RoomSession {
    func sendUserMessage(targets: [String], message: String, type: String) async -> Result<Void, any Error> {
        await withCheckedContinuation { continuation in
            link.send(SendMessage(targets: targets, text: message, kind: type)) {
                continuation.resume(returning: $0.mapError(Self.messageFailure))
            }
        }
    }

    func sendUserMessage(
        targets: [String], message: String, type: String, completion: @escaping (Result<Void, any Error>) -> Void
    ) {
        let callback = Callback(completion, among: delegate)
        link.send(SendMessage(targets: targets, text: message, kind: type)) {
            callback($0.mapError(Self.messageFailure))
        }
    }

    /// One code for whatever made it fail, which the message names.
    private static func messageFailure(_ cause: RoomError) -> any Error {
        guard cause.code != .userMessageReplyInvalid else { return ConnectLiveError(cause) }
        return ConnectLiveError(RoomError(.userMessageFailed, "\(cause)"))
    }
}
