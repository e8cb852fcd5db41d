internal import ArgumentParser
internal import GraphFile
internal import MediaGraph

struct SchemaCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schema",
        abstract: "Print the JSON Schema of graph files, by which editors complete and check them.")

    func run() {
        Console.say(String(GraphSchema(kinds: KnownNodes.catalogue.kinds).json.dropLast()))
    }
}
