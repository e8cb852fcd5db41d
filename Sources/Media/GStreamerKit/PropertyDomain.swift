internal import CGLib
internal import CGStreamer

/// The values of a property.
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
            case (let lowest, Int.max): "a whole number of at least \(lowest)"
            case (Int.min, let highest): "a whole number of at most \(highest)"
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
    /// Nil for properties without a text form, such as pointers and objects.
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

    /// Casts to a specific type, which begins with the common specification.
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

/// The flags of a property. Some of the C ones are macros that Swift does not import.
enum PropertyFlags {
    static let readable: UInt32 = 1 << 0
    static let writable: UInt32 = 1 << 1
    static let constructOnly: UInt32 = 1 << 3
    static let controllable: UInt32 = 1 << 9
    static let mutableReady: UInt32 = 1 << 10
    static let mutablePaused: UInt32 = 1 << 11
    static let mutablePlaying: UInt32 = 1 << 12
    static let isDeprecated: UInt32 = 1 << 31

    static func of(_ specification: UnsafeMutablePointer<GParamSpec>) -> UInt32 {
        UInt32(bitPattern: Int32(truncatingIfNeeded: specification.pointee.flags.rawValue))
    }

    /// The last state in which a property can change, if it is stated.
    static func highestState(_ flags: UInt32) -> ElementState? {
        if flags & (mutablePlaying | controllable) != 0 { return nil }
        if flags & mutablePaused != 0 { return .paused }
        return flags & mutableReady != 0 ? .ready : nil
    }
}
