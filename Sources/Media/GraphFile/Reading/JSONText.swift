/// Features of JSON that YAML lacks.
enum JSONText {
    /// Replaces characters that JSON writes as two escapes of UTF-16, such as `\\ud83c\\udfa5`, by YAML's single escape
    /// (RFC 8259, section 7; YAML 1.1, section 5.6).
    static func joiningSurrogates(in text: String) -> String {
        guard text.utf8.first(where: { !" \t\r\n".utf8.contains($0) }) == UInt8(ascii: "{"), text.contains("\\u") else {
            return text
        }
        // An escaped backslash begins no escape.
        let escapes = #/\\\\|\\u([Dd][89ABab][0-9A-Fa-f]{2})\\u([Dd][C-Fc-f][0-9A-Fa-f]{2})/#
        return text.replacing(escapes.matchingSemantics(.unicodeScalar)) { match in
            let units = [match.1, match.2].compactMap { $0.flatMap { UInt16($0, radix: 16) } }
            guard units.count == 2, let scalar = String(decoding: units, as: UTF16.self).unicodeScalars.first else {
                return String(match.0)
            }
            return "\\U" + scalar.value.hexadecimal(digits: 8)
        }
    }
}

extension UInt32 {
    /// With at least this many digits.
    func hexadecimal(digits: Int) -> String {
        let shown = String(self, radix: 16, uppercase: true)
        return String(repeating: "0", count: Swift.max(0, digits - shown.count)) + shown
    }
}
