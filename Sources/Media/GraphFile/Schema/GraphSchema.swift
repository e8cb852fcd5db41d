public import MediaGraph

/// The JSON Schema of graph files (draft 2020-12), for completion and checks in editors.
///
/// It checks words and values. Only reading a file checks whether its nodes match.
public struct GraphSchema: Sendable {
    private static let namePattern = "[A-Za-z_][A-Za-z0-9_-]*"
    private static let variablePattern = #"\$\{\#(namePattern)(:-[^}]*)?\}"#
    private static let bitratePattern = "^[0-9]+(\\.[0-9]+)?[kM]$"

    private let kinds: [NodeKind]

    /// A schema for files with nodes of some kinds.
    ///
    /// - Parameter kinds: the kinds of nodes that files may name, without GStreamer elements
    public init(kinds: [NodeKind]) {
        self.kinds = kinds
    }

    /// The schema as JSON text.
    public var json: String { tree.json() + "\n" }

    private var tree: OutputTree {
        [
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "A connectlive graph",
            "description": "Nodes and their links. docs/pipelines.md explains the format.",
            "type": "object", "required": [.text(TopKey.chains)], "additionalProperties": false,
            "properties": [
                TopKey.description: .described("The graph's purpose", ["type": "string"]),
                TopKey.variables: variables,
                TopKey.schema: .described("The schema's location, for editors", ["type": "string"]),
                TopKey.chains: .described(
                    "Lists of steps, each feeding the next",
                    ["type": "array", "minItems": 1, "items": .reference("chain")]),
            ],
            "$defs": definitions,
        ]
    }

    private var variables: OutputTree {
        let parts: OutputTree = [
            "type": "object", "additionalProperties": false,
            "properties": ["summary": Self.scalar, "default": Self.scalar],
        ]
        return .described(
            "Descriptions of the file's variables",
            [
                "type": "object",
                "propertyNames": ["pattern": .text("^\(Self.namePattern)$")],
                "additionalProperties": ["anyOf": [["type": ["string", "null"]], parts]],
            ])
    }

    private var definitions: OutputTree {
        let fixed: OutputTree = [
            "chain": [
                "type": "array", "minItems": 1,
                "prefixItems": [["anyOf": [.reference("from"), .reference("step")]]],
                "items": .reference("step"),
            ],
            "step": ["anyOf": [.reference("word"), .reference("map")]],
            "word": word,
            "from": from,
            "map": map,
            "variable": ["type": "string", "pattern": .text(Self.variablePattern)],
        ]
        return fixed.merging(.map(kinds.map { ("node:\($0.name)", node($0)) }))
    }

    // MARK: Steps

    /// The names of elements, as kinds of nodes.
    private static let elements: OutputTree = ["type": "string", "pattern": .text("^\(NodeKind.elementPrefix).")]

    /// Some kinds by name, or a variable or element in their place.
    private static func named(_ kinds: [NodeKind], describing: Bool) -> OutputTree {
        var names: OutputTree = ["enum": .texts(kinds.map(\.name))]
        // Not part of the standard, but shown by editors.
        if describing { names = names.merging(["enumDescriptions": .texts(kinds.map(\.summary))]) }
        // The word null, without quotes, is the node of that name.
        let null: [OutputTree] = kinds.contains { $0.name == "null" } ? [["type": "null"]] : []
        return ["anyOf": .list([names, .reference("variable"), elements] + null)]
    }

    /// A kind as a single word, if it needs no setting.
    private var word: OutputTree {
        let free = kinds.filter { kind in !kind.settings.contains(where: \.isRequired) }
        return .described("A node by the name of its kind", Self.named(free, describing: false))
    }

    private var from: OutputTree {
        .described(
            "Begins the chain at a node of another chain",
            [
                "type": "object", "required": [.text(StepKey.from)], "additionalProperties": false,
                "properties": [
                    StepKey.from: Self.name("The node, or one of its outputs: node.port"),
                    StepKey.branch: Self.branch, StepKey.optional: Self.optional,
                ],
            ])
    }

    private var map: OutputTree {
        let tee: OutputTree = [
            StepKey.tee: ["type": "array", "minItems": 1, "items": .reference("step")],
            StepKey.branch: Self.branch, StepKey.optional: Self.optional,
        ]
        let to: OutputTree = [StepKey.to: Self.name("The node that is fed, or one of its inputs: node.port")]
        var cases = [(StepKey.tee, tee), (StepKey.to, to)].map { key, properties -> OutputTree in
            ["if": ["required": [.text(key)]], "then": ["additionalProperties": false, "properties": properties]]
        }
        cases.append(["if": ["required": [.text(StepKey.element)]], "then": anyNode(StepKey.element)])
        cases += kinds.map { kind in
            let name: OutputTree = ["const": .text(kind.name)]
            let isKind: OutputTree = kind.name == "null" ? ["anyOf": [name, ["type": "null"]]] : name
            return ["if": nodeIs(isKind), "then": .reference("node:\(kind.name)")]
        }
        let isOpen: OutputTree = ["type": "string", "anyOf": [.reference("variable"), Self.elements]]
        cases.append(["if": nodeIs(isOpen), "then": anyNode(StepKey.node)])
        let keys = [StepKey.node, StepKey.element, StepKey.tee, StepKey.to]
        return [
            "type": "object",
            "oneOf": .list(keys.map { ["required": [.text($0)]] }),
            "properties": [
                StepKey.node: .described("The kind of node", Self.named(kinds, describing: true)),
                StepKey.element: Self.name("A GStreamer element by its factory name. Its properties are settings"),
                StepKey.tee: .described("A side branch that gets the same media as the next step"),
                StepKey.to: .described("Feeds a node of another chain, and ends this one"),
            ],
            "allOf": .list(cases),
        ]
    }

