internal import ArgumentParser
internal import GraphFile
internal import MediaGraph
internal import MediaNodes

struct ValidateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "validate", abstract: "Tell everything that is wrong with a graph file, with lines.")

    @OptionGroup var graph: GraphFlags

    func run() throws {
        let document = try graph.document()
        let nodes = document.graph.nodes.count
        Console.say("\(graph.shownPath) is right: \(nodes == 1 ? "one node" : "\(nodes) nodes").")
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
                "Unbound: \(names). A program binds a function to each of these names; the command line has none.")
        }
    }
}
