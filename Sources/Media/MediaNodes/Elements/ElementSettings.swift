import GStreamerKit
import MediaGraph

/// Maps the properties of an element to the settings of a node.
enum ElementSettings {
    static func contracts(of element: ElementDescription, _ shape: ElementShape) -> [SettingContract] {
        let use = fileUse(of: element)
        var contracts = element.properties.map { property in
            property.name == "location" ? use.map(property.naming) ?? property : property
        }
        for input in shape.inputs where !input.template.properties.isEmpty {
            let ports =
                input.port.isRepeated
                ? (1...ElementShape.listedPads).map { "\(input.port.name)\($0)" } : [input.port.name]
            for port in ports {
                contracts += input.template.properties.map { $0.with(name: "\(port).\($0.name)") }
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
}

extension SettingContract {
    /// The contract with another name, or another default.
    func with(name: String, default value: SettingValue? = nil) -> SettingContract {
        var contract = SettingContract(
            name, domain, default: value ?? defaultValue, isRequired: isRequired, isChangeable: isChangeable,
            isSecret: isSecret || Self.soundsSecret(name), unit: unit, summary)
        contract.isChangeUnsaid = isChangeUnsaid
        return contract
    }
}
