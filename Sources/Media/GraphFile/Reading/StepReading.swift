internal import MediaGraph

/// Keys with a meaning in a step. A setting of such a name belongs under `settings`.
enum StepKey {
    static let node = "node"
    static let element = "element"
    static let tee = "tee"
    static let from = "from"
    static let to = "to"
    static let name = "name"
    static let branch = "branch"
    static let optional = "optional"
    static let settings = "settings"

    /// A step has exactly one of these.
    static let kinds = [node, element, tee, from, to]
    static let ofNodes = [name, branch, optional, settings]
    static let ofBranches = [branch, optional]
    static let all = Set(kinds + ofNodes)
}

extension GraphReader {
    /// The progress of reading a chain or a tee.
    private struct Walk {
        let isTee: Bool
        /// The source of the next step.
        var previous: FoundPort?
        /// Whether the previous step is unreadable, so that problems about it are not reported.
        var isBroken = false
        /// The `to` that ended the chain.
        var end: GraphPlace?
        /// The marks of the chain's `from`.
        var marks = BranchMarks()
    }

    /// Reads consecutive steps. `source` feeds the first one.
    mutating func readSteps(
        _ list: [Tree], ofTee isTee: Bool = false, after source: FoundPort? = nil, isBroken: Bool = false
    ) {
        let firstNode = nodes.count
        var walk = Walk(isTee: isTee, previous: source, isBroken: isBroken)
        for (index, step) in list.enumerated() {
            steps += 1
            // Their graph is not validated any more, so messages about them would not help.
            guard steps <= Self.mostSteps else { continue }
            if let end = walk.end {
                problems.add(
                    step.place, "The \"to\" in line \(end.line) ends this chain. Begin another chain for this step."
                )
                walk.end = nil
                walk.isBroken = true
            }
            read(step, isFirst: index == 0, &walk)
        }
        mark(nodes.indices.suffix(from: firstNode), walk.marks)
    }

    private mutating func read(_ step: Tree, isFirst: Bool, _ walk: inout Walk) {
        guard let (kind, entries) = parts(of: step) else { return lose(&walk, step) }
        let key = kind.key.text
        if key == StepKey.tee { return readTee(kind.value, entries, walk) }
        guard var word = problems.scalar(kind.value, "\"\(key)\" must be a name") else {
            return lose(&walk, step)
        }
        // The node of that name, not YAML's null.
        if word.isNull, !word.text.isEmpty { word.text = "null" }
        switch key {
        case StepKey.from: readFrom(word, entries, isFirst: isFirst, &walk)
        case StepKey.to: readTo(word, entries, &walk)
        default: readNode(word, isElement: key == StepKey.element, entries, &walk, step)
        }
    }

    /// Continues after an unreadable step.
    private mutating func lose(_ walk: inout Walk, _ step: Tree? = nil) {
        if case .map(let entries, _)? = step { loseNames(in: entries) }
        if let previous = walk.previous { besideBroken.insert(previous.text) }
        walk.previous = nil
        walk.isBroken = true
    }

    /// Notes the names that a step may have: the value of `name`, also one level deeper, or the kind's.
    private mutating func loseNames(in entries: [Tree.Entry], isStep: Bool = true) {
        for entry in entries {
            if isStep, catalogue.kind(named: entry.key.text) != nil { lostNames.insert(entry.key.text) }
            switch entry.value {
            case .scalar(let word) where entry.key.text == StepKey.name || isStep: lostNames.insert(word.text)
            case .map(let inner, _) where isStep: loseNames(in: inner, isStep: false)
            default: break
            }
        }
    }

    private mutating func readFrom(
        _ reference: Tree.Scalar, _ entries: [Tree.Entry], isFirst: Bool, _ walk: inout Walk
    ) {
        walk.marks = readMarks(entries, of: StepKey.from)
        if walk.isTee {
            problems.add(reference.place, "A tee branches off the step before it. Use \"from\" only to begin a chain.")
        } else if !isFirst {
            problems.add(
                reference.place,
                "\"from\" must be the first step of a chain. Begin another chain with \"- - from\".")
        }
        walk.previous = readReference(reference)
        walk.isBroken = walk.previous == nil
    }

