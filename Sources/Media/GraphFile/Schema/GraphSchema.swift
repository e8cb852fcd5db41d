public import MediaGraph

/// The JSON Schema of graph files (draft 2020-12), for completion and checks in editors.
///
/// It checks words and values. Only reading a file checks whether its nodes match.
public struct GraphSchema: Sendable {
    private static let variablePattern = #"\$\{[A-Za-z_][A-Za-z0-9_-]*(:-[^}]*)?\}"#
    private static let bitratePattern = "^[0-9]+(\\.[0-9]+)?[kM]$"

    private let kinds: [NodeKind]

    /// - Parameter kinds: the kinds of nodes that files may name, without GStreamer elements
    public init(kinds: [NodeKind]) {
        self.kinds = kinds
    }

    /// The schema as JSON text.
    public var json: String { tree.json() + "\n" }

    private var tree: OutputTree {
        .object([
            ("$schema", .text("https://json-schema.org/draft/2020-12/schema")),
            ("title", .text("A connectlive graph")),
            ("description", .text("Nodes and their links. docs/pipelines.md explains the format.")),
            ("type", .text("object")), ("required", .texts([TopKey.chains])), ("additionalProperties", .value(false)),
            (
                "properties",
                .object([
                    (TopKey.description, .described("The graph's purpose", [("type", .text("string"))])),
                    (TopKey.variables, variables),
                    (TopKey.schema, .described("The schema's location, for editors", [("type", .text("string"))])),
                    (
                        TopKey.chains,
                        .described(
                            "Lists of steps, each feeding the next",
                            [
                                ("type", .text("array")), ("minItems", .value(1)),
                                ("items", .object([("$ref", .text("#/$defs/chain"))])),
                            ])
                    ),
                ])
            ),
            ("$defs", .object(definitions)),
        ])
    }

    private var variables: OutputTree {
        .described(
            "Descriptions of the file's variables",
            [
                ("type", .text("object")),
                ("propertyNames", .object([("pattern", .text("^[A-Za-z_][A-Za-z0-9_-]*$"))])),
                (
                    "additionalProperties",
                    .object([
                        (
                            "anyOf",
                            .list([
                                .object([("type", .texts(["string", "null"]))]),
                                .object([
                                    ("type", .text("object")), ("additionalProperties", .value(false)),
                                    (
                                        "properties",
                                        .object([
                                            ("summary", Self.scalar), ("default", Self.scalar),
                                        ])
                                    ),
                                ]),
                            ])
                        )
                    ])
                ),
            ])
    }

    private var definitions: [(String, OutputTree)] {
        let step = OutputTree.reference("step")
        var definitions: [(String, OutputTree)] = [
            (
                "chain",
                .object([
                    ("type", .text("array")), ("minItems", .value(1)),
                    ("prefixItems", .list([.object([("anyOf", .list([.reference("from"), step]))])])),
                    ("items", step),
                ])
            ),
            ("step", .object([("anyOf", .list([.reference("word"), .reference("map")]))])),
            ("word", word),
            ("from", from),
            ("map", map),
            ("variable", .object([("type", .text("string")), ("pattern", .text(Self.variablePattern))])),
        ]
        definitions += kinds.map { ("node:\($0.name)", node($0)) }
        return definitions
    }

    // MARK: Steps

    /// A kind as a single word, if it needs no setting.
    private var word: OutputTree {
        let names = kinds.filter { kind in !kind.settings.contains(where: \.isRequired) }.map(\.name)
        var forms: [OutputTree] = [
            .object([("enum", .texts(names))]), .reference("variable"),
            .object([("type", .text("string")), ("pattern", .text("^\(NodeKind.elementPrefix)."))]),
        ]
        // The word null is the node of that name.
        if names.contains("null") { forms.append(.object([("type", .text("null"))])) }
        return .described("A node by the name of its kind", [("anyOf", .list(forms))])
    }

    private var from: OutputTree {
        .described(
            "Begins the chain at a node of another chain",
            [
                ("type", .text("object")), ("required", .texts([StepKey.from])),
                ("additionalProperties", .value(false)),
                (
                    "properties",
                    .object([
                        (StepKey.from, Self.name("The node, or one of its outputs: node.port")),
                        (StepKey.branch, Self.branch), (StepKey.optional, Self.optional),
                    ])
                ),
            ])
    }

