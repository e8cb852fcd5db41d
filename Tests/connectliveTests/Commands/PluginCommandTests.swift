import Foundation
import TestFixtures
import Testing
import TestSupport

/// The example packages, and the commands that list plugins.
@Suite(.serialized, .timeLimit(.minutes(10))) struct PluginCommandTests {
    @Test(arguments: [("clock-face", "clock-face"), ("desktop-region", "desktop-region"), ("qr-code", "qr-code")])
    func `an example package passes its own tests, and its node is listed, described, planned and drawn`(
        folder: String, node: String
    ) throws {
        let bench = try Workbench("examples/\(folder)")
        let package = bench.package
        try bench.build(["--build-tests"])
        let tested = try BuiltPackage.run("swift", ["test", "--skip-build"], in: package)
        #expect(tested.contains(" passed after"))
        let place = TemporaryFolder()
        try "chains:\n  - - {node: \(node), fps: 10}\n    - \"null\"\n"
            .replacingOccurrences(of: folder == "desktop-region" ? ", fps: 10" : "¬", with: "")
            .write(toFile: place.file("own.yaml"), atomically: true, encoding: .utf8)
        func say(_ arguments: [String]) throws -> String {
            let result = try CommandLineTool.run(arguments + ["--plugin", package.path], folder: place, seconds: 60)
            #expect(result.status == 0, "\(result.error)")
            return result.output
        }
        #expect(try say(["nodes"]).contains(node))
        #expect(try say(["nodes", node]).contains("Outputs"))
        #expect(try say(["schema"]).contains("\"\(node)\""))
        #expect(try say(["validate", "own.yaml"]).contains("is valid"))
        #expect(try say(["graph", "own.yaml"]).contains(node))
        guard folder != "desktop-region" else { return }
        #expect(try say(["plan", "own.yaml"]).contains(node))
        #expect(try say(["run", "own.yaml", "--seconds", "2"]).contains("frames"))
    }

    @Test func `without the plugin its node is unknown, and an invalid plugin is refused with its code`() throws {
        let place = TemporaryFolder()
        let unknown = try CommandLineTool.run(["nodes", "clock-face"], folder: place)
        #expect(unknown.status == 1)
        let missing = try CommandLineTool.run(["nodes", "--plugin", "none.so"], folder: place)
        #expect(missing.status == 1)
        #expect(missing.error.contains("[plugin.not-found]"))
    }

    @Test func `a plugin in a folder that cannot load is reported, and the command continues`() throws {
        let place = TemporaryFolder()
        try "no library".write(toFile: place.file("broken.so"), atomically: true, encoding: .utf8)
        let result = try CommandLineTool.run(
            ["nodes"], folder: place, environment: ["CONNECTLIVE_PLUGIN_PATH": place.file("")])
        #expect(result.status == 0)
        #expect(result.error.contains("[plugin.unreadable]"))
        #expect(result.error.contains("name one, or the folder of a package"), "\(result.error)")
        #expect(result.output.contains("test-pattern"))
    }

    @Test func `a folder of plugins may be a package or its build, and a missing one is reported`() throws {
        let bench = try Workbench("examples/clock-face")
        let package = bench.package
        try bench.build()
        let place = TemporaryFolder()
        func nodes(_ path: String) throws -> RunningProgram.Result {
            let result = try CommandLineTool.run(
                ["nodes"], folder: place, environment: ["CONNECTLIVE_PLUGIN_PATH": path])
            #expect(result.status == 0)
            return result
        }
        for folder in [package.path, package.path + "/.build/debug"] {
            let result = try nodes(folder)
            #expect(result.output.contains("clock-face") && result.error.isEmpty, "\(result.error)")
        }
        let absent = try nodes(place.file("none"))
        #expect(
            absent.error.hasPrefix("connectlive: The folder \(place.file("none")) of plugins cannot be opened")
                && absent.error.hasSuffix("[plugin.not-found]\n"), "\(absent.error)")
        #expect(try nodes(place.path).error.isEmpty)
    }

    /// The commands of the page's only block of commands.
    private func commandsOnThePage() throws -> [Substring] {
        let page = try Checkout.text("docs/writing-a-capturer.md")
        let block = try #require(page.split(separator: "```console\n").last?.split(separator: "```").first)
        return block.split(separator: "\n").map { $0.dropFirst("$ ".count) }
    }

    @Test func `a new plugin of each kind builds, passes its tests and runs by the printed commands`() throws {
        let place = TemporaryFolder()
        let programs = URL(fileURLWithPath: try CommandLineTool.path).deletingLastPathComponent().path
        let written = URL(fileURLWithPath: place.file("ColdFront"))
        let bench = try Workbench()
        for kind in ["capturer", "renderer", "processor"] {
            let made = try CommandLineTool.run(["plugin", "new", "ColdFront", "--kind", kind], folder: place)
            try #require(made.status == 0, "\(made.error)")
            try bench.put(written)
            let commands = made.output.split(separator: "\n").dropFirst().map { $0.drop(while: { $0 == " " }) }
            if kind == "capturer" {
                let page = try commandsOnThePage().map {
                    $0.replacing("ClockFace", with: "ColdFront").replacing("clock-face", with: "cold-front")
                }
                #expect(commands.map(String.init) == page.map(String.init))
            }
            // It would run until it is interrupted.
            let script = "PATH=\(programs):$PATH\n\(commands.joined(separator: "\n")) --seconds 2"
            let said = try BuiltPackage.run(
                "bash", ["-e", "-c", script], in: bench.package.deletingLastPathComponent())
            #expect(said.contains(" passed after") && said.contains("cold-front"), "\(said)")
            let again = try CommandLineTool.run(["plugin", "new", "ColdFront"], folder: place)
            #expect(again.status == 1)
            try FileManager.default.removeItem(at: written)
        }
        let misnamed = try CommandLineTool.run(["plugin", "new", "cold front"], folder: place)
        #expect(misnamed.status == 2)
    }

    @Test func `a new plugin names its kit by an absolute path, and its node has a unique name`() throws {
        let place = TemporaryFolder()
        try FileManager.default.createSymbolicLink(
            atPath: place.file("kit"),
            withDestinationPath: Checkout.path("Sources/Media"))
        let written = try CommandLineTool.run(
            ["plugin", "new", "ColdFront"], folder: place, environment: ["CONNECTLIVE_PLUGIN_KIT": "kit"])
        #expect(written.status == 0, "\(written.error)")
        let manifest = try String(contentsOfFile: place.file("ColdFront/Package.swift"), encoding: .utf8)
        #expect(manifest.contains("?? \"\(place.file("kit"))\""), "\(manifest)")
        let taken = try CommandLineTool.run(["plugin", "new", "Camera"], folder: place)
        #expect(taken.status == 1)
        #expect(taken.error.contains("[node.name-taken]"))
        #expect(!FileManager.default.fileExists(atPath: place.file("Camera")))
    }

    @Test func `the program of the page about capturers publishes its frames`() throws {
        let server = try TestServer()
        let program = try RunningProgram(
            BuiltPackage.program("own-capturer").path, ["kitchen", "8"], folder: server.folder)
        let viewer = try CommandLineTool.run(
            ["view", "--room", "kitchen", "--seconds", "4", "--report", "r.json"], folder: server.folder, seconds: 40)
        #expect(viewer.status == 0, "\(viewer.error)")
        #expect(try program.finish(seconds: 30).status == 0)
    }

    @Test func `a capturer with its own clock and encoder publishes its frames`() throws {
        let server = try TestServer()
        try OfflineFilm.write(
            "videotestsrc num-buffers=60 ! video/x-raw,width=320,height=240,framerate=30/1 "
                + "! vp8enc deadline=1 keyframe-max-dist=30 ! avmux_ivf "
                + "! filesink location=\(server.folder.file("clip.ivf"))", in: server.folder)
        let program = try RunningProgram(
            BuiltPackage.program("ivf-capturer").path, ["clip.ivf", "kitchen", "8"], folder: server.folder)
        let viewer = try CommandLineTool.run(
            ["view", "--room", "kitchen", "--seconds", "4", "--report", "r.json"], folder: server.folder, seconds: 40)
        #expect(viewer.status == 0, "\(viewer.error)")
        let report = try String(contentsOfFile: server.folder.file("r.json"), encoding: .utf8)
        #expect(report.contains("320"), "\(report)")
        #expect(try program.finish(seconds: 30).status == 0)
    }
}
