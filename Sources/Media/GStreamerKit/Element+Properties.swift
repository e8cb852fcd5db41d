internal import CGLib
internal import CGStreamer
import MediaGraph

/// Reading and setting properties. The corresponding C functions are `g_object_set_property` and its like.
extension Element {
    package func has(_ property: String) -> Bool {
        specification(of: property) != nil
    }

    /// Sets a property that the program itself names. A name that the element does not have, or a value that does not
    /// fit, is a bug and traps; a number outside the property's range becomes the nearest inside.
    package func set(_ property: String, _ value: PropertyValue) {
        guard let specification = specification(of: property) else {
            preconditionFailure("\(factory) has no property \(property)")
        }
        if let reason = store(value, in: specification, isStrict: false) { preconditionFailure(reason) }
    }

    /// Sets a property that somebody else names: nil when that worked, else why it did not, in words; nothing has
    /// changed then.
    ///
    /// Structures, such as the `extra-controls` of `v4l2src`, are set from their text: `controls,brightness=120`.
    package func trySet(_ property: String, _ value: PropertyValue) -> String? {
        guard let specification = specification(of: property) else {
            let hint = property.nearest(among: propertyNames).map { "; did you mean \($0)?" } ?? ""
            return "\(factory) has no property \(property)\(hint)"
        }
        let flags = PropertyFlags.of(specification)
        guard flags & PropertyFlags.writable != 0 else { return "\(factory).\(property) can only be read" }
        guard flags & PropertyFlags.constructOnly == 0 else {
            return "\(factory).\(property) can be set only when the element is made"
        }
        if let highest = PropertyFlags.highestState(flags), state.rawValue > highest.rawValue {
            return "\(factory).\(property) cannot be changed while the element is \(state)"
        }
        // GStreamer would take a negative number for a very large one.
        if case .integer(let number) = value, case .integer(let range)? = PropertyDomain(specification),
            !range.contains(number)
        {
            return "\(factory).\(property) cannot be \(number); it takes \(PropertyDomain.integer(range))"
        }
        return store(value, in: specification, isStrict: true)
    }

    private func store(
        _ value: PropertyValue, in specification: UnsafeMutablePointer<GParamSpec>, isStrict: Bool
    ) -> String? {
        let name = String(cString: specification.pointee.name)
        let domain = { PropertyDomain(specification).map { "; it takes \($0)" } ?? "" }
        var holder = GValue()
        g_value_init(&holder, specification.pointee.value_type)
        defer { g_value_unset(&holder) }
        if g_type_fundamental(specification.pointee.value_type) == FundamentalType.string {
            g_value_set_string(&holder, value.text)
        } else if gst_value_deserialize_with_pspec(&holder, value.text, specification) == 0 {
            return "\(factory).\(name) cannot be \(value.text)\(domain())"
        }
        // Validation changes what lies outside the property's range, and says that it did.
        if isStrict, g_param_value_validate(specification, &holder) != 0 {
            return "\(factory).\(name) cannot be \(value.text)\(domain())"
        }
        g_object_set_property(asGObject, name, &holder)
        return nil
    }

    /// Reads a property; nil when there is none of this name, it is unset, or it has no form in text.
    package func value(_ property: String) -> PropertyValue? {
        guard let specification = specification(of: property),
            PropertyFlags.of(specification) & PropertyFlags.readable != 0
        else { return nil }
        var holder = GValue()
        g_value_init(&holder, specification.pointee.value_type)
        defer { g_value_unset(&holder) }
        g_object_get_property(asGObject, property, &holder)
        return PropertyValue(&holder)
    }

    /// Reads a property that is a number or a flag; 0 when it is none.
    package func integer(_ property: String) -> Int {
        guard has(property) else { return 0 }
        var holder = GValue()
        g_value_init(&holder, FundamentalType.int64)
        defer { g_value_unset(&holder) }
        g_object_get_property(asGObject, property, &holder)
        return Int(g_value_get_int64(&holder))
    }

