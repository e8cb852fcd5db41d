/// A node with the contract of its kind, from which its settings are read: the given value, or else the default.
///
/// Traps for a setting that the kind does not have.
public protocol NodeSettings {
    /// The node with its settings.
    var node: Node { get }
    /// The contract of the settings.
    var kind: NodeKind { get }
}

extension NodeSettings {
    /// The value of a required setting or one with a default. Traps without a value.
    public func integer(_ setting: String) -> Int { required(optionalInteger(setting), setting) }
    /// The value of a required setting or one with a default. Traps without a value.
    public func number(_ setting: String) -> Double { required(optionalNumber(setting), setting) }
    /// The value of a setting. Nil without a value and a default.
    public func optionalInteger(_ setting: String) -> Int? { node.setting(setting, of: kind)?.integer }
    /// The value of a setting. Nil without a value and a default.
    public func optionalNumber(_ setting: String) -> Double? { node.setting(setting, of: kind)?.number }
    /// False without a value.
    public func flag(_ setting: String) -> Bool { node.setting(setting, of: kind)?.flag ?? false }
    /// Empty without a value.
    public func text(_ setting: String) -> String { node.setting(setting, of: kind)?.text ?? "" }
    /// Whether the node gives the setting a value.
    public func isGiven(_ setting: String) -> Bool { node.settings[setting] != nil }

    private func required<Value>(_ value: Value?, _ setting: String) -> Value {
        guard let value else { preconditionFailure("\(kind.name).\(setting) has no value and no default") }
        return value
    }
}

extension Node {
    /// The value of a setting, or its default. Traps if the kind has no such setting.
    public func setting(_ name: String, of kind: NodeKind) -> SettingValue? {
        guard let contract = kind.setting(name) else { preconditionFailure("\(kind.name) has no setting \(name)") }
        return settings[name] ?? contract.defaultValue
    }
}
