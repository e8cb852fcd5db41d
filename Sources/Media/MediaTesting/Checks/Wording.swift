import MediaGraph

/// What makes an error's words useful, as far as a program can tell.
enum Wording {
    private static let fewestWords = 8
    /// A sentence that says what would help has one of these in it.
    private static let remedies: Set<String> = [
        "add", "allow", "apply", "ask", "available", "build", "change", "check", "choose", "close", "connect", "copy",
        "create", "enable", "end", "give", "go", "install", "leave", "let", "list", "look", "lower", "make", "name",
        "open",
        "pick", "plug", "put", "raise", "remove", "replug", "run", "see", "select", "send", "set", "start", "stop",
        "take", "try", "turn", "use", "wait", "write",
    ]

    /// What is missing, in words; nil where nothing is.
    static func fault(of error: any Error) -> String? {
        guard let error = error as? MediaError else { return "is no MediaError: it has neither a code nor a sentence" }
        guard isCode(error.code) else { return "has the code \"\(error.code)\", which is not of the form thing.fault" }
        guard error.code != MediaError.Code.nodeFailed else { return "has the code of whatever has no code" }
        let words = error.message.split { !$0.isLetter && !$0.isNumber && $0 != "'" }.map { $0.lowercased() }
        guard words.count >= fewestWords else {
            return "has \(words.count) words; say what was tried, and what would help"
        }
        guard let end = error.message.last, ".!?".contains(end) else { return "is no sentence: it does not end" }
        let namesOthers = error.message.contains("; there are ") || error.message.contains("; there is ")
        guard namesOthers || !remedies.isDisjoint(with: words) else { return "names nothing that somebody could do" }
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
