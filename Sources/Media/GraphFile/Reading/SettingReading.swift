public import MediaGraph

extension SettingContract? {
    /// The scalar as a value of the setting's type. A value that does not fit keeps its apparent type, so that
    /// validation can report it. Nil if it is empty.
    func value(of scalar: Tree.Scalar) -> SettingValue? {
        let text = scalar.text
        if scalar.isNull { return nil }
        if scalar.isQuoted, !scalar.wasFilledIn { return .text(text) }
        switch self?.domain {
        case .text, .choice: return .text(text)
        case .flag: return SettingValue.flag(text) ?? .text(text)
        case .integer: return wholeNumber(text) ?? SettingValue.plain(text)
        case .number: return Double(plain: text).map { .number($0) } ?? SettingValue.plain(text)
        case nil: return SettingValue.plain(text)
        }
    }

    /// Digits, or for the unit bit/s, a number with the suffix `k` or `M`.
    private func wholeNumber(_ text: String) -> SettingValue? {
        if let number = Int(text) { return .integer(number) }
        var digits = text[...]
        var factor = 1.0
        if self?.unit == SettingContract.bitsPerSecond, let last = text.last, let known = SettingContract.factors[last]
        {
            digits = text.dropLast()
            factor = known
        }
        return Double(plain: String(digits)).flatMap { Int(exactly: ($0 * factor).rounded(.toNearestOrEven)) }
            .flatMap { number in
                // 2.5M is a whole number of bits, 2.5 is not.
                Double(plain: String(digits)).map { $0 * factor } == Double(number) ? .integer(number) : nil
            }
    }
}

extension SettingContract {
    /// A written value, read like in a graph file: `300k` is a bitrate. A value that does not fit keeps its apparent
    /// type.
    public func value(written text: String) -> SettingValue {
        let scalar = Tree.Scalar(text: text, isQuoted: false, place: GraphPlace(line: 1, column: 1), wasFilledIn: true)
        return SettingContract?.some(self).value(of: scalar) ?? .text(text)
    }

    static let bitsPerSecond = "bit/s"
    /// Suffixes of bitrates.
    static let factors: [Character: Double] = ["k": 1e3, "M": 1e6]
}

extension SettingValue {
    /// The type of a plain scalar (YAML 1.2 core schema, without octal and hexadecimal numbers).
    fileprivate static func plain(_ text: String) -> SettingValue {
        if let flag = flag(text) { return flag }
        if let integer = Int(text) { return .integer(integer) }
        if let number = Double(plain: text) { return .number(number) }
        return .text(text)
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
