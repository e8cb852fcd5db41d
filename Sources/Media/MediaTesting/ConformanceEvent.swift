import MediaAuthoring

/// Progress of a node's test.
@frozen
public enum ConformanceEvent: Sendable, Hashable, Codable {
    /// This check begins.
    case begins(check: String)
    /// The next step, as the end of a sentence: "with fps 0". Empty if the node is just opened.
    case tries(String)
    /// The node reported this error.
    case says(SaidError)
    /// The check that began last has ended.
    case result(CheckResult)
}

/// An error of a node, and the fault of its message.
public struct SaidError: Sendable, Hashable, Codable {
    /// Nil if it is not a `MediaError`.
    public let code: String?
    /// The message.
    public let words: String
    /// The fault of its message. Nil if there is none.
    public let fault: String?

    /// An error of a node, with the fault of its message.
    public init(_ error: any Error) {
        code = (error as? MediaError)?.code
        words = "\(error)"
        fault = Wording.fault(of: error)
    }
}
