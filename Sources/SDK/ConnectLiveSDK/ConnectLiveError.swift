public import Foundation
internal import RoomClient
internal import RoomProtocol

/// What calls of the SDK throw, and what their results fail with. The codes are listed in docs/errors.md.
public enum ConnectLiveError: LocalizedError, Sendable, Equatable {
    /// A code and one sentence that names the thing, what was tried and what would help.
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
    /// The sentence, with the code's name where the number does not say it.
    var sdkMessage: String { Int(code.name) == nil ? description : message }
}
