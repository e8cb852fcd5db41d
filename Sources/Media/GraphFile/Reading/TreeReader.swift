internal import Yams

/// Reads YAML, and JSON with it, into a `Tree`.
struct TreeReader {
    /// Deeper than any graph; tees in tees take three levels each.
    private static let deepest = 60
    /// Aliases are refused where they stand; a file that is full of them is refused before it is read, because a few
    /// dozen, each naming the one before twice, are more than there is memory and time for.
    private static let mostAliases = 24
    /// How often a text is read again behind a key that stands twice.
    private static let mostRepeatedKeys = 20

    private var text: String
    private var problems: ProblemList
    /// Keys that stand twice and that were covered, by their place.
    private var coveredKeys: [GraphPlace: String] = [:]

    static func read(_ text: String, _ problems: inout ProblemList) -> Tree? {
        var reader = TreeReader(text: JSONText.joiningSurrogates(in: text), problems: problems)
        defer { problems = reader.problems }
        return reader.read()
    }

    private init(text: String, problems: ProblemList) {
        self.text = text
        self.problems = problems
    }

    private mutating func read() -> Tree? {
        if let place = tooManyAliases() {
            problems.add(
                place, "The file holds more aliases (*name) than a graph could need; write out what they stand for.")
            return nil
        }
        for _ in 0...Self.mostRepeatedKeys {
            do {
                // The parser reads from the text's own storage, which short texts do not have: make it long.
                let parser = try Parser(yaml: text + String(repeating: "\n", count: 32), encoding: .utf8)
                let root = try parser.singleRoot()
                // Nodes hold their anchors weakly; the parser holds them.
                return withExtendedLifetime(parser) { root.flatMap { tree($0, depth: 0) } }
            } catch YamlError.duplicatedKeysInMapping(let names, let context) {
                let place = GraphPlace(line: context.mark.line, column: context.mark.column)
                guard let name = names.first, cover(name, at: place) else {
                    problems.add(place, "The key \"\(names.first?.clipped ?? "")\" stands twice in this map.")
                    return nil
                }
            } catch {
                report(error)
                return nil
            }
        }
        problems.add(
            coveredKeys.keys.min(), "This and more than \(Self.mostRepeatedKeys) other keys stand twice in their maps.")
        return nil
    }

    // MARK: Trees

    private mutating func tree(_ node: Yams.Node, depth: Int) -> Tree? {
        let place = node.mark.map { GraphPlace(line: $0.line, column: $0.column) } ?? GraphPlace(line: 1, column: 1)
        guard node.anchor == nil else {
            problems.add(place, "Anchors and aliases (&name, *name) are not taken; write out what they stand for.")
            return nil
        }
        guard depth <= Self.deepest else {
            problems.add(place, "Lists and maps are nested more than \(Self.deepest) deep here; no graph needs that.")
            return nil
        }
        switch node {
        case .scalar(let scalar): return .scalar(leaf(scalar, place))
        case .sequence(let sequence):
            var list: [Tree] = []
            for item in sequence {
                if let item = tree(item, depth: depth + 1) { list.append(item) }
            }
            return .list(list, place)
        case .mapping(let mapping): return .map(entries(mapping, depth: depth), place)
        case .alias: return nil
        }
    }

    private func leaf(_ scalar: Yams.Node.Scalar, _ place: GraphPlace) -> Tree.Scalar {
        Tree.Scalar(text: scalar.string, isQuoted: scalar.style != .plain && scalar.style != .any, place: place)
    }

    private mutating func entries(_ mapping: Yams.Node.Mapping, depth: Int) -> [Tree.Entry] {
        var entries: [Tree.Entry] = []
        var first: [String: GraphPlace] = [:]
        for (key, value) in mapping {
            guard case .scalar(var name)? = tree(key, depth: depth + 1) else {
                let mark = key.mark.map { GraphPlace(line: $0.line, column: $0.column) }
                problems.add(mark, "A key is a word here, not a list or a map.")
                continue
            }
            if let covered = coveredKeys[name.place] { name.text = covered }
            if let earlier = first[name.text] {
                problems.add(
                    name.place,
                    "\"\(name.text.clipped)\" stands twice in this map; the other is in line \(earlier.line).")
                continue
            }
            first[name.text] = name.place
            if let value = tree(value, depth: depth + 1) { entries.append(Tree.Entry(key: name, value: value)) }
        }
        return entries
    }

