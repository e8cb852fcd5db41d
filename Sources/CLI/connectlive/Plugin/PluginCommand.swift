internal import ArgumentParser

struct PluginCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "plugin", abstract: "Write and test plugins: shared libraries that bring nodes of their own.",
        subcommands: [NewPlugin.self, PluginTest.self, ExamineCommand.self])
}
