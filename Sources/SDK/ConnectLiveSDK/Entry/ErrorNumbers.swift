internal import RoomProtocol

/// The call that failed. An error of the layers below has one code for each cause; the original SDK has one for each call.
enum SDKOperation: CaseIterable {
    case signIn
    /// A token is obtained to enter a room, or to return to one.
    case renewal
    case publish
    case unpublish
    case subscribe
    case unsubscribe
}

extension RoomError {
    /// The error with the number of the failed call. If that is another one, the message ends with the code of the cause.
    func failing(_ operation: SDKOperation) -> RoomError {
        let code = Self.code(of: self, in: operation)
        return code == self.code ? self : RoomError(code, "\(self)", exchangeFault)
    }

    private static func code(of error: RoomError, in operation: SDKOperation) -> Code {
        switch operation {
        case .signIn:
            switch error.code {
            case .serverUnreachable, .serverCertificate: exchange(error) ?? .signInFailed
            default: exchange(error) ?? error.code
            }
        case .renewal: exchange(error) ?? error.code
        case .publish:
            switch error.code {
            case .serverFull, .tooManyRequests, .messageMalformed: .publishRefused
            case .connectionLost, .outOfOrder, .messageUnknown, .signallingFull: .publishFailed
            default: error.code
            }
        case .unpublish:
            switch error.code {
            case .roomReleased: error.code
            case .connectionLost, .outOfOrder, .messageUnknown, .signallingFull: .unpublishFailed
            default: .unpublishRefused
            }
        case .subscribe:
            switch error.code {
            case .roomReleased, .alreadySubscribed, .receiversExhausted, .nothingToSubscribe, .downSessionReleased,
                .receiverUnavailable, .noSuchStream:
                error.code
            default: .subscribeFailed
            }
        case .unsubscribe:
            switch error.code {
            case .roomReleased, .nothingToUnsubscribe, .downSessionReleased, .noSuchStream: error.code
            default: .unsubscribeFailed
            }
        }
    }

    /// The code of a failed exchange with a server that was reached. Nil for other errors.
    private static func exchange(_ error: RoomError) -> Code? {
        switch error.exchangeFault {
        case .status: .httpStatus
        case .empty, .malformed: .httpResponseInvalid
        case .broken: .httpExchangeBroken
        case nil: nil
        }
    }
}
