/// The contract of a setting: the values that it accepts, its default and its meaning.
public struct SettingContract: Sendable, Hashable {
    /// The values that a setting accepts.
    @frozen
    public enum Domain: Sendable, Hashable {
        /// True or false.
        case flag
        /// A whole number of a range.
        case integer(ClosedRange<Int>)
        /// A number of a range.
        case number(ClosedRange<Double>)
        /// Any text.
        case text
        /// One of these words.
        case choice([String])
    }

    /// The name in graphs and files.
    public let name: String
    /// The values that the setting accepts.
    public let domain: Domain
    /// The value of a setting that is not given; nil if the node decides.
    public let defaultValue: SettingValue?
    /// Whether each node has to give the setting.
    public let isRequired: Bool
    /// The unit of a number, such as `bit/s`.
    public let unit: String?
    /// A few words about the setting, for `connectlive nodes`.
    public let summary: String
    /// Whether it can change while the graph runs.
    public let isChangeable: Bool
    /// Whether the element does not document changes while it runs. Such a setting counts as changeable, because most
    /// elements accept the change.
    public var isChangeUnsaid = false
    /// The form of a text; nil for any text.
    public var form: Form?
    /// The accepted integers, if they are few; nil for the whole range.
    public var values: [Int]?
    /// A value to copy; nil if the default, or any value of the domain, will do.
    public var example: SettingValue?
    /// Settings that cannot be given together with this one.
    public var excludedSettings: [String] = []
    /// The use of the file that the setting names; nil if it names no file.
    public var file: FileUse?
    /// Whether the value is hidden from output: it is shown as `SettingContract.hidden`.
    public let isSecret: Bool

    /// A contract, which ends with its summary.
    public init(
        _ name: String, _ domain: Domain, default defaultValue: SettingValue? = nil, isRequired: Bool = false,
        isChangeable: Bool = false, isSecret: Bool = false, unit: String? = nil, _ summary: String
    ) {
        self.isSecret = isSecret
        self.isChangeable = isChangeable
        self.name = name
        self.domain = domain
        self.defaultValue = defaultValue
        self.isRequired = isRequired
        self.unit = unit
        self.summary = summary
    }
}

/// A node's use of a file.
@frozen
public enum FileUse: String, Sendable, Hashable {
    /// The node reads the file.
    case reads
    /// The node writes the file.
    case writes
}

extension SettingContract {
    /// The form of a text setting.
    public struct Form: Sendable, Hashable {
        /// A regular expression for the whole text, valid in Swift and in JSON Schema (ECMA 262).
        public let pattern: String
        /// A description that completes "write …", such as `red, green and blue as #rrggbb, such as #ffcc00`.
        public let words: String

        /// A form by its pattern and by words about it.
        ///
        /// - Parameters:
        ///   - pattern: a regular expression for the whole text. Traps if Swift cannot parse it.
        ///   - words: a description that completes "write …".
        public init(_ pattern: String, _ words: String) {
            self.pattern = pattern
            self.words = words
            precondition((try? Regex(pattern)) != nil, "\(pattern) is not a regular expression")
        }
    }
}
