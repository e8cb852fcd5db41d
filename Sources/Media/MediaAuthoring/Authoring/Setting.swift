import Synchronization

/// A setting of a node that is written in Swift. The property's name, with dashes, is the setting's name.
///
///     @Setting("Frames per second", in: 1...60, unit: "frames/s") var fps = 30
///
/// The initial value is the default; a graph must set a property without one. A setting with `isChangeable` can be set
/// while the node runs; the property then returns the new value, on any thread. The graph checks the type and the range
/// before anything runs.
@propertyWrapper
public struct Setting<Value: SettingRepresentable>: Sendable {
    /// Copies of one node share it, so a new value reaches the copy that runs.
    private var value: SettingBox<Value>
    private let summary: String
    private let domain: SettingContract.Domain
    private let unit: String?
    let isChangeable: Bool
    private(set) var isRequired: Bool

    private init(
        _ value: Value, _ summary: String, _ domain: SettingContract.Domain, _ unit: String?, _ isChangeable: Bool,
        isRequired: Bool
    ) {
        self.value = SettingBox(value)
        self.summary = summary
        self.domain = domain
        self.unit = unit
        self.isChangeable = isChangeable
        self.isRequired = isRequired
    }

    /// A setting with a default. `summary` is a few words for `connectlive nodes`.
    public init(wrappedValue: Value, _ summary: String, unit: String? = nil, isChangeable: Bool = false) {
        self.init(wrappedValue, summary, Value.settingDomain, unit, isChangeable, isRequired: false)
    }

    /// A setting that each node has to give.
    public init(_ summary: String, unit: String? = nil, isChangeable: Bool = false) {
        self.init(Value.settingPlaceholder, summary, Value.settingDomain, unit, isChangeable, isRequired: true)
    }

    /// Setting it makes another value of the node, with an initial value of its own: `init(path: String) { self.path = path }`.
    /// Use it before the node runs.
    public var wrappedValue: Value {
        get { value.value }
        set {
            value = SettingBox(newValue)
            isRequired = false
        }
    }

    /// The setting itself: `\.$fps` names the setting of a property `fps`.
    public var projectedValue: Setting<Value> { self }
}

extension Setting where Value == Int {
    /// A number with a default and a range. The graph is rejected if a node gives another value.
    public init(
        wrappedValue: Int, _ summary: String, in range: ClosedRange<Int>, unit: String? = nil,
        isChangeable: Bool = false
    ) {
        self.init(wrappedValue, summary, .integer(range), unit, isChangeable, isRequired: false)
    }
}

extension Setting where Value == Double {
    /// A number with a default and a range. The graph is rejected if a node gives another value.
    public init(
        wrappedValue: Double, _ summary: String, in range: ClosedRange<Double>, unit: String? = nil,
        isChangeable: Bool = false
    ) {
        self.init(wrappedValue, summary, .number(range), unit, isChangeable, isRequired: false)
    }
}

/// The type of a setting: `Bool`, `Int`, `Double`, `String`, or an enumeration (``SettingChoice``).
public protocol SettingRepresentable: Sendable {
    /// The values that a setting of the type accepts.
    static var settingDomain: SettingContract.Domain { get }
    /// The value of a required setting before the graph sets it.
    static var settingPlaceholder: Self { get }
    /// Returns nil for a value of another type.
    init?(settingValue: SettingValue)
    /// The value as graphs and files have it.
    var settingValue: SettingValue { get }
}

extension Bool: SettingRepresentable {
    public static var settingDomain: SettingContract.Domain { .flag }
    public static var settingPlaceholder: Bool { false }
    public init?(settingValue: SettingValue) {
        guard let flag = settingValue.flag else { return nil }
        self = flag
    }
    public var settingValue: SettingValue { .flag(self) }
}

extension Int: SettingRepresentable {
    public static var settingDomain: SettingContract.Domain { .integer(.min ... .max) }
    public static var settingPlaceholder: Int { 0 }
    public init?(settingValue: SettingValue) {
        guard let integer = settingValue.integer else { return nil }
        self = integer
    }
    public var settingValue: SettingValue { .integer(self) }
}

extension Double: SettingRepresentable {
    public static var settingDomain: SettingContract.Domain {
        .number(-Double.greatestFiniteMagnitude...Double.greatestFiniteMagnitude)
    }
    public static var settingPlaceholder: Double { 0 }
    public init?(settingValue: SettingValue) {
        guard let number = settingValue.number else { return nil }
        self = number
    }
    public var settingValue: SettingValue { .number(self) }
}

extension String: SettingRepresentable {
    public static var settingDomain: SettingContract.Domain { .text }
    public static var settingPlaceholder: String { "" }
    public init?(settingValue: SettingValue) {
        guard let text = settingValue.text else { return nil }
        self = text
    }
    public var settingValue: SettingValue { .text(self) }
}

/// A setting with a fixed list of words: `enum Style: String, SettingChoice { case round, square }`.
public protocol SettingChoice: SettingRepresentable, RawRepresentable<String>, CaseIterable {}

extension SettingChoice {
    public static var settingDomain: SettingContract.Domain { .choice(allCases.map(\.rawValue)) }
    public static var settingPlaceholder: Self {
        guard let first = allCases.first else { preconditionFailure("\(Self.self) has no case to choose") }
        return first
    }
    public init?(settingValue: SettingValue) {
        guard let word = settingValue.text else { return nil }
        self.init(rawValue: word)
    }
    public var settingValue: SettingValue { .text(rawValue) }
}

/// A setting of any type, found among a node's properties.
protocol AnySetting {
    /// Where its value is, in all copies of the node.
    var place: ObjectIdentifier { get }
    var isRequired: Bool { get }
    var isChangeable: Bool { get }
    func contract(named name: String) -> SettingContract
    func take(_ value: SettingValue, as name: String) throws(MediaError)
}

extension Setting: AnySetting {
    var place: ObjectIdentifier { ObjectIdentifier(value) }

    func contract(named name: String) -> SettingContract {
        SettingContract(
            name, domain, default: isRequired ? nil : wrappedValue.settingValue, isRequired: isRequired,
            isChangeable: isChangeable, unit: unit, summary)
    }

    func take(_ given: SettingValue, as name: String) throws(MediaError) {
        guard let taken = Value(settingValue: given), domain.holds(given) else {
            throw MediaError(
                code: MediaError.Code.graphInvalid, message: "The setting \(name) does not accept \(given).")
        }
        value.value = taken
    }
}

extension SettingContract.Domain {
    /// Whether a value of the right type is in range.
    fileprivate func holds(_ value: SettingValue) -> Bool {
        switch self {
        case .integer(let range): value.integer.map(range.contains) ?? false
        case .number(let range): value.number.map(range.contains) ?? false
        case .choice(let words): value.text.map(words.contains) ?? false
        case .flag, .text: true
        }
    }
}

private final class SettingBox<Value: Sendable>: Sendable {
    private let state: Mutex<Value>

    init(_ value: Value) {
        state = Mutex(value)
    }

    var value: Value {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}
