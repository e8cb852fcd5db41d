internal import ArgumentParser
internal import GraphFile

struct ApplyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "apply", abstract: "Turn a running pipeline into the graph of a file, as one transaction.",
        discussion: "What both have in common goes on without losing a frame. What is new must deliver its first frame "
            + "in time; else everything stays as it was.")

    @OptionGroup var graph: GraphFlags

    @Option(help: "Process number or control socket (default: the only pipeline that runs).") var to: String?

    @Option(help: "Seconds that what is new has for its first frame, up to 60 (default: 2).") var deadline: Double?

    func validate() throws {
        if let deadline, !(deadline > 0 && deadline <= 60) {
            throw ValidationError("--deadline takes more than 0 and up to 60 seconds.")
        }
    }

    func run() async throws {
        let document = try graph.document()
        let edit: AppliedEdit
        do {
            edit = try await ControlClient.attached(to: to) { client in
                try await client.ask(.apply(document.graph, deadline: deadline), for: AppliedEdit.self)
            }
        } catch let problem as ControlProblem {
            throw graph.refusal(problem.code, problem.message, about: problem.node, in: document)
        }
        if edit.changes.isEmpty { Console.say("Nothing has changed.") }
        for change in edit.changes { Console.say(change) }
    }
}
