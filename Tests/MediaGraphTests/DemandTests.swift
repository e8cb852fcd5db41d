import TestSupport
import Testing

@testable import MediaGraph

/// The consumers of a source decide the format that it delivers.
@Suite struct DemandTests {
    private struct Case: CustomTestStringConvertible, Sendable {
        /// The formats that the source can deliver, its own preference first.
        let offers: String
        let consumers: [String]
        var encoderFormats = ["I420"]
        let chosen: String
        /// Encoders, decoders and converters of the whole plan.
        let inserted: (encoders: Int, decoders: Int, converters: Int)

        init(
            _ offers: String, to consumers: String, encoding formats: [String] = ["I420"], gives chosen: String,
            _ inserted: (Int, Int, Int)
        ) {
            self.offers = offers
            self.consumers = consumers.split(separator: " ").map(String.init)
            (encoderFormats, self.chosen, self.inserted) = (formats, chosen, inserted)
        }

        var testDescription: String { "\(offers) -> \(consumers)" }

        func graph(_ forward: Bool = false) -> MediaGraph {
            MediaGraph(
                nodes: [Node("chooser", settings: ["offers": .text(offers), "forward": .flag(forward)])]
                    + consumers.enumerated().map { Node($1, name: "\($1)-\($0)") },
                links: consumers.enumerated().map {
                    Link(
                        from: PortReference(node: "chooser", port: "video"),
                        to: PortReference(node: "\($1)-\($0)", port: "in"))
                })
        }
    }

    private static func plan(_ graph: MediaGraph, encoding formats: [String] = ["I420"]) throws -> GraphPlan {
        var nodes = MadeUpNodes()
        nodes.encoderFormats = formats
        return try Planner(nodes, MadeUpMachine()).plan(graph)
    }

    private static let cases = [
        // A source's own H.264 goes untouched to a room that takes it, also beside a preview and a recording.
        Case("I420 h264", to: "room", gives: "h264", (0, 0, 0)),
        Case("I420 h264", to: "room screen", gives: "h264", (0, 1, 0)),
        Case("I420 h264", to: "room disk screen", gives: "h264", (0, 1, 0)),
        // It has to be encoded for one of them anyway; raw frames save the decoder.
        Case("I420 h264", to: "room web", gives: "I420", (1, 0, 0)),
        Case("I420-decoded h264", to: "room web", gives: "h264", (1, 1, 0)),
        // Only a preview: raw frames.
        Case("I420 h264", to: "screen", gives: "I420", (0, 0, 0)),
        Case("I420-decoded h264", to: "screen", gives: "I420-decoded", (0, 0, 0)),
        Case("I420-decoded h264", to: "sink", gives: "h264", (0, 0, 0)),
        // NV12 and YUY2 go straight to an encoder or a renderer that takes them.
        Case("YUY2 NV12", to: "disk", encoding: ["I420", "NV12"], gives: "NV12", (1, 0, 0)),
        Case("NV12 YUY2", to: "disk", encoding: ["YUY2"], gives: "YUY2", (1, 0, 0)),
        Case("YUY2", to: "card", gives: "YUY2", (0, 0, 0)),
        Case("NV12 I420", to: "disk screen", encoding: ["NV12", "I420"], gives: "I420", (1, 0, 0)),
        // One conversion serves both.
        Case("YUY2", to: "disk screen", encoding: ["NV12", "I420"], gives: "YUY2", (1, 0, 1)),
        // MJPEG stays MJPEG up to the one decoder.
        Case("I420-decoded mjpeg", to: "sink", gives: "mjpeg", (0, 0, 0)),
        Case("mjpeg", to: "screen disk", gives: "mjpeg", (1, 1, 0)),
        // The settings count more than the work.
        Case("NV12 h264-slow", to: "room", gives: "NV12", (1, 0, 1)),
        Case("NV12-slow mjpeg", to: "screen", gives: "mjpeg", (0, 1, 0)),
    ]

    @Test("A source gives the format that needs the least work for all of its consumers", arguments: cases)
    private func choice(_ testCase: Case) throws {
        let plan = try Self.plan(testCase.graph(), encoding: testCase.encoderFormats)
        let expected = FormatAlternative(madeUp: Substring(testCase.chosen)).format.encoding
        #expect(plan.node("chooser")?.formats["video"]?.encoding == expected)
        let inserted = Dictionary(grouping: plan.nodes.filter { $0.adapts != nil }, by: \.node.kind)
        #expect(plan.encoders.count == testCase.inserted.encoders)
        #expect(inserted["video-decoder"]?.count ?? 0 == testCase.inserted.decoders)
        #expect(inserted["convert"]?.count ?? 0 == testCase.inserted.converters)
    }

