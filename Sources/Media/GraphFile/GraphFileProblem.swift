internal import MediaGraph

/// One problem of a graph file.
public struct GraphFileProblem: Sendable, Hashable {
    /// The place. Nil if the problem concerns the whole file or a value from outside.
    public var place: GraphPlace?
    /// One sentence, with a suggestion if there is one.
    public var message: String
    /// The accepted words, if they can be listed.
    public var accepted: [String] = []
}

/// The problems of one file, collected while it is read.
struct ProblemList {
    /// Further problems are not useful. They appear once these are corrected.
    static let longest = 100

    /// Names in a message may be as long as the file.
    private static let longestSentence = 1000

    private(set) var problems: [GraphFileProblem] = []
    private(set) var omitted = 0

    mutating func add(_ place: GraphPlace?, _ message: String, accepted: [String] = []) {
        let isTooLong = message.utf8.count > Self.longestSentence
        let sentence = isTooLong ? "\(message.prefix(Self.longestSentence))..." : message
        let problem = GraphFileProblem(place: place, message: sentence, accepted: accepted)
        guard problems.count < Self.longest else {
            omitted += 1
            return
        }
        if !problems.contains(problem) { problems.append(problem) }
    }

    /// Adds a word that is not one of the accepted ones.
    mutating func addUnknown(_ what: String, _ word: String, at place: GraphPlace?, accepted: [String]) {
        add(place, "\(what) \"\(word.clipped)\"\(word.suggestion(among: accepted))", accepted: accepted)
    }

    /// The scalar. Nil, with a reported problem, for another tree: `demand` begins its sentence.
    mutating func scalar(_ tree: Tree, _ demand: String) -> Tree.Scalar? {
        if case .scalar(let scalar) = tree { return scalar }
        add(tree.place, "\(demand), not \(tree.noun).")
        return nil
    }

    /// The items of a list. Nil, with a reported problem, for another tree.
    mutating func list(_ tree: Tree, _ demand: String, hint: String = "") -> [Tree]? {
        if case .list(let items, _) = tree { return items }
        add(tree.place, "\(demand), not \(tree.noun).\(hint)")
        return nil
    }

    /// The entries of a map. Nil, with a reported problem, for another tree.
    mutating func map(_ tree: Tree, _ demand: String, accepted: [String] = []) -> [Tree.Entry]? {
        if case .map(let entries, _) = tree { return entries }
        add(tree.place, "\(demand), not \(tree.noun).", accepted: accepted)
        return nil
    }

    /// In the order of the file. Problems without a place come first.
    var sorted: [GraphFileProblem] {
        let ordered = problems.enumerated().sorted {
            ($0.element.place ?? .start, $0.offset) < ($1.element.place ?? .start, $1.offset)
        }.map(\.element)
        guard omitted > 0 else { return ordered }
        return ordered + [GraphFileProblem(message: "\(omitted) more problems are not shown. Correct these first.")]
    }
}

extension String {
    /// The text, cut to a length for messages.
    var clipped: String { count > 60 ? prefix(57) + "..." : self }
}

extension GraphReading {
    /// Columns of an excerpt. A longer line is shown around the place.
    private static let excerptWidth = 100
    /// Enough for every kind of node with those of a few plugins. `connectlive nodes` lists more.
    private static let longestAcceptedList = 60
    /// Beside a suggestion, a longer list is left out.
    private static let longestListBesideHint = 12

    /// The problems as text: `path:line:column: message`, the line with a mark below the place, and the accepted words.
    /// Ends with a line feed. Empty without problems.
    public func report(path: String) -> String {
        let lines = text.map(FileLines.init)
        return problems.map { problem in
            let message = Self.named(problem.message, path)
            guard let place = problem.place else { return "\(path): \(message)\n" + accepted(problem) }
            return "\(path):\(place): \(message)\n" + excerpt(at: place, of: lines) + accepted(problem)
        }.joined()
    }

    /// The message about the syntax, with the name of the format that the file's name has. JSON is read as YAML.
    private static func named(_ message: String, _ path: String) -> String {
        path.hasSuffix(".json") && message.hasPrefix("YAML: ") ? "JSON: \(message.dropFirst(6))" : message
    }

