internal import MediaGraph

/// What a step says about itself and what stands within it.
private struct BranchMarks {
    var branch: String?
    var isOptional = false
}

/// Words with a meaning of their own in a step; a setting of such a name stands below `settings`.
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

    /// Of these a step has exactly one.
    static let kinds = [node, element, tee, from, to]
    static let ofNodes = [name, branch, optional, settings]
    static let ofBranches = [branch, optional]
    static let all = Set(kinds + ofNodes)
}

extension GraphReader {
    enum Surroundings {
        case chain
        case tee
    }

    /// How far the reading of a chain or a tee has come.
    private struct Walk {
        let surroundings: Surroundings
        /// What the next step takes.
        var previous: FoundPort?
        /// Whether it is not known what comes before: nothing more is said about that then.
        var isBroken = false
        /// The `to` that ended the chain.
        var end: GraphPlace?
        /// What the chain's `from` says of its nodes.
        var marks = BranchMarks()
    }

    /// Reads steps that follow one another; `source` is what the first of them takes.
    mutating func readSteps(
        _ list: [Tree], in surroundings: Surroundings, after source: FoundPort? = nil, isBroken: Bool = false
    ) {
        let firstNode = nodes.count
        var walk = Walk(surroundings: surroundings, previous: source, isBroken: isBroken)
        for (index, step) in list.enumerated() {
            steps += 1
            // Their graph is not looked at any more, and a sentence for each would help nobody.
            guard steps <= Self.mostSteps else { continue }
            if let end = walk.end {
                problems.add(
                    step.place, "The \"to\" in line \(end.line) ends this chain; what follows needs a chain of its own."
                )
                walk.end = nil
                walk.isBroken = true
            }
            switch parts(of: step) {
            case nil: lose(&walk)
            case .node(let kind, let isElement, let entries): readNode(kind, isElement, entries, &walk)
            case .tee(let tee, let entries): readTee(tee, entries, walk)
            case .from(let reference, let entries): readFrom(reference, entries, isFirst: index == 0, &walk)
            case .to(let reference, let entries): readTo(reference, entries, &walk)
            }
        }
        mark(nodes.indices.suffix(from: firstNode), walk.marks)
    }

    /// Goes on behind a step that could not be read.
    private mutating func lose(_ walk: inout Walk) {
        if let previous = walk.previous { besideBroken.insert(previous.text) }
        walk.previous = nil
        walk.isBroken = true
    }

    private mutating func readNode(
        _ kind: Tree.Scalar, _ isElement: Bool, _ entries: [Tree.Entry], _ walk: inout Walk
    ) {
        guard let name = readNode(kind, isElement: isElement, entries) else { return lose(&walk) }
        let port = FoundPort(text: name, isNode: true)
        if let previous = walk.previous { links.append(FoundLink(from: previous, to: port, place: kind.place)) }
        if walk.isBroken { besideBroken.insert(name) }
        walk.previous = port
        walk.isBroken = false
    }

