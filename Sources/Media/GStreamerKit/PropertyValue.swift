internal import CGLib
internal import CGStreamer
package import MediaGraph

// The C macros for the fundamental types are not imported: G_TYPE_MAKE_FUNDAMENTAL shifts a number by 2.
enum FundamentalType {
    static let char: GType = 3 << 2
    static let unsignedChar: GType = 4 << 2
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

    static let signedIntegers: Set<GType> = [char, int, long, int64]
    static let unsignedIntegers: Set<GType> = [unsignedChar, unsignedInt, unsignedLong, unsignedInt64]
}

extension SettingValue {
    /// In GStreamer's notation: text is the nick of an enumeration's value, flags joined by `+`, a fraction, caps, a
    /// structure or a list, too.
    package var notation: String {
        if case .text(let text) = self { text } else { description }
    }

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
        case FundamentalType.pointer, FundamentalType.object, FundamentalType.parameter:
            return nil
        case FundamentalType.boxed where g_value_get_boxed(value) == nil:
            return nil
        default:
            let isCaps = type == gst_caps_get_type()
            guard
                let text = takeString(
                    isCaps ? gst_caps_to_string(gst_value_get_caps(value)) : gst_value_serialize(value))
            else { return nil }
            self = .text(text)
        }
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
