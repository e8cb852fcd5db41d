/// A kind of node that is written in Swift: a `Capturer`, a `Processor` or a `Renderer`.
///
/// One value is made for each node of a graph. Its settings are its properties with `@Setting`, and hold what the graph
/// says before anything else of it is called.
public protocol WrittenNode: Sendable {
    /// The name of the kind, such as `clock-face`; made from the type's name where it is not given.
    static var name: String { get }
    /// What it is, in one short sentence.
    static var summary: String { get }

    /// With every setting at its default.
    init()
}

extension WrittenNode {
    public static var name: String { NodeKind.dashed(String(describing: Self.self)) }

    /// A node of this kind for a graph.
    public static func node(_ settings: [String: SettingValue] = [:], name: String? = nil) -> Node {
        Node(Self.name, name: name, settings: settings)
    }

    /// The node with the settings that a graph gives it, by their contracts.
    ///
    /// Throws `graph.invalid` for a value that its setting does not take, and for one that is missing.
    public init(_ settings: [String: SettingValue]) throws(MediaError) {
        self.init()
        for (name, setting) in self.settings {
            if let value = settings[name] {
                try setting.take(value, as: name)
            } else if setting.isRequired {
                throw MediaError(
                    code: MediaError.Code.graphInvalid, message: "The setting \(name) of \(Self.name) is not given.")
            }
        }
    }

    /// Changes a setting while the node runs.
    public func set(_ name: String, to value: SettingValue) throws(MediaError) {
        try settings.first { $0.name == name }?.setting.take(value, as: name)
    }

    /// What may be set, in the order of the properties.
    public var contracts: [SettingContract] {
        settings.map { $0.setting.contract(named: $0.name) }
    }

    private var settings: [(name: String, setting: any AnySetting)] {
        Mirror(reflecting: self).children.compactMap { child in
            guard let setting = child.value as? any AnySetting, let label = child.label else { return nil }
            return (NodeKind.dashed(String(label.drop { $0 == "_" })), setting)
        }
    }
}

extension NodeKind {
    /// A name of Swift as graphs write it: `framesPerSecond` as `frames-per-second`, `USBCamera` as `usb-camera`.
    public static func dashed(_ name: String) -> String {
        var dashed = ""
        let letters = Array(name)
        for (index, letter) in letters.enumerated() {
            let startsWord =
                letter.isUppercase && index > 0
                && (!letters[index - 1].isUppercase || (index + 1 < letters.count && letters[index + 1].isLowercase))
            dashed += (startsWord ? "-" : "") + letter.lowercased()
        }
        return dashed
    }
}
