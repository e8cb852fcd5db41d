/// Hides secrets: a service secret, an access token, the password in a camera's address. Graphs and plans contain them,
/// because nodes need them. Everything that is printed, drawn or sent to others passes through here first.
extension SettingContract {
    /// The text that is shown instead of a secret.
    public static let hidden = "•••"

    /// The value without its secret.
    public func shown(_ value: SettingValue) -> SettingValue { value.shown(isSecret: isSecret) }

    /// Whether a setting of this name holds a secret, by the words in the name. GStreamer's properties do not declare
    /// secrets.
    public static func soundsSecret(_ name: String) -> Bool {
        let words = name.lowercased().split { $0 == "-" || $0 == "." || $0 == "_" }
        return words.contains { ["password", "passphrase", "secret", "token", "pw", "passwd"].contains($0) }
    }
}

extension SettingValue {
    /// The value with its secret hidden: all of it, or the password of a URL (RFC 3986, section 3.2.1).
    func shown(isSecret: Bool) -> SettingValue {
        guard case .text(let text) = self else { return isSecret ? .text(SettingContract.hidden) : self }
        if isSecret { return text.isEmpty ? self : .text(SettingContract.hidden) }
        return text.password.map { .text(text[..<$0.lowerBound] + SettingContract.hidden + text[$0.upperBound...]) }
            ?? self
    }
}

extension String {
    /// The range of a URL's password. It may contain an unencoded @.
    fileprivate var password: Range<String.Index>? {
        guard let scheme = firstRange(of: "://") else { return nil }
        let authority = self[scheme.upperBound...].prefix { $0 != "/" && $0 != "?" }
        guard let end = authority.lastIndex(of: "@"), let colon = authority[..<end].firstIndex(of: ":") else {
            return nil
        }
        return index(after: colon)..<end
    }
}

extension MediaGraph {
    /// The graph with its secrets hidden.
    public func withoutSecrets(_ catalogue: any NodeCatalogue) -> MediaGraph {
        MediaGraph(nodes: nodes.map { $0.withoutSecrets(catalogue) }, links: links)
    }

    /// The graph with the secrets of `other`, for settings that still have the hidden form and belong to a node of the
    /// same name and kind. A graph that was read from a running pipeline can thus be changed and applied again.
    public func withSecrets(of other: MediaGraph, _ catalogue: any NodeCatalogue) -> MediaGraph {
        var graph = self
        for index in nodes.indices {
            let node = nodes[index]
            guard let known = other.node(node.name), known.kind == node.kind else { continue }
            let shown = known.withoutSecrets(catalogue)
            for (setting, value) in node.settings where value == shown.settings[setting] {
                graph.nodes[index].settings[setting] = known.settings[setting]
            }
        }
        return graph
    }
}

extension Node {
    fileprivate func withoutSecrets(_ catalogue: any NodeCatalogue) -> Node {
        var node = self
        node.settings = settings.withoutSecrets(catalogue.kind(named: kind))
        return node
    }
}

extension [String: SettingValue] {
    /// Hides secrets in the settings of a node or the properties of an element. A property that passes on a setting has
    /// its name.
    fileprivate func withoutSecrets(_ kind: NodeKind?) -> [String: SettingValue] {
        reduce(into: self) { shown, setting in
            let isSecret = kind?.setting(setting.key)?.isSecret ?? SettingContract.soundsSecret(setting.key)
            shown[setting.key] = setting.value.shown(isSecret: isSecret)
        }
    }
}

extension GraphPlan {
    /// The plan with its secrets hidden.
    public func withoutSecrets(_ catalogue: any NodeCatalogue) -> GraphPlan {
        var plan = self
        plan.source = source.withoutSecrets(catalogue)
        for index in nodes.indices {
            let kind = catalogue.kind(named: nodes[index].node.kind)
            plan.nodes[index].node = nodes[index].node.withoutSecrets(catalogue)
            plan.nodes[index].fixedSettings = nodes[index].fixedSettings.withoutSecrets(kind)
            plan.nodes[index].defaults = nodes[index].defaults.withoutSecrets(kind)
            for element in nodes[index].elements.indices {
                plan.nodes[index].elements[element].properties =
                    nodes[index].elements[element].properties.withoutSecrets(kind)
            }
        }
        return plan
    }
}