    private func nodeIs(_ schema: OutputTree) -> OutputTree {
        ["required": [.text(StepKey.node)], "properties": [StepKey.node: schema]]
    }

    /// A node with unknown settings: an element, or a kind from a variable.
    private func anyNode(_ key: String) -> OutputTree {
        let own: OutputTree = [
            key: true,
            StepKey.settings: .described(
                "Properties whose names are keys of the file format",
                ["type": "object", "additionalProperties": Self.scalar]),
        ]
        return ["properties": own.merging(Self.nodeProperties), "additionalProperties": Self.scalar]
    }

    private func node(_ kind: NodeKind) -> OutputTree {
        let beside = kind.settings.filter { !StepKey.all.contains($0.name) }
        let below = kind.settings.filter { StepKey.all.contains($0.name) }
        let needed = below.filter(\.isRequired).map(\.name)
        var own: OutputTree = [StepKey.node: true]
        own = own.merging(settings(beside))
        if !below.isEmpty {
            let nested = OutputTree.described(
                "Settings whose names are keys of the file format",
                [
                    "type": "object", "required": .texts(needed), "additionalProperties": false,
                    "properties": settings(below),
                ])
            own = own.merging([StepKey.settings: nested])
        }
        let required = [StepKey.node] + beside.filter(\.isRequired).map(\.name)
        return .described(
            kind.summary,
            [
                "required": .texts(required + (needed.isEmpty ? [] : [StepKey.settings])),
                "additionalProperties": false, "properties": own.merging(Self.nodeProperties),
            ])
    }

    // MARK: Settings

    private func settings(_ contracts: [SettingContract]) -> OutputTree {
        .map(contracts.map { ($0.name, value(of: $0)) })
    }

    private func value(of contract: SettingContract) -> OutputTree {
        var words = contract.summary
        if let unit = contract.unit { words += ", in \(unit)" }
        if contract.isChangeable {
            words += contract.isChangeUnsaid ? "; live changes are undocumented" : "; live"
        }
        let initial: OutputTree = contract.defaultValue.map { ["default": .value($0)] } ?? [:]
        return .described(words, initial.merging(values(of: contract)))
    }

    private func values(of contract: SettingContract) -> OutputTree {
        switch contract.domain {
        case .flag: return Self.any(["type": "boolean"])
        case .integer(let range):
            if let values = contract.values { return Self.any(["enum": .list(values.map { .value(.integer($0)) })]) }
            let number: OutputTree = [
                "type": "integer", "minimum": .value(.integer(range.lowerBound)),
                "maximum": .value(.integer(range.upperBound)),
            ]
            guard contract.unit == SettingContract.bitsPerSecond else { return Self.any(number) }
            return Self.any(number, ["type": "string", "pattern": .text(Self.bitratePattern)])
        case .number(let range):
            return Self.any([
                "type": "number", "minimum": .value(.number(range.lowerBound)),
                "maximum": .value(.number(range.upperBound)),
            ])
        case .text:
            guard let form = contract.form else { return Self.scalar }
            var forms: [OutputTree] = [["type": "string", "pattern": .text("^(?:\(form.pattern))$")]]
            if contract.problem(of: .text("7")) == nil { forms.append(["type": "number"]) }
            if let initial = contract.defaultValue { forms.append(["const": .value(initial)]) }
            return ["anyOf": .list(forms + [.reference("variable")])]
        case .choice(let choices):
            // A word that looks like a number is a number in JSON.
            let numbers = choices.compactMap { Int($0) }.map { OutputTree.value(.integer($0)) }
            return Self.any(["enum": .list(choices.map { .text($0) } + numbers)])
        }
    }

    /// One of these forms, or a variable.
    private static func any(_ forms: OutputTree...) -> OutputTree {
        ["anyOf": .list(forms + [.reference("variable")])]
    }

    // MARK: Keys of every step

    private static let scalar: OutputTree = ["type": ["string", "number", "boolean"]]
    private static let branch = name("A name by which the branch can be removed or replaced while the graph runs")
    private static let optional = OutputTree.described(
        "Whether a failure here ends only this part", any(["type": "boolean"]))

    private static func name(_ words: String) -> OutputTree {
        .described(words, ["type": ["string", "number"], "minLength": 1])
    }

    private static let nodeProperties: OutputTree = [
        StepKey.name: name("The node's name (default: that of its kind)"),
        StepKey.branch: branch, StepKey.optional: optional,
    ]
}

extension OutputTree {
    fileprivate static func texts(_ texts: [String]) -> OutputTree { .list(texts.map { .text($0) }) }

    fileprivate static func reference(_ name: String) -> OutputTree { ["$ref": .text("#/$defs/\(name)")] }

    fileprivate static func described(_ words: String, _ schema: OutputTree = [:]) -> OutputTree {
        OutputTree.map([("description", .text(words))]).merging(schema)
    }

    /// A map with the entries of both maps.
    fileprivate func merging(_ other: OutputTree) -> OutputTree {
        guard case .map(let first) = self, case .map(let second) = other else { preconditionFailure("not maps") }
        return .map(first + second)
    }
}

extension OutputTree: ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral, ExpressibleByStringLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral
{
    init(dictionaryLiteral entries: (String, OutputTree)...) { self = .map(entries.map { (key: $0, value: $1) }) }
    init(arrayLiteral items: OutputTree...) { self = .list(items) }
    init(stringLiteral text: String) { self = .text(text) }
    init(booleanLiteral flag: Bool) { self = .value(.flag(flag)) }
    init(integerLiteral number: Int) { self = .value(.integer(number)) }
}
