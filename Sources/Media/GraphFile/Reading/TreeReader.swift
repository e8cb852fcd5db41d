internal import Yams

/// Reads YAML, and JSON with it, into a `Tree`.
struct TreeReader {
    /// Deeper than any practical graph. Nested tees use three levels each.
    private static let deepest = 60
    /// Aliases are refused individually. A file with many is refused before parsing: a few dozen, each with two
    /// references to the one before, exceed all memory and time.
    private static let mostAliases = 24

    let text: String
    var problems: ProblemList

    static func read(_ text: String, _ problems: inout ProblemList) -> Tree? {
        var reader = TreeReader(text: JSONText.joiningSurrogates(in: text), problems: problems)
        defer { problems = reader.problems }
        return reader.read()
    }

    private mutating func read() -> Tree? {
        if let place = tooManyAliases() {
            problems.add(
                place, "The file has too many aliases (*name). Write out their values.")
            return nil
        }
        do {
            // The parser reads the string's own storage, which short strings lack, so the text is extended.
            let parser = try Parser(yaml: text + String(repeating: "\n", count: 32), encoding: .utf8)
            let root = try parser.singleRoot()
            // Nodes refer to their anchors weakly; the parser retains them.
            return withExtendedLifetime(parser) { root.flatMap { tree($0, depth: 0) } }
        } catch {
            report(error)
            return nil
        }
    }

    // MARK: Trees

    private mutating func tree(_ node: Yams.Node, depth: Int) -> Tree? {
        let place = node.mark.map(GraphPlace.init) ?? GraphPlace(line: 1, column: 1)
        guard node.anchor == nil else {
            problems.add(place, "Anchors and aliases (&name, *name) are not supported. Write out their values.")
            return nil
        }
        guard depth <= Self.deepest else {
            problems.add(place, "Lists and maps are nested more than \(Self.deepest) levels deep here.")
            return nil
        }
        switch node {
        case .scalar(let scalar):
            let isQuoted = scalar.style != .plain && scalar.style != .any
            return .scalar(Tree.Scalar(text: scalar.string, isQuoted: isQuoted, place: place))
        case .sequence(let sequence): return .list(sequence.compactMap { tree($0, depth: depth + 1) }, place)
        case .mapping(let mapping): return .map(entries(mapping, depth: depth), place)
        case .alias: return nil
        }
    }

    private mutating func entries(_ mapping: Yams.Node.Mapping, depth: Int) -> [Tree.Entry] {
        var entries: [Tree.Entry] = []
        var names: Set<String> = []
        for (key, value) in mapping {
            guard case .scalar(let name)? = tree(key, depth: depth + 1) else {
                problems.add(key.mark.map(GraphPlace.init), "A key must be a word, not a list or a map.")
                continue
            }
            // The parser takes 1 and "1" for two keys.
            guard names.insert(name.text).inserted else {
                addRepeated(name.text, at: name.place)
                continue
            }
            if let value = tree(value, depth: depth + 1) { entries.append(Tree.Entry(key: name, value: value)) }
        }
        return entries
    }

    private mutating func addRepeated(_ key: String, at place: GraphPlace) {
        problems.add(place, "The key \"\(key.clipped)\" occurs twice in this map.")
    }

    // MARK: Before reading