    private mutating func readTo(_ reference: Tree.Scalar, _ entries: [Tree.Entry], _ walk: inout Walk) {
        _ = readMarks(entries, of: StepKey.to)
        if let target = readReference(reference) {
            if let previous = walk.previous {
                links.append(FoundLink(from: previous, to: target, place: reference.place))
            } else if !walk.isBroken {
                problems.add(reference.place, "No step before this \"to\" can feed it.")
            }
            walk.previous = nil
        } else {
            lose(&walk)
        }
        walk.end = reference.place
    }

    // MARK: Kinds of steps

    /// The entry with the step's kind, and the others. Nil, with a reported problem, if it has none.
    private mutating func parts(of step: Tree) -> (kind: Tree.Entry, [Tree.Entry])? {
        switch step {
        case .scalar(let scalar):
            if scalar.text.isEmpty {
                problems.add(scalar.place, "The step is empty. Write the name of a node, or a map.")
                return nil
            }
            let key = Tree.Scalar(text: StepKey.node, isQuoted: false, place: scalar.place)
            return (Tree.Entry(key: key, value: step), [])
        case .list(_, let place):
            problems.add(place, "A step must not be a list. Write a branch as {tee: [...]}.")
            return nil
        case .map(let entries, let place):
            let found = entries.filter { StepKey.kinds.contains($0.key.text) }
            guard let kind = found.first else {
                let hint = hint(for: entries)
                problems.add(place, "This step has no kind\(hint)", accepted: StepKey.kinds)
                return nil
            }
            for other in found.dropFirst() {
                problems.add(
                    other.key.place,
                    "\"\(other.key.text)\" needs a separate step; it cannot be combined with \"\(kind.key.text)\"."
                        + (hint(for: other, beside: kind) ?? ""))
            }
            return (kind, entries.filter { !StepKey.kinds.contains($0.key.text) })
        }
    }

    /// The end of the sentence about a step without a kind. Its secret values stay hidden.
    private mutating func hint(for entries: [Tree.Entry]) -> String {
        hideSecrets(in: entries, of: nil)
        guard let entry = entries.first(where: { catalogue.kind(named: $0.key.text) != nil }) else {
            let near = entries.lazy.compactMap { $0.key.text.nearest(among: StepKey.kinds) }.first
            return near.map { "; did you mean \"\($0)\"?" } ?? ". Write it as {node: NAME}."
        }
        var step = entry.key.text
        guard case .map(let settings, _) = entry.value else { return ". Write {node: \(step)}." }
        for setting in settings {
            let name = setting.key.text
            var words = "..."
            if case .scalar(let scalar) = setting.value {
                // An address may have a password.
                let isHidden = secrets[scalar.place] != nil || scalar.text.contains("@")
                if !isHidden { words = scalar.text }
            }
            step += ", \(name.clipped): \(words.clipped)"
        }
        return ". Write {node: \(step)}."
    }

    /// Hides the secret values of a step that could not be read, which its line would show.
    private mutating func hideSecrets(in entries: [Tree.Entry], of kind: NodeKind?) {
        for entry in entries {
            let name = entry.key.text
            switch entry.value {
            case .scalar(let scalar):
                let isSecret = kind?.setting(name)?.isSecret ?? SettingContract.soundsSecret(name)
                if isSecret { secrets[scalar.place] = scalar.text.unicodeScalars.count }
            case .map(let inner, _): hideSecrets(in: inner, of: catalogue.kind(named: name) ?? kind)
            case .list(let items, _):
                for case .map(let inner, _) in items { hideSecrets(in: inner, of: kind) }
            }
        }
    }

    /// The way to write a setting whose name is that of a kind of step. Nil if the node has no such setting.
    private func hint(for other: Tree.Entry, beside kind: Tree.Entry) -> String? {
        let node = [kind, other].first { $0.key.text == StepKey.node }
        guard let setting = [kind, other].first(where: { $0.key.text != StepKey.node }),
            case .scalar(let name)? = node?.value, catalogue.kind(named: name.text)?.setting(setting.key.text) != nil
        else { return nil }
        let key = setting.key.text
        return " To set the \(key) of \(name.text.clipped), write settings: {\(key): NAME}."
    }