    private var map: OutputTree {
        let steps = OutputTree.object([
            ("type", .text("array")), ("minItems", .value(1)), ("items", .reference("step")),
        ])
        let forms: [(key: String, properties: [(String, OutputTree)])] = [
            (StepKey.tee, [(StepKey.tee, steps), (StepKey.branch, Self.branch), (StepKey.optional, Self.optional)]),
            (StepKey.to, [(StepKey.to, Self.name("The node that is fed, or one of its inputs: node.port"))]),
        ]
        var cases = forms.map { form in
            condition(
                .object([("required", .texts([form.key]))]),
                .object([("additionalProperties", .value(false)), ("properties", .object(form.properties))]))
        }
        cases.append(condition(.object([("required", .texts([StepKey.element]))]), anyNode(StepKey.element)))
        cases += kinds.map { kind in
            let name = OutputTree.object([("const", .text(kind.name))])
            // The word null, without quotes, is the node of that name.
            let names = kind.name == "null" ? [name, .object([("type", .text("null"))])] : [name]
            return condition(
                nodeIs(names.count == 1 ? name : .object([("anyOf", .list(names))])), .reference("node:\(kind.name)"))
        }
        let isOpen = OutputTree.list([
            .reference("variable"), .object([("pattern", .text("^\(NodeKind.elementPrefix)."))]),
        ])
        cases.append(condition(nodeIs(.object([("type", .text("string")), ("anyOf", isOpen)])), anyNode(StepKey.node)))
        let keys = [StepKey.node, StepKey.element, StepKey.tee, StepKey.to]
        return .object([
            ("type", .text("object")),
            ("oneOf", .list(keys.map { .object([("required", .texts([$0]))]) })),
            (
                "properties",
                .object([
                    (StepKey.node, kindNames),
                    (
                        StepKey.element,
                        Self.name("A GStreamer element by its factory name. Its properties are settings")
                    ),
                    (StepKey.tee, .described("A side branch that gets the same media as the next step", [])),
                    (StepKey.to, .described("Feeds a node of another chain, and ends this one", [])),
                ])
            ),
            ("allOf", .list(cases)),
        ])
    }

    private var kindNames: OutputTree {
        .described(
            "The kind of node",
            [
                (
                    "anyOf",
                    .list(
                        [
                            .object([
                                ("enum", .texts(kinds.map(\.name))),
                                // Not part of the standard, but shown by editors.
                                ("enumDescriptions", .texts(kinds.map(\.summary))),
                            ]), .reference("variable"),
                            .object([("type", .text("string")), ("pattern", .text("^\(NodeKind.elementPrefix)."))]),
                        ] + (kinds.contains { $0.name == "null" } ? [.object([("type", .text("null"))])] : []))
                )
            ])
    }

    private func nodeIs(_ schema: OutputTree) -> OutputTree {
        .object([("required", .texts([StepKey.node])), ("properties", .object([(StepKey.node, schema)]))])
    }

    private func condition(_ test: OutputTree, _ schema: OutputTree) -> OutputTree {
        .object([("if", test), ("then", schema)])
    }

    /// A node with unknown settings: an element, or a kind from a variable.
    private func anyNode(_ key: String) -> OutputTree {
        let settings = OutputTree.described(
            "Properties whose names are keys of the file format",
            [("type", .text("object")), ("additionalProperties", Self.scalar)])
        return .object([
            ("properties", .object([(key, .value(true)), (StepKey.settings, settings)] + Self.nodeProperties)),
            ("additionalProperties", Self.scalar),
        ])
    }

    private func node(_ kind: NodeKind) -> OutputTree {
        let beside = kind.settings.filter { !StepKey.all.contains($0.name) }
        let below = kind.settings.filter { StepKey.all.contains($0.name) }
        var required = [StepKey.node] + beside.filter(\.isRequired).map(\.name)
        var properties: [(String, OutputTree)] = [(StepKey.node, .value(true))]
        properties += beside.map { ($0.name, value(of: $0)) }
        if !below.isEmpty {
            let needed = below.filter(\.isRequired).map(\.name)
            if !needed.isEmpty { required.append(StepKey.settings) }
            properties.append(
                (
                    StepKey.settings,
                    .described(
                        "Settings whose names are keys of the file format",
                        [
                            ("type", .text("object")), ("required", .texts(needed)),
                            ("additionalProperties", .value(false)),
                            ("properties", .object(below.map { ($0.name, value(of: $0)) })),
                        ])
                ))
        }
        return .described(
            kind.summary,
            [
                ("required", .texts(required)), ("additionalProperties", .value(false)),
                ("properties", .object(properties + Self.nodeProperties)),
            ])
    }