    private mutating func readFrom(
        _ reference: Tree.Scalar, _ entries: [Tree.Entry], isFirst: Bool, _ walk: inout Walk
    ) {
        walk.marks = readMarks(entries, of: StepKey.from)
        if walk.surroundings == .tee {
            problems.add(reference.place, "A tee takes what comes before it; \"from\" begins a chain.")
        } else if !isFirst {
            problems.add(reference.place, "\"from\" is the first step of a chain; begin another with \"- - from\".")
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
                problems.add(reference.place, "Nothing comes before this \"to\" that could feed it.")
            }
            walk.previous = nil
        } else {
            lose(&walk)
        }
        walk.end = reference.place
    }

    // MARK: Kinds of steps

    private enum Parts {
        case node(Tree.Scalar, isElement: Bool, [Tree.Entry])
        case tee(Tree, [Tree.Entry])
        case from(Tree.Scalar, [Tree.Entry])
        case to(Tree.Scalar, [Tree.Entry])
    }

    /// Which kind of step it is and what else stands in it; nil, with the problem told, where it is none.
    private mutating func parts(of step: Tree) -> Parts? {
        switch step {
        case .scalar(var scalar):
            if scalar.text.isEmpty {
                problems.add(scalar.place, "Nothing stands here; a step is the name of a node, or a map.")
                return nil
            }
            // The node of that name, not YAML's word for nothing.
            if scalar.isNull { scalar.text = "null" }
            return .node(scalar, isElement: false, [])
        case .list(_, let place):
            problems.add(place, "A list stands here where a step is needed; a branch is written {tee: [...]}.")
            return nil
        case .map(let entries, let place):
            let found = entries.filter { StepKey.kinds.contains($0.key.text) }
            guard let kind = found.first else {
                let near = entries.lazy.compactMap { $0.key.text.nearest(among: StepKey.kinds) }.first
                let hint = near.map { "; did you mean \"\($0)\"?" } ?? "."
                problems.add(place, "This step does not say what it is\(hint)", accepted: StepKey.kinds)
                return nil
            }
            for other in found.dropFirst() {
                problems.add(
                    other.key.place,
                    "\"\(other.key.text)\" stands in a step of its own, not beside \"\(kind.key.text)\".")
            }
            let rest = entries.filter { !StepKey.kinds.contains($0.key.text) }
            if kind.key.text == StepKey.tee { return .tee(kind.value, rest) }
            guard case .scalar(var word) = kind.value else {
                problems.add(kind.value.place, "\"\(kind.key.text)\" takes a name, not \(kind.value.noun).")
                return nil
            }
            if word.isNull { word.text = word.text.isEmpty ? "" : "null" }
            switch kind.key.text {
            case StepKey.from: return .from(word, rest)
            case StepKey.to: return .to(word, rest)
            default: return .node(word, isElement: kind.key.text == StepKey.element, rest)
            }
        }
    }

    /// The name of the node that was added; nil, with the problem told, where its kind cannot be read.
    private mutating func readNode(_ word: Tree.Scalar, isElement: Bool, _ entries: [Tree.Entry]) -> String? {
        guard let kind = variables.fillIn(word, &problems) else {
            for entry in entries { fillInOnly(entry.value) }
            return nil
        }
        guard !kind.text.isEmpty else {
            problems.add(
                kind.place, "The name of \(isElement ? "a GStreamer element" : "a kind of node") is needed here.")
            return nil
        }
        let kindName = isElement ? NodeKind.elementPrefix + kind.text : kind.text
        let factory =
            kindName.hasPrefix(NodeKind.elementPrefix)
            ? String(kindName.dropFirst(NodeKind.elementPrefix.count)) : kindName
        var node = Node(kindName, name: factory)
        var namePlace = kind.place
        if let entry = entries.first(where: { $0.key.text == StepKey.name }),
            let name = text(of: entry, for: "the node")
        {
            node.name = name.text
            namePlace = name.place
        }
        let marks = readMarks(entries.filter { StepKey.ofBranches.contains($0.key.text) }, of: kindName)
        node.branch = marks.branch
        node.isOptional = marks.isOptional
        readSettings(entries, of: &node)
        add(node, at: kind.place, namePlace)
        return node.name
    }

    private mutating func add(_ node: Node, at place: GraphPlace, _ namePlace: GraphPlace) {
        if node.name.isEmpty || node.name.contains(".") {
            problems.add(
                namePlace,
                "\"\(node.name.clipped)\" is no name of a node: it is not empty and holds no dot, which parts a node's name "
                    + "from its port's.")
        }
        if let other = places.nodes[node.name] {
            sharedNames.insert(node.name)
            problems.add(
                namePlace,
                "Two nodes are named \"\(node.name.clipped)\", the other in line \(other.line); a node is named after its kind "
                    + "unless it has a \"name\" of its own.")
        } else {
            places.nodes[node.name] = place
        }
        nodes.append(node)
    }

    private mutating func readTee(_ tee: Tree, _ entries: [Tree.Entry], _ walk: Walk) {
        let marks = readMarks(entries, of: StepKey.tee)
        guard case .list(let steps, let place) = tee else {
            problems.add(tee.place, "\"tee\" takes a list of steps, not \(tee.noun).")
            if let previous = walk.previous { besideBroken.insert(previous.text) }
            return
        }
        if steps.isEmpty { problems.add(place, "The tee holds no step.") }
        if walk.previous == nil, !walk.isBroken {
            problems.add(place, "Nothing comes before this tee that could feed it.")
        }
        let firstNode = nodes.count
        readSteps(steps, in: .tee, after: walk.previous, isBroken: walk.previous == nil)
        if nodes.count == firstNode, marks.branch != nil || marks.isOptional, !steps.isEmpty {
            problems.add(
                place,
                "\"branch\" and \"optional\" are said of nodes, and this tee holds none; say them of the node that it "
                    + "feeds.")
        }
        mark(nodes.indices.suffix(from: firstNode), marks)
    }

    /// Nodes that say something of their own about their branch keep it.
    private mutating func mark(_ indices: Range<Int>, _ marks: BranchMarks) {
        for index in indices {
            nodes[index].branch = nodes[index].branch ?? marks.branch
            nodes[index].isOptional = nodes[index].isOptional || marks.isOptional
        }
    }

    private mutating func readReference(_ scalar: Tree.Scalar) -> FoundPort? {
        guard let filled = variables.fillIn(scalar, &problems) else { return nil }
        guard !filled.text.isEmpty else {
            problems.add(scalar.place, "The name of a node is needed here, or one of its ports: \"recorder.video\".")
            return nil
        }
        return FoundPort(text: filled.text, isNode: false)
    }

    // MARK: What stands in steps

    private mutating func readMarks(_ entries: [Tree.Entry], of step: String) -> BranchMarks {
        var marks = BranchMarks()
        for entry in entries {
            switch entry.key.text {
            case StepKey.branch where step != StepKey.to:
                marks.branch = text(of: entry, for: "the branch")?.text
            case StepKey.optional where step != StepKey.to:
                guard case .scalar(let scalar) = entry.value, let filled = variables.fillIn(scalar, &problems) else {
                    if case .scalar = entry.value { continue }
                    problems.add(entry.value.place, "\"optional\" is true or false, not \(entry.value.noun).")
                    continue
                }
                let contract = SettingContract(StepKey.optional, .flag, "")
                guard case .flag(let flag)? = SettingContract?.some(contract).value(of: filled) else {
                    problems.add(
                        filled.place, "\"optional\" is true or false, not \(Tree.scalar(filled).noun).",
                        accepted: ["true", "false"])
                    continue
                }
                marks.isOptional = flag
            default:
                problems.addUnknown(
                    "\"\(step)\" has no", entry.key.text, at: entry.key.place,
                    accepted: step == StepKey.to ? [] : StepKey.ofBranches)
            }
        }
        return marks
    }

    /// A name: not empty.
    private mutating func text(of entry: Tree.Entry, for what: String) -> Tree.Scalar? {
        guard case .scalar(let scalar) = entry.value else {
            problems.add(entry.value.place, "\"\(entry.key.text)\" is a name for \(what), not \(entry.value.noun).")
            return nil
        }
        guard let filled = variables.fillIn(scalar, &problems) else { return nil }
        guard !filled.text.isEmpty else {
            problems.add(filled.place, "\"\(entry.key.text)\" is a name for \(what), and none stands here.")
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
            guard case .map(let settings, _) = entry.value else {
                problems.add(
                    entry.value.place, "\"settings\" is a map of settings and their values, not \(entry.value.noun).")
                continue
            }
            for setting in settings {
                // Elements have so many properties that nobody need know which of them are words of ours.
                if let kind, !node.kind.hasPrefix(NodeKind.elementPrefix), !StepKey.all.contains(setting.key.text) {
                    problems.add(
                        setting.key.place,
                        "\"\(setting.key.text.clipped)\" stands beside \"node\"; below \"settings\" stand only those that are "
                            + "called like a word of the file.",
                        accepted: kind.settings.map(\.name).filter(StepKey.all.contains))
                }
                if node.settings[setting.key.text] != nil {
                    problems.add(setting.key.place, "\"\(setting.key.text.clipped)\" is given twice for this node.")
                }
                read(setting, of: &node, kind)
            }
        }
    }

    private mutating func read(_ entry: Tree.Entry, of node: inout Node, _ kind: NodeKind?) {
        let name = entry.key.text
        guard case .scalar(let scalar) = entry.value else {
            problems.add(entry.value.place, "The setting \"\(name.clipped)\" takes one value, not \(entry.value.noun).")
            brokenSettings.insert("\(node.name).\(name)")
            return
        }
        let isSecret = kind?.setting(name)?.isSecret ?? SettingContract.soundsSecret(name)
        // What stands for a variable is no secret.
        if isSecret, !scalar.text.contains("${") { secrets[scalar.place] = scalar.text.unicodeScalars.count }
        guard let filled = variables.fillIn(scalar, isSecret: isSecret, &problems) else {
            brokenSettings.insert("\(node.name).\(name)")
            return
        }
        // A variable that is empty leaves the setting to its default.
        if filled.wasFilledIn, filled.text.isEmpty { return }
        guard let value = kind?.setting(name).value(of: filled) ?? SettingContract?.none.value(of: filled) else {
            problems.add(
                filled.place, "The setting \"\(name.clipped)\" has no value here; leave it out for its default.")
            brokenSettings.insert("\(node.name).\(name)")
            return
        }
        node.settings[name] = value
        places.settings[node.name, default: [:]][name] = filled.place
        settingNames[node.name, default: [:]][name] = entry.key.place
    }

    /// Uses the variables of what is not read for want of a kind, so that they do not count as unused.
    private mutating func fillInOnly(_ tree: Tree) {
        switch tree {
        case .scalar(let scalar): _ = variables.fillIn(scalar, &problems)
        case .list(let items, _): for item in items { fillInOnly(item) }
        case .map(let entries, _): for entry in entries { fillInOnly(entry.value) }
        }
    }
}
