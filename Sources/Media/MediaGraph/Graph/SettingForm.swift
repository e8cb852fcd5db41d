extension SettingContract {
    /// The contract of a text setting that matches a regular expression. `words` completes "write …".
    public func written(_ pattern: String, _ words: String) -> SettingContract {
        with(\.form, Form(pattern, words))
    }

    /// The contract of an integer with few accepted values.
    public func limited(to values: [Int]) -> SettingContract { with(\.values, values) }

    /// The contract of a setting that cannot be given together with others.
    public func excluding(_ settings: [String]) -> SettingContract { with(\.excludedSettings, settings) }

    /// The contract with a value for examples.
    public func example(_ value: SettingValue) -> SettingContract { with(\.example, value) }

    /// The contract of the same setting, naming a file with this use.
    public func naming(_ use: FileUse) -> SettingContract { with(\.file, use) }

    private func with<Value>(_ member: WritableKeyPath<SettingContract, Value>, _ value: Value) -> SettingContract {
        var contract = self
        contract[keyPath: member] = value
        return contract
    }

    /// The end of a sentence about a wrong value, without the full stop; nil for an accepted value. An integer is
    /// accepted where a number is expected.
    public func problem(of value: SettingValue) -> String? {
        if isSecret, value == .text(Self.hidden) {
            return "is \(Self.hidden), which stands for a hidden value; write the value itself"
        }
        if value == defaultValue { return nil }
        return switch (domain, value) {
        case (.flag, .flag): nil
        case (.text, .text(let text)): complaint(aboutText: text)
        case (.integer(let range), .integer(let number)): complaint(about: number, range)
        case (.number(let range), .integer(let number)): complaint(about: Double(number), range)
        case (.number(let range), .number(let number)): complaint(about: number, range)
        case (.choice(let choices), .text(let text)):
            choices.contains(text)
                ? nil
                : "is \"\(text)\", not one of \(choices.joined(separator: ", "))"
                    + text.suggestion(among: choices, else: "")
        default:
            "is \(isSecret ? "another value" : "\(value)"); expected "
                + (values.map(Self.alternatives) ?? domain.words)
                + ending(for: value)
        }
    }

    /// A number in quotes is text.
    private func ending(for value: SettingValue) -> String {
        guard case .text(let text) = value, Double(text) != nil,
            text.allSatisfy({ $0.isNumber || "+-.".contains($0) })
        else { return expectedUnit }
        switch domain {
        case .integer, .number: return ", without quotes"
        default: return expectedUnit
        }
    }

    private func complaint(aboutText text: String) -> String? {
        guard let form, !form.matches(text) else { return nil }
        // A URL may contain a password.
        let isShown = !isSecret && !text.contains("@")
        return (isShown ? "is \"\(text)\"" : "has another form") + "; write \(form.words)"
    }

    private func complaint(about number: Int, _ range: ClosedRange<Int>) -> String? {
        if values?.contains(number) ?? range.contains(number) { return nil }
        let accepted =
            values.map { "not \(Self.alternatives($0))" } ?? "outside \(range.lowerBound) to \(range.upperBound)"
        return "is \(number), \(accepted)\(suffix)"
    }

    private func complaint(about number: Double, _ range: ClosedRange<Double>) -> String? {
        range.contains(number)
            ? nil : "is \(number.short), outside \(range.lowerBound.short) to \(range.upperBound.short)\(suffix)"
    }

    /// The usual mistake is a number with its unit, which only a bitrate may have.
    private var expectedUnit: String { unit == nil || unit == "bit/s" ? suffix : ", without a unit" }

    private var suffix: String {
        guard let unit else { return "" }
        return " \(unit)" + (unit == "bit/s" ? ", such as 64k or 500k" : "")
    }

    /// Such as `0, 90, 180 or 270`.
    static func alternatives(_ values: [Int]) -> String {
        let words = values.map(String.init)
        guard let last = words.last, words.count > 1 else { return words.first ?? "" }
        return "\(words.dropLast().joined(separator: ", ")) or \(last)"
    }
}

extension SettingContract.Domain {
    /// The values for messages, such as `a whole number from 1 to 9`.
    package var words: String {
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
                ? "a number" : "a number from \(range.lowerBound.short) to \(range.upperBound.short)"
        case .text: "text"
        case .choice(let choices): "one of \(choices.joined(separator: ", "))"
        }
    }
}

extension Double {
    /// A whole number without its ".0".
    package var short: String { Int(exactly: self).map { "\($0)" } ?? "\(self)" }
}

extension SettingContract.Form {
    /// The longest text that is matched, in bytes. Longer text is accepted unmatched, because matching it is slow.
    private static let longestText = 4096

    fileprivate func matches(_ text: String) -> Bool {
        guard text.utf8.count <= Self.longestText, let expression = try? Regex(pattern) else { return true }
        return (try? expression.wholeMatch(in: text)) != nil
    }
}