    /// Reads a number from a property that is a structure, such as the statistics of a jitter buffer.
    package func integer(_ field: String, ofStructure property: String) -> Int {
        if case .integer(let value) = structure(property)[field] { value } else { 0 }
    }

    /// Reads every field of a property that is a structure; nothing when it is none.
    package func structure(_ property: String) -> [String: PropertyValue] {
        guard let specification = specification(of: property),
            specification.pointee.value_type == gst_structure_get_type()
        else { return [:] }
        var holder = GValue()
        g_value_init(&holder, gst_structure_get_type())
        defer { g_value_unset(&holder) }
        g_object_get_property(asGObject, property, &holder)
        return gst_value_get_structure(&holder).map(fields(of:)) ?? [:]
    }

    /// The names of all properties, in alphabetical order.
    package var propertyNames: [String] {
        var count: UInt32 = 0
        guard let list = g_object_class_list_properties(classPointer, &count) else { return [] }
        defer { g_free(list) }
        return (0..<Int(count)).compactMap { list[$0]?.pointee.name.map { String(cString: $0) } }.sorted()
    }

    func specification(of property: String) -> UnsafeMutablePointer<GParamSpec>? {
        g_object_class_find_property(classPointer, property)
    }

    var classPointer: UnsafeMutablePointer<GObjectClass> {
        // What the C macro G_OBJECT_GET_CLASS does: an instance begins with the pointer to its class.
        UnsafeMutableRawPointer(pointer).load(as: UnsafeMutablePointer<GObjectClass>.self)
    }
}

/// What a property takes.
package enum PropertyDomain: Sendable, Hashable, CustomStringConvertible {
    case flag
    case integer(ClosedRange<Int>)
    case number(ClosedRange<Double>)
    case text
    /// One of several words.
    case choice([String])
    /// Any of several words, joined by `+`.
    case flags([String])
    case fraction
    case caps
    case structure
    /// Values between `<` and `>`.
    case list

    package var description: String {
        switch self {
        case .flag: "true or false"
        case .integer(let range):
            switch (range.lowerBound, range.upperBound) {
            case (Int.min, Int.max): "a whole number"
            case (let lowest, Int.max): "a whole number from \(lowest) on"
            case (Int.min, let highest): "a whole number up to \(highest)"
            case (let lowest, let highest): "a whole number from \(lowest) to \(highest)"
            }
        case .number(let range):
            range.lowerBound <= -1e30 || range.upperBound >= 1e30
                ? "a number" : "a number from \(range.lowerBound) to \(range.upperBound)"
        case .text: "text"
        case .choice(let words): "one of " + words.joined(separator: ", ")
        case .flags(let words): "any of " + words.joined(separator: ", ") + ", joined by +"
        case .fraction: "a fraction such as 30/1"
        case .caps: "a format such as video/x-raw,width=640"
        case .structure: "a structure such as controls,brightness=120"
        case .list: "a list such as < 1, 2 >"
        }
    }
}

extension PropertyDomain {
    /// Nil for what cannot be set from a text, such as a pointer or an object.
    init?(_ specification: UnsafeMutablePointer<GParamSpec>) {
        let type = specification.pointee.value_type
        switch g_type_fundamental(type) {
        case FundamentalType.boolean: self = .flag
        case FundamentalType.string: self = .text
        case FundamentalType.enumeration: self = .choice(Self.words(ofEnumeration: type))
        case FundamentalType.flags: self = .flags(Self.words(ofFlags: type))
        default:
            if let numeric = Self(numeric: specification) {
                self = numeric
            } else if type == gst_fraction_get_type() {
                self = .fraction
            } else if type == gst_caps_get_type() {
                self = .caps
            } else if type == gst_structure_get_type() {
                self = .structure
            } else if type == gst_value_array_get_type() || type == gst_value_list_get_type() {
                self = .list
            } else {
                return nil
            }
        }
    }

