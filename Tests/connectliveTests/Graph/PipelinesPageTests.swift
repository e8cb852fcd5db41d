import Foundation
import Testing
import TestSupport

/// Every block of docs/pipelines.md works as shown, and so does the graph of docs/frame-socket.md.
@Suite struct PipelinesPageTests {
    private struct Block {
        /// The language of the fence, such as `yaml`.
        var language: String
        var text: String
    }

    private func page(_ name: String = "pipelines.md") throws -> String {
        try Checkout.text("docs/\(name)")
    }

    private func blocks(of name: String = "pipelines.md") throws -> [Block] {
        var blocks: [Block] = []
        var open: Block?
        for line in try page(name).components(separatedBy: "\n") {
            if let block = open {
                if line == "```" { blocks.append(block) }
                open = line == "```" ? nil : Block(language: block.language, text: block.text + line + "\n")
            } else if line.hasPrefix("```") {
                open = Block(language: String(line.dropFirst(3)), text: "")
            }
        }
        return blocks
    }

    /// FromGstLaunchTests run those of docs/from-gst-launch.md.
    @Test(arguments: [("pipelines.md", 9), ("frame-socket.md", 1)])
    func `every graph on the page is valid and matches the schema`(name: String, least: Int) throws {
        let folder = TemporaryFolder()
        let graphs = try blocks(of: name).filter { ["yaml", "json"].contains($0.language) }
        #expect(graphs.count >= least)
        let names = graphs.indices.map { "graph\($0).yaml" }
        for (graph, name) in zip(graphs, names) {
            try graph.text.write(toFile: folder.file(name), atomically: true, encoding: .utf8)
            let result = try CommandLineTool.run(["validate", name], folder: folder)
            #expect(result.status == 0, "\(graph.text)\n\(result.error)")
        }
        let lines = try fits(names, folder)
        #expect(lines.count == graphs.count && lines.allSatisfy { $0.hasSuffix(": fits") }, "\(lines)")
    }

    @Test func `every command on the page prints the shown output`() throws {
        let folder = TemporaryFolder()
        var graph = ""
        for block in try blocks() {
            if block.language.hasPrefix("yaml") { graph = block.text }
            guard block.language == "console" else { continue }
            for part in block.text.components(separatedBy: "$ connectlive ").dropFirst() {
                var lines = part.components(separatedBy: "\n")
                let command = lines.removeFirst()
                // A command is about the graph above it.
                let arguments = command.components(separatedBy: " > ")[0].split(separator: " ").map(String.init)
                for name in arguments where name.hasSuffix(".yaml") {
                    try graph.write(toFile: folder.file(name), atomically: true, encoding: .utf8)
                }
                let result = try CommandLineTool.run(arguments, folder: folder)
                if command.contains(" > ") {
                    #expect(!result.output.isEmpty)
                    continue
                }
                let shown = lines.dropLast().joined(separator: "\n")
                let printed = (result.output + result.error).components(separatedBy: "\n").dropLast()
                // "..." stands for the rest of a list.
                let compared = zip(printed, lines).map { line, shown in
                    shown.hasSuffix("...") && line.hasPrefix(shown.dropLast(3)) ? shown : line
                }
                #expect((compared + printed.dropFirst(compared.count)).joined(separator: "\n") == shown)
            }
        }
    }

    @Test func `the image on the page shows the program's drawing`() throws {
        let folder = TemporaryFolder()
        let graph = try #require(try blocks().first { $0.text.contains("one encoder") && $0.language == "yaml" })
        try graph.text.write(toFile: folder.file("graph.yaml"), atomically: true, encoding: .utf8)
        let drawn = try CommandLineTool.run(["graph", "graph.yaml", "--format", "svg"], folder: folder).output
        let committed = try Checkout.text("docs/images/branches.svg")
        #expect(Texts.found(in: drawn) == Texts.found(in: committed))
    }

    // MARK: pipelines/

    @Test func `the page lists every shipped graph`() throws {
        let listed = try page().components(separatedBy: "\n").filter { $0.hasPrefix("| ") && $0.contains(".yaml |") }
            .compactMap { $0.split(separator: " ").dropFirst().first.map(String.init) }
        #expect(listed.sorted() == (try pipelines().map { URL(fileURLWithPath: $0).lastPathComponent }))
        #expect(listed.count >= 10)
    }

    @Test func `every shipped graph is valid, and describes its purpose and its variables`() throws {
        let folder = TemporaryFolder()
        for path in try pipelines() {
            let result = try CommandLineTool.run(["validate", path], folder: folder)
            #expect(result.status == 0, "\(result.error)")
            let variables = result.output.components(separatedBy: "\n").dropFirst().dropLast()
            #expect(variables.allSatisfy { $0.hasSuffix(")") }, "\(path) does not explain \(variables)")
            #expect(variables.contains { $0.hasPrefix("  room: ") })
            let text = try String(contentsOfFile: path, encoding: .utf8)
            #expect(text.contains("\ndescription: ") && text.hasPrefix("# "))
            #expect(text.contains("connectlive run pipelines/\(URL(fileURLWithPath: path).lastPathComponent)"))
            #expect(text.components(separatedBy: "\n").allSatisfy { $0.count <= 120 }, "\(path)")
        }
    }

    @Test func `every shipped graph matches the schema and survives writing in both forms`() throws {
        let folder = TemporaryFolder()
        let lines = try fits(try pipelines(), folder)
        #expect(lines.allSatisfy { $0.hasSuffix(": fits") }, "\(lines)")
        var written: [String] = []
        for path in try pipelines() {
            let dot = try CommandLineTool.run(["graph", path, "--format", "dot"], folder: folder).output
            for format in ["yaml", "json"] {
                let name = URL(fileURLWithPath: path).lastPathComponent + "." + format
                let text = try CommandLineTool.run(["graph", path, "--format", format], folder: folder).output
                try text.write(toFile: folder.file(name), atomically: true, encoding: .utf8)
                let again = try CommandLineTool.run(["graph", name, "--format", "dot"], folder: folder).output
                #expect(Set(again.components(separatedBy: "\n")) == Set(dot.components(separatedBy: "\n")), "\(path)")
                written.append(name)
            }
        }
        #expect(try fits(written, folder) == written.map { "\($0): fits" })
    }

    @Test func `the test pattern can replace any camera`() throws {
        let folder = TemporaryFolder()
        for path in try pipelines() {
            let text = try String(contentsOfFile: path, encoding: .utf8)
            let sources = ["source", "second-source"].filter { text.contains("${\($0):-camera}") }
            let values = sources.map { "\($0)=test-pattern" } + (text.contains("${format:-h264}") ? ["format="] : [])
            // Settings of cameras only are empty unless given.
            let others = text.contains("${second-camera:-") ? ["second-camera="] : []
            guard !sources.isEmpty else { continue }
            let result = try CommandLineTool.run(
                ["validate", path] + (values + others).flatMap { ["--set", $0] }, folder: folder)
            #expect(result.status == 0, "\(result.error)")
        }
    }

    private func fits(_ files: [String], _ folder: TemporaryFolder) throws -> [String] {
        let schema = try CommandLineTool.run(["schema"], folder: folder).output
        try schema.write(toFile: folder.file("schema.json"), atomically: true, encoding: .utf8)
        let script = Checkout.path("Tests/interop/graph_schema.py")
        let result = try RunningProgram("/usr/bin/python3", [script, "schema.json"] + files, folder: folder)
            .finish(seconds: 60)
        #expect(result.status == 0, "\(result.error)")
        return result.output.components(separatedBy: "\n").dropLast()
    }
}
