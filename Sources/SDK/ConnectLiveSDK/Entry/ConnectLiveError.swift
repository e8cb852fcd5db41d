public import Foundation
internal import RoomClient
internal import RoomProtocol

/// The error of all calls and results of the SDK. docs/errors.md lists the codes.
public enum ConnectLiveError: LocalizedError, Sendable, Equatable {
    /// A code, and one sentence with the cause and the fix.
    case error(Int, String)

    public var code: Int {
        switch self {
        case .error(let code, _): code
        }
    }

    public var errorDescription: String? {
        switch self {
        case .error(_, let message): message
        }
    }

    public var localizedDescription: String { errorDescription ?? "" }

    init(_ error: RoomError) { self = .error(error.code.number, error.sdkMessage) }
}

extension RoomError {
    /// The message, with the code's name unless that is the number.
    var sdkMessage: String { Int(code.name) == nil ? description : message }
}
