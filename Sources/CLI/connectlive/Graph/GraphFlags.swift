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

    @Option(name: .customLong("set"), help: "Give a variable of the file a value: NAME=VALUE. May be repeated.")
    var values: [VariableValue] = []

    @OptionGroup var plugins: PluginFlags

    init() {}

    /// What other flags have gathered.
    init(file: String, values: [VariableValue]) {
        self.file = file
        self.values = values
        plugins = PluginFlags()
    }

    func validate() throws {
        var names: Set<String> = []
        for value in values where !names.insert(value.name).inserted {
            throw ValidationError("--set gives \"\(value.name)\" twice.")
        }
    }

    /// How the file is called in messages.
    var shownPath: String { file == "-" ? "standard input" : file }

    /// Reads the file.
    func read() throws -> GraphReading {
        GraphReading(
            try bytes(), values: Dictionary(values.map { ($0.name, $0.value) }) { $1 }, catalogue: KnownNodes.registry)
    }

    /// The document; ends the command with all problems where there are any.
    func document() throws -> GraphDocument {
        let reading = try read()
        guard reading.problems.isEmpty else {
            Self.tell(reading, path: shownPath)
            throw ExitCode.failure
        }
        return reading.document
    }

    /// The plan of the document on this machine; what cannot run ends the command with its line.
    func plan(_ document: GraphDocument, measuringCosts: Bool) async throws -> GraphPlan {
        do throws(MediaError) {
            return try await PlanCommand.plan(document.graph, measuringCosts: measuringCosts)
        } catch {
            throw refusal(error.code, error.message, about: error.node, in: document)
        }
    }

    /// Why a node of the document cannot run, with the node's place in the file.
    func refusal(_ code: String, _ message: String, about node: String?, in document: GraphDocument) -> CommandFailure {
        let place = node.flatMap { document.places.nodes[$0] }
        return CommandFailure(code: code, place.map { "\(shownPath):\($0): \(message)" } ?? message)
    }

    /// The problems, and how many there are.
    static func tell(_ reading: GraphReading, path: String) {
        let count = reading.problems.count
        Console.line(String(reading.report(path: path).dropLast()))
        Console.error(
            "\(path) has \(count == 1 ? "one problem" : "\(count) problems"). [\(MediaError.Code.graphInvalid)]")
    }

    private func bytes() throws -> Data {
        // Reading ends one byte behind what is taken: devices and pipes may not end at all.
        let limit = GraphReading.largestFile + 1
        if file == "-" { return try FileHandle.standardInput.read(upToCount: limit) ?? Data() }
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: file, isDirectory: &isFolder) else {
            throw CommandFailure(
                code: MediaError.Code.fileNotFound, "There is no graph file \(file); pipelines/ has some to begin with."
            )
        }
        guard !isFolder.boolValue else {
            throw CommandFailure(
                code: MediaError.Code.fileUnreadable, "\(file) is a folder; name a graph file within it.")
        }
        do {
            return try FileHandle(forReadingFrom: URL(fileURLWithPath: file)).read(upToCount: limit) ?? Data()
        } catch {
            throw CommandFailure(
                code: MediaError.Code.fileUnreadable,
                "The graph file \(file) cannot be read: \(error.localizedDescription)")
        }
    }
}
