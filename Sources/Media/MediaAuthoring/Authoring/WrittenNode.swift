/// A node that is written in Swift: a ``Capturer``, ``Processor`` or ``Renderer``.
///
/// The graph creates one value per node. Its properties with `@Setting` are its settings; they have the graph's values
/// before any other member is called.
public protocol WrittenNode: Sendable {
    /// The name of the kind, such as `clock-face`. By default, the type's name with dashes.
    static var name: String { get }
    /// A short description, which `connectlive nodes` prints.
    static var summary: String { get }

    /// Creates a node with default settings.
    init()
}

extension WrittenNode {
    public static var name: String { CustomNode.dashed(String(describing: Self.self)) }

    /// Creates a node with a graph's settings.
    ///
    /// Throws `graph.invalid` for a value of the wrong type or out of range, and for a missing required setting.
    public init(_ settings: [String: SettingValue]) throws(MediaError) {
        self.init()
        for (name, setting) in self.settings {
            if let value = settings[name] {
                try setting.take(value, as: name)
            } else if setting.isRequired {
                throw MediaError(
                    code: MediaError.Code.graphInvalid,
                    message: "The setting \(name) of \(Self.name) is missing. Set it.")
            }
        }
    }

    /// Changes a setting while the node runs. Throws `graph.invalid` for a value of the wrong type or out of range.
    public func set(_ name: String, to value: SettingValue) throws(MediaError) {
        try settings.first { $0.name == name }?.setting.take(value, as: name)
    }

    /// The settings, in the order of the properties.
    public var contracts: [SettingContract] {
        settings.map { $0.setting.contract(named: $0.name) }
    }

    private var settings: [(name: String, setting: any AnySetting)] {
        Mirror(reflecting: self).children.compactMap { child in
            guard let setting = child.value as? any AnySetting, let label = child.label else { return nil }
            return (CustomNode.dashed(String(label.drop { $0 == "_" })), setting)
        }
    }
}

extension CustomNode {
    /// A Swift name in the spelling of graphs: `framesPerSecond` as `frames-per-second`, `USBCamera` as `usb-camera`.
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
