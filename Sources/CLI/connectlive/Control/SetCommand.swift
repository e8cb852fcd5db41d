internal import ArgumentParser
internal import MediaGraph

/// `NODE.SETTING=VALUE`
struct SettingChange: ExpressibleByArgument {
    var node: String
    var setting: String
    /// The value as it stands on the command line.
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
    /// What a person wrote: a flag or a number where it is one, else text.
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
        commandName: "set", abstract: "Change settings of a running pipeline, such as encoder.bitrate=1000000.",
        discussion: "'connectlive nodes KIND' lists which settings of a node can be changed while it runs.")

    @Argument(help: "What to change: NODE.SETTING=VALUE.") var changes: [SettingChange]

    @Option(help: "Process number or control socket (default: the only pipeline that runs).") var to: String?

    func run() async throws {
        try await ControlClient.attached(to: to) { client in
            for change in changes {
                let request = ControlRequest.set(node: change.node, setting: change.setting, change.value)
                let applied = try await client.ask(request, for: AppliedSetting.self)
                if let note = applied.note { Console.say(note) }
            }
        }
    }
}
