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
        guard let text = String(validating: bytes, as: UTF8.self) else {
            let before = String(decoding: bytes.prefix(validLength(of: bytes)), as: UTF8.self)
            problems.add(endPlace(of: before), "The file is not valid UTF-8 from here on. Save it as UTF-8.")
            return nil
        }
        let unmarked = text.unicodeScalars.first == "\u{FEFF}" ? String(text.unicodeScalars.dropFirst()) : text
        return hasControlCharacters(unmarked, &problems) ? nil : unmarked
    }

    /// How many bytes at the start are valid UTF-8.
    private static func validLength(of bytes: [UInt8]) -> Int {
        var length = 0
        var decoder = UTF8()
        var iterator = bytes.makeIterator()
        while case .scalarValue(let scalar) = decoder.decode(&iterator) { length += UTF8.width(scalar) }
        return length
    }

    private static func endPlace(of text: String) -> GraphPlace {
        var place = GraphPlace(line: 1, column: 1)
        var previous: Unicode.Scalar = " "
        for scalar in text.unicodeScalars {
            place.advance(over: scalar, after: previous)
            previous = scalar
        }
        return place
    }

    /// YAML allows no control characters except tabs and line breaks (YAML 1.1, section 5.1).
    private static func hasControlCharacters(_ text: String, _ problems: inout ProblemList) -> Bool {
        var place = GraphPlace(line: 1, column: 1)
        var previous: Unicode.Scalar = " "
        var found = 0
        for scalar in text.unicodeScalars {
            if !scalar.isYAMLPrintable {
                found += 1
                if found <= longestList {
                    let number = String(scalar.value, radix: 16, uppercase: true)
                    problems.add(
                        place,
                        "YAML does not allow the character "
                            + "U+\(String(repeating: "0", count: max(0, 4 - number.count)))\(number) here. Write "
                            + "\"\\u....\" in quotes.")
                }
            }
            place.advance(over: scalar, after: previous)
            previous = scalar
        }
        return found > 0
    }
}

extension GraphPlace {
    fileprivate mutating func advance(over scalar: Unicode.Scalar, after previous: Unicode.Scalar) {
        if scalar == "\n", previous == "\r" { return }
        if scalar.isYAMLBreak {
            line += 1
            column = 1
        } else {
            column += 1
        }
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
