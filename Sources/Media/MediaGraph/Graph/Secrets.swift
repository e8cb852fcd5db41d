/// Settings that nobody else is to read: a service secret, an access token, the password in a camera's address. Graphs and
/// plans hold them, because they run; whatever is printed, drawn or sent to others goes through here first.
extension SettingContract {
    /// What is shown in place of a secret.
    public static let hidden = "•••"

    /// The value as others may read it.
    public func shown(_ value: SettingValue) -> SettingValue { value.shown(isSecret: isSecret) }

    /// Whether a setting that is called so holds a secret: GStreamer's properties do not say.
    public static func soundsSecret(_ name: String) -> Bool {
        let words = name.lowercased().split { $0 == "-" || $0 == "." || $0 == "_" }
        return words.contains { ["password", "passphrase", "secret", "token", "pw", "passwd"].contains($0) }
    }
}

extension SettingValue {
    /// Without what is secret: all of it, or the password of an address (RFC 3986 section 3.2.1).
    func shown(isSecret: Bool) -> SettingValue {
        guard case .text(let text) = self else { return isSecret ? .text(SettingContract.hidden) : self }
        if isSecret { return text.isEmpty ? self : .text(SettingContract.hidden) }
        guard let password = text.password else { return self }
        return .text(text.replacingCharacters(in: password))
    }
}

extension String {
    /// Where the password of an address stands. It may hold an @ that nobody has encoded.
    fileprivate var password: Range<String.Index>? {
        guard let scheme = firstRange(of: "://") else { return nil }
        let authority = self[scheme.upperBound...].prefix { $0 != "/" && $0 != "?" }
        guard let end = authority.lastIndex(of: "@"), let colon = authority[..<end].firstIndex(of: ":") else {
            return nil
        }
        return index(after: colon)..<end
    }

    fileprivate func replacingCharacters(in range: Range<String.Index>) -> String {
        self[..<range.lowerBound] + SettingContract.hidden + self[range.upperBound...]
    }
}

extension MediaGraph {
    /// The graph as others may read it.
    public func withoutSecrets(_ catalogue: any NodeCatalogue) -> MediaGraph {
        var graph = self
        for index in nodes.indices { graph.nodes[index] = nodes[index].withoutSecrets(catalogue) }
        return graph
    }

    /// The graph with the secrets of `other`, where nodes of the same name and kind still have what is shown in their
    /// place: what was read from a pipeline that runs can be changed and applied to it again.
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
        let kind = catalogue.kind(named: self.kind)
        var node = self
        node.settings = settings.withoutSecrets(kind)
        return node
    }
}

extension [String: SettingValue] {
    /// Of settings, or of an element's properties: those that are passed on have the setting's name.
    fileprivate func withoutSecrets(_ kind: NodeKind?) -> [String: SettingValue] {
        var shown = self
        for (name, value) in self {
            shown[name] = value.shown(isSecret: kind?.setting(name)?.isSecret ?? SettingContract.soundsSecret(name))
        }
        return shown
    }
}

extension GraphPlan {
    /// The plan as others may read it.
    public func withoutSecrets(_ catalogue: any NodeCatalogue) -> GraphPlan {
        var plan = self
        plan.source = source.withoutSecrets(catalogue)
        for index in nodes.indices {
            let kind = catalogue.kind(named: nodes[index].node.kind)
            plan.nodes[index].node = nodes[index].node.withoutSecrets(catalogue)
            plan.nodes[index].fixedSettings = nodes[index].fixedSettings.withoutSecrets(kind)
            for element in nodes[index].elements.indices {
                plan.nodes[index].elements[element].properties =
                    nodes[index].elements[element].properties.withoutSecrets(kind)
            }
        }
        return plan
    }
}
