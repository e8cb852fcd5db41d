/// Converts the bytes of a file to text, and reports encoding errors.
enum FileText {
    /// Far more than any practical graph needs. Limits the cost of broken and hostile files.
    static let largestFile = 1_000_000
    private static let longestList = 10

    static func decode(_ bytes: [UInt8], _ problems: inout ProblemList) -> String? {
        guard bytes.count <= largestFile else {
            problems.add(nil, "The file is larger than \(largestFile) bytes. Split the graph.")
            return nil
        }
        if bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF]) {
            problems.add(GraphPlace(line: 1, column: 1), "The file is UTF-16. Save it as UTF-8.")
            return nil
        }
        let text: String
        do throws(UTF8.ValidationError) {
            text = String(copying: try UTF8Span(validating: bytes.span))
        } catch {
            guard !bytes.prefix(512).contains(0) else {
                problems.add(
                    nil,
                    "This is not a graph file. To play a media file, use a \"file\" node, or \"connectlive publish "
                        + "--file\".")
                return nil
            }
            let before = String(decoding: bytes[..<error.byteOffsets.lowerBound], as: UTF8.self)
            problems.add(FileLines(before).place, "The file is not valid UTF-8 from here on. Save it as UTF-8.")
            return nil
        }
        let unmarked = text.unicodeScalars.first == "\u{FEFF}" ? String(text.unicodeScalars.dropFirst()) : text
        return hasControlCharacters(unmarked, &problems) ? nil : unmarked
    }

    private static func hasControlCharacters(_ text: String, _ problems: inout ProblemList) -> Bool {
        let found = FileLines(text).lines.enumerated().flatMap { number, line in
            line.enumerated().filter { !$1.isYAMLPrintable }
                .map { (scalar: $1, place: GraphPlace(line: number + 1, column: $0 + 1)) }
        }
        for (scalar, place) in found.prefix(longestList) {
            problems.add(
                place,
                "YAML does not allow the character U+\(scalar.value.hexadecimal(digits: 4)) here. Write "
                    + "\"\\u....\" in quotes.")
        }
        return !found.isEmpty
    }
}

extension Unicode.Scalar {
    /// Whether YAML allows the character unescaped.
    var isYAMLPrintable: Bool {
        switch value {
        case 0x09, 0x0A, 0x0D, 0x20...0x7E, 0x85, 0xA0...0xD7FF, 0xE000...0xFEFE, 0xFF00...0xFFFD, 0x10000...0x10FFFF:
            true
        default: false
        }
    }
}
