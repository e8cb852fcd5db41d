internal import ArgumentParser
internal import GraphFile
internal import MediaGraph
internal import MediaNodes

struct SchemaCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schema",
        abstract: "Print the JSON Schema of graph files, by which editors complete and check them.")

    @OptionGroup var plugins: PluginFlags

    func run() {
        Console.say(String(GraphSchema(kinds: KnownNodes.registry.kinds).json.dropLast()))
    }
}
