public import MediaGraph

extension Node {
    /// A node of a kind, with the settings that are not nil.
    init(_ kind: NodeKind, _ name: String?, _ settings: [String: (any SettingRepresentable)?] = [:]) {
        self.init(kind.name, name: name, settings: settings.compactMapValues { $0?.settingValue })
    }
}

extension MediaGraph {
    /// The problems of a graph of built-in nodes and GStreamer's elements. `validate(with:bound:)` accepts other nodes.
    public func validate(bound: BoundNames? = nil) -> [GraphProblem] {
        validate(with: NodeRegistry.builtIn, bound: bound)
    }
}

// Parts of several contracts.

extension [Port] {
    static var rawVideoIn: [Port] { [Port("in", [.rawVideo], encodings: ["I420"])] }
    static var rawVideoOut: [Port] { [Port("out", [.rawVideo], encodings: ["I420"])] }
    static var rawAudioIn: [Port] { [Port("in", [.rawAudio])] }
    static var rawAudioOut: [Port] { [Port("out", [.rawAudio])] }
}

extension SettingContract {
    /// The contract of a setting that holds the path of a file.
    func writtenAsPath(example: String) -> SettingContract {
        written(#"[\s\S]+"#, "the path of a file").example(.text(example))
    }
}
