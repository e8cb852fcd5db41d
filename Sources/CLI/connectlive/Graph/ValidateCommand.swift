internal import ArgumentParser
internal import GraphFile
internal import MediaGraph
internal import MediaNodes

struct ValidateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "validate", abstract: "Check a graph file and report every problem with its line number.")

    @OptionGroup var graph: GraphFlags

    func run() throws {
        let document = try graph.document()
        let check = DevicelessCheck(document.graph)
        if let problem = check.problem {
            throw graph.refusal(problem.code, problem.message, about: problem.node, in: document)
        }
        let nodes = document.graph.nodes.count
        Console.say("\(graph.shownPath) is valid: \(nodes == 1 ? "one node" : "\(nodes) nodes").")
        for variable in document.variables {
            let value =
                variable.value.map { value in
                    value.isEmpty ? "empty" : variable.isSecret ? SettingContract.hidden : value
                } ?? ""
            let isDefault = variable.value == variable.defaultValue ? ", the default" : ""
            Console.say("  \(variable.name): \(value)\(isDefault)" + (variable.summary.map { "  (\($0))" } ?? ""))
        }
        let calling = document.graph.nodes.filter { KnownNodes.registry.kind(named: $0.kind)?.binding != nil }
        if !calling.isEmpty {
            let names = calling.map(\.name).joined(separator: ", ")
            Console.say(
                "Unbound: \(names). These nodes need a program that binds a function to each name; 'connectlive run' "
                    + "cannot.")
        }
        for warning in check.warnings { Console.line("warning: \(warning)") }
        for obstacle in check.obstacles {
            let refusal = graph.refusal(obstacle.code, obstacle.message, about: obstacle.node, in: document)
            Console.line("warning: on this machine, the graph cannot run: \(refusal)")
        }
    }
}
