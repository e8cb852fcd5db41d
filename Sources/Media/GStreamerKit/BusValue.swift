internal import CGLib

/// A value in a message of a D-Bus.
package indirect enum BusValue: Sendable, Equatable {
    case text(String)
    case path(String)
    case number(UInt32)
    case integer(Int32)
    case flag(Bool)
    /// The place of a descriptor among those of the message.
    case handle(Int32)
    /// `a{sv}`
    case table([String: BusValue])
    /// Of an array or a tuple.
    case list([BusValue])
    /// Of another type.
    case other

    package var text: String? {
        switch self {
        case .text(let text), .path(let text): text
        default: nil
        }
    }

    package var number: UInt32? { if case .number(let number) = self { number } else { nil } }
    package var integer: Int32? { if case .integer(let number) = self { number } else { nil } }
    package var flag: Bool? { if case .flag(let flag) = self { flag } else { nil } }
    package var table: [String: BusValue]? { if case .table(let table) = self { table } else { nil } }
    package var list: [BusValue]? { if case .list(let list) = self { list } else { nil } }

    /// A variant's contents, also those of a variant in it. Borrows the variant.
    init(_ variant: OpaquePointer) {
        switch UInt8(g_variant_classify(variant).rawValue) {
        case UInt8(ascii: "s"): self = .text(Self.string(variant))
        case UInt8(ascii: "o"): self = .path(Self.string(variant))
        case UInt8(ascii: "u"): self = .number(g_variant_get_uint32(variant))
        case UInt8(ascii: "i"): self = .integer(g_variant_get_int32(variant))
        case UInt8(ascii: "b"): self = .flag(g_variant_get_boolean(variant) != 0)
        case UInt8(ascii: "h"): self = .handle(g_variant_get_handle(variant))
        case UInt8(ascii: "v"): self = Self.children(variant).first ?? .other
        case UInt8(ascii: "("): self = .list(Self.children(variant))
        case UInt8(ascii: "a"):
            let isTable = g_variant_is_of_type(variant, Self.type("a{sv}")) != 0
            self = isTable ? .table(Self.entries(variant)) : .list(Self.children(variant))
        default: self = .other
        }
    }

    private static func string(_ variant: OpaquePointer) -> String {
        g_variant_get_string(variant, nil).map { String(cString: $0) } ?? ""
    }

    private static func children(_ variant: OpaquePointer) -> [BusValue] {
        (0..<g_variant_n_children(variant)).compactMap { index in
            guard let child = g_variant_get_child_value(variant, index) else { return nil }
            defer { g_variant_unref(child) }
            return BusValue(child)
        }
    }

    private static func entries(_ variant: OpaquePointer) -> [String: BusValue] {
        var entries: [String: BusValue] = [:]
        for index in 0..<g_variant_n_children(variant) {
            guard let entry = g_variant_get_child_value(variant, index) else { continue }
            defer { g_variant_unref(entry) }
            let pair = children(entry)
            if pair.count == 2, let key = pair[0].text { entries[key] = pair[1] }
        }
        return entries
    }

    /// A floating variant, which its user takes. Lists and `other` become empty tuples.
    var variant: OpaquePointer? {
        switch self {
        case .text(let text): g_variant_new_string(text)
        case .path(let path): g_variant_new_object_path(path)
        case .number(let number): g_variant_new_uint32(number)
        case .integer(let number): g_variant_new_int32(number)
        case .flag(let flag): g_variant_new_boolean(flag ? 1 : 0)
        case .handle(let number): g_variant_new_handle(number)
        case .table(let table): Self.variant(of: table)
        case .list, .other: g_variant_new_tuple(nil, 0)
        }
    }

    private static func variant(of table: [String: BusValue]) -> OpaquePointer? {
        let builder = g_variant_builder_new(type("a{sv}"))
        defer { g_variant_builder_unref(builder) }
        for (key, value) in table {
            g_variant_builder_add_value(
                builder, g_variant_new_dict_entry(g_variant_new_string(key), g_variant_new_variant(value.variant)))
        }
        return g_variant_builder_end(builder)
    }

    /// A type's text is its value.
    private static func type(_ text: StaticString) -> OpaquePointer? {
        text.withUTF8Buffer { OpaquePointer($0.baseAddress) }
    }
}
