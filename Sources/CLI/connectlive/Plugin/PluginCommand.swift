internal import ArgumentParser

struct PluginCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "plugin", abstract: "Create and test plugins, which are shared libraries with nodes.",
        subcommands: [NewPlugin.self, PluginTest.self, ExamineCommand.self])
}
