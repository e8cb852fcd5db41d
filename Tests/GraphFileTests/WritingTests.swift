import Foundation
import GraphFile
import MediaGraph
import Testing
import TestSupport

@Suite struct WritingTests {
    /// Writes the graph both ways and reads it again.
    private func expectRoundTrip(
        _ graph: MediaGraph, description: String? = nil, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let document = GraphDocument(graph: graph, description: description)
        for text in [document.yaml(with: TestKinds()), document.json(with: TestKinds())] {
            let reading = read(text)
            #expect(
                reading.document.graph == graph.settled(with: TestKinds()), "\(text)\n\(reading.report(path: "x"))",
                sourceLocation: sourceLocation)
            #expect(reading.document.description == description, sourceLocation: sourceLocation)
        }
    }

    @Test func `a graph is written like by hand`() {
        let graph = MediaGraph {
            Chain {
                Node("camera", settings: ["device": "/dev/video0", "fps": 30.0, "mirror": false])
                Tee("preview", isOptional: true) { Node("window", settings: ["title": "Preview: mine"]) }
                Node("h264-encoder", name: "encoder")
                Tee { Join("recording", port: "video") }
                Node("publish")
            }
            Chain {
                Node("microphone")
                Node("opus-encoder")
                Tee { Join("recording", port: "audio") }
                Join("publish", port: "audio")
            }
            Node("recorder", name: "recording", settings: ["path": "out.mkv"])
            Chain(from: "camera") {
                Node.element("videobalance", ["to": 3])
                Node("null")
            }
        }
        let text = GraphDocument(graph: graph, description: "Webcam").yaml(with: TestKinds())
        #expect(
            text == """
                description: Webcam
                chains:
                  - - {node: camera, device: /dev/video0, fps: 30, mirror: false}
                    - tee:
                        - {node: window, title: "Preview: mine"}
                      branch: preview
                      optional: true
                    - tee:
                        - {element: videobalance, settings: {to: 3}}
                        - "null"
                    - {node: h264-encoder, name: encoder}
                    - tee:
                        - {node: recorder, name: recording, path: out.mkv}
                    - publish
                  - - microphone
                    - opus-encoder
                    - tee:
                        - {to: recording.audio}
                    - {to: publish.audio}

                """)
        expectRoundTrip(graph, description: "Webcam")
    }

    @Test func `nested tees, joins, several outputs and repeated inputs survive writing and reading`() {
        expectRoundTrip(
            MediaGraph {
                Chain {
                    Node("file", settings: ["path": "a b.mp4"])
                    Tee("one") {
                        Node("scale", name: "s1")
                        Tee("two", isOptional: true) {
                            Node("scale", name: "s2")
                            Tee { Node("window", name: "w1") }
                            Join("mixer", port: "in7")
                        }
                        Node("window", name: "w2").optional
                    }
                    Join("mixer")
                }
                Chain(from: "file", port: "audio") {
                    Tee { Join("recorder", port: "audio") }
                    Node("opus-encoder")
                    Join("publish", port: "audio")
                }
                Chain {
                    Node("mixer")
                    Tee { Join("recorder") }
                    Node("h264-encoder")
                    Node("publish")
                }
                Node("recorder", settings: ["path": "x"])
            })
    }

    @Test func `texts of any kind survive writing and reading`() {
        let texts = [
            "", " ", "null", "true", "no", "5", "-", "- a", "a: b", "#x", "a #b", "\"", "\\", "'", "{", "*x", "&x",
            "${x}",
            "$${x}", "$", "$${", "line\nline", "\ttab", "\u{7}\u{1b}", "\u{85}\u{2028}\u{FEFF}", "\u{1F3A5}é", "1e5",
            "~",
            "@", "%", "`", "|", ">", "a\r\nb", "\u{FFFE}", "\u{10FFFF}", "2001-01-01", "0x10", "1_000", ".inf", "=",
            "<<",
        ]
        for text in texts {
            expectRoundTrip(
                MediaGraph {
                    Chain {
                        Node("camera", settings: ["device": .text(text)])
                        Node(
                            "window", name: text.isEmpty || text.contains(".") ? "w" : text,
                            branch: text.isEmpty ? nil : text)
                    }
                })
        }
        for text in texts where !text.isEmpty && !text.hasSuffix("\n") {
            expectRoundTrip(
                MediaGraph {
                    Chain {
                        Node("camera")
                        Node("window")
                    }
                }, description: "\(text) and\n\n more\n\(text).")
        }
    }

    @Test func `the example step of each kind is readable`() {
        let step = GraphDocument.step(
            Node("changing", settings: ["to": "size", "after": 3]), of: TestKinds().kind(named: "changing"))
        #expect(step == "{node: changing, after: 3, settings: {to: size}}")
        #expect(problems("chains: [[camera, \(step), window]]").isEmpty)
    }

    @Test func `a schema has settings that are keys of the file format under settings`() throws {
        let schema = GraphSchema(kinds: TestKinds().kinds).json
        let tree = try #require(
            try JSONSerialization.jsonObject(with: Data(schema.utf8)) as? [String: Any])
        let node = (tree["$defs"] as? [String: Any])?["node:changing"] as? [String: Any]
        #expect(node?["required"] as? [String] == ["node", "settings"])
        let properties = node?["properties"] as? [String: Any]
        #expect(properties?["to"] == nil && properties?["after"] != nil)
        let settings = properties?["settings"] as? [String: Any]
        #expect(settings?["required"] as? [String] == ["to"])
        #expect((settings?["properties"] as? [String: Any])?.keys.sorted() == ["name", "to"])
    }

    @Test func `invalid graphs can be written too`() {
        let graph = MediaGraph(
            nodes: [Node("scale", name: "a"), Node("scale", name: "b"), Node("nothing-known", settings: ["x": 1.5])],
            links: [
                Link(from: PortReference(node: "a", port: "out"), to: PortReference(node: "b", port: "in")),
                Link(from: PortReference(node: "b", port: "out"), to: PortReference(node: "a", port: "in")),
                Link(from: PortReference(node: "b", port: "out"), to: PortReference(node: "nothing-known", port: "p")),
                Link(from: PortReference(node: "gone", port: "out"), to: PortReference(node: "b", port: "q")),
            ])
        expectRoundTrip(graph)
    }

    @Test(arguments: 0..<20) func `random graphs survive writing and reading`(seed: UInt64) {
        for round in 0..<15 {
            var random = Seeded(seed * 1000 + UInt64(round))
            expectRoundTrip(randomGraph(&random))
        }
    }

    private func randomGraph(_ random: inout Seeded) -> MediaGraph {
        let kinds = TestKinds().kinds + [TestKinds().kind(named: "element:videobalance")].compactMap { $0 }
        var graph = MediaGraph()
        for index in 0..<Int.random(in: 1...14, using: &random) {
            let kind = kinds.random(&random)
            var settings: [String: SettingValue] = [:]
            for contract in kind.settings where contract.isRequired || Bool.random(using: &random) {
                settings[contract.name] = value(of: contract, &random)
            }
            let isNamed = Bool.random(using: &random) || graph.node(kind.name) != nil || kind.group == .element
            graph.nodes.append(
                Node(
                    kind.name, name: isNamed ? "n\(index)" : nil, settings: settings,
                    branch: [nil, nil, "b1", "b2", "b3"].random(&random),
                    isOptional: Int.random(in: 0..<3, using: &random) == 0))
        }
        // Links lead forward only, so that there is no cycle.
        for (index, node) in graph.nodes.enumerated().dropFirst() {
            for input in kinds.named(node.kind).inputs {
                let names = input.isRepeated ? ["in1", "in2", "in5"] : [input.name]
                for name in names where Int.random(in: 0..<4, using: &random) > 0 {
                    let source = graph.nodes[Int.random(in: 0..<index, using: &random)]
                    guard let output = kinds.named(source.kind).outputs.randomElement(using: &random) else { continue }
                    graph.links.append(
                        Link(
                            from: PortReference(node: source.name, port: output.name),
                            to: PortReference(node: node.name, port: name)))
                }
            }
        }
        graph.links.shuffle(using: &random)
        return graph
    }

    private func value(of contract: SettingContract, _ random: inout Seeded) -> SettingValue {
        switch contract.domain {
        case .flag: .flag(.random(using: &random))
        case .integer(let range): .integer(.random(in: range, using: &random))
        case .number(let range): .number(.random(in: range, using: &random))
        case .text: .text(["a", "b c", "3", "${x}"].random(&random))
        case .choice(let choices): .text(choices.random(&random))
        }
    }
}

extension [NodeKind] {
    fileprivate func named(_ name: String) -> NodeKind { first { $0.name == name } ?? self[0] }
}

extension Array {
    /// One of the elements; there is one.
    fileprivate func random(_ random: inout Seeded) -> Element { self[Int.random(in: indices, using: &random)] }
}
