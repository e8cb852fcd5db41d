public import Foundation
internal import RoomClient
internal import RoomProtocol

/// The error of all calls and results of the SDK. docs/errors.md lists the codes.
///
/// Two errors are equal if their codes and messages are.
public enum ConnectLiveError: LocalizedError, Equatable, @unchecked Sendable {
    // Sendable by hand: the SDK makes the underlying value, which never changes.

    /// A code, and one sentence with the cause and the fix.
    case error(Int, String)
    /// A code and a sentence of an exchange with the server that signs in, and its underlying cause: an `HttpSessionError`, or
    /// `ResponseErrorCode.unauthorized`. `RoomDelegate.onReconnecting` passes it if a room cannot return because its token was not
    /// renewed.
    case provision(Int, String, Any?)

    /// The number of the error, which never changes its meaning.
    public var code: Int {
        switch self {
        case .error(let code, _), .provision(let code, _, _): code
        }
    }

    public var errorDescription: String? {
        switch self {
        case .error(_, let message), .provision(_, let message, _): message
        }
    }

    /// The same sentence as `errorDescription`.
    public var localizedDescription: String { errorDescription ?? "" }

    public static func == (left: ConnectLiveError, right: ConnectLiveError) -> Bool {
        left.code == right.code && left.errorDescription == right.errorDescription
    }

    init(_ error: RoomError) {
        let (code, message) = (error.code.number, error.sdkMessage)
        if let fault = error.exchangeFault {
            self = .provision(code, message, HttpSessionError(fault, code, message))
        } else if error.code == .unauthorized {
            self = .provision(code, message, ResponseErrorCode.unauthorized)
        } else {
            self = .error(code, message)
        }
    }
}

/// Why an HTTP exchange with a server that was reached has failed: the underlying value of `ConnectLiveError.provision`.
public enum HttpSessionError: LocalizedError, Sendable {
    /// The reply is not HTTP, or too long.
    case unknown
    /// The reply has no body.
    case empty
    /// The connection ended before the reply.
    case requestError(any Error)
    /// The server replied with this status and body.
    case httpStatusError(Int, String)

    public var errorDescription: String? {
        switch self {
        case .unknown: "The reply is not HTTP, or too long."
        case .empty: "The reply has no body."
        case .requestError(let error): error.localizedDescription
        case .httpStatusError(let status, _): "The server replied with HTTP status \(status)."
        }
    }

    init(_ fault: HTTPExchangeFault, _ code: Int, _ message: String) {
        switch fault {
        case .malformed: self = .unknown
        case .empty: self = .empty
        case .broken: self = .requestError(ConnectLiveError.error(code, message))
        case .status(let status, let body): self = .httpStatusError(status, body)
        }
    }
}

/// The server's answer to a call that it does not authorize: the underlying value of `ConnectLiveError.provision` with the code
/// -11002.
public enum ResponseErrorCode: Int, Sendable {
    /// The server refused the credentials.
    case unauthorized = 11002
}

extension RoomError {
    /// The message, with the code's name unless that is the number.
    var sdkMessage: String { Int(code.name) == nil ? description : message }
}
