import MediaGraph
import Testing

@testable import GraphFile

@Suite struct ReadingTests {
    private let example = """
        description: Webcam to room with preview
        chains:
          - - {node: camera, device: "${camera:-auto}", width: 1280, height: 720, fps: 30}
            - tee: [{node: window, title: Preview}]
              branch: preview
              optional: true
            - {node: h264-encoder, name: encoder, bitrate: 2M}
            - tee: [{to: recording.video}]
            - {node: publish, room: "${room:-demo}"}
          - - microphone
            - opus-encoder
            - tee: [{to: recording.audio}]
            - {to: publish.audio}
          - - {node: recorder, name: recording, path: out.mkv}
          - - {from: camera}
            - {element: videobalance, saturation: 0.2}
            - null
        """

    private var exampleGraph: MediaGraph {
        MediaGraph {
            Chain {
                Node("camera", settings: ["device": "auto", "width": 1280, "height": 720, "fps": 30])
                Tee("preview", isOptional: true) { Node("window", settings: ["title": "Preview"]) }
                Node("h264-encoder", name: "encoder", settings: ["bitrate": 2_000_000])
                Tee { Join("recording", port: "video") }
                Node("publish", settings: ["room": "demo"])
            }
            Chain {
                Node("microphone")
                Node("opus-encoder")
                Tee { Join("recording", port: "audio") }
                Join("publish", port: "audio")
            }
            Node("recorder", name: "recording", settings: ["path": "out.mkv"])
            Chain(from: "camera") {
                Node.element("videobalance", ["saturation": 0.2])
                Node("null")
            }
        }
    }

    @Test func `a file gives the same graph as the builder`() {
        let reading = read(example)
        #expect(reading.problems.isEmpty, "\(reading.report(path: "example"))")
        #expect(reading.document.graph == exampleGraph.settled(with: TestKinds()))
        #expect(reading.document.description == "Webcam to room with preview")
    }

    @Test func `JSON gives the same graph as YAML`() {
        let json = """
            {
            \t"description": "Webcam to room with preview",
            \t"chains": [
            \t\t[
            \t\t\t{"node": "camera", "device": "${camera:-auto}", "width": 1280, "height": 720, "fps": 30.0},
            \t\t\t{"tee": [{"node": "window", "title": "Preview"}], "branch": "preview", "optional": true},
            \t\t\t{"node": "h264-encoder", "name": "encoder", "bitrate": 2000000},
            \t\t\t{"tee": [{"to": "recording.video"}]},
            \t\t\t{"node": "publish", "room": "${room:-demo}"}
            \t\t],
            \t\t["microphone", "opus-encoder", {"tee": [{"to": "recording.audio"}]}, {"to": "publish.audio"}],
            \t\t[{"node": "recorder", "name": "recording", "path": "out.mkv"}],
            \t\t[{"from": "camera"}, {"element": "videobalance", "saturation": 0.2}, "null"]
            \t]
            }
            """
        let reading = read(json)
        #expect(reading.problems.isEmpty, "\(reading.report(path: "example"))")
        #expect(reading.document.graph == read(example).document.graph)
        #expect(reading.document.places.nodes["encoder"] == GraphPlace(line: 7, column: 13))
    }

    @Test func `JSON escapes are read, including surrogate pairs`() {
        let reading = read(#"{"chains": [["camera", {"node": "window", "title": "\ud83c\uDFA5 \u00e9\/\\ud83c\""}]]}"#)
        #expect(reading.problems.isEmpty, "\(reading.report(path: "x"))")
        #expect(reading.document.graph.node("window")?.settings["title"] == "\u{1F3A5} é/\\ud83c\"")
        #expect(!problems(#"{"chains": [["camera", {"node": "window", "title": "\ud83c"}]]}"#).isEmpty)
    }

    @Test func `nodes, settings and links keep their places`() throws {
        let places = read(example).document.places
        #expect(places.nodes["camera"] == GraphPlace(line: 3, column: 14))
        #expect(places.nodes["microphone"] == GraphPlace(line: 10, column: 7))
        #expect(places.settings["camera"]?["width"] == GraphPlace(line: 3, column: 56))
        let link = Link(
            from: PortReference(node: "encoder", port: "out"), to: PortReference(node: "recording", port: "video"))
        #expect(places.links[link] == GraphPlace(line: 8, column: 18))
    }

    // MARK: Variables

    @Test func `variables are filled in, listed, and set from outside`() {
        let reading = read(example, ["camera": "/dev/video2"])
        #expect(reading.document.graph.node("camera")?.settings["device"] == "/dev/video2")
        #expect(
            reading.document.variables == [
                GraphVariable(name: "camera", defaultValue: "auto", value: "/dev/video2"),
                GraphVariable(name: "room", defaultValue: "demo", value: "demo"),
            ])
    }

