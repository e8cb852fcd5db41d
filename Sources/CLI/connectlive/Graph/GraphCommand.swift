internal import ArgumentParser
internal import Foundation
internal import GraphFile
internal import MediaGraph

struct GraphCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "graph", abstract: "Draw a graph file, or print it in its other forms.")

    enum Format: String, ExpressibleByArgument, CaseIterable {
        case text
        case dot
        case svg
        case yaml
        case json
    }

    @OptionGroup var graph: GraphFlags

    @Option(
        help: """
            text for the terminal, svg for a document (laid out by Graphviz), dot for Graphviz itself; yaml or json for \
            the file with its variables filled in.
            """)
    var format = Format.text

    func run() throws {
        let document = try graph.document()
        let drawing = GraphDrawing(
            document.graph, title: document.description, catalogue: KnownNodes.catalogue)
        let text =
            switch format {
            case .text: drawing.text
            case .dot: drawing.dot
            case .svg: try Graphviz.svg(of: drawing.dot)
            case .yaml: document.yaml(with: KnownNodes.catalogue)
            case .json: document.json(with: KnownNodes.catalogue)
            }
        Console.say(text.hasSuffix("\n") ? String(text.dropLast()) : text)
    }
}

/// Graphviz's program `dot`.
enum Graphviz {
    static func svg(of dot: String) throws -> String {
        guard let program = path(of: "dot") else {
            throw CommandFailure(
                code: "graphviz.missing",
                "A picture needs Graphviz's program dot, which is not installed: apt install graphviz, or ask for --format "
                    + "text.")
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
        // Its warnings are about fonts that are not installed.
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0, let data = try? Data(contentsOf: output) else {
            throw CommandFailure(
                code: "graphviz.failed",
                "Graphviz's program \(program) ended with \(process.terminationStatus) over this graph; --format dot shows "
                    + "what it was given.")
        }
        return String(decoding: data, as: UTF8.self)
    }

    private static func path(of program: String) -> String? {
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin").split(separator: ":")
        return folders.map { "\($0)/\(program)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }
}
