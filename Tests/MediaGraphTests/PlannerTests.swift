import Testing

@testable import MediaGraph

/// A machine with the elements and devices that the test lists.
struct MadeUpMachine: PlanEnvironment {
    var elements: Set<String> = []
    var usable: Set<String> = []

    func hasElement(_ factory: String) -> Bool { elements.contains(factory) }
    func canOpen(_ factory: String) -> Bool { usable.contains(factory) }
    func package(ofElement factory: String) -> String { "package-of-\(factory)" }
    func camera(_ device: String) throws(MediaError) -> CameraChoice {
        throw MediaError(code: MediaError.Code.cameraAbsent, message: "There is no camera \(device).")
    }
    func file(_ path: String) throws(MediaError) -> MediaFileInfo {
        throw MediaError(code: MediaError.Code.fileNotFound, message: "There is no file \(path).")
    }
    func windowSink() -> String? { nil }
    func soundSink() -> String? { nil }
    func soundSource() -> String? { nil }
    func secondsPerFrame(_ element: ElementPlan, _ format: MediaFormat) -> Double { 0.004 }
}

/// Nodes with one element each. Their output has the first format of the contract.
struct MadeUpNodes: PlanningCatalogue {
    let kinds: [NodeKind] = [
        NodeKind("source", .capturer, "", outputs: [Port("video", [.rawVideo], encodings: ["YUY2"])]),
        NodeKind(
            "door", .capturer, "", outputs: [Port("video", [.encodedVideo], encodings: ["h265"])]),
        NodeKind("voice", .capturer, "", outputs: [Port("audio", [.rawAudio])]),
        NodeKind(
            "broken", .renderer, "", inputs: [Port("in", [.rawVideo])],
            settings: [SettingContract("volume", .integer(0...10), isChangeable: true, "")]),
        NodeKind("screen", .renderer, "", inputs: [Port("in", [.rawVideo], encodings: ["I420"])]),
        NodeKind("ear", .renderer, "", inputs: [Port("in", [.rawAudio])]),
        NodeKind("room", .transport, "", inputs: [Port("in", [.encodedVideo], encodings: ["vp8", "h264"])]),
        NodeKind(
            "hall", .transport, "", inputs: [Port("video", [.encodedVideo], encodings: ["vp8", "h264"])],
            settings: [SettingContract("layers", .integer(1...3), default: 1, isChangeable: true, "")]),
        NodeKind("disk", .recorder, "", inputs: [Port("in", [.encodedVideo], encodings: ["h264"])]),
        NodeKind("tape", .recorder, "", inputs: [Port("in", [.encodedVideo], encodings: ["h264", "vp8"])]),
        NodeKind("packets", .transport, "", inputs: [Port("in", [.rtp])]),
        NodeKind(
            "vp8-encoder", .codec, "", inputs: [Port("in", [.rawVideo], encodings: ["I420"])],
            outputs: [Port("out", [.encodedVideo], encodings: ["vp8"])],
            settings: [SettingContract("layer", .text, "")]),
        NodeKind(
            "h264-encoder", .codec, "", inputs: [Port("in", [.rawVideo], encodings: ["I420"])],
            outputs: [Port("out", [.encodedVideo], encodings: ["h264"])],
            settings: [
                SettingContract("bitrate", .integer(1...1_000_000), isChangeable: true, ""),
                SettingContract("interval", .integer(1...100), ""), SettingContract("layer", .text, ""),
            ]),
        NodeKind(
            "video-decoder", .codec, "", inputs: [Port("in", [.encodedVideo])],
            outputs: [Port("out", [.rawVideo], encodings: ["I420"])]),
        NodeKind(
            "convert", .processor, "", inputs: [Port("in", [.rawVideo])], outputs: [Port("out", [.rawVideo])],
            settings: [SettingContract("pixel-format", .text, "")]),
        NodeKind(
            "chooser", .capturer, "", outputs: [Port("video", [.rawVideo, .encodedVideo])],
            settings: [SettingContract("offers", .text, ""), SettingContract("forward", .flag, default: false, "")]),
        NodeKind("rate", .processor, "", inputs: [Port("in", [.rawVideo])], outputs: [Port("out", [.rawVideo])]),
        NodeKind(
            "crop", .processor, "", inputs: [Port("in", [.rawVideo], encodings: ["I420"])],
            outputs: [Port("out", [.rawVideo], encodings: ["I420"])]),
        NodeKind("web", .recorder, "", inputs: [Port("in", [.encodedVideo], encodings: ["vp8"])]),
        NodeKind("card", .renderer, "", inputs: [Port("in", [.rawVideo], encodings: ["NV12", "YUY2"])]),
        NodeKind("sink", .renderer, "", inputs: [Port("in", [.rawVideo, .rawAudio, .encodedVideo, .encodedAudio])]),
    ]
    /// The pixel formats that the encoder of H.264 takes.
    var encoderFormats = ["I420"]