    @Test func `a variable has the type of its setting, and an empty one omits the setting`() {
        let text = """
            variables:
              source: The video source
              width: {summary: Width of the frames, default: 320}
            chains:
              - - {node: "${source:-camera}", width: "${width}", fps: "${fps:-29.97}", mirror: "${mirror:-false}", device: "${device:-}"}
                - {node: window, title: "Camera ${number:-1} costs $${5}"}
            """
        let reading = read(text)
        #expect(reading.problems.isEmpty, "\(reading.report(path: "x"))")
        let node = reading.document.graph.node("camera")
        #expect(node?.settings == ["width": 320, "fps": 29.97, "mirror": false])
        #expect(reading.document.graph.node("window")?.settings["title"] == "Camera 1 costs ${5}")
        #expect(reading.document.variables.map(\.name) == ["source", "width", "fps", "mirror", "device", "number"])
        #expect(reading.document.variables.first?.summary == "The video source")
        let other = read(text, ["source": "scale", "fps": "fast"])
        #expect(other.problems.contains { $0.message.contains("has no setting \"fps\"") && $0.place?.line == 5 })
    }

    @Test func `variables without a value, unknown and malformed ones are reported`() {
        let text = """
            variables: {unused: Nothing uses this}
            chains:
              - - {node: camera, device: "${camera}", width: "${a b}", height: "${height"}
                - {node: window, title: "${x:-1}${x:-2}${y:-${z}}"}
            """
        let found = problems(text, ["camra": "1"])
        #expect(
            found == [
                "a value was given, but the file has no variable \"camra\"; did you mean \"camera\"?",
                "1:13 The file does not use the variable \"unused\".",
                "3:30 \"camera\" has no value. Give it one, or write a default with ${camera:-...}.",
                "3:50 \"${a b}\" is not a variable. Write ${name} or ${name:-default}, with letters, digits, - and _ "
                    + "in the name, a letter first.",
                "3:68 \"${height\" lacks the closing }. Write \"$${\" for the text itself.",
                "4:29 \"x\" has the default \"2\" here and \"1\" in line 4. Leave out one of them.",
                "4:29 The default of \"y\" has another variable. Write a default without variables.",
            ])
    }

    // MARK: Settings

    @Test func `bitrates accept suffixes such as k and M`() {
        for (text, bits) in [("2M", 2_000_000), ("2.5M", 2_500_000), ("500k", 500_000), ("2e6", 2_000_000)] {
            let reading = read("chains: [[camera, {node: h264-encoder, bitrate: \(text)}, publish]]")
            #expect(reading.problems.isEmpty)
            #expect(reading.document.graph.node("h264-encoder")?.settings["bitrate"] == .integer(bits))
        }
        for text in ["2G", "M", "k5", "2.00000001k", "1_000_000", "0x10", "inf"] {
            let found = problems("chains: [[camera, {node: h264-encoder, bitrate: \(text)}, publish]]")
            #expect(found.count == 1 && found[0].contains("; expected a whole number from 30000 to 100000000 bit/s"))
        }
    }

    @Test func `text settings accept any word, quoted or not`() {
        for text in ["5", "\"5\"", "'5'", "5 # comment"] {
            #expect(
                read("chains: [[camera, {node: window, title: \(text)\n}]]").document.graph.node("window")?
                    .settings["title"] == "5")
        }
        #expect(problems("chains: [[camera, {node: window, title: }]]").first?.contains("has no value") == true)
        let number = problems("chains: [[{node: camera, width: \"640\"}, window]]").first
        #expect(number?.contains("\"640\"; expected") == true, "\(number ?? "")")
        #expect(number?.hasSuffix(", without quotes.") == true, "\(number ?? "")")
        let comma = problems("chains: [[camera, {node: window, title: 1,5M}]]")
        #expect(comma.contains { $0.hasSuffix("write a point: 1.5M.") }, "\(comma)")
    }

    @Test func `a setting whose name is a key of the file format belongs under settings`() {
        let reading = read("chains: [[camera, {element: videobalance, settings: {to: 3}, name: b}, window]]")
        #expect(reading.problems.isEmpty)
        #expect(reading.document.graph.node("b")?.settings["to"] == 3)
        let own = read("chains: [[camera, {node: changing, name: b, after: 5, settings: {to: size, name: c}}, window]]")
        #expect(own.problems.isEmpty)
        #expect(own.document.graph.node("b")?.settings == ["to": "size", "name": "c", "after": 5])
        #expect(
            problems("chains: [[camera, {node: changing, settings: {to: size, after: 5}}, window]]").map {
                $0.contains("1:57 Write \"after\" beside \"node\"")
            } == [true])
    }

    // MARK: Chains

    @Test func `branch and optional apply to every node of their tee or chain`() {
        let graph = read(
            """
            chains:
              - - camera
                - tee:
                    - scale
                    - tee: [{node: window, name: inner}]
                      branch: deeper
                    - {node: window, branch: own}
                  branch: outer
                  optional: true
                - "null"
              - - {from: camera, branch: side}
                - {node: "null", name: drop}
            """
        ).document.graph
        let marks = Dictionary(
            uniqueKeysWithValues: graph.nodes.map { ($0.name, "\($0.branch ?? "-") \($0.isOptional)") })
        #expect(
            marks == [
                "camera": "- false", "scale": "outer true", "inner": "deeper true", "window": "own true",
                "null": "- false", "drop": "side false",
            ])
    }

    @Test func `inputs of a mixer are named, or numbered in order`() {
        let reading = read(
            """
            chains:
              - - {node: camera, name: a}
                - {to: mixer.in2}
              - - {node: camera, name: b}
                - {to: mixer}
              - [mixer, window]
            """)
        #expect(reading.problems.isEmpty, "\(reading.report(path: "x"))")
        #expect(reading.document.graph.links(into: "mixer").map(\.to.port) == ["in2", "in1"])
    }
}
