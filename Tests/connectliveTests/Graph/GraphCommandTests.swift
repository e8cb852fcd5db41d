import Foundation
import FoundationXML
import Testing
import TestSupport

@Suite struct GraphCommandTests {
    private static let example = """
        description: Test pattern with a preview
        variables: {width: Width of the frames}
        chains:
          - - {node: test-pattern, width: "${width:-320}", height: 240, fps: 30}
            - tee: [{node: window, title: Preview}]
              branch: preview
              optional: true
            - {node: vp8-encoder, name: encoder, bitrate: 500k}
            - {node: rtp-output, name: video}
          - - {from: test-pattern.audio}
            - "null"
        """

    private func run(
        _ arguments: [String], _ text: String = example, environment: [String: String] = [:]
    ) throws -> RunningProgram.Result {
        let folder = TemporaryFolder()
        try text.write(toFile: folder.file("graph.yaml"), atomically: true, encoding: .utf8)
        return try CommandLineTool.run(arguments, folder: folder, environment: environment)
    }

    // MARK: validate

    @Test func `validate confirms a valid file and lists its variables`() throws {
        let result = try run(["validate", "graph.yaml", "--set", "width=640"])
        #expect(result.status == 0, "\(result.error)")
        #expect(
            result.output == """
                graph.yaml is valid: 5 nodes.
                  width: 640  (Width of the frames)
                Unbound: video. These nodes need a program that binds a function to each name; 'connectlive run' cannot.

                """)
    }

    @Test func `validate reports every problem with its line, the accepted words and a suggestion`() throws {
        let result = try run(
            ["validate", "graph.yaml", "--set", "widht=640"],
            """
            chains:
              - - {node: test-pattern, widht: 320, fps: "${rate}"}
                - {to: windw}
              - - {node: test-pattern, name: p, fps: 500}
                - window
            """)
        #expect(result.status == 1)
        #expect(
            result.error == """
                graph.yaml: a value was given, but the file has no variable "widht".
                  accepted here: rate
                graph.yaml:2:28: "test-pattern" has no setting "widht"; did you mean "width"?
                  2 |   - - {node: test-pattern, widht: 320, fps: "${rate}"}
                    |                            ^
                  accepted here: width, height, fps, frames
                graph.yaml:2:45: "rate" has no value. Give it one, or write a default with ${rate:-...}.
                  2 |   - - {node: test-pattern, widht: 320, fps: "${rate}"}
                    |                                             ^
                graph.yaml:3:12: There is no node "windw"; did you mean "window"?
                  3 |     - {to: windw}
                    |            ^
                  accepted here: window
                graph.yaml:4:42: "p": fps is 500, outside 1 to 240 frames/s.
                  4 |   - - {node: test-pattern, name: p, fps: 500}
                    |                                          ^
                connectlive: graph.yaml has 5 problems. [graph.invalid]

                """, "\(result.error)")
        #expect(result.output.isEmpty)
    }

    @Test(arguments: [
        (["validate", "absent.yaml"], "[file.not-found]"), (["graph", "."], "[file.unreadable]"),
        (["validate", "/dev/zero"], "larger than 1000000 bytes"),
        (["validate", "graph.yaml", "--set", "width"], "--set"),
        (["validate", "graph.yaml", "--set", "width=1", "--set", "width=2"], "twice"),
        (["graph", "graph.yaml", "--format", "png"], "png"), (["nodes", "camrea"], "did you mean \"camera\"?"),
        (["nodes", "my-thing"], "\"connectlive nodes\" lists all kinds. A plugin's nodes need --plugin PATH."),
        (["nodes", "identity"], "{element: identity}, and \"connectlive nodes element:identity\" describes it."),
    ])
    func `invalid arguments get one sentence`(arguments: [String], words: String) throws {
        let result = try run(arguments)
        #expect(result.status == 1 || result.status == 2)
        #expect(result.error.contains(words), "\(result.error)")
        #expect(result.output.isEmpty)
    }

    @Test func `an unknown kind is reported with all kinds and with alternatives`() throws {
        let kinds = try run(["nodes"]).output
        let plugin = try run(["validate", "graph.yaml"], "chains: [[my-thing, 'null']]")
        #expect(
            plugin.error.contains(
                "no kind of node \"my-thing\". A plugin's node needs its plugin, also where the graph runs."),
            "\(plugin.error)")
        for kind in ["publish", "subscribe", "rtp-output"] {
            #expect(kinds.contains(kind) && plugin.error.contains(" \(kind)"), "\(plugin.error)")
        }
        #expect(!plugin.error.contains(" more\n"))
        let element = try run(["validate", "graph.yaml"], "chains: [[test-pattern, identity, 'null']]")
        #expect(element.error.contains("is written {element: identity}"), "\(element.error)")
        let both = try run(["validate", "graph.yaml"], "chains: [[test-pattern, videoscale, 'null']]")
        #expect(both.error.contains("is written {element: videoscale}"), "\(both.error)")
    }

    @Test func `a mistake in an inserted node is reported at the node that needs it`() throws {
        let text = "chains: [[{node: test-pattern, width: 321, height: 181}, {node: recorder, path: a.m3u8}]]"
        for command in ["validate", "plan", "run"] {
            let result = try run([command, "graph.yaml"], text)
            #expect(result.status == 1)
            #expect(result.error.contains("graph.yaml:1:65: \"test-pattern-h264\" cannot"), "\(result.error)")
        }
    }

    @Test func `an optional node that needs an impossible inserted node is left out`() throws {
        let text = """
            chains:
              - - {node: test-pattern, width: 321, height: 181}
                - tee: [{node: recorder, path: a.m3u8, optional: true}]
                - "null"
            """
        let result = try run(["plan", "graph.yaml"], text)
        #expect(result.status == 0, "\(result.error)")
        #expect(result.output.contains("recorder: \"test-pattern-h264\" cannot"), "\(result.output)")
    }

    @Test(arguments: [
        ("{node: test-pattern, width: 641, height: 361}, h264-encoder", "graph.format-clash"),
        ("test-pattern, {node: crop, left: 400, right: 240}", "graph.setting-unusable"),
        ("test-pattern, {element: videocrop, left: 9000}", "graph.format-clash"),
        ("test-pattern, {element: capsfilter, caps: '((('}", "graph.invalid"),
    ])
    func `validate and plan report a mistake that only a plan shows with the same words`(
        chain: String, code: String
    ) throws {
        let text = "chains:\n  - [\(chain), 'null']\n"
        let validated = try run(["validate", "graph.yaml"], text)
        #expect(validated.status == 1)
        #expect(validated.error.contains("connectlive: graph.yaml:2:"), "\(validated.error)")
        #expect(validated.error.hasSuffix("[\(code)]\n"), "\(validated.error)")
        #expect(validated.error == (try run(["plan", "graph.yaml"], text)).error)
    }

    @Test(arguments: [
        ("{node: file, path: none.mp4}", "file.not-found"),
        ("{node: process, command: no-such-program}", "process.not-found"),
        ("test-pattern, {node: overlay, image: none.png}", "file.unreadable"),
    ])
    func `validate warns of a file or program that plan refuses, and accepts the graph`(
        chain: String, code: String
    ) throws {
        let text = "chains:\n  - [\(chain), 'null']\n"
        let validated = try run(["validate", "graph.yaml"], text)
        #expect(validated.status == 0)
        let refusal = try run(["plan", "graph.yaml"], text).error.dropFirst("connectlive: ".count)
        #expect(refusal.hasSuffix("[\(code)]\n"), "\(refusal)")
        #expect(validated.error == "warning: on this machine, the graph cannot run: \(refusal)")
    }

    @Test func `controls that are written as a map are refused with the form of the setting`() throws {
        let text = "chains: [[{node: camera, controls: {gain: 3}, fps: [3]}, 'null']]"
        let refused = try run(["validate", "graph.yaml"], text)
        #expect(refused.status == 1)
        #expect(
            refused.error.contains(
                "The setting \"controls\" needs one value, not a map; write names and values, such as auto_exposure=1"),
            "\(refused.error)")
        #expect(refused.error.contains("The setting \"fps\" needs one value, not a list.\n"), "\(refused.error)")
    }

    @Test func `validate, plan and run warn of two nodes that name one camera`() throws {
        let folder = TemporaryFolder()
        func graph(_ first: String, _ second: String) throws {
            let text = """
                chains:
                  - [{node: camera, name: front, device: "\(first)"}, {node: "null", name: a}]
                  - [{node: camera, name: back, device: "\(second)"}, {node: "null", name: b}]
                """
            try text.write(toFile: folder.file("graph.yaml"), atomically: true, encoding: .utf8)
        }
        let arguments = [
            ["validate", "graph.yaml"], ["plan", "graph.yaml"], ["run", "graph.yaml", "--seconds", "0.5"],
        ]
        let words = "warning: \"back\" names the same camera as \"front\", which only one node can open: serial:NONE."
        try graph("serial:NONE", "serial:NONE")
        for arguments in arguments {
            let result = try CommandLineTool.run(arguments, folder: folder)
            #expect(result.status == 0 && result.error.contains(words), "\(result.error)")
        }
        for (first, second) in [("serial:NONE", "serial:OTHER"), ("auto", "auto")] {
            try graph(first, second)
            let result = try CommandLineTool.run(["validate", "graph.yaml"], folder: folder)
            #expect(result.status == 0 && result.error.isEmpty, "\(result.error)")
        }
    }

    @Test func `run says at its start that no camera has the name of failover`() throws {
        let folder = TemporaryFolder()
        let config = ["XDG_CONFIG_HOME": folder.path]
        let bound = try CommandLineTool.run(
            ["devices", "bind", "back", "serial:NONE"], folder: folder, environment: config)
        #expect(bound.status == 0, "\(bound.error)")
        for (failover, isKnown) in [("bakc", false), ("back", true)] {
            let text = "chains: [[{node: camera, device: 'serial:GONE', failover: \(failover)}, 'null']]"
            try text.write(toFile: folder.file("graph.yaml"), atomically: true, encoding: .utf8)
            let result = try CommandLineTool.run(
                ["run", "graph.yaml", "--seconds", "0.5"], folder: folder, environment: config)
            #expect(
                result.error.contains(
                    #"warning: camera: failover bakc: No camera is named bakc; did you mean "back"?"#) != isKnown,
                "\(result.error)")
        }
    }

    @Test(arguments: ["x.avi", "a.b/t.mp3", "T.WAV", "x.ts"])
    func `validate refuses a recording with the extension of another container, unless its format is set`(
        path: String
    ) throws {
        let folder = "chains:\n  - [test-pattern, {node: recorder, path: "
        let refused = try run(["validate", "graph.yaml"], "\(folder)\(path)}]\n")
        #expect(refused.status == 1)
        let words = "Choose .mkv, .webm, .mp4, .mov or .m3u8, or set format to write another container under this name."
        #expect(refused.error.contains("\"recorder\" cannot write \(path): .") && refused.error.contains(words))
        for accepted in ["\(path), format: matroska", "x.cam"] {
            #expect(try run(["validate", "graph.yaml"], "\(folder)\(accepted)}]\n").status == 0, "\(accepted)")
        }
    }

    @Test func `validate reports no mistake downstream of a device, whose format it does not know`() throws {
        func validated(_ settings: String) throws -> (status: Int32, error: String) {
            let result = try run(
                ["validate", "graph.yaml"],
                "chains:\n  - [{node: camera, width: 641, height: 361\(settings)}, {node: crop, left: 8000}, 'null']\n")
            return (result.status, result.error)
        }
        let result = try validated(", away: end")
        #expect(result.status == 0)
        #expect(result.error.isEmpty, "\(result.error)")
        // A camera that may be away promises its format.
        let promised = try validated("")
        #expect(promised.status == 1 && promised.error.contains("frames of 641x361"), "\(promised.error)")
    }

    // MARK: graph

    @Test func `graph draws boxes and arrows`() throws {
        let result = try run(["graph", "graph.yaml"])
        #expect(result.error.isEmpty)
        #expect(
            result.output == """
                Test pattern with a preview

                ┌────────────────────────┐
                │ test-pattern           │
                │ 320 × 240, 30 frames/s │
                └──┬─────────────────────┘
                   │ raw video
                   │  ┌───────────────┐
                   ├╌▶│ window        │  branch preview, optional
                   │  │ title Preview │
                   │  └───────────────┘
                   ▼
                ┌────────────────────────┐
                │ encoder  (vp8-encoder) │
                │ 500 kbit/s             │
                └──┬─────────────────────┘
                   │ VP8
                   ▼
                ┌─────────────────────┐
                │ video  (rtp-output) │
                └─────────────────────┘

                  from test-pattern.audio
                   │ raw audio
                   ▼
                ┌──────┐
                │ null │
                └──────┘

                """, "\(result.output)")
    }

    @Test func `graph prints a well-formed SVG with every node, port, format and branch`() throws {
        let result = try run(["graph", "graph.yaml", "--format", "svg"])
        #expect(result.status == 0, "\(result.error)")
        let found = Texts.found(in: result.output)
        for word in [
            "Test pattern with a preview", "test-pattern", "window", "encoder", "vp8-encoder", "video", "audio",
            "raw video",
            "raw audio", "VP8", "preview", ", optional", "CAPTURER", "320 × 240", "500 kbit/s",
        ] {
            #expect(found.contains(word), "no \(word)")
        }
    }

    @Test func `without Graphviz, the message names its package`() throws {
        let result = try run(["graph", "graph.yaml", "--format", "svg"], environment: ["PATH": "/nonexistent"])
        #expect(result.status == 1)
        #expect(
            result.error == """
                connectlive: The program dot, which draws SVG, is not installed. Install it with 'apt install \
                graphviz', or use --format text. [graphviz.missing]

                """)
    }

    @Test func `names with special characters of Graphviz are escaped`() throws {
        let result = try run(
            ["graph", "graph.yaml", "--format", "svg"],
            "chains: [[{node: test-pattern, name: \"<B>&\\\"\\\\N] -> x; }\"}, {node: \"null\", branch: \"a\\\"b<\"}]]")
        #expect(result.status == 0, "\(result.error)")
        #expect(XMLParser(data: Data(result.output.utf8)).parse())
    }

    @Test(arguments: ["yaml", "json"]) func `graph prints forms that read as the same graph`(format: String)
        throws
    {
        let folder = TemporaryFolder()
        try Self.example.write(toFile: folder.file("graph.yaml"), atomically: true, encoding: .utf8)
        let first = try CommandLineTool.run(["graph", "graph.yaml", "--format", format], folder: folder)
        try first.output.write(toFile: folder.file("again"), atomically: true, encoding: .utf8)
        for kind in ["text", "yaml", "json", "dot"] {
            let drawings = try ["graph.yaml", "again"].map {
                try CommandLineTool.run(["graph", $0, "--format", kind], folder: folder).output
            }
            #expect(drawings[0] == drawings[1])
        }
    }

    // MARK: nodes

    @Test func `nodes lists all kinds by group, and describes one kind`() throws {
        let list = try run(["nodes"])
        #expect(list.status == 0)
        for line in ["Capturers: sources of frames and audio", "Codecs: encode and decode", "  camera "] {
            #expect(list.output.contains(line), "\(list.output)")
        }
        #expect(list.output.split(separator: "\n").allSatisfy { $0.count <= 100 })
        let detail = try run(["nodes", "vp8-encoder"])
        for words in [
            "Inputs", "in  raw video: I420", "out  encoded video: vp8",
            "30000 to 100000000 bit/s; live",
            "default 3000", "- {node: vp8-encoder, ",
        ] {
            #expect(detail.output.contains(words), "\(detail.output)")
        }
        let recorder = try run(["nodes", "recorder"]).output
        #expect(recorder.contains("raw video is encoded"), "\(recorder)")
    }

    @Test func `the example of every kind of node matches its contract`() throws {
        let names = try run(["nodes"]).output.split(separator: "\n").filter {
            $0.hasPrefix("  ") && !$0.hasPrefix("   ")
        }
        .compactMap { $0.split(separator: " ").first.map(String.init) }
        #expect(names.count > 15)
        for name in names {
            let detail = try run(["nodes", name]).output
            let example = try #require(detail.split(separator: "\n").last)
            let result = try run(["validate", "graph.yaml"], "chains:\n  -\n  \(example)\n")
            // The example is not linked to anything, which is its only problem.
            let problems = result.error.split(separator: "\n").filter { $0.hasPrefix("graph.yaml:") }
            #expect(problems.allSatisfy { $0.contains("Nothing ") }, "\(result.error)")
        }
    }

    // MARK: schema

    @Test func `the schema accepts valid files and refuses broken ones in another validator`() throws {
        let folder = TemporaryFolder()
        let schema = try CommandLineTool.run(["schema"], folder: folder)
        #expect(schema.status == 0)
        try schema.output.write(toFile: folder.file("schema.json"), atomically: true, encoding: .utf8)
        let files =
            Self.right.enumerated().map { ("right\($0.offset).yaml", $0.element) }
            + Self.broken.enumerated().map { ("broken\($0.offset).yaml", $0.element) }
        for (name, text) in files { try text.write(toFile: folder.file(name), atomically: true, encoding: .utf8) }
        let shipped = try pipelines()
        let script = Checkout.path("Tests/interop/graph_schema.py")
        let result = try RunningProgram(
            "/usr/bin/python3", [script, "schema.json"] + files.map(\.0) + shipped, folder: folder
        ).finish(seconds: 60)
        #expect(result.status == 0, "\(result.error)")
        let lines = result.output.split(separator: "\n").map(String.init)
        #expect(lines.count == files.count + shipped.count)
        for (line, name) in zip(lines, files.map(\.0) + shipped) {
            #expect(line.hasSuffix(": fits") == !name.hasPrefix("broken"), "\(line)")
        }
        // The schema and the reader agree.
        for (name, _) in files {
            let result = try CommandLineTool.run(["validate", name], folder: folder)
            #expect(result.status == (name.hasPrefix("broken") ? 1 : 0), "\(name): \(result.error)")
        }
    }

    private static let right = [
        example, "chains: [[test-pattern, null]]",
        "chains: [[{node: test-pattern, fps: \"${fps:-29.97}\"}, {node: window, title: 5, optional: \"${o:-true}\"}]]",
        "variables: {a: {summary: x, default: camera}, b: }\nchains: [[\"${a}\", {node: \"${b:-null}\", name: n}]]",
        "chains: [[camera, {element: videobalance, name: b, settings: {saturation: 1}, hue: 0.5}, null]]",
        "{\"$schema\": \"x\", \"chains\": [[\"test-pattern\", \"null\"]]}",
    ]

    private static let broken = [
        "chains: []", "chains: [[]]", "chain: [[camera, null]]", "chains: [camera]", "chains: [[camrea, null]]",
        "chains: [[{node: camera, widht: 5}, null]]", "chains: [[{node: camera, width: 5}, null]]",
        "chains: [[{node: camera, width: wide}, null]]", "chains: [[{node: camera, mirror: 5}, null]]",
        "chains: [[file, null]]", "chains: [[{node: file}, null]]", "chains: [[camera, {tee: window}, null]]",
        "chains: [[camera, {tee: []}, null]]", "chains: [[{node: camera, to: x}]]", "chains: [[camera, {nod: null}]]",
        "chains: [[camera, {tee: [{from: x}]}, null]]", "chains: [[camera, {to: x, branch: y}]]",
        "chains: [[camera, {node: null, optional: maybe}]]",
        "chains: [[camera, {element: identity, settings: 5}, null]]",
        "variables: [a]\nchains: [[camera, null]]", "description: [a]\nchains: [[camera, null]]", "5",
        "chains: [[{node: camera, width: [5]}, null]]", "chains: [[camera, {node: vp8-encoder, bitrate: 2G}, null]]",
    ]
}

/// The paths of the shipped graphs.
func pipelines() throws -> [String] {
    let folder = Checkout.path("pipelines")
    return try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix(".yaml") }.sorted()
        .map { "\(folder)/\($0)" }
}

/// The texts of an XML document.
final class Texts: NSObject, XMLParserDelegate {
    private var found: Set<String> = []
    private var text = ""

    /// Empty if the document is not well-formed, which fails the test.
    static func found(in document: String) -> Set<String> {
        let texts = Texts()
        let parser = XMLParser(data: Data(document.utf8))
        parser.delegate = texts
        guard parser.parse() else {
            Issue.record("\(String(describing: parser.parserError))")
            return []
        }
        return texts.found
    }

    func parser(_ parser: XMLParser, foundCharacters string: String) { text += string }

    func parser(_ parser: XMLParser, didEndElement element: String, namespaceURI: String?, qualifiedName: String?) {
        // Graphviz writes spaces that must not collapse.
        found.insert(text.replacingOccurrences(of: "\u{A0}", with: " "))
        text = ""
    }

    func parser(
        _ parser: XMLParser, didStartElement element: String, namespaceURI: String?, qualifiedName: String?,
        attributes: [String: String]
    ) { text = "" }
}
