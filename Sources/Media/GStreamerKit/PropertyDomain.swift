internal import CGLib
internal import CGStreamer
import MediaGraph

/// The values of a property.
struct PropertyDomain {
    let values: SettingContract.Domain
    /// The notation of text that is not arbitrary, such as a fraction.
    let form: String?

    private init(_ values: SettingContract.Domain, form: String? = nil) {
        self.values = values
        self.form = form
    }

    /// Nil for properties without a text form, such as pointers and objects.
    init?(_ specification: UnsafeMutablePointer<GParamSpec>) {
        let type = specification.pointee.value_type
        switch g_type_fundamental(type) {
        case FundamentalType.boolean: self.init(.flag)
        case FundamentalType.string: self.init(.text)
        case FundamentalType.enumeration:
            let words = Self.words(of: type) { (list: GEnumClass) in
                (0..<Int(list.n_values)).map { list.values[$0].value_nick }
            }
            self.init(.choice(words))
        case FundamentalType.flags:
            let words = Self.words(of: type) { (list: GFlagsClass) in
                (0..<Int(list.n_values)).map { list.values[$0].value_nick }
            }
            self.init(.text, form: "any of \(words.joined(separator: ", ")), joined by +")
        default:
            if let numeric = Self.numbers(specification) {
                self.init(numeric)
            } else if let form = Self.forms[type] {
                self.init(.text, form: form)
            } else {
                return nil
            }
        }
    }

    private static let forms: [GType: String] = [
        gst_fraction_get_type(): "a fraction such as 30/1",
        gst_caps_get_type(): "a format such as video/x-raw,width=640",
        gst_structure_get_type(): "a structure such as controls,brightness=120",
        gst_value_array_get_type(): "a list such as < 1, 2 >",
        gst_value_list_get_type(): "a list such as < 1, 2 >",
    ]

    /// The range of a numeric property.
    private static func numbers(_ specification: UnsafeMutablePointer<GParamSpec>) -> SettingContract.Domain? {
        func ends<Special, Number>(
            _ lowest: KeyPath<Special, Number>, _ highest: KeyPath<Special, Number>
        ) -> (Number, Number) {
            let special = UnsafeMutableRawPointer(specification).assumingMemoryBound(to: Special.self).pointee
            return (special[keyPath: lowest], special[keyPath: highest])
        }
        func integers<Number: BinaryInteger>(_ ends: (Number, Number)) -> SettingContract.Domain {
            .integer(Int(clamping: ends.0)...Int(clamping: ends.1))
        }
        func numbers<Number: BinaryFloatingPoint>(_ ends: (Number, Number)) -> SettingContract.Domain {
            .number(Double(ends.0)...Double(ends.1))
        }
        return switch g_type_fundamental(specification.pointee.value_type) {
        case FundamentalType.char: integers(ends(\GParamSpecChar.minimum, \.maximum))
        case FundamentalType.unsignedChar: integers(ends(\GParamSpecUChar.minimum, \.maximum))
        case FundamentalType.int: integers(ends(\GParamSpecInt.minimum, \.maximum))
        case FundamentalType.unsignedInt: integers(ends(\GParamSpecUInt.minimum, \.maximum))
        case FundamentalType.long: integers(ends(\GParamSpecLong.minimum, \.maximum))
        case FundamentalType.unsignedLong: integers(ends(\GParamSpecULong.minimum, \.maximum))
        case FundamentalType.int64: integers(ends(\GParamSpecInt64.minimum, \.maximum))
        case FundamentalType.unsignedInt64: integers(ends(\GParamSpecUInt64.minimum, \.maximum))
        case FundamentalType.float: numbers(ends(\GParamSpecFloat.minimum, \.maximum))
        case FundamentalType.double: numbers(ends(\GParamSpecDouble.minimum, \.maximum))
        default: nil
        }
    }

    /// The nicknames of an enumeration's or a flag type's values.
    private static func words<Class>(of type: GType, _ nicks: (Class) -> [UnsafePointer<CChar>?]) -> [String] {
        guard let opaque = g_type_class_ref(type) else { return [] }
        defer { g_type_class_unref(opaque) }
        return nicks(opaque.assumingMemoryBound(to: Class.self).pointee).compactMap { $0.map { String(cString: $0) } }
    }
}

extension SettingContract {
    /// The contract of a property that can be set while an element exists. Nil for others.
    init?(_ specification: UnsafeMutablePointer<GParamSpec>, defaultValue: SettingValue?) {
        let flags = PropertyFlags.of(specification)
        guard flags & PropertyFlags.writable != 0, flags & PropertyFlags.constructOnly == 0,
            let domain = PropertyDomain(specification)
        else { return nil }
        let name = String(cString: specification.pointee.name)
        let blurb = g_param_spec_get_blurb(specification).map { String(cString: $0) } ?? ""
        let isChangeable = PropertyFlags.highestState(flags) == nil
        self.init(
            name, domain.values, default: defaultValue.flatMap { $0.fitting(domain.values) },
            isChangeable: isChangeable, isSecret: Self.soundsSecret(name),
            domain.form.map { blurb.isEmpty ? $0 : "\(blurb) (\($0))" } ?? blurb)
        isChangeUnsaid =
            isChangeable && flags & (PropertyFlags.mutablePlaying | PropertyFlags.controllable) == 0
    }
}

extension SettingValue {
    /// Nil for the defaults of properties that are unset: numbers outside of the range, words that are not choices.
    fileprivate func fitting(_ domain: SettingContract.Domain) -> SettingValue? {
        switch (self, domain) {
        case (.flag, .flag): self
        case (.integer(let number), .integer(let range)): range.contains(number) ? self : nil
        case (.integer(let number), .number(let range)): range.contains(Double(number)) ? .number(Double(number)) : nil
        case (.number(let number), .number(let range)): range.contains(number) ? self : nil
        case (.text(let text), .choice(let words)): words.contains(text) ? self : nil
        case (.text(let text), .text): text == "0" ? nil : self
        default: nil
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
