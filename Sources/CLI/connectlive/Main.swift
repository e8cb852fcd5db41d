internal import ArgumentParser
internal import ConnectLiveSDK
internal import Foundation
internal import MediaGraph

/// Runs the command line. Exit codes: 0 success, 1 failure, 2 invalid command line.
@main
enum Main {
    static func main() async {
        var command: any ParsableCommand
        do {
            command = try ConnectLiveCommand.parseAsRoot()
        } catch {
            exit(reporting: error)
        }
        // Plugin output appears line by line, also in a file or a journal.
        StandardOutput.bufferLines()
        do {
            try KnownNodes.loadPlugins()
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
        } catch let error as ExitCode {
            Foundation.exit(error.rawValue)
        } catch  where ConnectLiveCommand.exitCode(for: error) == .success {
            // A command that only prints help ends here.
            exit(reporting: error)
        } catch {
            Console.error("\(error)")
            Console.drain()
            Foundation.exit(1)
        }
        Console.drain()
    }

    /// Prints help and the version to standard output with status 0. Maps the parser's status 64 to 2.
    private static func exit(reporting error: any Error) -> Never {
        let code = ConnectLiveCommand.exitCode(for: error)
        let text = ConnectLiveCommand.fullMessage(for: error)
        if code == .success {
            print(text)
            Foundation.exit(0)
        }
        if let (command, word) = unknownCommand(of: Array(CommandLine.arguments.dropFirst())) {
            Console.error("There is no command \"\(word)\"\(word.suggestion(among: names(of: command)))")
            let isRoot = command is ConnectLiveCommand.Type
            let name = isRoot ? "" : command.configuration.commandName.map { " \($0)" } ?? ""
            Console.line("  See 'connectlive\(name) --help' for all commands.")
            Foundation.exit(2)
        }
        Console.error(text.hasPrefix("Error: ") ? String(text.dropFirst(7)) : text)
        Foundation.exit(code == .validationFailure ? 2 : code.rawValue)
    }

    /// The first word that should be a command and is none, with the command above it.
    private static func unknownCommand(
        of arguments: [String]
    ) -> (above: any ParsableCommand.Type, word: String)? {
        var command: any ParsableCommand.Type = ConnectLiveCommand.self
        for word in arguments {
            guard !command.configuration.subcommands.isEmpty, !word.hasPrefix("-"), word != "help" else { return nil }
            let next = command.configuration.subcommands.first {
                $0.configuration.commandName == word || $0.configuration.aliases.contains(word)
            }
            guard let next else {
                // The default command may take words of its own.
                let isOther =
                    command.configuration.defaultSubcommand != nil && word.nearest(among: names(of: command)) == nil
                return isOther ? nil : (command, word)
            }
            command = next
        }
        return nil
    }

    private static func names(of command: any ParsableCommand.Type) -> [String] {
        command.configuration.subcommands.compactMap { $0.configuration.commandName } + ["help"]
    }
}

struct ConnectLiveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "connectlive",
        abstract: "Publish cameras and files to real-time rooms, watch rooms, and run media graphs.",
        version: ConnectLive.version,
        subcommands: [
            DemoCommand.self, ServeCommand.self, PublishCommand.self, ViewCommand.self, DevicesCommand.self,
            CameraCommand.self, DoctorCommand.self,
            RunCommand.self, PlanCommand.self, ValidateCommand.self, GraphCommand.self, NodesCommand.self,
            SchemaCommand.self, TopCommand.self, RoomsCommand.self, WhyCommand.self, ApplyCommand.self, SetCommand.self,
            PluginCommand.self,
        ])
}
