/// Features of JSON that YAML lacks.
enum JSONText {
    /// Replaces characters that JSON writes as two escapes of UTF-16, such as `\\ud83c\\udfa5`, by YAML's single escape
    /// (RFC 8259, section 7; YAML 1.1, section 5.6).
    static func joiningSurrogates(in text: String) -> String {
        guard text.utf8.first(where: { !" \t\r\n".utf8.contains($0) }) == UInt8(ascii: "{"), text.contains("\\u") else {
            return text
        }
        let bytes = Array(text.utf8)
        var joined: [UInt8] = []
        var index = 0
        while index < bytes.count {
            guard bytes[index] == UInt8(ascii: "\\"), index + 1 < bytes.count else {
                joined.append(bytes[index])
                index += 1
                continue
            }
            if let high = unit(bytes, index), let low = unit(bytes, index + 6), UTF16.isLeadSurrogate(high),
                UTF16.isTrailSurrogate(low)
            {
                let scalar = 0x10000 + (UInt32(high) - 0xD800) << 10 + (UInt32(low) - 0xDC00)
                let digits = String(scalar, radix: 16, uppercase: true)
                joined += "\\U\(String(repeating: "0", count: 8 - digits.count))\(digits)".utf8
                index += 12
            } else {
                // An escaped backslash begins no escape.
                joined += bytes[index...index + 1]
                index += 2
            }
        }
        return String(decoding: joined, as: UTF8.self)
    }

    /// The number of a four-digit escape that begins here.
    private static func unit(_ bytes: [UInt8], _ index: Int) -> UInt16? {
        guard index + 6 <= bytes.count, bytes[index] == UInt8(ascii: "\\"), bytes[index + 1] == UInt8(ascii: "u") else {
            return nil
        }
        let digits = bytes[index + 2..<index + 6]
        guard digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }) else { return nil }
        return UInt16(String(decoding: digits, as: UTF8.self), radix: 16)
    }
}