    func input(
        _ port: String, of node: Node, running: NodePlan?, on environment: any PlanEnvironment
    ) -> Port? {
        let found = kind(named: node.kind)?.input(port)
        return node.kind == "h264-encoder" ? Port("in", [.rawVideo], encodings: encoderFormats) : found
    }

    func output(repeating input: String, of node: Node) -> String? { node.kind == "rate" ? "out" : nil }

    func kind(named name: String) -> NodeKind? { kinds.kind(named: name) }

    func videoLayers(of node: Node) -> Int { node.settings["layers"]?.integer ?? 1 }

    func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        if request.kind.name == "broken" {
            throw MediaError(code: "test.broken", message: "This never works.")
        }
        var plan = NodePlan(request.node)
        plan.add(request.kind.name, as: "it")
        if request.kind.name == "chooser" {
            let offers = request.text("offers").split(separator: " ").map(FormatAlternative.init(madeUp:))
            let choice = request.choice("video", among: request.flag("forward") ? [offers[0]] : offers)
            plan.note(choice)
            plan.setOutput("video", choice.format)
            return plan
        }
        for input in request.inputs { plan.inputs[input.port] = ElementPad("it") }
        for output in request.kind.outputs {
            let encoding =
                output.encodings.first
                ?? (request.kind.name == "rate" ? request.input("in")?.encoding : request.text("pixel-format")) ?? ""
            let kind = output.kinds.first ?? .rawVideo
            var format = kind == .rawAudio ? MediaFormat.rawAudio : MediaFormat(kind, encoding)
            if kind != .rawAudio {
                format.width = request.inputs.first?.format.width ?? 640
                format.height = request.inputs.first?.format.height ?? 480
            }
            plan.outputs[output.name] = ElementPad("it")
            plan.formats[output.name] = format
        }
        plan.latency = request.environment.secondsPerFrame(plan.elements[0], .rawVideo())
        return plan
    }
}

extension FormatAlternative {
    /// Such as `h264`, or `I420-decoded` for one that the source decodes itself, or `NV12-slow` for too low a rate. It may end
    /// with a size, as `I420-1280x720`.
    init(madeUp words: Substring) {
        let parts = words.split(separator: "-")
        let encoding = String(parts[0])
        let size = parts.last?.split(separator: "x").compactMap { Int($0) } ?? []
        self.init(
            encoding,
            MediaFormat(
                MediaKind(ofEncoding: encoding), encoding, width: size.first ?? 640,
                height: size.count == 2 ? size[1] : 480),
            work: Work(decodes: parts.contains("decoded") ? 1 : 0), shortfall: parts.contains("slow") ? 1 : 0)
    }
}

@Suite struct PlannerTests {
    private func plan(_ graph: MediaGraph, running: GraphPlan? = nil) throws -> GraphPlan {
        try Planner(MadeUpNodes(), MadeUpMachine()).plan(graph, running: running)
    }