    /// The place of the first alias beyond the limit. Counts possible aliases, also in comments.
    private func tooManyAliases() -> GraphPlace? {
        var count = 0
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let scalars = Array(line.unicodeScalars)
            if scalars.first(where: { $0 != " " && $0 != "\t" }) == "#" { continue }
            for column in scalars.indices where scalars[column] == "*" {
                let before = column == 0 ? " " : scalars[column - 1]
                let after = column + 1 < scalars.count ? scalars[column + 1] : " "
                guard " \t[{,:-?\"'".unicodeScalars.contains(before), after != " ", after != "*" else { continue }
                count += 1
                if count > Self.mostAliases { return GraphPlace(line: index + 1, column: column + 1) }
            }
        }
        return nil
    }

    // MARK: Syntax

    private mutating func report(_ error: any Error) {
        switch error {
        case YamlError.scanner(let context, let problem, let mark, _),
            YamlError.parser(let context, let problem, let mark, _),
            YamlError.composer(let context, let problem, let mark, _):
            report(problem, context, GraphPlace(mark))
        case YamlError.duplicatedKeysInMapping(let names, let context):
            addRepeated(names.first ?? "", at: GraphPlace(context.mark))
        case YamlError.reader(let problem, _, _, _):
            problems.add(nil, "The file is not valid YAML: \(problem).")
        default:
            problems.add(nil, "The file is not valid YAML: \(error).")
        }
    }

    private mutating func report(_ problem: String, _ context: YamlError.Context?, _ mark: GraphPlace) {
        let lines = FileLines(text)
        // The parser finds out that text is missing only after the line breaks that end it.
        let place = mark.line > lines.end.line ? lines.end : mark
        let line = lines[place.line] ?? ""
        let before = line.unicodeScalars.prefix(max(0, place.column))
        if before.contains("\t"), before.allSatisfy({ $0 == " " || $0 == "\t" || $0 == "-" }) {
            problems.add(place, "The indentation has a tab. Use spaces only.")
            return
        }
        if problem.hasPrefix("found undefined alias") {
            problems.add(
                place, "Anchors and aliases (&name, *name) are not supported. Quote text that begins with *.")
            return
        }
        var sentence = "YAML: \(problem)"
        if let context, context.mark.line > 0 {
            sentence +=
                " \(context.text.trimmed), which begins in line \(context.mark.line), column \(context.mark.column)"
        }
        if line.unicodeScalars.contains("{"), line.contains("${") {
            sentence += "; inside braces, quote text with ${...}"
        } else if problem.contains("',' or '}'"), line.contains(": ") {
            sentence += "; quote text with \": \""
        } else if problem.contains("expected '-' indicator") {
            sentence += "; indent a node's settings two columns more than its dash"
        } else if problem.hasPrefix("mapping values are not allowed"), let column = lines.columnOfKey(above: place) {
            sentence += "; this key is indented too far: let it begin in column \(column), like the one above it"
        } else if problem.contains("expected key") {
            sentence += "; let all keys of a map begin in the same column"
        } else if problem.hasPrefix("mapping values are not allowed") {
            sentence += "; quote text with \": \", and write the keys of a map below one another"
        } else if problem.contains("cannot start any token") {
            sentence += "; quote text that begins with this character"
        } else if problem.contains("another document") {
            sentence += "; a file can have only one graph"
        }
        problems.add(place, sentence + ".")
    }
}

extension GraphPlace {
    fileprivate init(_ mark: Mark) {
        self.init(line: mark.line, column: mark.column)
    }
}

extension String {
    fileprivate var trimmed: String {
        String(drop { $0 == " " }.reversed().drop { $0 == " " || $0 == "\n" }.reversed())
    }
}

extension FileLines {
    /// The column, from 1, in which the key of the line above begins, if the key that ends at a place is indented further.
    fileprivate func columnOfKey(above place: GraphPlace) -> Int? {
        func begin(of line: String) -> Int { line.unicodeScalars.prefix { $0 == " " || $0 == "-" }.count + 1 }
        guard let line = self[place.line],
            line.unicodeScalars.prefix(place.column - 1).dropFirst(begin(of: line) - 1)
                .allSatisfy({
                    $0.properties.isAlphabetic || $0 == "-" || $0 == "_" || $0 == "." || ("0"..."9").contains($0)
                })
        else { return nil }
        for number in stride(from: place.line - 1, to: 0, by: -1) {
            guard let above = self[number], let first = above.first(where: { $0 != " " }) else { continue }
            if first == "#" { continue }
            let column = begin(of: above)
            return above.contains(": ") && column < begin(of: line) ? column : nil
        }
        return nil
    }
}
