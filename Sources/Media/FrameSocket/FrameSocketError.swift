/// An error between the two ends of a frame socket.
///
/// `code` is stable and listed in docs/errors.md; `message` is one sentence for people.
public struct FrameSocketError: Error, Sendable, Hashable, CustomStringConvertible {
    /// A short dotted name that never changes, such as `feed.closed`.
    public let code: String
    /// One sentence with the cause and the fix.
    public let message: String

    package init(code: String, _ message: String) {
        self.code = code
        self.message = message
    }

    public var description: String { "\(message) [\(code)]" }
}

extension FrameSocketError {
    package static func malformed(_ what: String) -> FrameSocketError {
        FrameSocketError(code: "feed.malformed", "A message is malformed: \(what).")
    }

    package static func closed(_ why: String) -> FrameSocketError {
        FrameSocketError(code: "feed.closed", "The frame socket is closed: \(why).")
    }

    package static func unavailable(_ path: String, _ why: String) -> FrameSocketError {
        FrameSocketError(
            code: "feed.unavailable",
            "The frame socket \(path) is unavailable: \(why). Check the path, and that the graph runs.")
    }
}