    private func names(_ plan: GraphPlan) -> [String] { plan.nodes.map(\.name).sorted() }

    @Test("A format that a consumer does not accept is converted, once for all consumers that need it")
    func conversion() throws {
        let plan = try plan(
            MediaGraph {
                Chain {
                    Node("source")
                    Tee { Node("screen", name: "left") }
                    Node("screen", name: "right")
                }
            })
        #expect(names(plan) == ["left", "right", "source", "source-i420"])
        #expect(plan.node("source-i420")?.adapts == PortReference(node: "source", port: "video"))
        #expect(plan.links.allSatisfy { $0.link.from.node != "source" || $0.link.to.node == "source-i420" })
    }

    @Test("A stream is encoded once, with the codec that serves most of its consumers")
    func sharedEncoder() throws {
        let plan = try plan(
            MediaGraph {
                Chain {
                    Node("source")
                    Tee { Node("screen") }
                    Tee { Node("disk") }
                    Node("room")
                }
            })
        // Without the recording, the room would get VP8, its first codec.
        #expect(plan.encoders == ["source-h264"])
        #expect(plan.links(into: "room").first?.format.encoding == "h264")
        #expect(plan.links(into: "disk").first?.format.encoding == "h264")
    }

    private func readers(_ kinds: String...) -> MediaGraph {
        MediaGraph {
            Node("source")
            for kind in kinds {
                Chain(from: "source") { Node(kind) }
            }
        }
    }

    @Test("Consumers that prefer different codecs share an encoder in one that both accept, in any order")
    func tie() throws {
        for graph in [readers("room", "tape"), readers("tape", "room"), readers("tape", "screen", "room")] {
            #expect(try plan(graph).encoders == ["source-vp8"])
        }
        #expect(try plan(readers("tape")).encoders == ["source-h264"])
    }

    @Test("An edit keeps the codec of each consumer that stays, and a new consumer shares it")
    func lastingCodec() throws {
        let room = try plan(readers("room"))
        let both = try plan(readers("room", "tape"), running: room)
        #expect(both.encoders == ["source-vp8"])
        let tape = try plan(readers("tape"), running: both)
        #expect(tape.encoders == ["source-vp8"])
        #expect(try plan(readers("tape", "room"), running: tape).encoders == ["source-vp8"])
        // The disk accepts H.264 alone, which would otherwise serve all three.
        let all = try plan(readers("room", "tape", "disk"), running: both)
        for plan in [all, try plan(readers("room", "tape", "disk", "screen"), running: all)] {
            #expect(plan.links(into: "room").first?.format.encoding == "vp8")
            #expect(plan.links(into: "tape").first?.format.encoding == "vp8")
            #expect(plan.links(into: "disk").first?.format.encoding == "h264")
        }
        #expect(try plan(readers("room", "tape", "disk")).encoders == ["source-h264"])
    }

    @Test("A single consumer gets its preferred codec")
    func preferredCodec() throws {
        let plan = try plan(
            MediaGraph {
                Chain {
                    Node("source")
                    Node("room")
                }
            })
        #expect(plan.encoders == ["source-vp8"])
    }

    @Test("Accepted encoded media passes through; other media is decoded and encoded again")
    func transcoding() throws {
        let plan = try plan(
            MediaGraph {
                Chain {
                    Node("door")
                    Tee { Node("screen") }
                    Node("room")
                }
            })
        #expect(names(plan) == ["door", "door-raw", "door-vp8", "room", "screen"])
        #expect(plan.links(into: "screen").first?.link.from.node == "door-raw")
    }

