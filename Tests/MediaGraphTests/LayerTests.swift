import Testing

@testable import MediaGraph

/// Videos that a node wants in several sizes.
@Suite struct LayerTests {
    private func plan(_ graph: MediaGraph, running: GraphPlan? = nil) throws -> GraphPlan {
        try Planner(MadeUpNodes(), MadeUpMachine()).plan(graph, running: running)
    }

    private func graph(_ offers: String, layers: Int?, encoder: Node? = nil) -> MediaGraph {
        MediaGraph {
            Chain {
                Node("chooser", name: "source", settings: ["offers": .text(offers)])
                if let encoder { encoder }
                Node("hall", name: "room", settings: layers.map { ["layers": .integer($0)] } ?? [:])
            }
        }
    }

    /// The sizes that reach the room, by input.
    private func sizes(_ plan: GraphPlan) -> [String: String] {
        plan.links(into: "room").reduce(into: [:]) { sizes, link in
            let settings = plan.node(link.link.from.node)?.node.settings ?? [:]
            sizes[link.link.to.port] = "\(link.format.encoding) \(settings["layer"]?.text ?? "full")"
        }
    }

    @Test func `each layer has an encoder of its own, behind one capture`() throws {
        let plan = try plan(graph("I420-1280x720", layers: 3))
        #expect(
            plan.nodes.map(\.name).sorted() == [
                "room", "source", "source-vp8", "source-vp8-half", "source-vp8-quarter",
            ])
        #expect(sizes(plan) == ["video": "vp8 full", "half": "vp8 half", "quarter": "vp8 quarter"])
        #expect(plan.encoders.count == 3)
    }

    @Test(arguments: [
        (960, 540, 3), (958, 540, 2), (640, 360, 2), (480, 270, 2), (478, 270, 1), (320, 180, 1), (540, 960, 3),
    ])
    func `small frames get fewer layers, the whole size always`(width: Int, height: Int, count: Int) throws {
        let inputs = sizes(try plan(graph("I420-\(width)x\(height)", layers: 3))).keys.sorted()
        #expect(inputs == [["video"], ["half", "video"], ["half", "quarter", "video"]][count - 1])
    }

    @Test func `two layers are the whole size and half of it, and one is none beside`() throws {
        #expect(sizes(try plan(graph("I420-1280x720", layers: 2))).keys.sorted() == ["half", "video"])
        for layers in [1, nil] {
            #expect(
                try plan(graph("I420-1280x720", layers: layers)).nodes.map(\.name) == ["source", "source-vp8", "room"])
        }
    }

    @Test func `the source's own encoding is the whole size, and the others are decoded once and encoded in its codec`()
        throws
    {
        let plan = try plan(graph("h264-1280x720 I420-1280x720", layers: 3))
        #expect(plan.node("source")?.formats["video"]?.encoding == "h264")
        #expect(sizes(plan) == ["video": "h264 full", "half": "h264 half", "quarter": "h264 quarter"])
        #expect(plan.nodes.count { $0.node.kind == "video-decoder" } == 1)
        #expect(plan.encoders.count == 2)
    }

    @Test func `an encoder that the graph names encodes the whole size, and its settings scale to the others`() throws {
        let encoder = Node(
            "h264-encoder", name: "encoder", settings: ["bitrate": 800_000, "interval": 7])
        let plan = try plan(graph("I420-1280x720", layers: 3, encoder: encoder))
        #expect(sizes(plan) == ["video": "h264 full", "half": "h264 half", "quarter": "h264 quarter"])
        #expect(plan.nodes.allSatisfy { $0.node.kind != "video-decoder" })
        let (half, quarter) = (plan.node("source-h264-half")?.node, plan.node("source-h264-quarter")?.node)
        #expect(half?.settings == ["bitrate": 282_843, "interval": 7, "layer": "half"])
        #expect(quarter?.settings == ["bitrate": 100_000, "interval": 7, "layer": "quarter"])
    }

    @Test func `another number of layers is an edit that keeps the room, and the encoders that remain`() throws {
        let one = try plan(graph("I420-1280x720", layers: 1))
        let three = try plan(graph("I420-1280x720", layers: 3), running: one)
        let more = GraphChange(from: one, to: three)
        // The made-up room takes no input while it runs.
        #expect(Set(more.added.map(\.name)).subtracting(["room"]) == ["source-vp8-half", "source-vp8-quarter"])
        #expect(more.removed.allSatisfy { $0 == "room" })
        let fewer = GraphChange(from: three, to: try plan(graph("I420-1280x720", layers: 1), running: three))
        #expect(Set(fewer.removed).subtracting(["room"]) == ["source-vp8-half", "source-vp8-quarter"])
        #expect(fewer.added.allSatisfy { $0.name == "room" })
    }

    @Test func `a layer that nothing here can encode is left out with a note, and the video goes on`() throws {
        let offers = "h264-1280x720 I420-1280x720"
        let plan = try Planner(WithoutEncoder(), MadeUpMachine()).plan(graph(offers, layers: 3))
        #expect(sizes(plan) == ["video": "h264 full"])
        #expect(plan.nodes.map(\.name) == ["source", "room"], "no decoder is left over")
        #expect(plan.node("room")?.notes.count { $0.contains("no H.264 encoder") } == 2)
    }

    @Test func `a graph with the inserted encoders, as a running one is written, gets no second ones`() throws {
        let plan = try plan(graph("I420-1280x720", layers: 3))
        let again = try Planner(LinkedNodes(), MadeUpMachine()).plan(plan.expanded)
        #expect(again.nodes.map(\.name).sorted() == plan.nodes.map(\.name).sorted())
    }
}

private struct WithoutEncoder: PlanningCatalogue {
    private let nodes = MadeUpNodes()

    var kinds: [NodeKind] { nodes.kinds }

    func kind(named name: String) -> NodeKind? { nodes.kind(named: name) }

    func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        guard request.node.kind == "h264-encoder" else { return try nodes.plan(request) }
        throw MediaError(code: MediaError.Code.elementMissing, message: "This machine has no H.264 encoder.")
    }

    func videoLayers(of node: Node) -> Int { nodes.videoLayers(of: node) }
}

/// With inputs for the layers, as the node of a room has them.
private struct LinkedNodes: PlanningCatalogue {
    private let nodes = MadeUpNodes()

    var kinds: [NodeKind] { nodes.kinds }

    func kind(named name: String) -> NodeKind? {
        guard let kind = nodes.kind(named: name), name == "hall" else { return nodes.kind(named: name) }
        let ports = ["video", "half", "quarter"].map {
            Port($0, [.encodedVideo], encodings: ["vp8", "h264"], isRequired: false)
        }
        return NodeKind(name, kind.group, "", inputs: ports, settings: kind.settings)
    }

    func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan { try nodes.plan(request) }

    func videoLayers(of node: Node) -> Int { nodes.videoLayers(of: node) }
}
