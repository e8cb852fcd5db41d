package import RTP
package import RoomProtocol

/// A client's message for the rooms. NIO's thread has parsed its session description.
package struct ClientRequest: Sendable {
    package var id: Int?
    package var message: ClientMessage
    /// The session description of a `publish` or an `answer`, or its error.
    package var description: Result<SessionDescription, RoomError>?
    /// Whether the token of a `resume` is valid for the participant's room. The rooms have no tokens.
    package var mayResume = false
    /// Why the message cannot be read. It counts among the client's messages nevertheless.
    package var refusal: MessageRefused?

    /// - Parameter refusal: of a message that cannot be read.
    package init(_ refusal: MessageRefused) {
        id = refusal.id
        message = .ping
        self.refusal = refusal
    }

    package init(_ envelope: Envelope<ClientMessage>) {
        id = envelope.id
        message = envelope.message
        switch message {
        case .publish(let body): description = Self.parse(body.sdp, .offerRefused)
        case .answer(let body): description = Self.parse(body.sdp, .answerRefused)
        case .join, .resume, .ack, .unpublish, .setStream, .setStreamState, .streamReduced, .candidate, .restartICE,
            .subscribe,
            .setView,
            .unsubscribe, .ping, .leave:
            break
        }
    }

    /// Whether the rooms respond to the message even if it is valid.
    package var hasResponse: Bool {
        switch message {
        case .join, .resume, .publish, .unpublish, .setStream, .setStreamState, .subscribe, .setView, .unsubscribe,
            .ping, .leave:
            true
        case .answer, .candidate, .restartICE, .streamReduced, .ack: false
        }
    }

    private static func parse(_ sdp: String, _ code: RoomError.Code) -> Result<SessionDescription, RoomError> {
        do throws(TransportError) {
            let description = try SessionDescription(parsing: sdp)
            if let problem = description.separateTransports { return .failure(RoomError(code, problem)) }
            return .success(description)
        } catch {
            return .failure(RoomError(code, error.message))
        }
    }
}
