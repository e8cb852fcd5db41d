internal import ArgumentParser
internal import GraphFile
internal import MediaGraph
internal import MediaNodes

struct SchemaCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schema",
        abstract: "Print the JSON Schema of graph files, for completion and checks in editors.")

    @OptionGroup var plugins: PluginFlags

    func run() {
        Console.say(String(GraphSchema(kinds: KnownNodes.registry.kinds).json.dropLast()))
    }
}
