/// The value of a node's setting.
@frozen
public enum SettingValue: Sendable, Hashable {
    /// True or false.
    case flag(Bool)
    /// A whole number.
    case integer(Int)
    /// A number.
    case number(Double)
    /// A text.
    case text(String)
}

extension SettingValue {
    /// Numbers are equal if their values are: `30` equals `30.0`.
    public static func == (left: SettingValue, right: SettingValue) -> Bool {
        left.payload == right.payload
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(payload) }

    /// `AnyHashable` compares numbers of different types by value.
    private var payload: AnyHashable {
        switch self {
        case .flag(let value): value
        case .integer(let value): value
        case .number(let value): value
        case .text(let value): value
        }
    }
}

extension SettingValue: ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByStringLiteral, CustomStringConvertible
{
    public init(booleanLiteral value: Bool) { self = .flag(value) }
    public init(integerLiteral value: Int) { self = .integer(value) }
    public init(floatLiteral value: Double) { self = .number(value) }
    public init(stringLiteral value: String) { self = .text(value) }

    public var description: String {
        if case .text(let text) = self { "\"\(text)\"" } else { "\(payload)" }
    }
}

extension SettingValue: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let value = try? container.decode(Bool.self) {
            self = .flag(value)
        } else if let value = try? container.decode(Int.self) {
            self = .integer(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else {
            self = .text(try container.decode(String.self))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .flag(let value): try container.encode(value)
        case .integer(let value): try container.encode(value)
        case .number(let value): try container.encode(value)
        case .text(let value): try container.encode(value)
        }
    }
}

extension SettingValue {
    /// The whole number. Nil for a value of another type.
    public var integer: Int? {
        if case .integer(let value) = self { value } else { nil }
    }

    /// The value of a number or an integer.
    public var number: Double? {
        switch self {
        case .number(let value): value
        case .integer(let value): Double(value)
        default: nil
        }
    }

    /// The truth value. Nil for a value of another type.
    public var flag: Bool? {
        if case .flag(let value) = self { value } else { nil }
    }

    /// The text. Nil for a value of another type.
    public var text: String? {
        if case .text(let value) = self { value } else { nil }
    }
}