    @Test("An impossible conversion is refused with both formats")
    func clash() {
        let error = #expect(throws: MediaError.self) {
            try plan(
                MediaGraph {
                    Chain {
                        Node("source")
                        Node("packets")
                    }
                })
        }
        // Follows from the contracts alone.
        #expect(error?.code == MediaError.Code.graphInvalid)
        #expect(error?.message.contains("delivers raw video, but packets.in accepts RTP") == true)
    }

    @Test("An optional part that cannot run is omitted with its reason; a required one fails the plan")
    func optional() throws {
        func graph(isOptional: Bool) -> MediaGraph {
            MediaGraph {
                Chain {
                    Node("source")
                    Tee("side", isOptional: isOptional) { Node("broken") }
                    Node("screen")
                }
            }
        }
        let plan = try plan(graph(isOptional: true))
        #expect(plan.omitted == [OmittedNode(node: "broken", code: "test.broken", reason: "This never works.")])
        #expect(names(plan) == ["screen", "source", "source-i420"])
        #expect(plan.source == graph(isOptional: true).settled(with: MadeUpNodes()))
        let error = #expect(throws: MediaError.self) { try self.plan(graph(isOptional: false)) }
        #expect(error?.node == "broken")
    }

    @Test("Nodes that feed only an omitted one are left out too, sources as well, unless nothing is left")
    func optionalEnd() throws {
        let lonely = Chain {
            Node("door", name: "second")
            Node("video-decoder")
            Node("broken").asOptional
        }
        let rest = try plan(
            MediaGraph {
                lonely
                Chain {
                    Node("source")
                    Tee {
                        Node("convert", name: "beside", settings: ["pixel-format": "I420"])
                        Node("broken", name: "end").asOptional
                    }
                    Node("screen")
                }
            })
        #expect(Set(rest.omitted.map(\.node)) == ["broken", "end"])
        #expect(names(rest) == ["screen", "source", "source-i420"])
        let alone = #expect(throws: MediaError.self) { try plan(MediaGraph { lonely }) }
        #expect(alone?.node == "broken")
    }

    @Test("Latency adds up along the slowest path, and queues are counted")
    func latencyAndQueues() throws {
        let plan = try plan(
            MediaGraph {
                Chain {
                    Node("source")
                    Tee { Node("screen") }
                    Node("room")
                }
            })
        // source, conversion, encoder, room
        #expect(abs(plan.latency(of: "room") - 0.016) < 1e-9)
        #expect(abs(plan.latency(of: "screen") - 0.012) < 1e-9)
        // Both branches downstream of the one conversion hold two frames of 640x480 I420.
        #expect(names(plan) == ["room", "screen", "source", "source-i420", "source-vp8"])
        #expect(plan.queuedBytes == 2 * 2 * 460_800)
    }

    @Test("Playback by the clock waits for the slowest played input, each path by its allowance")
    func playingByTheClock() throws {
        func node(
            _ name: String, _ ports: [(input: String?, output: String?)], _ allowances: [String: Double]
        ) -> NodePlan {
            var plan = NodePlan(Node(name))
            for (index, way) in ports.enumerated() {
                plan.add("it", as: "in\(index)")
                plan.add("it", as: "out\(index)")
                plan.link("in\(index)", "out\(index)")
                if let input = way.input { plan.inputs[input] = ElementPad("in\(index)") }
                if let output = way.output { plan.outputs[output] = ElementPad("out\(index)") }
            }
            plan.allowances = allowances
            plan.latency = 0.001
            return plan
        }
        func speaker(_ name: String) -> NodePlan {
            var plan = node(name, [("in", nil)], [:])
            plan.playsByClock = true
            plan.latency = 0.05
            return plan
        }
        let links = [
            ("room", "audio", "echo", "played"), ("microphone", "audio", "echo", "in"),
            ("echo", "played", "loud", "in"), ("echo", "out", "file", "in"),
            ("microphone", "audio", "headphones", "in"), ("room", "video", "window", "in"),
        ].map {
            LinkPlan(link: Link(from: .init(node: $0, port: $1), to: .init(node: $2, port: $3)), format: .rawAudio)
        }
        var plan = GraphPlan(
            source: MediaGraph(nodes: [], links: []),
            nodes: [
                node("room", [(nil, "audio"), (nil, "video")], ["audio": 0.06, "video": 0.2]),
                node("microphone", [(nil, "audio")], ["audio": 0.01]),
                node("echo", [("played", "played"), ("in", "out")], ["out": 0.014]), speaker("loud"),
                speaker("headphones"), node("file", [("in", nil)], [:]), node("window", [("in", nil)], [:]),
            ], links: links)
        // Includes the room's audio, but neither its video nor the microphone's path through the canceller.
        #expect(abs(plan.latency(of: "loud") - 0.11) < 1e-9)
        #expect(abs(plan.latency(of: "headphones") - 0.11) < 1e-9)
        #expect(abs(plan.latency(of: "file") - 0.003) < 1e-9)
        #expect(abs(plan.latency(of: "window") - 0.002) < 1e-9)
        plan = plan.removing(["room"])
        #expect(abs(plan.latency(of: "headphones") - 0.06) < 1e-9)
    }

    @Test("The first working element is chosen, and rejected ones are listed with their reasons")
    func preference() throws {
        let machine = MadeUpMachine(elements: ["vah264enc", "x264enc"], usable: ["x264enc"])
        let choice = try machine.firstUsable(of: ["v4l2h264enc", "vah264enc", "x264enc"])
        #expect(choice.factory == "x264enc")
        #expect(choice.passedOver.count == 2)
        #expect(choice.passedOver[0] == "v4l2h264enc is not installed")
        #expect(choice.passedOver[1].hasPrefix("vah264enc is installed but cannot be opened"))
        let error = #expect(throws: MediaError.self) { try MadeUpMachine().firstUsable(of: ["a", "b"]) }
        #expect(error?.code == "element.missing")
        #expect(error?.message.contains("package-of-b") == true)
    }

    @Test("A change keeps unchanged nodes, and replaces a node only if a fixed setting changes")
    func change() throws {
        func graph(_ settings: [String: SettingValue]) -> MediaGraph {
            MediaGraph {
                Chain {
                    Node("source")
                    Node("h264-encoder", settings: settings)
                    Node("room")
                }
            }
        }
        let before = try plan(graph(["bitrate": 100]))
        #expect(GraphChange(from: before, to: before).isEmpty)
        let rate = GraphChange(from: before, to: try plan(graph(["bitrate": 200]), running: before))
        #expect(rate.description == "sets h264-encoder.bitrate")
        let interval = GraphChange(
            from: before, to: try plan(graph(["bitrate": 100, "interval": 5]), running: before))
        #expect(interval.description == "replaces h264-encoder")
        #expect(interval.addedLinks.count == 2)
        let more = try plan(
            graph(["bitrate": 100]).adding { Chain(from: "h264-encoder") { Node("disk") } }, running: before)
        #expect(GraphChange(from: before, to: more).description == "adds disk")
    }

    @Test
    func `a graph that names the inserted nodes of the running one changes nothing, and neither does the way back`()
        throws
    {
        let graph = MediaGraph {
            Chain {
                Node("source")
                Tee { Node("screen") }
                Node("room")
            }
        }
        let running = try plan(graph)
        let named = try plan(running.expanded, running: running)
        #expect(named.nodes.allSatisfy { $0.adapts == nil })
        #expect(GraphChange(from: running, to: named).isEmpty)
        let unnamed = try plan(graph, running: named)
        #expect(names(unnamed) == ["room", "screen", "source", "source-i420", "source-vp8"])
        #expect(GraphChange(from: named, to: unnamed).isEmpty)
        let less = try plan(graph.removing(["room"]), running: named)
        #expect(GraphChange(from: named, to: less).description == "removes source-vp8, room")
    }
}

extension Node {
    fileprivate var asOptional: Node {
        var node = self
        node.isOptional = true
        return node
    }
}