    @Test("A node that repeats its input's format passes on what its consumers want")
    func onward() throws {
        func graph(_ last: String) -> MediaGraph {
            MediaGraph {
                Chain {
                    Node("chooser", settings: ["offers": "YUY2 I420 NV12"])
                    Node("rate")
                    Node("rate", name: "again")
                    Node(last)
                }
            }
        }
        for (last, format) in [("card", "NV12"), ("screen", "I420"), ("sink", "YUY2")] {
            let plan = try Self.plan(graph(last))
            #expect(plan.node("chooser")?.formats["video"]?.encoding == format)
            #expect(!plan.nodes.contains { $0.adapts != nil })
        }
    }

    @Test("The plan states the choice, and why each other format was rejected")
    func reasons() throws {
        let plan = try Self.plan(
            MediaGraph {
                Chain {
                    Node("chooser", settings: ["offers": "I420-decoded NV12-slow mjpeg h264"])
                    Tee { Node("screen") }
                    Node("room")
                }
            })
        let source = try #require(plan.node("chooser"))
        #expect(source.notes == ["h264: 1 decode for screen.in and room.in"])
        #expect(
            source.passedOver == [
                "I420: needs 1 encode and 1 decode", "mjpeg: needs 1 encode and 1 decode",
                "NV12: further from the requested size and rate",
            ])
    }

    @Test("A format that one consumer cannot get at all is the last choice")
    func impossible() {
        let demand = Demand([
            Demand.Consumer("packets.in", Port("in", [.rtp]))
        ])
        let choice = demand.choice(among: [.init(madeUp: "I420"), .init(madeUp: "h264")])
        #expect(choice.index == 0)
        #expect(choice.passedOver == ["h264: no inserted node can convert it for all consumers"])
    }

    // MARK: Random graphs

    /// A valid graph of up to three sources, with processors and consumers.
    private static func randomGraph(_ random: inout Seeded, forward: Bool) -> MediaGraph {
        let offers = ["I420", "NV12", "YUY2", "h264", "vp8", "mjpeg", "I420-decoded", "h265"]
        let ends = ["screen", "room", "disk", "web", "card", "sink"]
        var graph = MediaGraph()
        for source in 0..<Int.random(in: 1...3, using: &random) {
            let count = Int.random(in: 1...4, using: &random)
            let own = offers.shuffled(using: &random).prefix(count).joined(separator: " ")
            graph.nodes.append(
                Node("chooser", name: "source\(source)", settings: ["offers": .text(own), "forward": .flag(forward)]))
            var outputs = [PortReference(node: "source\(source)", port: "video")]
            for place in 0..<Int.random(in: 1...6, using: &random) {
                let isProcessor = Int.random(in: 0..<3, using: &random) == 0
                let kinds = isProcessor ? ["rate", "crop"] : ends
                let kind = kinds[Int.random(in: 0..<kinds.count, using: &random)]
                let node = Node(kind, name: "\(kind)\(source)-\(place)")
                graph.nodes.append(node)
                graph.links.append(
                    Link(
                        from: outputs[Int.random(in: 0..<outputs.count, using: &random)],
                        to: PortReference(node: node.name, port: "in")))
                if isProcessor { outputs.append(PortReference(node: node.name, port: "out")) }
            }
            // A processor needs a consumer.
            for output in outputs where graph.links(outOf: output.node).isEmpty {
                let node = Node("sink", name: "rest-\(output.node)")
                graph.nodes.append(node)
                graph.links.append(Link(from: output, to: PortReference(node: node.name, port: "in")))
            }
        }
        graph.nodes.shuffle(using: &random)
        return graph
    }

    @Test("Random graphs: no more encoders than without the demand, accepted formats only, and always the same plan")
    func randomGraphs() throws {
        var saved = 0
        let rounds = Soak.rounds(200, soak: 2000)
        for seed in 0..<UInt64(rounds) {
            var nodes = MadeUpNodes()
            nodes.encoderFormats = [["I420"], ["NV12"], ["I420", "NV12"], ["NV12", "YUY2"]][Int(seed % 4)]
            let planner = Planner(nodes, MadeUpMachine())
            func graph(forward: Bool) -> MediaGraph {
                var random = Seeded(seed)
                return Self.randomGraph(&random, forward: forward)
            }
            let plan = try planner.plan(graph(forward: false))
            let forward = try planner.plan(graph(forward: true))
            #expect(plan.encoders.count <= forward.encoders.count, "seed \(seed)")
            saved += forward.encoders.count - plan.encoders.count
            for link in plan.links {
                let reader = try #require(plan.node(link.link.to.node))
                let port = nodes.input(link.link.to.port, of: reader.node, running: nil, on: MadeUpMachine())
                #expect(port?.takes(link.format) == true, "seed \(seed): \(link)")
            }
            #expect(try planner.plan(graph(forward: false)) == plan, "seed \(seed)")
        }
        #expect(saved > rounds / 8)
    }
}