    private mutating func readNode(
        _ word: Tree.Scalar, isElement: Bool, _ entries: [Tree.Entry], _ walk: inout Walk, _ step: Tree
    ) {
        guard let kind = variables.fillIn(word, &problems) else {
            for entry in entries { fillInOnly(entry.value) }
            return lose(&walk, step)
        }
        guard !kind.text.isEmpty else {
            problems.add(
                kind.place, "The name of \(isElement ? "a GStreamer element" : "a kind of node") is missing here.")
            return lose(&walk, step)
        }
        var node = Node(isElement ? NodeKind.elementPrefix + kind.text : kind.text)
        node.name = node.kindInFiles
        var namePlace = kind.place
        if let entry = entries.first(where: { $0.key.text == StepKey.name }),
            let name = text(of: entry, for: "the node")
        {
            node.name = name.text
            namePlace = name.place
        }
        node.inherit(readMarks(entries.filter { StepKey.ofBranches.contains($0.key.text) }, of: node.kind))
        readSettings(entries, of: &node)
        add(node, at: kind.place, namePlace)
        let port = FoundPort(text: node.name)
        if let previous = walk.previous { links.append(FoundLink(from: previous, to: port, place: kind.place)) }
        if walk.isBroken { besideBroken.insert(node.name) }
        walk.previous = port
        walk.isBroken = false
    }

    private mutating func add(_ node: Node, at place: GraphPlace, _ namePlace: GraphPlace) {
        if node.name.isEmpty || node.name.contains(".") {
            problems.add(
                namePlace,
                "\"\(node.name.clipped)\" is not a valid name of a node. Use a name without dots, which separate a "
                    + "node from its port.")
        }
        if let other = places.nodes[node.name] {
            sharedNames.insert(node.name)
            problems.add(
                namePlace,
                "Two nodes are named \"\(node.name.clipped)\", the other in line \(other.line). Add a \"name\" to one "
                    + "of them; by default, a node is named after its kind.")
        } else {
            places.nodes[node.name] = place
        }
        nodes.append(node)
    }

    private mutating func readTee(_ tee: Tree, _ entries: [Tree.Entry], _ walk: Walk) {
        let marks = readMarks(entries, of: StepKey.tee)
        guard let steps = problems.list(tee, "\"tee\" must be a list of steps") else {
            if let previous = walk.previous { besideBroken.insert(previous.text) }
            return
        }
        if steps.isEmpty { problems.add(tee.place, "The tee has no steps.") }
        if walk.previous == nil, !walk.isBroken {
            problems.add(tee.place, "No step before this tee can feed it.")
        }
        let firstNode = nodes.count
        readSteps(steps, ofTee: true, after: walk.previous, isBroken: walk.previous == nil)
        if nodes.count == firstNode, marks.branch != nil || marks.isOptional, !steps.isEmpty {
            problems.add(
                tee.place,
                "\"branch\" and \"optional\" need a node, and this tee has none. Write them at the node that it feeds.")
        }
        mark(nodes.indices.suffix(from: firstNode), marks)
    }

    /// Marks nodes, except for those with their own marks.
    private mutating func mark(_ indices: Range<Int>, _ marks: BranchMarks) {
        for index in indices { nodes[index].inherit(marks) }
    }

    private mutating func readReference(_ scalar: Tree.Scalar) -> FoundPort? {
        guard let filled = variables.fillIn(scalar, &problems) else { return nil }
        guard !filled.text.isEmpty else {
            problems.add(scalar.place, "The name of a node or port is missing here, such as \"recorder.video\".")
            return nil
        }
        return FoundPort(text: filled.text, place: scalar.place)
    }

    // MARK: Keys of steps

