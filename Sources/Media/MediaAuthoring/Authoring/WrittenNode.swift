/// A node that is written in Swift: a ``Capturer``, ``Processor`` or ``Renderer``.
///
/// Its properties with `@Setting` are its settings. For a node of a plugin or of a graph file, the graph makes a value with the
/// function of its ``CustomNode``, and sets its settings before any other member is called. A program can also link a value
/// that it has made itself. Both may hold objects of the program.
public protocol WrittenNode: Sendable {
    /// The name of the kind, such as `clock-face`. By default, the type's name with dashes.
    static var name: String { get }
    /// A short description, which `connectlive nodes` prints.
    static var summary: String { get }
}

extension WrittenNode {
    public static var name: String { CustomNode.dashed(String(describing: Self.self)) }

    /// Sets a graph's settings before the node runs.
    ///
    /// Throws `graph.invalid` for a value of the wrong type or out of range, and for a missing required setting.
    public func begin(with settings: [String: SettingValue]) throws(MediaError) {
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

    /// The name of the setting of one of its properties, such as `value.$fps`; nil for a setting of another node.
    public func name<Value>(of setting: Setting<Value>) -> String? {
        settings.first { $0.setting.place == setting.place }?.name
    }

    /// Whether a changed setting of this value changes another one too, because one of them is a copy of the other.
    public func sharesLiveSettings(with other: any WrittenNode) -> Bool {
        let places = Set(settings.filter(\.setting.isChangeable).map(\.setting.place))
        return other.settings.contains { places.contains($0.setting.place) }
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
