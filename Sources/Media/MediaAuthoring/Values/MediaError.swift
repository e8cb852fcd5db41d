/// An error of capture, processing, encoding or rendering: bad input, a device, a missing element. Bugs trap instead.
///
/// `code` is stable and listed in docs/errors.md; `message` is one sentence for people.
public struct MediaError: Error, Sendable, CustomStringConvertible {
    /// A short dotted name such as `file.no-video`.
    public let code: String
    /// One sentence with the cause and the fix.
    public let message: String
    /// The message of the underlying error, such as GStreamer's.
    public let cause: String?
    /// The node with the error; nil for an error of the whole graph.
    public let node: String?

    public init(code: String, message: String, cause: String? = nil, node: String? = nil) {
        self.code = code
        self.message = message
        self.cause = cause
        self.node = node
    }

    public var description: String { "\(message) [\(code)]" }
}

/// The codes that authors of nodes use; docs/errors.md explains all codes.
extension MediaError {
    public enum Code {
        public static let graphInvalid = "graph.invalid"
        public static let formatClash = "graph.format-clash"
        public static let elementFailed = "element.failed"
        public static let nodeFailed = "node.failed"
        public static let nodeFlood = "node.flood"
        public static let nodeFormat = "node.format"
    }
}
