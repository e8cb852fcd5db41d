/// What goes wrong on the transport floor.
///
/// `code` is stable and short (`sdp.malformed`), `message` is one sentence that names the thing and what was tried.
public struct TransportError: Error, CustomStringConvertible {
    public var code: String
    public var message: String
    public var cause: (any Error)?

    public init(code: String, message: String, cause: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.cause = cause
    }

    public var description: String { "\(message) [\(code)]" }
}