    // MARK: Settings

    private func value(of contract: SettingContract) -> OutputTree {
        var words = contract.summary
        if let unit = contract.unit { words += ", in \(unit)" }
        if contract.isChangeable {
            words += contract.isChangeUnsaid ? "; live changes are undocumented" : "; live"
        }
        var entries: [(String, OutputTree)] = []
        if let value = contract.defaultValue { entries.append(("default", .value(value))) }
        switch contract.domain {
        case .flag: entries.append(Self.any([.object([("type", .text("boolean"))]), .reference("variable")]))
        case .integer where contract.values != nil:
            let values = (contract.values ?? []).map { OutputTree.value(.integer($0)) }
            entries.append(Self.any([.object([("enum", .list(values))]), .reference("variable")]))
        case .integer(let range):
            let number = OutputTree.object([
                ("type", .text("integer")), ("minimum", .value(.integer(range.lowerBound))),
                ("maximum", .value(.integer(range.upperBound))),
            ])
            let short = OutputTree.object([("type", .text("string")), ("pattern", .text(Self.bitratePattern))])
            let isBitrate = contract.unit == SettingContract.bitsPerSecond
            entries.append(Self.any([number] + (isBitrate ? [short] : []) + [.reference("variable")]))
        case .number(let range):
            let number = OutputTree.object([
                ("type", .text("number")), ("minimum", .value(.number(range.lowerBound))),
                ("maximum", .value(.number(range.upperBound))),
            ])
            entries.append(Self.any([number, .reference("variable")]))
        case .text where contract.form != nil:
            if let form = contract.form { entries.append(Self.any(text(form, contract))) }
        case .text: entries.append(("type", .texts(["string", "number", "boolean"])))
        case .choice(let choices):
            // A word that looks like a number is a number in JSON.
            let values =
                choices.map { OutputTree.text($0) } + choices.compactMap { Int($0) }.map { .value(.integer($0)) }
            entries.append(Self.any([.object([("enum", .list(values))]), .reference("variable")]))
        }
        return .described(words, entries)
    }

    /// Text of a form, or a number if the form allows one.
    private func text(_ form: SettingContract.Form, _ contract: SettingContract) -> [OutputTree] {
        let pattern = OutputTree.object([("type", .text("string")), ("pattern", .text("^(?:\(form.pattern))$"))])
        let takesNumbers = contract.problem(of: .text("7")) == nil
        let number = takesNumbers ? [OutputTree.object([("type", .text("number"))])] : []
        let initial = contract.defaultValue.map { [OutputTree.object([("const", .value($0))])] } ?? []
        return [pattern] + number + initial + [.reference("variable")]
    }

    private static func any(_ forms: [OutputTree]) -> (String, OutputTree) { ("anyOf", .list(forms)) }

    // MARK: Keys of every step

    private static var scalar: OutputTree { .object([("type", .texts(["string", "number", "boolean"]))]) }

    private static var branch: OutputTree {
        name("A name by which the branch can be removed or replaced while the graph runs")
    }

    private static var optional: OutputTree {
        .described(
            "Whether a failure here ends only this part",
            [any([.object([("type", .text("boolean"))]), .reference("variable")])])
    }

    private static func name(_ words: String) -> OutputTree {
        .described(words, [("type", .texts(["string", "number"])), ("minLength", .value(1))])
    }

    private static var nodeProperties: [(String, OutputTree)] {
        [
            (StepKey.name, name("The node's name (default: that of its kind)")), (StepKey.branch, branch),
            (StepKey.optional, optional),
        ]
    }
}

extension OutputTree {
    fileprivate static func object(_ entries: [(String, OutputTree)]) -> OutputTree {
        .map(entries.map { Entry($0.0, $0.1) })
    }

    fileprivate static func texts(_ texts: [String]) -> OutputTree { .list(texts.map { .text($0) }) }

    fileprivate static func reference(_ name: String) -> OutputTree {
        .object([("$ref", .text("#/$defs/\(name)"))])
    }

    fileprivate static func described(_ words: String, _ entries: [(String, OutputTree)]) -> OutputTree {
        .object([("description", .text(words))] + entries)
    }
}
