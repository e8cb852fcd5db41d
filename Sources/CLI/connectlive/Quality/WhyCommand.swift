internal import ArgumentParser
internal import Foundation

struct WhyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "why", abstract: "Show why the quality of video changed: the last ten changes.",
        discussion:
            "For each running 'publish', 'view', 'run' or 'demo' of yours: when its video got worse or better, and what the "
            + "network, the viewers or the processor allowed then. The changes end with the program. "
            + "docs/troubleshooting.md explains the lines, and docs/congestion-control.md the decisions.")

    @Argument(help: "Process number (default: all programs of yours).") var pid: Int?

    func run() throws {
        let programs = QualityChanges.all().filter { pid == nil || $0.pid == pid }
        guard !programs.isEmpty else {
            if let pid, kill(pid_t(truncatingIfNeeded: pid), 0) != 0 {
                throw CommandFailure(code: "control.none-running", "Process \(pid) does not run, or is not yours.")
            }
            return Console.say(
                pid.map { "The quality of process \($0) has not changed since its start." }
                    ?? "No publish, view, run or demo of yours runs whose quality has changed since its start.")
        }
        for (number, program) in programs.enumerated() {
            let title = program.title.map { "\($0), process \(program.pid):" } ?? "Process \(program.pid):"
            if pid == nil { Console.say((number > 0 ? "\n" : "") + title) }
            Console.say(program.changes.trimmingCharacters(in: .newlines))
        }
    }
}
