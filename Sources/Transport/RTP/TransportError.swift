/// An error of the transport targets.
///
/// `code` is stable and short, such as `sdp.malformed`. `message` is one sentence with the cause and the fix.
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
