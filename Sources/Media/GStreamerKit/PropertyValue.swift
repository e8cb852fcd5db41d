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

    static let integers: Set<GType> = [
        char, unsignedChar, int, unsignedInt, long, unsignedLong, int64, unsignedInt64,
    ]
}

extension SettingValue {
    /// In GStreamer's notation: text is the nick of an enumeration's value, flags joined by `+`, a fraction, caps, a
    /// structure or a list, too.
    package var notation: String {
        if case .text(let text) = self { text } else { description }
    }

    /// Nil for unset values and those without a text form, such as pointers and objects.
    init?(_ value: UnsafePointer<GValue>) {
        let type = g_type_fundamental(value.pointee.g_type)
        let text: String? =
            switch type {
            case FundamentalType.string: g_value_get_string(value).map { String(cString: $0) }
            case FundamentalType.enumeration: Self.nick(value)
            case FundamentalType.pointer, FundamentalType.object, FundamentalType.parameter: nil
            case FundamentalType.boxed where g_value_get_boxed(value) == nil: nil
            case _ where value.pointee.g_type == gst_caps_get_type():
                takeString(gst_caps_to_string(gst_value_get_caps(value)))
            default: takeString(gst_value_serialize(value))
            }
        guard let text else { return nil }
        switch type {
        case FundamentalType.boolean: self = .flag(text == "true")
        case FundamentalType.float, FundamentalType.double: self = .number(Double(text) ?? .nan)
        // The largest number means "no limit" or "unknown", and stays the largest.
        case let whole where FundamentalType.integers.contains(whole): self = .integer(Int(text) ?? .max)
        default: self = .text(text)
        }
    }

    /// Nil for a value that the enumeration does not have, as of some elements' own properties.
    private static func nick(_ value: UnsafePointer<GValue>) -> String? {
        guard let opaque = g_type_class_ref(value.pointee.g_type) else { return nil }
        defer { g_type_class_unref(opaque) }
        let entry = g_enum_get_value(opaque.assumingMemoryBound(to: GEnumClass.self), g_value_get_enum(value))
        return entry?.pointee.value_nick.map { String(cString: $0) }
    }
}
