import MediaGraph
import MediaNodes
import Testing

@testable import GraphFile

@Suite struct ProblemTests {
    @Test func `secrets appear in no excerpt and no variable, and columns stay correct`() {
        let reading = GraphReading(
            """
            chains:
              - - {node: publish, service-secret: hush, token: "h'u\\x22sh", rom: a}
                - {node: publish, name: other, room: a, service-secret: "${key}"}
            """.utf8, values: ["key": "hush"], catalogue: TestKinds())
        let report = reading.report(path: "file")
        #expect(!report.contains("hush") && !report.contains("h'u"), "\(report)")
        #expect(report.contains("{node: publish, service-secret: ••••, token: •"), "\(report)")
        #expect(report.contains(", rom: a}"), "\(report)")
        #expect(reading.document.variables.map(\.isSecret) == [true])
    }

    @Test func `all problems are reported together, with their places and suggestions`() {
        let text = """
            descripton: A camera
            chains:
              - - {node: camrea}
                - window
              - - {node: camera, name: a, widht: 640, fps: 1000, format: mjpeg, mirror: yes}
                - {node: window, name: w}
              - - {node: file, name: f}
                - {to: recoding.video}
              - - {node: recorder, name: recording, path: x.mkv}
                - {node: "null", name: n}
              - - {from: a.vidio}
                - {node: "null", name: m}
              - - {nod: camera}
                - {node: "null", name: o}
            """
        #expect(
            problems(text) == [
                "1:1 A graph file has no key \"descripton\"; did you mean \"description\"?",
                "3:14 There is no kind of node \"camrea\"; did you mean \"camera\"?",
                "5:31 \"a\" (camera) has no setting \"widht\"; did you mean \"width\"?",
                "5:48 \"a\": fps is 1000, outside 1 to 240 frames/s.",
                "5:62 \"a\": format is \"mjpeg\", not one of auto, raw, h264.",
                "5:77 \"a\": mirror is \"yes\"; expected true or false.",
                "7:14 \"f\" (file) needs the setting \"path\".",
                "8:12 There is no node \"recoding\"; did you mean \"recording\"?",
                "10:14 \"recording\" (recorder) has no output. Link to it, or put it into a tee: \"- tee: [recorder]\".",
                "11:14 \"a\" (camera) has no output \"vidio\": it has video.",
                "13:7 This step has no kind; did you mean \"node\"?",
            ])
    }

    @Test func `all malformed settings are reported together, with their lines`() {
        let text = """
            chains:
              - - camera
                - {node: rotate, degrees: 45}
                - {node: overlay, color: red, clock: true}
                - {node: crop, shape: wide}
                - {node: crop, name: both, shape: "16:9", left: 2}
                - {node: snapshot, path: ""}
              - - {node: exec, command: "ls 'x"}
                - {node: "null"}
            """
        #expect(
            problems(text, NodeRegistry.builtIn.kinds) == [
                "3:31 \"rotate\": degrees is 45, not 0, 90, 180 or 270 degrees.",
                "4:30 \"overlay\": color is \"red\"; write red, green and blue as #rrggbb, such as #ffcc00.",
                "4:42 \"overlay\": clock is \"true\"; write a format of strftime, such as %H:%M:%S.",
                "5:27 \"crop\": shape is \"wide\"; write width to height, such as 16:9.",
                "6:39 \"both\" has both shape and left. Set one of them, or use two nodes.",
                "7:30 \"snapshot\": path is \"\"; write a path that ends in .png, .jpg or .jpeg.",
                "8:29 \"exec\": command is \"ls 'x\"; write a program and its arguments, with every quote closed.",
            ])
    }

    @Test func `a value of the right form is accepted, whatever special characters it has`() {
        let text = """
            chains:
              - - {node: exec, command: 'sh -c "echo it''s a \\" $HOME" x\\ y'}
                - {node: overlay, color: "#FFcc00", clock: "%H"}
                - {node: crop, shape: "4:3"}
                - {node: rotate, degrees: 270}
                - {node: window}
              - - {node: camera, controls: "exposure_auto=1, focus = -3,"}
                - {node: "null"}
              - - {node: rtsp, url: "rtsp://user:p@ss@[::1]:554/a?b"}
                - {node: "null", name: end}
            """
        #expect(problems(text, NodeRegistry.builtIn.kinds).isEmpty)
    }

    @Test func `a key that is indented too far, or too little, is reported with its right column`() {
        let far = """
            chains:
              - - node: camera
                   width: 640
            """
        #expect(
            problems(far).first?.contains("let it begin in column 7, like the one above it") == true, "\(problems(far))"
        )
        let near = """
            chains:
                - node: camera
              description: A camera
            """
        #expect(
            problems(near).first?.contains("let all keys of a map begin in the same column") == true,
            "\(problems(near))")
        let unquoted = """
            description: a: b
            """
        #expect(problems(unquoted).first?.contains("quote text with \": \"") == true, "\(problems(unquoted))")
    }

    @Test func `an input with two sources is the problem, not an unlinked output`() {
        let text = """
            chains:
              - - {node: test-pattern, name: a}
                - {node: recorder, path: a.mkv}
              - - {node: test-pattern, name: b}
                - {to: recorder.video}
            """
        #expect(problems(text, NodeRegistry.builtIn.kinds) == ["5:12 recorder.video has more than one source."])
    }

    @Test func `an end node without input is a problem, though none of its inputs is required`() {
        let text = """
            chains:
              - - {node: recorder, path: a.mkv}
            """
        #expect(
            problems(text, NodeRegistry.builtIn.kinds) == [
                "2:14 Nothing feeds recorder.video or recorder.audio. Link an output to one of them, or remove the node."
            ])
    }

    @Test func `a message that ends in a question mark gets no full stop`() {
        let text = """
            chains:
              - - {node: camera, format: mjpg}
                - {node: "null"}
            """
        #expect(problems(text, NodeRegistry.builtIn.kinds).first?.hasSuffix("did you mean \"mjpeg\"?") == true)
    }

    @Test func `steps in the wrong place are reported`() {
        let text = """
            chains:
              - - tee: ["null"]
                - {to: end}
              - - {node: camera, to: end, tee: [window]}
                - {from: camera}
                - {node: "null", name: end}
              - - {node: camera, name: b}
                - {to: end}
                - scale
                - tee: [{from: camera}, {node: "null", name: x}]
                - tee: [{to: end}]
                  branch: side
                - tee: window
                - [camera]
              - camera
            """
        #expect(
            problems(text) == [
                "2:12 No step before this tee can feed it.",
                "3:12 No step before this \"to\" can feed it.",
                "4:22 \"to\" needs a separate step; it cannot be combined with \"node\".",
                "4:31 \"tee\" needs a separate step; it cannot be combined with \"node\".",
                "5:14 \"from\" must be the first step of a chain. Begin another chain with \"- - from\".",
                "8:12 end.in has more than one source.",
                "9:7 The \"to\" in line 8 ends this chain. Begin another chain for this step.",
                "10:20 A tee branches off the step before it. Use \"from\" only to begin a chain.",
                "11:12 \"branch\" and \"optional\" need a node, and this tee has none. Write them at the node that it "
                    + "feeds.",
                "11:18 end.in has more than one source.",
                "13:12 \"tee\" must be a list of steps, not \"window\".",
                "14:7 A step must not be a list. Write a branch as {tee: [...]}.",
                "15:5 A chain must be a list, not \"camera\". Begin its first step with two dashes: \"- - camera\".",
            ])
    }

    @Test func `two nodes of one name are reported with both lines`() {
        let found = problems(
            "chains:\n  - - camera\n    - tee: [window]\n    - tee: [{node: \"null\", name: a.b}]\n    - window")
        #expect(
            found
                == [
                    "4:34 \"a.b\" is not a valid name of a node. Use a name without dots, which separate a node from "
                        + "its port.",
                    "5:7 Two nodes are named \"window\", the other in line 3. Add a \"name\" to one of them; by "
                        + "default, a node is named after its kind.",
                ])
    }

    @Test func `a name of two nodes hides the problems of links that use it`() {
        let text = """
            chains:
              - - {node: test-pattern, name: a}
                - {node: recorder, path: a.mkv}
              - - {node: microphone, name: a}
                - {node: "null", name: end}
              - - {from: a}
                - {node: window, titel: x}
            """
        let found = problems(text, NodeRegistry.builtIn.kinds)
        #expect(found.count == 2, "\(found)")
        #expect(found.first?.hasPrefix("4:32 Two nodes are named \"a\", the other in line 2.") == true, "\(found)")
        #expect(found.last?.contains("did you mean \"title\"?") == true, "\(found)")
    }

    @Test func `an element beside a node with such a setting is explained`() {
        for step in ["{node: vp8-encoder, element: vp8enc}", "{element: vp8enc, node: vp8-encoder}"] {
            let found = problems("chains: [[test-pattern, \(step), 'null']]", NodeRegistry.builtIn.kinds)
            let words = "To set the element of vp8-encoder, write settings: {element: NAME}."
            #expect(found.contains { $0.hasSuffix(words) }, "\(found)")
        }
        let found = problems(
            "chains: [[test-pattern, {node: scale, element: videoscale}, 'null']]", NodeRegistry.builtIn.kinds)
        #expect(found.first?.hasSuffix("it cannot be combined with \"node\".") == true, "\(found)")
    }

    @Test(arguments: [
        ("{crop: {shape: 1:1, left: [2]}}", ". Write {node: crop, shape: 1:1, left: ...}."),
        ("{crop: }", ". Write {node: crop}."), ("{something: 1}", ". Write it as {node: NAME}."),
        ("{nod: camera}", "; did you mean \"node\"?"),
    ])
    func `a step without a kind gets its notation`(step: String, end: String) {
        let found = problems("chains: [[test-pattern, \(step), 'null']]", NodeRegistry.builtIn.kinds)
        #expect(found.first?.hasSuffix("This step has no kind\(end)") == true, "\(found)")
    }

    @Test func `the notation of a step without a kind shows no secret`() {
        let reading = GraphReading(
            "chains: [[test-pattern, {camera: {device: x, service-secret: hush}}]]".utf8, catalogue: TestKinds())
        let report = reading.report(path: "file")
        #expect(report.contains("Write {node: camera, device: x, service-secret: ...}."), "\(report)")
        #expect(!report.contains("hush"), "\(report)")
    }

    @Test(arguments: [
        "{camera: , service-secret: hush}", "{camera: r, token: hush}", "{nod: camera, service-secret: hush}",
        "{camera: {settings: {token: hush}}}", "{camera: {device: 'rtsp://u:hush@h/'}}",
    ])
    func `the message about a step without a kind shows no secret`(step: String) {
        let found = problems("chains: [[test-pattern, \(step)]]", TestKinds().kinds)
        #expect(!found.contains { $0.contains("hush") }, "\(found)")
        guard !step.contains("@") else { return }
        let report = GraphReading("chains: [[test-pattern, \(step)]]".utf8, catalogue: TestKinds()).report(path: "file")
        #expect(report.contains("no kind") && !report.contains("hush"), "\(report)")
    }

    @Test(arguments: ["aspect", "aspect-ratio", "ratio"])
    func `a setting is also suggested by the words of its description`(name: String) {
        let found = problems(
            "chains: [[test-pattern, {node: crop, \(name): '1:1'}, 'null']]", NodeRegistry.builtIn.kinds)
        #expect(found.first?.hasSuffix("no setting \"\(name)\"; did you mean \"shape\"?") == true, "\(found)")
    }

    @Test(arguments: [
        // A step without a readable kind has a name all the same.
        (
            "[[{nodee: camera, name: cam}, window], [{from: cam}, 'null']]",
            "This step has no kind; did you mean \"node\"?"
        ),
        (
            "[[camera, window: {name: w}], [microphone, {to: w}]]",
            "This step has no kind. Write {node: window, name: w}."
        ),
        ("[[camera, {node: [window], name: w}], [microphone, {to: w}]]", "\"node\" must be a name, not a list."),
        // A link misspells a port or a node.
        (
            "[[{node: mixer, name: m}, 'null'], [camera, {to: m.in}]]",
            "\"m\" (mixer) has no input \"in\": it has in1, in2 and so on."
        ),
        (
            "[[{node: vp8-encoder, name: coder}, 'null'], [camera, {to: codr.in}]]",
            "There is no node \"codr\"; did you mean \"coder\"?"
        ),
        // A required setting by another name.
        (
            "[[camera, {node: recorder, file: x.mkv}]]",
            "\"recorder\" has no setting \"file\"; did you mean \"path\"?"
        ), ("[[camera, {node: recorder, pth: x.mkv}]]", "\"recorder\" has no setting \"pth\"; did you mean \"path\"?"),
    ])
    func `the consequences of a problem are not reported`(chains: String, problem: String) {
        let found = problems("chains: \(chains)", NodeRegistry.builtIn.kinds)
        #expect(found.count == 1 && found.first?.hasSuffix(problem) == true, "\(found)")
    }

    @Test func `a problem beside another one is reported too`() {
        let found = problems(
            "chains: [[{nodee: camera, name: cam}, window], [{from: cma}, 'null'], [{node: file, speed: 5, loop: maybe}]]",
            NodeRegistry.builtIn.kinds)
        for part in ["no kind", "no node \"cma\"", "loop is \"maybe\"", "needs the setting \"path\""] {
            #expect(found.contains { $0.contains(part) }, "\(part): \(found)")
        }
    }

    @Test func `width and height are suggested for a size`() {
        let found = problems("chains: [[{node: camera, size: 640x480}, 'null']]", NodeRegistry.builtIn.kinds)
        let hint = "; did you mean \"width\" and \"height\"?"
        #expect(found.count == 1 && found.first?.hasSuffix(hint) == true, "\(found)")
    }

    @Test func `a cycle is reported with its lines`() {
        let found = problems(
            """
            chains:
              - - {node: scale, name: a}
                - {node: scale, name: b}
                - tee: [window]
                - {to: a}
            """)
        #expect(
            found == ["2:14 Remove one of the links between these nodes, which form a cycle: a, b (lines 2, 3)."])
    }

    @Test func `an unknown source is reported at its from, once for all that it feeds`() {
        let found = problems(
            """
            chains:
              - - {node: camera}
                - {node: "null"}
              - - {from: camra}
                - tee: [{node: window, name: a}]
                - {node: window, name: b}
              - - {node: file, path: x}
                - {to: camera}
            """)
        #expect(
            found == [
                "4:14 There is no node \"camra\"; did you mean \"camera\"?",
                "8:12 Nothing can feed \"camera\". Link from it, not to it.",
            ])
    }

    @Test func `incompatible media are reported at the link`() {
        #expect(
            problems("chains:\n  - - microphone\n    - window") == [
                "3:7 microphone.audio delivers raw audio, but window.in accepts raw video; link a node that delivers "
                    + "that."
            ])
    }

    @Test func `the catalogue's reason for a missing element is reported`() {
        let found = problems("chains:\n  - - camera\n    - {element: x265enc}\n    - window")
        #expect(found == ["3:17 \"x265enc\": the element x265enc is not installed; Debian has it in a package."])
    }

    @Test func `unbound names are reported at their places`() {
        let text = "{\"$schema\": \"x\", \"chains\": [[\"test-pattern\", {\"node\": \"frames\", \"name\": \"view\"}]]}"
        #expect(GraphReading(text.utf8, catalogue: NodeRegistry.builtIn.kinds).problems.isEmpty)
        let bound = [CodeBinding.frames: Set(["veiw"])]
        let found = GraphReading(text.utf8, catalogue: NodeRegistry.builtIn.kinds, bound: bound).problems
        #expect(found.map(\.place) == [nil, GraphPlace(line: 1, column: 55)])
        #expect(found.last?.message == "\"view\" needs a function of the program. Pass Frames { … }.named(\"view\").")
        #expect(found.first?.message.contains("did you mean \"view\"?") == true)
    }

    @Test func `a duplicate key is reported at its first place`() {
        let text = """
            chains:
              - - {node: camera, fps: 5, fps: 6}
                - window
            """
        #expect(
            problems(text) == [
                "2:22 The key \"fps\" occurs twice in this map."
            ])
    }

    @Test(arguments: [
        ("", "The file is empty. A graph needs \"chains\"."),
        ("# nothing\n", "The file is empty. A graph needs \"chains\"."),
        ("- camera", "1:1 A graph file must be a map with the key \"chains\", not a list."),
        ("camera", "1:1 A graph file must be a map with the key \"chains\", not \"camera\"."),
        ("description: x", "1:1 The file has no \"chains\". Add lists of nodes, each feeding the next."),
        ("chains: []", "1:9 \"chains\" is empty, so the graph has no nodes."),
        ("chains: [[]]", "1:10 The chain has no steps."),
        ("chains: {}", "1:9 \"chains\" must be a list of chains, not a map."),
        ("chains:", "1:8 \"chains\" must be a list of chains, not nothing."),
        ("chains:\n\t- - camera", "2:1 The indentation has a tab. Use spaces only."),
        ("chains:\n  - -\tcamera\n    - win:dow: x", nil),
        ("a: &x 1\nb: *x", nil),
        (
            "chains: [[{node: camera, device: ${camera:-auto}}]]",
            "1:35 YAML: did not find expected ',' or '}' while parsing a flow mapping, which begins in line 1, column "
                + "11; inside braces, quote text with ${...}."
        ),
        (
            "chains: [[{node: camera, title: Hello: world}]]",
            "1:38 YAML: did not find expected ',' or '}' while parsing a flow mapping, which begins in line 1, column "
                + "11; quote text with \": \"."
        ),
        ("chains: [[camera, window]]\n---\nchains: []", nil),
        ("chains: [[camera, window]", nil),
        ("a: b: c", nil),
        ("chains: [[camera, {node: window, title: \"x\u{0}y\"}]]", nil),
        ("chains: [[camera, @window]]", nil),
    ])
    func `files that are not graphs get one sentence`(text: String, sentence: String?) {
        let found = problems(text)
        #expect(found.count >= 1)
        if let sentence { #expect(found == [sentence]) }
        #expect(found.allSatisfy { $0.hasSuffix(".") }, "\(found)")
    }

    @Test(
        arguments: [
            "chains:\n  - - {node: camera, width: 320", "chains:\n  - - {node: window, title: \"Front door",
            "chains:\n  - [camera, window", "chains:\n  - - {node: window, title: 'é",
        ], ["", "\n", "\n\n  \n", "\r\n"])
    func `a file that ends too early is reported at its last character`(text: String, end: String) throws {
        let reading = read(text + end)
        #expect(reading.problems.count == 1)
        let line = try #require(text.split(separator: "\n").last)
        let place = GraphPlace(line: 2, column: line.count + 1)
        #expect(reading.problems.first?.place == place)
        let mark = String(repeating: " ", count: line.count)
        let report = reading.report(path: "graph.yaml")
        #expect(report.hasPrefix("graph.yaml:\(place): YAML: "), "\(report)")
        #expect(report.hasSuffix("\n  2 | \(line)\n    | \(mark)^\n"), "\(report)")
    }

    @Test func `a media file is not taken for text in another encoding`() {
        let bytes: [UInt8] = [0, 0, 0, 0x20] + Array("ftypisom".utf8) + [0xE9, 0, 0xFF]
        let problems = GraphReading(bytes, catalogue: TestKinds()).problems
        #expect(problems.count == 1)
        #expect(problems.first?.message.hasPrefix("This is not a graph file.") == true)
    }

    @Test func `encodings other than UTF-8 are reported`() {
        let utf16: [UInt8] = [0xFF, 0xFE, 0x63, 0x00]
        #expect(
            GraphReading(utf16, catalogue: TestKinds()).problems.first?.message
                == "The file is UTF-16. Save it as UTF-8.")
        let latin = Array("chains:\n  - - {node: window, title: Caf".utf8) + [0xE9] + Array("}".utf8)
        let problem = GraphReading(latin, catalogue: TestKinds()).problems.first
        #expect(problem?.place == GraphPlace(line: 2, column: 32))
        let marked = [0xEF, 0xBB, 0xBF] + Array("chains:\n  - - camera\n    - window".utf8)
        #expect(GraphReading(marked, catalogue: TestKinds()).problems.isEmpty)
    }

    @Test func `the report shows the line, marks the place and lists the accepted words`() {
        let reading = read("chains:\r\n  - - {node: camera, form: raw}\r\n    - window\r\n", ["x": "1"])
        #expect(
            reading.report(path: "graph.yaml") == """
                graph.yaml: a value was given, but the file has no variable "x".
                graph.yaml:2:22: "camera" has no setting "form"; did you mean "format"?
                  2 |   - - {node: camera, form: raw}
                    |                      ^
                  accepted here: device, width, height, fps, mirror, format

                """)
    }
}
