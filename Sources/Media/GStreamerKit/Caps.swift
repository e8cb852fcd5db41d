internal import CGLib
internal import CGStreamer

/// A set of formats. The corresponding C type is `GstCaps`.
// @unchecked: caps never change after their creation, and their reference count is atomic.
package final class Caps: @unchecked Sendable {
    let pointer: UnsafeMutablePointer<GstCaps>

    init(takingOwnership pointer: UnsafeMutablePointer<GstCaps>) {
        self.pointer = pointer
    }

    /// Traps if the text does not describe caps.
    package init(_ text: String) {
        GStreamer.load()
        guard let made = gst_caps_from_string(text) else { preconditionFailure("not caps: \(text)") }
        pointer = made
    }

    deinit {
        gst_caps_unref(pointer)
    }

    package var count: Int { Int(gst_caps_get_size(pointer)) }

    package var structures: [FormatStructure] {
        (0..<gst_caps_get_size(pointer)).compactMap { index in
            gst_caps_get_structure(pointer, index).map { FormatStructure(pointer: $0, owner: self) }
        }
    }

    /// The formats in plain memory, as opposed to a graphics card's.
    package var structuresInPlainMemory: [FormatStructure] {
        (0..<gst_caps_get_size(pointer)).compactMap { index in
            guard let features = gst_caps_get_features(pointer, index),
                gst_caps_features_is_any(features) != 0 || gst_caps_features_get_size(features) == 0
                    || gst_caps_features_contains(features, "memory:SystemMemory") != 0
            else { return nil }
            return gst_caps_get_structure(pointer, index).map { FormatStructure(pointer: $0, owner: self) }
        }
    }

    /// Whether both have a common format.
    package func meets(_ other: Caps) -> Bool { gst_caps_can_intersect(pointer, other.pointer) != 0 }

    /// Whether `other` contains all of these formats.
    package func lies(within other: Caps) -> Bool { gst_caps_is_subset(pointer, other.pointer) != 0 }

    /// Whether there is no format.
    package var isEmpty: Bool { gst_caps_is_empty(pointer) != 0 }

    /// Whether any format is included.
    package var isAny: Bool { gst_caps_is_any(pointer) != 0 }

    /// The media types, without their fields.
    package var summary: String {
        if isAny { return "anything" }
        var names: [String] = []
        for name in structures.map(\.name) where !names.contains(name) { names.append(name) }
        return names.isEmpty ? "nothing" : names.joined(separator: ", ")
    }

    package var description: String {
        takeString(gst_caps_to_string(pointer)) ?? ""
    }
}

/// One format of a set. The corresponding C type is `GstStructure`.
package struct FormatStructure {
    let pointer: UnsafeMutablePointer<GstStructure>
    let owner: Caps

    /// Media type, such as `video/x-raw`.
    package var name: String { gst_structure_get_name(pointer).map { String(cString: $0) } ?? "" }

    package func integer(_ field: String) -> Int? {
        var value: Int32 = 0
        return gst_structure_get_int(pointer, field, &value) != 0 ? Int(value) : nil
    }

    package func text(_ field: String) -> String? {
        gst_structure_get_string(pointer, field).map { String(cString: $0) }
    }

    /// The value of a field, or the items of its list.
    private func values(_ field: String) -> [UnsafePointer<GValue>] {
        guard let value = gst_structure_get_value(pointer, field) else { return [] }
        guard value.pointee.g_type == gst_value_list_get_type() else { return [value] }
        return (0..<gst_value_list_get_size(value)).compactMap { gst_value_list_get_value(value, $0) }
    }

    /// A fraction, every fraction of a list, or the ends of a range, as numbers.
    package func fractions(_ field: String) -> [Double] {
        values(field).flatMap { value -> [UnsafePointer<GValue>] in
            guard value.pointee.g_type == gst_fraction_range_get_type() else { return [value] }
            return [gst_value_get_fraction_range_min(value), gst_value_get_fraction_range_max(value)].compactMap { $0 }
        }.filter {
            $0.pointee.g_type == gst_fraction_get_type() && gst_value_get_fraction_denominator($0) != 0
        }.map { Double(gst_value_get_fraction_numerator($0)) / Double(gst_value_get_fraction_denominator($0)) }
    }

    /// An integer, every integer of a list, or the ends of a range.
    package func integers(_ field: String) -> [Int] {
        values(field).flatMap { value -> [Int32] in
            switch value.pointee.g_type {
            case FundamentalType.int: [g_value_get_int(value)]
            case gst_int_range_get_type(): [gst_value_get_int_range_min(value), gst_value_get_int_range_max(value)]
            default: []
            }
        }.map(Int.init)
    }

    /// Whether the field is a range.
    package func isRange(_ field: String) -> Bool {
        guard let type = gst_structure_get_value(pointer, field)?.pointee.g_type else { return false }
        return type == gst_int_range_get_type() || type == gst_fraction_range_get_type()
    }

    /// Text, or every text of a list.
    package func texts(_ field: String) -> [String] {
        values(field).filter { $0.pointee.g_type == FundamentalType.string }
            .compactMap { g_value_get_string($0).map { String(cString: $0) } }
    }
}
