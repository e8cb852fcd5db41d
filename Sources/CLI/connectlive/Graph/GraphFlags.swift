internal import ArgumentParser
internal import Foundation
internal import GraphFile
internal import MediaGraph
internal import MediaNodes

/// `NAME=VALUE`.
struct VariableValue: ExpressibleByArgument {
    var name: String
    var value: String

    init?(argument: String) {
        guard let equals = argument.firstIndex(of: "="), equals != argument.startIndex else { return nil }
        name = String(argument[..<equals])
        value = String(argument[argument.index(after: equals)...])
    }
}

/// A graph file and the values of its variables.
struct GraphFlags: ParsableArguments {
    @Argument(
        help: "A graph file, YAML or JSON; - for standard input.", completion: .file(extensions: ["yaml", "json"]))
    var file: String

    @Option(name: .customLong("set"), help: "Set a variable of the file: NAME=VALUE. Repeatable.")
    var values: [VariableValue] = []

    @OptionGroup var plugins: PluginFlags

    init() {}

    /// For commands with other flags.
    init(file: String, values: [VariableValue]) {
        self.file = file
        self.values = values
        plugins = PluginFlags()
    }

    func validate() throws {
        var names: Set<String> = []
        for value in values where !names.insert(value.name).inserted {
            throw ValidationError("--set has \"\(value.name)\" twice. Set each variable once.")
        }
    }

    /// The file's name in messages.
    var shownPath: String { file == "-" ? "standard input" : file }

    /// Reads the file.
    func read() throws -> GraphReading {
        GraphReading(
            try bytes(), values: Dictionary(values.map { ($0.name, $0.value) }) { $1 }, catalogue: KnownNodes.registry)
    }

    /// The document. Prints all problems and ends the command if there are any.
    func document() throws -> GraphDocument {
        let reading = try read()
        guard reading.problems.isEmpty else {
            Self.tell(reading, path: shownPath)
            throw ExitCode.failure
        }
        return reading.document
    }

    /// The plan of the document on this machine. Throws an error with the line of the node that cannot run.
    func plan(_ document: GraphDocument, measuringCosts: Bool) async throws -> GraphPlan {
        do {
            return try await PlanCommand.plan(document.graph, measuringCosts: measuringCosts)
        } catch let error as MediaError {
            throw refusal(error.code, error.message, about: error.node, in: document)
        }
    }

    /// The error of a node, with the node's line in the file.
    func refusal(_ code: String, _ message: String, about node: String?, in document: GraphDocument) -> CommandFailure {
        let place = node.flatMap { document.places.nodes[$0] }
        return CommandFailure(code: code, place.map { "\(shownPath):\($0): \(message)" } ?? message)
    }

    /// Prints the problems and their number.
    static func tell(_ reading: GraphReading, path: String) {
        let count = reading.problems.count
        Console.line(String(reading.report(path: path).dropLast()))
        Console.error(
            "\(path) has \(count == 1 ? "one problem" : "\(count) problems"). [\(MediaError.Code.graphInvalid)]")
    }

    private func bytes() throws -> Data {
        // Reads one byte more than the limit at most, because devices and pipes may never end.
        let limit = GraphReading.largestFile + 1
        if file == "-" { return try FileHandle.standardInput.read(upToCount: limit) ?? Data() }
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: file, isDirectory: &isFolder) else {
            throw CommandFailure(
                code: MediaError.Code.fileNotFound, "The graph file \(file) does not exist. pipelines/ has examples."
            )
        }
        guard !isFolder.boolValue else {
            throw CommandFailure(
                code: MediaError.Code.fileUnreadable, "\(file) is a folder. Name a graph file in it.")
        }
        do {
            return try FileHandle(forReadingFrom: URL(fileURLWithPath: file)).read(upToCount: limit) ?? Data()
        } catch {
            throw CommandFailure(
                code: MediaError.Code.fileUnreadable,
                "Cannot read the graph file \(file): \(error.localizedDescription)")
        }
    }
}
