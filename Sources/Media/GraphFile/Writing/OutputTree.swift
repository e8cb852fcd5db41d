internal import MediaGraph

/// An ordered tree for output as YAML or JSON.
indirect enum OutputTree: Sendable {
    case value(SettingValue)
    case list([OutputTree])
    case map([Entry])

    typealias Entry = (key: String, value: OutputTree)

    static func text(_ text: String) -> OutputTree { .value(.text(text)) }

    /// Whether it has only plain values.
    private var isFlat: Bool {
        switch self {
        case .value: true
        case .list(let items): items.allSatisfy { if case .value = $0 { true } else { false } }
        case .map(let entries):
            entries.allSatisfy { entry in
                if case .list = entry.value { false } else { entry.value.isFlat }
            }
        }
    }

    private static let width = 110

    // MARK: JSON

    /// JSON (RFC 8259). A map of plain values is on one line if it fits.
    func json(indent: Int = 0) -> String {
        let line = line(key: \.quoted, value: \.json)
        if isFlat, indent + line.count <= Self.width { return line }
        let inner = String(repeating: " ", count: indent + 2)
        let outer = String(repeating: " ", count: indent)
        switch self {
        case .value(let value): return value.json
        case .list(let items):
            return "[\n" + items.map { inner + $0.json(indent: indent + 2) }.joined(separator: ",\n") + "\n\(outer)]"
        case .map(let entries):
            let lines = entries.map { "\(inner)\($0.key.quoted): \($0.value.json(indent: indent + 2))" }
            return "{\n" + lines.joined(separator: ",\n") + "\n\(outer)}"
        }
    }

    // MARK: YAML

    /// YAML in block style. A map of plain values is in braces if it fits. For the place after `key:` or `-`, including
    /// the separating space or line break.
    func yaml(indent: Int, isListItem: Bool = false) -> String {
        switch self {
        case .value(.text(let text)) where text.isParagraph: return " " + text.block(indent: indent)
        case .value(let value): return " " + value.yaml + "\n"
        case .list(let items) where items.isEmpty: return " []\n"
        case .map(let entries) where entries.isEmpty: return " {}\n"
        case .map(let entries):
            let line = yamlInBraces
            if isListItem, isFlat, indent + line.count <= Self.width { return " \(line)\n" }
            return Self.block(
                entries.map { "\($0.key.yamlWord):\($0.value.yaml(indent: indent + 2))" }, indent, isListItem)
        case .list(let items):
            return Self.block(items.map { "-\($0.yaml(indent: indent + 2, isListItem: true))" }, indent, isListItem)
        }
    }

    private static func block(_ lines: [String], _ indent: Int, _ isListItem: Bool) -> String {
        let margin = String(repeating: " ", count: indent)
        return isListItem ? " " + lines.joined(separator: margin) : "\n" + lines.map { margin + $0 }.joined()
    }

    var yamlInBraces: String { line(key: \.yamlWord, value: \.yaml) }

    private func line(key: (String) -> String, value: (SettingValue) -> String) -> String {
        switch self {
        case .value(let scalar): value(scalar)
        case .list(let items): "[" + items.map { $0.line(key: key, value: value) }.joined(separator: ", ") + "]"
        case .map(let entries):
            "{"
                + entries.map { "\(key($0.key)): \($0.value.line(key: key, value: value))" }.joined(separator: ", ")
                + "}"
        }
    }
}

extension SettingValue {
    /// Without quotes.
    var short: String {
        switch self {
        case .flag(let flag): "\(flag)"
        case .integer(let number): "\(number)"
        case .number(let number): number.short
        case .text(let text): text
        }
    }

    // JSON has no infinities, and no setting's range contains them.
    fileprivate var json: String { text != nil || number?.isFinite == false ? short.quoted : short }

    fileprivate var yaml: String {
        if case .text(let text) = self { text.yamlWord } else { json }
    }
}

extension String {
    /// Words that YAML 1.1 or 1.2 reads as another type.
    private static let taken: Set<String> = [
        "null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf",
    ]

    /// The text, quoted unless YAML reads it as text.
    var yamlWord: String {
        let isPlain = unicodeScalars.allSatisfy { scalar in
            scalar.isASCII && scalar.properties.isAlphabetic || "0123456789_-./".unicodeScalars.contains(scalar)
        }
        guard isPlain, let first, first.isLetter || first == "/", !Self.taken.contains(lowercased()) else {
            return quoted
        }
        return self
    }

    /// In double quotes, as in JSON and YAML.
    var quoted: String {
        var text = "\""
        for scalar in unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            default:
                if scalar.isYAMLPrintable, !scalar.isYAMLBreak {
                    text.unicodeScalars.append(scalar)
                } else {
                    text += "\\u" + scalar.value.hexadecimal(digits: 4)
                }
            }
        }
        return text + "\""
    }

    /// Whether a YAML block preserves its lines.
    fileprivate var isParagraph: Bool {
        let lines = split(separator: "\n", omittingEmptySubsequences: false)
        return lines.count > 1 && lines[0].first.map { $0 != " " && $0 != "\t" } ?? false
            && lines.last?.isEmpty == false
            && unicodeScalars.allSatisfy { $0 == "\n" || ($0.isYAMLPrintable && !$0.isYAMLBreak) }
    }

    fileprivate func block(indent: Int) -> String {
        let margin = String(repeating: " ", count: indent)
        return "|-\n"
            + split(separator: "\n", omittingEmptySubsequences: false).map { $0.isEmpty ? "\n" : "\(margin)\($0)\n" }
            .joined()
    }
}
