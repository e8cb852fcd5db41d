internal import ArgumentParser
internal import Foundation
internal import GraphFile
internal import MediaGraph
internal import MediaNodes

struct GraphCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "graph", abstract: "Draw a graph file, or print it as YAML, JSON or SVG.")

    enum Format: String, ExpressibleByArgument, CaseIterable {
        case text
        case dot
        case svg
        case yaml
        case json
    }

    @Argument(
        help: """
            A graph file, YAML or JSON; - for standard input. With --live, a process number or control socket \
            (default: the only running pipeline).
            """)
    var file: String?

    @Option(name: .customLong("set"), help: "Set a variable of the file: NAME=VALUE. Repeatable.")
    var values: [VariableValue] = []

    @OptionGroup var plugins: PluginFlags

    @Flag(help: "Draw a running pipeline, with the inserted nodes and the current rates.") var live = false

    @Option(
        help: """
            Output format: text for the terminal, svg for documents (needs Graphviz), dot for Graphviz, yaml or json \
            for the graph file with its variables filled in.
            """)
    var format = Format.text

    func validate() throws {
        if !live, file == nil { throw ValidationError("Name a graph file, or add --live to draw a running pipeline.") }
        if let file, !live { try GraphFlags(file: file, values: values).validate() }
        if live, !values.isEmpty {
            throw ValidationError(
                "--set applies to files. Variables of a running pipeline cannot change.")
        }
    }

    func run() async throws {
        if live { return try await drawLive() }
        let document = try GraphFlags(file: file ?? "-", values: values).document()
        let drawing = GraphDrawing(document.graph, title: document.description, catalogue: KnownNodes.registry)
        try say(document, drawing, KnownNodes.registry)
    }

    private func drawLive() async throws {
        let (status, plan, samples) = try await ControlClient.attached(to: file) { client in
            let status = try await client.ask(.status, for: PipelineStatus.self)
            try await client.tell(.watch(every: Self.pollInterval))
            var samples: [PipelineStatistics] = []
            while samples.count < 2, let sample = try await client.nextEvent().statistics { samples.append(sample) }
            return (status, try await client.ask(.plan, for: GraphPlan.self), samples)
        }
        let title = "\(status.file), \(status.state) for \(Figures.clock(status.seconds))"
        // The plugins are loaded in the other process, so the plan's links provide the kinds.
        let kinds = LinkedKinds(KnownNodes.registry, plan.expanded)
        var drawing = GraphDrawing(plan.expanded, title: title, catalogue: kinds)
        if let first = samples.first, let last = samples.last, samples.count == 2 {
            for link in plan.links { drawing.linkNotes[link.link] = LiveNotes.words(link, plan, first, last) }
        }
        try say(GraphDocument(graph: plan.expanded, description: status.description), drawing, kinds)
    }

    /// Seconds between the two samples.
    private static let pollInterval = 1.0

    private func say(_ document: GraphDocument, _ drawing: GraphDrawing, _ kinds: any NodeCatalogue) throws {
        let text =
            switch format {
            case .text: drawing.text
            case .dot: drawing.dot
            case .svg: try Graphviz.svg(of: drawing.dot)
            case .yaml: document.yaml(with: kinds)
            case .json: document.json(with: kinds)
            }
        Console.say(text.hasSuffix("\n") ? String(text.dropLast()) : text)
    }
}

/// Notes on links with their current rates.
enum LiveNotes {
    static func words(
        _ link: LinkPlan, _ plan: GraphPlan, _ before: PipelineStatistics, _ now: PipelineStatistics
    ) -> String? {
        let (name, port) = (link.link.to.node, link.link.to.port)
        let span = now.seconds - before.seconds
        guard span > 0, let count = now.node(name)?.inputs[port] else { return nil }
        let past = before.node(name)?.inputs[port]
        var format = now.format(on: link, of: plan)
        let isVideo = format.kind == .rawVideo || format.kind == .encodedVideo
        let frames = Double(count.frames - (past?.frames ?? 0)) / span
        format.framesPerSecond = isVideo ? (frames * 10).rounded() / 10 : nil
        let isEncoded = format.kind == .encodedVideo || format.kind == .encodedAudio
        format.bitsPerSecond = isEncoded ? Int(Double(count.bytes - (past?.bytes ?? 0)) * 8 / span) : nil
        return "\(format)"
    }
}

/// Graphviz's program `dot`.
enum Graphviz {
    /// - Parameters:
    ///   - program: the path of dot. Nil searches for it.
    ///   - limit: how long it may take, in seconds.
    static func svg(of dot: String, with program: String? = nil, within limit: Double = 60) throws -> String {
        guard let program = program ?? path(of: "dot") else {
            throw CommandFailure(
                code: "graphviz.missing",
                "The program dot, which draws SVG, is not installed. Install it with 'apt install graphviz', or use "
                    + "--format text.")
        }
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "connectlive-graph-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(at: folder) }
        let (input, output) = (folder.appendingPathComponent("in.dot"), folder.appendingPathComponent("out.svg"))
        try Data(dot.utf8).write(to: input)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = ["-Tsvg", "-o", output.path, input.path]
        process.standardInput = FileHandle.nullDevice
        // Its warnings concern fonts that are not installed.
        process.standardError = FileHandle.nullDevice
        let end = DispatchSemaphore(value: 0)
        process.terminationHandler = { _ in end.signal() }
        try process.run()
        guard end.wait(timeout: .now() + limit) == .success else {
            kill(process.processIdentifier, SIGKILL)
            throw CommandFailure(
                code: "graphviz.failed",
                "\(program) did not draw this graph within \(limit.short) s. Draw fewer nodes, or use --format text.")
        }
        guard process.terminationStatus == 0, let data = try? Data(contentsOf: output) else {
            throw CommandFailure(
                code: "graphviz.failed",
                "\(program) failed with status \(process.terminationStatus) on this graph. Run it on the output of "
                    + "--format dot to see its message.")
        }
        return String(decoding: data, as: UTF8.self)
    }

    private static func path(of program: String) -> String? {
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin").split(separator: ":")
        return folders.map { "\($0)/\(program)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }
}
