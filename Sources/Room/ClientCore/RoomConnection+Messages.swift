package import RoomProtocol

/// Texts that the applications of a room send each other.
extension RoomConnection {
    /// Sends a text to other participants. Calls `then` when the server has it, or with the reason why that is not known.
    /// Texts reach each participant in the order of these calls.
    package func send(_ message: SendMessage, then: @escaping (Result<Void, RoomError>) -> Void) {
        guard state == .connected else {
            return then(
                .failure(RoomError(.roomReleased, "No room is connected. Join a room before you send messages.")))
        }
        do throws(RoomError) {
            try message.validate()
        } catch {
            return then(.failure(error))
        }
        request(.message(message)) { result in
            then(
                result.flatMap { reply in
                    if case .messageSent = reply { return .success(()) }
                    return .failure(
                        RoomError(
                            .userMessageReplyInvalid,
                            "The server's reply to 'message' has the wrong type. Check its version."))
                })
        }
    }

    func heard(_ message: UserMessage) {
        if state == .connected { onEvent(.userMessage(message)) }
    }
}
