import Synchronization

/// A setting of a node that is written in Swift: the property's name is the setting's, its initial value the default.
///
///     @Setting("Pictures per second", in: 1...60, unit: "frames/s") var fps = 30
///
/// A property without an initial value has to be given by the graph. One that is changeable may be set while the node
/// runs; reading it then gives the new value.
@propertyWrapper
public struct Setting<Value: SettingRepresentable>: Sendable {
    /// Shared by the copies of one node: what is set reaches the copy that runs.
    private let value: SettingBox<Value>
    private let summary: String
    private let domain: SettingContract.Domain
    private let unit: String?
    private let isChangeable: Bool
    let isRequired: Bool

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

    public init(wrappedValue: Value, _ summary: String, unit: String? = nil, isChangeable: Bool = false) {
        self.init(wrappedValue, summary, Value.settingDomain, unit, isChangeable, isRequired: false)
    }

    public init(_ summary: String, unit: String? = nil, isChangeable: Bool = false) {
        self.init(Value.settingPlaceholder, summary, Value.settingDomain, unit, isChangeable, isRequired: true)
    }

    public var wrappedValue: Value { value.value }
}

extension Setting where Value == Int {
    public init(
        wrappedValue: Int, _ summary: String, in range: ClosedRange<Int>, unit: String? = nil,
        isChangeable: Bool = false
    ) {
        self.init(wrappedValue, summary, .integer(range), unit, isChangeable, isRequired: false)
    }
}

extension Setting where Value == Double {
    public init(
        wrappedValue: Double, _ summary: String, in range: ClosedRange<Double>, unit: String? = nil,
        isChangeable: Bool = false
    ) {
        self.init(wrappedValue, summary, .number(range), unit, isChangeable, isRequired: false)
    }
}

/// What a setting may be: a flag, a number, text, or one of several words (`SettingChoice`).
public protocol SettingRepresentable: Sendable {
    static var settingDomain: SettingContract.Domain { get }
    /// What a required setting holds until it is given.
    static var settingPlaceholder: Self { get }
    /// Nil for a value of another kind.
    init?(settingValue: SettingValue)
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

/// A setting that is one of several words: `enum Style: String, SettingChoice { case round, square }`.
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

/// A setting of whatever type, as it is found among a node's properties.
protocol AnySetting {
    var isRequired: Bool { get }
    func contract(named name: String) -> SettingContract
    func take(_ value: SettingValue, as name: String) throws(MediaError)
}

extension Setting: AnySetting {
    func contract(named name: String) -> SettingContract {
        SettingContract(
            name, domain, default: isRequired ? nil : wrappedValue.settingValue, isRequired: isRequired,
            isChangeable: isChangeable, unit: unit, summary)
    }

    func take(_ given: SettingValue, as name: String) throws(MediaError) {
        guard let taken = Value(settingValue: given), domain.holds(given) else {
            throw MediaError(
                code: MediaError.Code.graphInvalid, message: "The setting \(name) does not take \(given).")
        }
        value.value = taken
    }
}

extension SettingContract.Domain {
    /// Whether a value of the right kind lies within.
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
