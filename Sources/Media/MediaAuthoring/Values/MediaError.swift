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

    /// An error with a code of the caller's.
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
    /// The codes, each a short dotted name.
    public enum Code {
        /// The graph cannot run.
        public static let graphInvalid = "graph.invalid"
        /// An output and an input have no common format and no conversion exists, a capturer changes to such a format,
        /// or H.264 gets frames of an odd width or height.
        public static let formatClash = "graph.format-clash"
        /// A GStreamer element failed.
        public static let elementFailed = "element.failed"
        /// A node of a program or plugin threw an error without a code.
        public static let nodeFailed = "node.failed"
        /// A capturer of a program or plugin sends far more than its format states.
        public static let nodeFlood = "node.flood"
        /// A capturer of a program or plugin states a format that no pipeline can carry, or delivers another format.
        public static let nodeFormat = "node.format"
    }
}
