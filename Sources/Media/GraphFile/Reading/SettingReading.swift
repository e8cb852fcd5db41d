public import MediaGraph

extension SettingContract? {
    /// The value that a scalar stands for, as the setting needs it. What does not fit comes back as what it looks like,
    /// so that the graph's validation can say what is wrong; nil where nothing stands.
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

    /// Digits, or with the unit bit/s a number with `k` or `M` behind it.
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
                // 2.5M is a whole number of bits, 2.5 is none.
                Double(plain: String(digits)).map { $0 * factor } == Double(number) ? .integer(number) : nil
            }
    }
}

extension SettingContract {
    /// What somebody has written for this setting, read as a graph file reads it: `300k` is a bitrate. What does not fit
    /// comes back as what it looks like.
    public func value(written text: String) -> SettingValue {
        let scalar = Tree.Scalar(text: text, isQuoted: false, place: GraphPlace(line: 1, column: 1), wasFilledIn: true)
        return SettingContract?.some(self).value(of: scalar) ?? .text(text)
    }

    static let bitsPerSecond = "bit/s"
    /// What may stand behind a number of bit/s, as the field writes it.
    static let factors: [Character: Double] = ["k": 1e3, "M": 1e6]
}

extension SettingValue {
    /// What a plain scalar is by itself (YAML 1.2 core schema, without octal and hexadecimal numbers).
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
    /// A decimal number, without the words and hexadecimal digits that the standard library takes too.
    fileprivate init?(plain text: String) {
        guard text.utf8.allSatisfy({ "0123456789+-.eE".utf8.contains($0) }), let number = Double(text), number.isFinite
        else { return nil }
        self = number
    }
}