    // MARK: Before reading

    /// The place of the alias that is one too many. Counts what may be one; comments are not looked at.
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

    /// Writes over a key that stands twice, so that reading goes on: every problem is told at once. The new key is as
    /// long, so that places stay.
    private mutating func cover(_ name: String, at place: GraphPlace) -> Bool {
        guard !name.isEmpty, var index = index(of: place) else { return false }
        let scalars = text.unicodeScalars
        if scalars[index] == "\"" || scalars[index] == "'" { index = scalars.index(after: index) }
        guard
            let end = scalars.index(index, offsetBy: name.unicodeScalars.count, limitedBy: scalars.endIndex),
            String(scalars[index..<end]) == name,
            // Private use: nobody's key.
            let scalar = Unicode.Scalar(UInt32(0xE000 + coveredKeys.count))
        else { return false }
        coveredKeys[place] = name
        text.unicodeScalars.replaceSubrange(
            index..<end, with: repeatElement(scalar, count: name.unicodeScalars.count))
        return true
    }

    private func index(of place: GraphPlace) -> String.Index? {
        let scalars = text.unicodeScalars
        var line = 1
        var index = scalars.startIndex
        while line < place.line, index < scalars.endIndex {
            let scalar = scalars[index]
            index = scalars.index(after: index)
            guard scalar.isYAMLBreak else { continue }
            if scalar == "\r", index < scalars.endIndex, scalars[index] == "\n" { continue }
            line += 1
        }
        return scalars.index(index, offsetBy: place.column - 1, limitedBy: scalars.endIndex)
            .flatMap { $0 < scalars.endIndex ? $0 : nil }
    }

    // MARK: Syntax

    private mutating func report(_ error: any Error) {
        switch error {
        case YamlError.scanner(let context, let problem, let mark, _),
            YamlError.parser(let context, let problem, let mark, _),
            YamlError.composer(let context, let problem, let mark, _):
            report(problem, context, GraphPlace(line: mark.line, column: mark.column))
        case YamlError.reader(let problem, _, _, _):
            problems.add(nil, "The file cannot be read as YAML: \(problem).")
        default:
            problems.add(nil, "The file cannot be read as YAML: \(error).")
        }
    }

    private mutating func report(_ problem: String, _ context: YamlError.Context?, _ place: GraphPlace) {
        let line = FileLines(text)[place.line] ?? ""
        let before = line.unicodeScalars.prefix(max(0, place.column))
        if before.contains("\t"), before.allSatisfy({ $0 == " " || $0 == "\t" || $0 == "-" }) {
            problems.add(place, "A tab stands in the indentation; YAML takes spaces alone there.")
            return
        }
        if problem.hasPrefix("found undefined alias") {
            problems.add(
                place, "Anchors and aliases (&name, *name) are not taken; a text that begins with * needs quotes.")
            return
        }
        var sentence = "YAML: \(problem)"
        if let context, context.mark.line > 0 {
            sentence += " \(context.text.trimmed), begun in line \(context.mark.line), column \(context.mark.column)"
        }
        if line.unicodeScalars.contains("{"), line.contains("${") {
            sentence += "; inside braces a text with ${...} needs quotes"
        } else if problem.hasPrefix("mapping values are not allowed") {
            sentence += "; a text that holds \": \" needs quotes, and the keys of a map stand below one another"
        } else if problem.contains("cannot start any token") {
            sentence += "; a text that begins with this character needs quotes"
        } else if problem.contains("another document") {
            sentence += "; a file holds one graph"
        }
        problems.add(place, sentence + ".")
    }
}

extension String {
    fileprivate var trimmed: String {
        String(drop { $0 == " " }.reversed().drop { $0 == " " || $0 == "\n" }.reversed())
    }
}
