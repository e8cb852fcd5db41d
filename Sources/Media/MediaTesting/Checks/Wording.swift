import MediaAuthoring

/// Checks of an error message's usefulness, as far as a program can judge it.
enum Wording {
    private static let fewestWords = 8
    /// A sentence with a fix has one of these words.
    private static let remedies: Set<String> = [
        "add", "allow", "apply", "ask", "available", "build", "change", "check", "choose", "close", "connect", "copy",
        "create", "enable", "end", "give", "go", "install", "leave", "let", "list", "look", "lower", "make", "name",
        "open", "pick", "plug", "put", "raise", "reduce", "remove", "replug", "run", "see", "select", "send", "set",
        "shorten", "start", "stop", "take", "try", "turn", "use", "wait", "write",
    ]

    /// The fault of an error's message. Nil if there is none.
    static func fault(of error: any Error) -> String? {
        guard let error = error as? MediaError else {
            return "is not a MediaError, so it has neither a code nor a sentence"
        }
        guard isCode(error.code) else { return "has the code \"\(error.code)\", which is not of the form thing.fault" }
        guard error.code != MediaError.Code.nodeFailed else { return "has the code of errors without a code" }
        let words = error.message.split { !$0.isLetter && !$0.isNumber && $0 != "'" }.map { $0.lowercased() }
        guard words.count >= fewestWords else {
            return "has \(words.count) words; name the cause and a fix"
        }
        guard let end = error.message.last, ".!?".contains(end) else { return "is not a sentence: it has no end" }
        let namesOthers = error.message.contains("; there are ") || error.message.contains("; there is ")
        guard namesOthers || !remedies.isDisjoint(with: words) else { return "names no fix" }
        return nil
    }

    private static func isCode(_ code: String) -> Bool {
        let parts = code.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count >= 2
            && parts.allSatisfy { part in
                !part.isEmpty && part.allSatisfy { $0.isASCII && ($0.isLowercase || $0.isNumber || $0 == "-") }
            }
    }
}