    private mutating func readMarks(_ entries: [Tree.Entry], of step: String) -> BranchMarks {
        var marks = BranchMarks()
        for entry in entries {
            switch entry.key.text {
            case StepKey.branch where step != StepKey.to:
                marks.branch = text(of: entry, for: "the branch")?.text
            case StepKey.optional where step != StepKey.to:
                let demand = "\"optional\" must be true or false"
                guard let filled = filled(entry.value, demand) else { continue }
                if let flag = filled.value(for: SettingContract(StepKey.optional, .flag, ""))?.flag {
                    marks.isOptional = flag
                } else {
                    problems.add(
                        filled.place, "\(demand), not \(Tree.scalar(filled).noun).", accepted: ["true", "false"])
                }
            default:
                problems.addUnknown(
                    "\"\(step)\" has no key", entry.key.text, at: entry.key.place,
                    accepted: step == StepKey.to ? [] : StepKey.ofBranches)
            }
        }
        return marks
    }

    /// A name, which must not be empty.
    private mutating func text(of entry: Tree.Entry, for what: String) -> Tree.Scalar? {
        guard let filled = filled(entry.value, "\"\(entry.key.text)\" must be a name for \(what)") else { return nil }
        guard !filled.text.isEmpty else {
            problems.add(filled.place, "\"\(entry.key.text)\" is empty. Write a name for \(what).")
            return nil
        }
        return filled
    }

    private mutating func readSettings(_ entries: [Tree.Entry], of node: inout Node) {
        let kind = catalogue.kind(named: node.kind)
        for entry in entries where !StepKey.all.contains(entry.key.text) {
            read(entry, of: &node, kind)
        }
        for entry in entries where entry.key.text == StepKey.settings {
            for setting in problems.map(entry.value, "\"settings\" must be a map of settings and their values") ?? [] {
                // Elements have many properties, so users need not know which of them are our keys.
                if let kind, !node.kind.hasPrefix(NodeKind.elementPrefix), !StepKey.all.contains(setting.key.text) {
                    problems.add(
                        setting.key.place,
                        "Write \"\(setting.key.text.clipped)\" beside \"node\". \"settings\" is only for settings "
                            + "whose names are keys of the file format.",
                        accepted: kind.settings.map(\.name).filter(StepKey.all.contains))
                }
                if node.settings[setting.key.text] != nil {
                    problems.add(setting.key.place, "\"\(setting.key.text.clipped)\" is set twice for this node.")
                }
                read(setting, of: &node, kind)
            }
        }
    }

    private mutating func read(_ entry: Tree.Entry, of node: inout Node, _ kind: NodeKind?) {
        let name = entry.key.text
        func giveUp() { brokenSettings.insert("\(node.name).\(name)") }
        let demand = "The setting \"\(name.clipped)\" needs one value"
        guard case .scalar(let scalar) = entry.value else {
            let form = kind?.setting(name)?.form.map { "; write \($0.words)" } ?? ""
            problems.add(entry.value.place, "\(demand), not \(entry.value.noun)\(form).")
            return giveUp()
        }
        let isSecret = kind?.setting(name)?.isSecret ?? SettingContract.soundsSecret(name)
        // A variable is not a secret.
        if isSecret, !scalar.text.contains("${") { secrets[scalar.place] = scalar.text.unicodeScalars.count }
        guard let filled = variables.fillIn(scalar, isSecret: isSecret, &problems) else { return giveUp() }
        // An empty variable leaves the setting at its default.
        if filled.wasFilledIn, filled.text.isEmpty { return }
        guard let value = filled.value(for: kind?.setting(name)) else {
            let isDigits = name.first?.isNumber == true
            let fix = isDigits ? "In a number, write a point: 1.5M." : "Leave it out for its default."
            problems.add(filled.place, "The setting \"\(name.clipped)\" has no value. \(fix)")
            return giveUp()
        }
        node.settings[name] = value
        places.settings[node.name, default: [:]][name] = filled.place
        settingNames[node.name, default: [:]][name] = entry.key.place
    }

    /// Uses the variables of skipped parts, so that they do not count as unused.
    private mutating func fillInOnly(_ tree: Tree) {
        switch tree {
        case .scalar(let scalar): _ = variables.fillIn(scalar, &problems)
        case .list(let items, _): for item in items { fillInOnly(item) }
        case .map(let entries, _): for entry in entries { fillInOnly(entry.value) }
        }
    }
}
