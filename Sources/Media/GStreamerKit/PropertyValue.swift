internal import CGLib
internal import CGStreamer
package import MediaGraph

/// The value of an element's property, or of a field of a message or structure.
package enum PropertyValue: Sendable, Hashable, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByStringLiteral, ExpressibleByFloatLiteral, CustomStringConvertible
{
    case flag(Bool)
    case integer(Int)
    case number(Double)
    /// Text, the nick of an enumeration's value, flags joined by `+`, a fraction, caps, or a structure.
    case text(String)
    /// The values of an array, such as the level of each channel.
    case list([PropertyValue])

    package init(booleanLiteral value: Bool) { self = .flag(value) }
    package init(integerLiteral value: Int) { self = .integer(value) }
    package init(floatLiteral value: Double) { self = .number(value) }
    package init(stringLiteral value: String) { self = .text(value) }

    package init(_ value: SettingValue) {
        switch value {
        case .flag(let value): self = .flag(value)
        case .integer(let value): self = .integer(value)
        case .number(let value): self = .number(value)
        case .text(let value): self = .text(value)
        }
    }

    /// In GStreamer's notation.
    package var text: String {
        switch self {
        case .flag(let value): value ? "true" : "false"
        case .integer(let value): "\(value)"
        case .number(let value): "\(value)"
        case .text(let value): value
        case .list(let values): "< " + values.map(\.text).joined(separator: ", ") + " >"
        }
    }

    package var description: String { text }
}

// The C macros for the fundamental types are not imported: G_TYPE_MAKE_FUNDAMENTAL shifts a number by 2.
enum FundamentalType {
    static let boolean: GType = 5 << 2
    static let int: GType = 6 << 2
    static let unsignedInt: GType = 7 << 2
    static let long: GType = 8 << 2
    static let unsignedLong: GType = 9 << 2
    static let int64: GType = 10 << 2
    static let unsignedInt64: GType = 11 << 2
    static let enumeration: GType = 12 << 2
    static let flags: GType = 13 << 2
    static let float: GType = 14 << 2
    static let double: GType = 15 << 2
    static let string: GType = 16 << 2
    static let pointer: GType = 17 << 2
    static let boxed: GType = 18 << 2
    static let parameter: GType = 19 << 2
    static let object: GType = 20 << 2

    static let signedIntegers: Set<GType> = [3 << 2, int, long, int64]
    static let unsignedIntegers: Set<GType> = [4 << 2, unsignedInt, unsignedLong, unsignedInt64]
}

extension PropertyValue {
    /// Nil for unset values and those without a text form, such as pointers and objects.
    init?(_ value: UnsafePointer<GValue>) {
        let type = value.pointee.g_type
        switch g_type_fundamental(type) {
        case FundamentalType.boolean:
            self = .flag(g_value_get_boolean(value) != 0)
        case FundamentalType.float:
            self = .number(Double(g_value_get_float(value)))
        case FundamentalType.double:
            self = .number(g_value_get_double(value))
        case FundamentalType.string:
            guard let text = g_value_get_string(value) else { return nil }
            self = .text(String(cString: text))
        case let whole where FundamentalType.signedIntegers.contains(whole):
            guard let number = Self.integer(value, as: FundamentalType.int64, g_value_get_int64) else { return nil }
            self = .integer(Int(number))
        case let whole where FundamentalType.unsignedIntegers.contains(whole):
            // The largest number means "no limit" or "unknown", and stays the largest.
            guard let number = Self.integer(value, as: FundamentalType.unsignedInt64, g_value_get_uint64) else {
                return nil
            }
            self = .integer(Int(clamping: number))
        case FundamentalType.enumeration:
            guard let nick = Self.nick(value) else { return nil }
            self = .text(nick)
        default:
            self.init(compound: value)
        }
    }

    private init?(compound value: UnsafePointer<GValue>) {
        let type = value.pointee.g_type
        if type == gst_value_array_get_type() {
            self = .list(
                (0..<gst_value_array_get_size(value)).compactMap { index in
                    gst_value_array_get_value(value, index).flatMap { PropertyValue($0) }
                })
            return
        }
        if type == gst_value_list_get_type() {
            self = .list(
                (0..<gst_value_list_get_size(value)).compactMap { index in
                    gst_value_list_get_value(value, index).flatMap { PropertyValue($0) }
                })
            return
        }
        if type == g_type_from_name("GValueArray") {
            guard let array = g_value_get_boxed(value)?.assumingMemoryBound(to: GValueArray.self) else { return nil }
            self = .list(
                (0..<Int(array.pointee.n_values)).compactMap { index in
                    array.pointee.values.flatMap { PropertyValue($0 + index) }
                })
            return
        }
        if type == gst_caps_get_type() {
            guard let caps = gst_value_get_caps(value), let text = takeString(gst_caps_to_string(caps)) else {
                return nil
            }
            self = .text(text)
            return
        }
        let isEmptyBox =
            g_type_fundamental(type) == FundamentalType.boxed && g_value_get_boxed(value) == nil
        let isBare = [FundamentalType.pointer, FundamentalType.object, FundamentalType.parameter]
            .contains(g_type_fundamental(type))
        guard !isEmptyBox, !isBare, let text = takeString(gst_value_serialize(value)) else { return nil }
        self = .text(text)
    }

    private static func integer<Number>(
        _ value: UnsafePointer<GValue>, as type: GType, _ read: (UnsafePointer<GValue>) -> Number
    ) -> Number? {
        var holder = GValue()
        g_value_init(&holder, type)
        defer { g_value_unset(&holder) }
        guard g_value_transform(value, &holder) != 0 else { return nil }
        return read(&holder)
    }

    private static func nick(_ value: UnsafePointer<GValue>) -> String? {
        guard let opaque = g_type_class_ref(value.pointee.g_type) else { return nil }
        defer { g_type_class_unref(opaque) }
        let entry = g_enum_get_value(opaque.assumingMemoryBound(to: GEnumClass.self), g_value_get_enum(value))
        return entry?.pointee.value_nick.map { String(cString: $0) }
    }
}

/// The fields of a structure with a text form. Nested structures become text.
func fields(of structure: UnsafePointer<GstStructure>) -> [String: PropertyValue] {
    var fields: [String: PropertyValue] = [:]
    for index in 0..<max(0, gst_structure_n_fields(structure)) {
        guard let name = gst_structure_nth_field_name(structure, UInt32(index)),
            let value = gst_structure_get_value(structure, name), let read = PropertyValue(value)
        else { continue }
        fields[String(cString: name)] = read
    }
    return fields
}
