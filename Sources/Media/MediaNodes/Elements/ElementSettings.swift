import GStreamerKit
import MediaGraph

/// Maps the properties of an element to the settings of a node.
enum ElementSettings {
    static func contracts(of element: ElementDescription, _ shape: ElementShape) -> [SettingContract] {
        let use = fileUse(of: element)
        var contracts = element.properties.map { property in
            var contract = Self.contract(property, named: property.name)
            if property.name == "location" { contract.file = use }
            return contract
        }
        for input in shape.inputs where !input.template.properties.isEmpty {
            let ports =
                input.port.isRepeated
                ? (1...ElementShape.listedPads).map { "\(input.port.name)\($0)" } : [input.port.name]
            for port in ports {
                contracts += input.template.properties.map { contract($0, named: "\(port).\($0.name)") }
            }
        }
        return contracts
    }

    /// How an element uses the file of its property `location`.
    private static func fileUse(of element: ElementDescription) -> FileUse? {
        switch element.entry.classification {
        case "Sink/File": .writes
        case "Source/File": .reads
        default: nil
        }
    }

    /// The contract of one property with its own name. Nil if the element lacks it.
    static func contract(
        of property: String, in element: ElementDescription, named name: String
    ) -> SettingContract? {
        element.property(property).map { contract($0, named: name) }
    }

    private static func contract(_ property: PropertyDescription, named name: String) -> SettingContract {
        var summary = property.summary
        if let form = form(of: property.domain) { summary += summary.isEmpty ? form : " (\(form))" }
        let domain = domain(of: property.domain)
        var contract = SettingContract(
            name, domain, default: property.defaultValue.flatMap { SettingValue($0, in: domain) },
            isChangeable: property.change == .always || property.change == .unsaid,
            isSecret: SettingContract.soundsSecret(name), summary)
        contract.isChangeUnsaid = property.change == .unsaid
        return contract
    }

    private static func domain(of domain: PropertyDomain) -> SettingContract.Domain {
        switch domain {
        case .flag: .flag
        case .integer(let range): .integer(range)
        case .number(let range): .number(range)
        case .choice(let words): .choice(words)
        case .text, .flags, .fraction, .caps, .structure, .list: .text
        }
    }

    /// The notation of text with a form.
    private static func form(of domain: PropertyDomain) -> String? {
        switch domain {
        case .flags, .fraction, .caps, .structure, .list: "\(domain)"
        case .flag, .integer, .number, .choice, .text: nil
        }
    }
}

extension SettingValue {
    /// Nil for values that settings cannot have, and for those out of range, as "unset" often is.
    fileprivate init?(_ value: PropertyValue, in domain: SettingContract.Domain) {
        switch (value, domain) {
        case (.flag(let flag), .flag): self = .flag(flag)
        case (.integer(let number), .integer(let range)) where range.contains(number): self = .integer(number)
        case (.integer(let number), .number(let range)) where range.contains(Double(number)):
            self = .number(Double(number))
        case (.number(let number), .number(let range)) where range.contains(number): self = .number(number)
        case (.text(let text), .choice(let words)) where words.contains(text): self = .text(text)
        // No flags are written as a number.
        case (.text(let text), .text) where text != "0": self = .text(text)
        case (.list, .text): self = .text(value.text)
        default: return nil
        }
    }
}
