/// Splits a command into words: at blanks, with quotes as in a shell, and with a backslash that escapes the next
/// character. No shell runs, and nothing is expanded.
package enum CommandWords {
    /// Nil if a quote is not closed, or the last character is a backslash.
    package static func split(_ text: String) -> [String]? {
        var words: [String] = []
        var word: String?
        var quote: Character?
        var rest = text[...]
        while let sign = rest.popFirst() {
            switch (sign, quote) {
            case ("'", "'"), ("\"", "\""): quote = nil
            case (_, "'"): word = (word ?? "") + String(sign)
            case ("\\", "\""):
                guard let next = rest.popFirst() else { return nil }
                // Between double quotes, a backslash escapes only these characters.
                let isNeeded = "\"\\$`".contains(next)
                word = (word ?? "") + (isNeeded ? String(next) : "\\\(next)")
            case (_, "\""): word = (word ?? "") + String(sign)
            case ("'", nil), ("\"", nil):
                quote = sign
                word = word ?? ""
            case ("\\", nil):
                guard let next = rest.popFirst() else { return nil }
                word = (word ?? "") + String(next)
            case (" ", nil), ("\t", nil), ("\n", nil), ("\r\n", nil):
                if let done = word { words.append(done) }
                word = nil
            default: word = (word ?? "") + String(sign)
            }
        }
        if let done = word { words.append(done) }
        return quote == nil ? words : nil
    }
}
