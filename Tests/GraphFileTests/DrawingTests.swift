import Foundation
import GraphFile
import MediaGraph
import Testing

@Suite struct DrawingTests {
    @Test func `drawings show no password, secret or token`() {
        let graph = MediaGraph {
            Chain {
                Node("camera", settings: ["device": "rtsp://me:pa:ss@w@host/stream", "token": "hush1"])
                Node("publish", settings: ["service-secret": "hush2", "room": "demo"])
            }
        }
        let drawing = GraphDrawing(graph, title: "A title", catalogue: TestKinds())
        for text in [drawing.text, drawing.dot] {
            #expect(!text.contains("hush") && !text.contains("pa:ss"), "\(text)")
            #expect(text.contains("rtsp://me:•••@host/stream"))
            #expect(text.contains("room demo"))
        }
    }

    @Test func `a node with several inputs follows its first input's source; the others join by name`() {
        let graph = MediaGraph {
            Chain {
                Node("camera")
                Node("h264-encoder")
                Node("publish")
            }
            Chain {
                Node("microphone")
                Node("opus-encoder")
                Join("publish", port: "audio")
            }
        }
        let text = GraphDrawing(graph, catalogue: TestKinds()).text
        #expect(text.contains("│ opus-encoder │") && text.contains("╰─▶ publish.audio"))
        #expect(text.components(separatedBy: "│ publish ").count == 2)
    }

    @Test func `unknown kinds are drawn and written by their links`() {
        func link(_ from: String, _ output: String, _ to: String, _ input: String) -> Link {
            Link(from: PortReference(node: from, port: output), to: PortReference(node: to, port: input))
        }
        let graph = MediaGraph(
            nodes: [Node("clock"), Node("stamp"), Node("h264-encoder"), Node("publish")],
            links: [
                link("clock", "video", "stamp", "in"), link("stamp", "out", "h264-encoder", "in"),
                link("h264-encoder", "out", "publish", "video"),
            ])
        let drawing = GraphDrawing(graph, catalogue: LinkedKinds(TestKinds(), graph))
        for name in ["stamp", "h264-encoder", "publish"] {
            #expect(drawing.text.contains("▼\n┌\(String(repeating: "─", count: name.count + 2))┐\n│ \(name) │"))
        }
        #expect(drawing.text.contains("raw video"), "\(drawing.text)")
        #expect(!drawing.dot.contains("UNKNOWN"))
        #expect(drawing.dot.contains("CAPTURER") && drawing.dot.contains("PROCESSOR"))
        #expect(
            GraphDocument(graph: graph).yaml(with: LinkedKinds(TestKinds(), graph)) == """
                chains:
                  - - clock
                    - stamp
                    - h264-encoder
                    - publish

                """)
    }

    @Test func `notes of a plan or of measurements replace the contracts' texts`() {
        let graph = MediaGraph {
            Chain {
                Node("camera")
                Node("window")
            }
        }
        var drawing = GraphDrawing(graph, catalogue: TestKinds())
        drawing.linkNotes = [graph.settled(with: TestKinds()).links[0]: "I420 640x480"]
        drawing.nodeNotes = ["window": ["30 frames/s, 2 ms"]]
        for text in [drawing.text, drawing.dot] {
            #expect(text.contains("I420 640x480") && text.contains("30 frames/s, 2 ms") && !text.contains("raw video"))
        }
    }
}
