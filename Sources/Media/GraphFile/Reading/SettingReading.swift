public import MediaGraph

extension Tree.Scalar {
    /// The value of a setting with this contract. A value that does not fit keeps its apparent type, so that validation
    /// can report it. Nil if it is empty.
    func value(for contract: SettingContract?) -> SettingValue? {
        if isNull { return nil }
        if isQuoted, !wasFilledIn { return .text(text) }
        switch contract?.domain {
        case .text, .choice: return .text(text)
        case .flag: return SettingValue.flag(text) ?? .text(text)
        case .integer:
            let isBitrate = contract?.unit == SettingContract.bitsPerSecond
            return SettingValue.integer(text, isBitrate: isBitrate) ?? SettingValue.plain(text)
        case .number: return Double(plain: text).map { .number($0) } ?? SettingValue.plain(text)
        case nil: return SettingValue.plain(text)
        }
    }
}

extension SettingContract {
    /// A written value, read like in a graph file: `300k` is a bitrate. A value that does not fit keeps its apparent
    /// type.
    public func value(written text: String) -> SettingValue {
        let scalar = Tree.Scalar(text: text, isQuoted: false, place: GraphPlace(line: 1, column: 1), wasFilledIn: true)
        return scalar.value(for: self) ?? .text(text)
    }

    static let bitsPerSecond = "bit/s"
}

extension SettingValue {
    /// The type of a plain scalar (YAML 1.2 core schema, without octal and hexadecimal numbers).
    fileprivate static func plain(_ text: String) -> SettingValue {
        if let flag = flag(text) { return flag }
        if let integer = Int(text) { return .integer(integer) }
        if let number = Double(plain: text) { return .number(number) }
        return .text(text)
    }

    /// Digits, or for a bitrate, a number with the suffix `k` or `M`.
    fileprivate static func integer(_ text: String, isBitrate: Bool) -> SettingValue? {
        if let number = Int(text) { return .integer(number) }
        let factors: [Character: Double] = isBitrate ? ["k": 1e3, "M": 1e6] : [:]
        let factor = text.last.flatMap { factors[$0] }
        // 2.5M is a whole number of bits, 2.5 is not.
        return Double(plain: factor == nil ? text : String(text.dropLast()))
            .flatMap { Int(exactly: $0 * (factor ?? 1)) }.map { .integer($0) }
    }

    fileprivate static func flag(_ text: String) -> SettingValue? {
        switch text {
        case "true", "True", "TRUE": .flag(true)
        case "false", "False", "FALSE": .flag(false)
        default: nil
        }
    }
}

extension Double {
    /// A decimal number. Rejects the words and hexadecimal digits that the standard library accepts.
    fileprivate init?(plain text: String) {
        guard text.utf8.allSatisfy({ "0123456789+-.eE".utf8.contains($0) }), let number = Double(text), number.isFinite
        else { return nil }
        self = number
    }
}
