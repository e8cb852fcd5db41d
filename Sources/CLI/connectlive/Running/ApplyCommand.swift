internal import ArgumentParser
internal import GraphFile

struct ApplyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "apply", abstract: "Change a running pipeline to the graph of a file, as one transaction.",
        discussion: "Nodes in both graphs keep running without losing a frame. New nodes must deliver their first "
            + "frame within the deadline; otherwise nothing changes.")

    @OptionGroup var graph: GraphFlags

    @Option(help: "Process number or control socket (default: the only running pipeline).") var to: String?

    @Option(help: "Timeout for the first frame of each new node, in seconds (default: 2, at most 60).")
    var deadline: Double?

    func validate() throws {
        if let deadline, !(deadline > 0 && deadline <= 60) {
            throw ValidationError("--deadline must be more than 0 and at most 60 seconds.")
        }
    }

    func run() async throws {
        let document = try graph.document()
        let edit: AppliedEdit
        do {
            edit = try await ControlClient.attached(to: to, by: "--to") { client in
                try await client.ask(.apply(document.graph, deadline: deadline), for: AppliedEdit.self)
            }
        } catch let problem as ControlProblem {
            throw graph.refusal(problem.code, problem.message, about: problem.node, in: document)
        }
        if edit.changes.isEmpty { Console.say("Nothing changed: the pipeline runs this graph already.") }
        for change in edit.changes { Console.say(change) }
        for warning in edit.warnings ?? [] { Console.line("warning: \(warning)") }
    }
}
