import MediaGraph

/// What goes on while a capturer is examined.
@frozen
public enum ConformanceEvent: Sendable, Hashable, Codable {
    /// This check is made next.
    case begins(check: String)
    /// Something is about to be done to the capturer, to stand behind a sentence: "with fps 0". Empty where it is just
    /// opened.
    case tries(String)
    /// It said this when something was in its way.
    case says(SaidError)
    case result(CheckResult)
}

/// An error of a capturer's, and what is wrong with its words.
public struct SaidError: Sendable, Hashable, Codable {
    /// Nil where it is no `MediaError`.
    public let code: String?
    public let words: String
    /// What its words lack; nil where they do.
    public let fault: String?

    public init(_ error: any Error) {
        code = (error as? MediaError)?.code
        words = "\(error)"
        fault = Wording.fault(of: error)
    }
}