    /// The instance begins with the specification that is common to all.
    private static func downcast<Special>(
        _ specification: UnsafeMutablePointer<GParamSpec>, _ type: Special.Type
    ) -> Special {
        UnsafeMutableRawPointer(specification).assumingMemoryBound(to: type).pointee
    }

    private init?(numeric specification: UnsafeMutablePointer<GParamSpec>) {
        switch g_type_fundamental(specification.pointee.value_type) {
        case 3 << 2:
            let range = Self.downcast(specification, GParamSpecChar.self)
            self = .integer(Int(range.minimum)...Int(range.maximum))
        case 4 << 2:
            let range = Self.downcast(specification, GParamSpecUChar.self)
            self = .integer(Int(range.minimum)...Int(range.maximum))
        case FundamentalType.int:
            let range = Self.downcast(specification, GParamSpecInt.self)
            self = .integer(Int(range.minimum)...Int(range.maximum))
        case FundamentalType.unsignedInt:
            let range = Self.downcast(specification, GParamSpecUInt.self)
            self = .integer(Int(range.minimum)...Int(range.maximum))
        case FundamentalType.long:
            let range = Self.downcast(specification, GParamSpecLong.self)
            self = .integer(Int(range.minimum)...Int(range.maximum))
        case FundamentalType.unsignedLong:
            let range = Self.downcast(specification, GParamSpecULong.self)
            self = .integer(Int(clamping: range.minimum)...Int(clamping: range.maximum))
        case FundamentalType.int64:
            let range = Self.downcast(specification, GParamSpecInt64.self)
            self = .integer(Int(range.minimum)...Int(range.maximum))
        case FundamentalType.unsignedInt64:
            let range = Self.downcast(specification, GParamSpecUInt64.self)
            self = .integer(Int(clamping: range.minimum)...Int(clamping: range.maximum))
        case FundamentalType.float:
            let range = Self.downcast(specification, GParamSpecFloat.self)
            self = .number(Double(range.minimum)...Double(range.maximum))
        case FundamentalType.double:
            let range = Self.downcast(specification, GParamSpecDouble.self)
            self = .number(range.minimum...range.maximum)
        default:
            return nil
        }
    }

    private static func words(ofEnumeration type: GType) -> [String] {
        guard let opaque = g_type_class_ref(type) else { return [] }
        defer { g_type_class_unref(opaque) }
        let list = opaque.assumingMemoryBound(to: GEnumClass.self).pointee
        return (0..<Int(list.n_values)).compactMap { index in
            list.values[index].value_nick.map { String(cString: $0) }
        }
    }

    private static func words(ofFlags type: GType) -> [String] {
        guard let opaque = g_type_class_ref(type) else { return [] }
        defer { g_type_class_unref(opaque) }
        let list = opaque.assumingMemoryBound(to: GFlagsClass.self).pointee
        return (0..<Int(list.n_values)).compactMap { index in
            list.values[index].value_nick.map { String(cString: $0) }
        }
    }
}

/// The flags of a property; some of the C ones are macros that are not imported.
enum PropertyFlags {
    static let readable: UInt32 = 1 << 0
    static let writable: UInt32 = 1 << 1
    static let constructOnly: UInt32 = 1 << 3
    static let controllable: UInt32 = 1 << 9
    static let mutableReady: UInt32 = 1 << 10
    static let mutablePaused: UInt32 = 1 << 11
    static let mutablePlaying: UInt32 = 1 << 12
    static let isConditional: UInt32 = 1 << 14
    static let isDeprecated: UInt32 = 1 << 31

    static func of(_ specification: UnsafeMutablePointer<GParamSpec>) -> UInt32 {
        UInt32(bitPattern: Int32(truncatingIfNeeded: specification.pointee.flags.rawValue))
    }

    /// The last state in which a property may be changed, where it says so.
    static func highestState(_ flags: UInt32) -> ElementState? {
        if flags & (mutablePlaying | controllable) != 0 { return nil }
        if flags & mutablePaused != 0 { return .paused }
        return flags & mutableReady != 0 ? .ready : nil
    }
}