    private func excerpt(at place: GraphPlace, of lines: FileLines?) -> String {
        guard let line = lines?[place.line] else { return "" }
        let scalars = withoutSecrets(Array(line.unicodeScalars), in: place.line)
        let first = max(0, min(place.column - 1 - Self.excerptWidth * 2 / 3, scalars.count - Self.excerptWidth))
        let shown = scalars[first..<min(scalars.count, first + Self.excerptWidth)]
        // A tab has the same width above the mark and below it.
        let before = shown.prefix(max(0, place.column - 1 - first)).map { $0 == "\t" ? "\t" : " " }.joined()
        let text = shown.map { $0.properties.generalCategory == .control && $0 != "\t" ? " " : String($0) }.joined()
        let number = "\(place.line)"
        let margin = String(repeating: " ", count: number.count)
        return "  \(number) | \(text)\n  \(margin) | \(before)^\n"
    }

    /// The line with secrets replaced by dots. The columns stay.
    private func withoutSecrets(_ line: [Unicode.Scalar], in number: Int) -> [Unicode.Scalar] {
        var shown = line
        for (place, count) in secrets where place.line == number && place.column <= line.count {
            let start = place.column - 1
            let isQuoted = line[start] == "\"" || line[start] == "'"
            // In quotes, one character may be written as several.
            let end = isQuoted ? line.lastIndex(of: line[start]) ?? line.endIndex : min(start + count, line.endIndex)
            for index in start..<max(start, end) { shown[index] = "•" }
        }
        return shown
    }

    private func accepted(_ problem: GraphFileProblem) -> String {
        let isLong = problem.accepted.count > Self.longestListBesideHint
        guard !problem.accepted.isEmpty, !isLong || !problem.message.contains("; did you mean ") else { return "" }
        let listed = problem.accepted.prefix(Self.longestAcceptedList).map(\.clipped)
        let rest = problem.accepted.count - listed.count
        let last = (listed.last ?? "") + (rest > 0 ? " and \(rest) more" : "")
        return (["  accepted here:"] + listed.dropLast().map { $0 + "," } + [last])
            .wrapped(separator: " ", width: Self.excerptWidth, indent: "    ").map { $0 + "\n" }.joined()
    }
}

extension [String] {
    /// The words in rows of at most this width, unless a single word is longer.
    func wrapped(separator: String, width: Int, indent: String = "") -> [String] {
        var rows: [String] = []
        for word in self {
            if let last = rows.last, last.count + separator.count + word.count <= width {
                rows[rows.count - 1] = last + separator + word
            } else {
                rows.append(rows.isEmpty ? word : indent + word)
            }
        }
        return rows
    }
}

/// The lines of a text, split at YAML's line breaks.
struct FileLines {
    let lines: [Substring.UnicodeScalarView]

    init(_ text: String) {
        // A line break is a character of its own, and "\r\n" is one.
        lines = text.split(omittingEmptySubsequences: false) { $0.unicodeScalars.contains(where: \.isYAMLBreak) }
            .map(\.unicodeScalars)
    }

    /// The place after the last character.
    var place: GraphPlace { GraphPlace(line: lines.count, column: (lines.last?.count ?? 0) + 1) }

    /// The place after the last line that has more than spaces and tabs.
    var end: GraphPlace {
        let last = lines.lastIndex { $0.contains { $0 != " " && $0 != "\t" } } ?? 0
        return GraphPlace(line: last + 1, column: lines[last].count + 1)
    }

    /// The line of this number, from 1.
    subscript(number: Int) -> String? {
        lines.indices.contains(number - 1) ? String(lines[number - 1]) : nil
    }
}

extension Unicode.Scalar {
    /// Whether libyaml ends a line here (YAML 1.1, section 5.4).
    var isYAMLBreak: Bool {
        switch self {
        case "\n", "\r", "\u{85}", "\u{2028}", "\u{2029}": true
        default: false
        }
    }
}
