internal import ArgumentParser
internal import MediaGraph

/// `NODE.SETTING=VALUE`
struct SettingChange: ExpressibleByArgument {
    var node: String
    var setting: String
    /// The value as written on the command line.
    var written: String

    var value: SettingValue { SettingValue(written: written) }

    init?(argument: String) {
        guard let equals = argument.firstIndex(of: "="), let dot = argument[..<equals].firstIndex(of: ".") else {
            return nil
        }
        node = String(argument[..<dot])
        setting = String(argument[argument.index(after: dot)..<equals])
        written = String(argument[argument.index(after: equals)...])
        guard !node.isEmpty, !setting.isEmpty else { return nil }
    }
}

extension SettingValue {
    /// Reads `true`, `false` and numbers as such, everything else as text.
    init(written text: String) {
        switch text {
        case "true": self = .flag(true)
        case "false": self = .flag(false)
        default:
            if let integer = Int(text) {
                self = .integer(integer)
            } else if let number = Double(text), number.isFinite {
                self = .number(number)
            } else {
                self = .text(text)
            }
        }
    }
}

struct SetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Change settings of a running pipeline.",
        discussion: "For example: connectlive set encoder.bitrate=1000000. 'connectlive nodes KIND' marks the "
            + "settings that can change while a node runs.")

    @Argument(help: "New value of a setting: NODE.SETTING=VALUE.") var changes: [SettingChange]

    @Option(help: "Process number or control socket (default: the only running pipeline).") var to: String?

    func run() async throws {
        try await ControlClient.attached(to: to, by: "--to") { client in
            // Check all changes before applying any.
            for change in changes where changes.count > 1 {
                let request = ControlRequest.check(node: change.node, setting: change.setting, change.value)
                _ = try await client.ask(request, for: Done.self)
            }
            for change in changes {
                let request = ControlRequest.set(node: change.node, setting: change.setting, change.value)
                let applied = try await client.ask(request, for: AppliedSetting.self)
                Console.say(applied.note ?? "Set \(change.node).\(change.setting) to \(change.written).")
            }
        }
    }
}
