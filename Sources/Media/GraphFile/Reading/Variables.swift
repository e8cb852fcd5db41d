/// The variables of a file, and their use as `${name}` or `${name:-default}`.
struct Variables {
    private struct Entry {
        var variable: GraphVariable
        /// The place of the default.
        var defaultPlace: GraphPlace?
        /// The first use. Nil if it is only declared.
        var use: GraphPlace?
        var declaration: GraphPlace?
    }

    private let given: [String: String]
    private var entries: [String: Entry] = [:]

    init(given: [String: String]) {
        self.given = given
    }

    /// Used ones first, in the order of the file.
    var listed: [GraphVariable] {
        entries.values.sorted { ($0.use ?? .end, $0.variable.name) < ($1.use ?? .end, $1.variable.name) }.map(
            \.variable)
    }

    // MARK: Declarations

    mutating func declare(_ tree: Tree, _ problems: inout ProblemList) {
        let demand = "\"variables\" must be a map of names and descriptions, such as camera: Which camera"
        for entry in problems.map(tree, demand) ?? [] {
            guard Self.isName(entry.key.text) else {
                problems.add(
                    entry.key.place,
                    "\"\(entry.key.text.clipped)\" is not a valid name of a variable. Use letters, digits, - and _, "
                        + "with a letter first.")
                continue
            }
            var variable = GraphVariable(name: entry.key.text, value: given[entry.key.text])
            var defaultPlace: GraphPlace?
            switch entry.value {
            case .scalar(let scalar):
                variable.summary = scalar.isNull ? nil : scalar.text
            case .map(let parts, _):
                for part in parts {
                    guard let scalar = problems.scalar(part.value, "This must be text") else { continue }
                    switch part.key.text {
                    case "summary": variable.summary = scalar.text
                    case "default":
                        variable.defaultValue = scalar.text
                        variable.value = variable.value ?? scalar.text
                        defaultPlace = scalar.place
                    default:
                        problems.addUnknown(
                            "A variable has no key", part.key.text, at: part.key.place,
                            accepted: ["summary", "default"])
                    }
                }
            case .list(_, let place):
                problems.add(place, "The description of a variable must be text, not a list.")
            }
            entries[variable.name] = Entry(
                variable: variable, defaultPlace: defaultPlace, declaration: entry.key.place)
        }
    }

    // MARK: Use

    /// The scalar with its variables filled in. Nil, with a reported problem, if that fails.
    mutating func fillIn(
        _ scalar: Tree.Scalar, isSecret: Bool = false, _ problems: inout ProblemList
    ) -> Tree.Scalar? {
        guard scalar.text.contains("${") else { return scalar }
        var isFine = true
        var filled = scalar
        filled.text = scalar.text.replacing(/\$\$\{|\$\{([^}]*)(\}?)/) { match -> String in
            // "$${" means the text "${".
            guard let reference = match.1, let end = match.2 else { return "${" }
            filled.wasFilledIn = true
            var value: String?
            if end.isEmpty {
                problems.add(
                    scalar.place,
                    "\"\(match.0.description.clipped)\" lacks the closing }. Write \"$${\" for the text itself.")
            } else {
                value = self.value(of: reference, isSecret, at: scalar.place, &problems)
            }
            isFine = isFine && value != nil
            return value ?? ""
        }
        return isFine ? filled : nil
    }

    /// The value of the text between the braces.
    private mutating func value(
        of reference: Substring, _ isSecret: Bool, at place: GraphPlace, _ problems: inout ProblemList
    ) -> String? {
        let parts = reference.firstRange(of: ":-")
        let name = String(parts.map { reference[..<$0.lowerBound] } ?? reference)
        let defaultValue = parts.map { String(reference[$0.upperBound...]) }
        guard Self.isName(name) else {
            problems.add(
                place,
                "\"${\(reference.description.clipped)}\" is not a variable. Write ${name} or ${name:-default}, with "
                    + "letters, digits, - and _ in the name, a letter first.")
            return nil
        }
        if let defaultValue, defaultValue.contains("${") {
            problems.add(place, "The default of \"\(name)\" has another variable. Write a default without variables.")
            return nil
        }
        var entry = entries[name] ?? Entry(variable: GraphVariable(name: name))
        entry.use = min(entry.use ?? place, place)
        if let defaultValue {
            if let other = entry.variable.defaultValue, other != defaultValue, let otherPlace = entry.defaultPlace {
                problems.add(
                    place,
                    "\"\(name)\" has the default \"\(defaultValue.clipped)\" here and \"\(other.clipped)\" in line "
                        + "\(otherPlace.line). Leave out one of them.")
            }
            entry.variable.defaultValue = entry.variable.defaultValue ?? defaultValue
            entry.defaultPlace = entry.defaultPlace ?? place
        }
        entry.variable.value = given[name] ?? entry.variable.defaultValue
        if isSecret { entry.variable.isSecret = true }
        entries[name] = entry
        return entry.variable.value
    }

    // MARK: At the end

    /// Reports problems of the whole file: variables without a value, unused ones, and unknown names of values.
    mutating func finish(_ problems: inout ProblemList) {
        for entry in entries.values {
            let name = entry.variable.name
            if let use = entry.use, entry.variable.value == nil {
                problems.add(
                    use,
                    "\"\(name)\" has no value. Give it one, or write a default with ${\(name):-...}."
                )
            }
            if entry.use == nil, let declaration = entry.declaration {
                problems.addUnknown(
                    "The file does not use the variable", name, at: declaration, accepted: usedNames)
            }
        }
        for name in given.keys.sorted() where entries[name] == nil {
            problems.addUnknown("a value was given, but the file has no variable", name, at: nil, accepted: usedNames)
        }
    }

    private var usedNames: [String] { entries.values.filter { $0.use != nil }.map(\.variable.name).sorted() }

    static func isName(_ text: String) -> Bool {
        text.wholeMatch(of: /[A-Za-z_][A-Za-z0-9_-]*/) != nil
    }
}
