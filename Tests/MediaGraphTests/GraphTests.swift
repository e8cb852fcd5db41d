import Foundation
import MediaNodes
import Testing

@testable import MediaGraph

@Suite struct GraphTests {
    private var publishing: MediaGraph {
        MediaGraph {
            Chain {
                Node.file("clip", path: "clip.mp4")
                Tee {
                    Node("scale", name: "small", settings: ["width": 320])
                    Node.frames("preview")
                }
                Node.videoEncoder("encoder", codec: .h264, bitrate: .kilobitsPerSecond(500))
                Node("rtp-output", name: "video")
            }
            Chain(from: "clip", port: "audio") {
                Node.opusEncoder("voice")
                Node("rtp-output", name: "audio", settings: ["payload-type": 111])
            }
        }
    }

    private func link(_ from: String, _ fromPort: String, _ to: String, _ toPort: String) -> Link {
        Link(from: PortReference(node: from, port: fromPort), to: PortReference(node: to, port: toPort))
    }

    @Test("Chains and tees become nodes and links with matching ports")
    func builder() {
        let graph = publishing.settled(with: NodeRegistry.builtIn)
        #expect(graph.nodes.map(\.name) == ["clip", "small", "preview", "encoder", "video", "voice", "audio"])
        #expect(
            Set(graph.links) == [
                link("clip", "video", "small", "in"), link("small", "out", "preview", "in"),
                link("clip", "video", "encoder", "in"), link("encoder", "out", "video", "in"),
                link("clip", "audio", "voice", "in"), link("voice", "out", "audio", "in"),
            ])
        #expect(graph.validate().isEmpty)
        let bound = [CodeBinding.rtpOutput: Set(["video", "audio"]), .frames: ["preview"]]
        #expect(graph.validate(bound: bound).isEmpty)
    }

    @Test("A chain finds the matching output by itself")
    func fittingPort() {
        let graph = MediaGraph {
            Node.testPattern("pattern")
            Chain(from: "pattern") { Node.opusEncoder() }
            Chain(from: "pattern") { Node.null("screen") }
        }.settled(with: NodeRegistry.builtIn)
        #expect(graph.links(into: "opus-encoder").first?.from.port == "audio")
        #expect(graph.links(into: "screen").first?.from.port == "video")
    }

    @Test("A chain may end at a node of another chain, and may have conditions")
    func join() {
        for isLoud in [true, false] {
            let graph = MediaGraph {
                Node.null("end")
                Chain {
                    Node.testPattern("pattern")
                    Join("end")
                }
                if isLoud {
                    Chain(from: "pattern", port: "audio") { Node.speaker() }
                }
            }
            #expect(graph.validate().isEmpty)
            #expect(graph.nodes.count == (isLoud ? 3 : 2))
        }
    }

    @Test("A graph survives writing and reading")
    func codable() throws {
        let data = try JSONEncoder().encode(publishing)
        #expect(try JSONDecoder().decode(MediaGraph.self, from: data) == publishing)
        let settings: [String: SettingValue] = ["a": true, "b": 1, "c": 1.5, "d": "true"]
        let node = Node("x", settings: settings)
        #expect(try JSONDecoder().decode(Node.self, from: JSONEncoder().encode(node)) == node)
    }

    @Test("All problems are reported together")
    func everything() {
        let graph = MediaGraph(
            nodes: [
                Node("test-patern", name: "typo"),
                Node("file", name: "clip"),
                Node("camera", name: "camera", settings: ["width": "wide", "fps": 1000, "colour": 1]),
                Node("null", name: "end"), Node("null", name: "end"), Node("null", name: "lonely"),
                Node("opus-encoder", name: "voice"),
                Node("rtp-input", name: "in", settings: ["codec": "mpeg"]),
            ],
            links: [
                link("camera", "video", "voice", "in"), link("clip", "video", "end", "in"),
                link("camera", "picture", "end", "in"), link("clip", "video", "nobody", "in"),
            ])
        let problems = graph.validate(bound: [.frames: ["view"]])
        let kinds = Set(problems.map(\.kind))
        #expect(
            kinds == [
                .unknownKind, .missingSetting, .badSetting, .unknownSetting, .duplicateName, .unconnected,
                .kindsDoNotMatch, .unknownPort, .inputTaken, .unknownNode, .unusedCode,
            ])
        #expect(problems.filter { $0.kind == .badSetting }.count == 3)
        let text = problems.map(\.message).joined(separator: "\n")
        #expect(text.contains("did you mean \"test-pattern\"?"))
        #expect(text.contains("1 to 240 frames/s"))
        #expect(text.contains("vp8, vp9, h264, opus"))
        #expect(text.contains("camera.video delivers encoded video or raw video, but voice.in accepts raw audio;"))
    }

    @Test("A problem names its setting or link, and the accepted values")
    func whereProblemsAre() throws {
        let wrong = link("camera", "vidio", "end", "in")
        let graph = MediaGraph(
            nodes: [Node("camera", settings: ["widht": 640, "fps": 0.5]), Node("null", name: "end")], links: [wrong])
        let problems = graph.validate()
        let unknown = try #require(problems.first { $0.kind == .unknownSetting })
        #expect(unknown.setting == "widht")
        #expect(unknown.accepted.contains("width"))
        #expect(unknown.message.contains("did you mean \"width\"?"))
        #expect(problems.first { $0.kind == .badSetting }?.setting == "fps")
        let port = try #require(problems.first { $0.kind == .unknownPort })
        #expect(port.link == wrong)
        #expect(port.accepted == ["video"])
    }

    @Test("A suggestion is found through typing mistakes, or if only one word matches")
    func nearestWord() {
        let kinds = ["vp8-encoder", "h264-encoder", "camera", "null", "microphone"]
        #expect("camrea".nearest(among: kinds) == "camera")
        #expect("Camera".nearest(among: kinds) == "camera")
        #expect("h264".nearest(among: kinds) == "h264-encoder")
        #expect("encoder".nearest(among: kinds) == nil)
        #expect("x".nearest(among: kinds) == nil)
        #expect("n".nearest(among: ["c"]) == nil)
        #expect("cm".nearest(among: ["cam"]) == "cam")
        for word in ["save", "mute", "cemure"] { #expect(word.nearest(among: ["scale", "rate", "camera"]) == nil) }
        #expect("microfone".nearest(among: kinds) == "microphone")
        #expect("".nearest(among: kinds) == nil)
        #expect(String(repeating: "camera", count: 100_000).nearest(among: kinds) == nil)
    }

    @Test("A rate of 30 is the same in every notation")
    func numbers() {
        #expect(SettingValue.integer(30) == .number(30))
        #expect(Set([SettingValue.integer(30), .number(30), .number(30.5), "30", true]).count == 4)
        #expect(SettingValue.integer(.max) != .number(Double(Int.max)))
    }

    @Test("A cycle is reported with its nodes, and no others")
    func cycle() throws {
        let graph = MediaGraph(
            nodes: [
                Node.testPattern("source"), Node("scale", name: "a"), Node("scale", name: "b"), Node.null("end"),
                Node.null("other"),
            ],
            links: [
                link("source", "video", "other", "in"), link("a", "out", "b", "in"), link("b", "out", "a", "in"),
                link("b", "out", "end", "in"),
            ])
        let problem = try #require(graph.validate().first)
        #expect(graph.validate().count == 1)
        #expect(problem.kind == .cycle)
        #expect(problem.message == "Remove one of the links between these nodes, which form a cycle: a, b.")
    }

    @Test("Missing and unused functions are reported, with a suggestion")
    func bindings() {
        let graph = publishing
        let problems = graph.validate(bound: [.rtpOutput: ["video", "adio"], .frames: ["preview"]])
        #expect(problems.map(\.kind) == [.unboundCode, .unusedCode])
        #expect(problems[1].message.contains("did you mean \"audio\"?"))
    }

    @Test("An empty graph is a problem")
    func empty() {
        #expect(MediaGraph().validate().map(\.kind) == [.empty])
    }

    /// A kind with a secret of its own, and secrets that only their names reveal.
    private static let secretive: [NodeKind] =
        NodeRegistry.builtIn.kinds + [
            NodeKind(
                "stage", .transport, "A stage", inputs: [Port("in", [.rawVideo])],
                settings: [SettingContract("entry", .text, default: "", isSecret: true, "Password")])
        ]

    @Test("Secrets appear in no graph and no plan, and are restored if unchanged")
    func secrets() {
        let graph = MediaGraph {
            Chain {
                Node("rtsp", settings: ["url": "rtsp://me:pa:ss@w@host/stream?a=b", "latency": 20])
                Node("stage", settings: ["entry": "hush"])
                Node("element:x", settings: ["user-pw": "hush", "proxy-id": "me"])
            }
        }
        let shown = graph.withoutSecrets(Self.secretive)
        #expect(shown.node("rtsp")?.settings == ["url": "rtsp://me:•••@host/stream?a=b", "latency": 20])
        #expect(shown.node("stage")?.settings == ["entry": "•••"])
        #expect(shown.node("element:x")?.settings == ["user-pw": "•••", "proxy-id": "me"])
        #expect(shown.withSecrets(of: graph, Self.secretive) == graph)
        let changed = shown.setting("rtsp", "latency", to: 30).setting("stage", "entry", to: "other")
            .withSecrets(of: graph, Self.secretive)
        #expect(changed.node("rtsp")?.settings["url"] == graph.node("rtsp")?.settings["url"])
        #expect(changed.node("stage")?.settings["entry"] == "other")
        // The graph has no node that it could refer to.
        let stranger = shown.withSecrets(of: MediaGraph(), Self.secretive)
        let problem = stranger.validate(with: Self.secretive).first { $0.setting == "entry" }
        #expect(problem?.message.contains("write the value itself") == true)
        var plan = NodePlan(graph.nodes[1])
        plan.add("fakesink", as: "sink", ["entry": "hush", "sync": false])
        plan.fixedSettings = ["entry": "hush"]
        let page = "\(GraphPlan(source: graph, nodes: [plan], links: []).withoutSecrets(Self.secretive))"
        #expect(!page.contains("hush") && !page.contains("pa:ss") && page.contains("sync"))
    }

    @Test("The bitrate table increases with size and rate, and matches its documentation")
    func bitrates() {
        #expect(VideoBitrate.default(width: 640, height: 480, framesPerSecond: 20).kilobitsPerSecond == 816)
        #expect(VideoBitrate.default(width: 1280, height: 720, framesPerSecond: 25).kilobitsPerSecond == 2008)
        #expect(VideoBitrate.default(width: 1920, height: 1080, framesPerSecond: 30).kilobitsPerSecond == 4000)
        #expect(VideoBitrate.default(width: 3840, height: 2160, framesPerSecond: 30).kilobitsPerSecond == 12000)
        let sizes = [(320, 240), (480, 360), (640, 480), (1280, 720), (1920, 1080), (3840, 2160)]
        for (small, large) in zip(sizes, sizes.dropFirst()) {
            for rate in [1.0, 15, 30, 60] {
                let less = VideoBitrate.default(width: small.0, height: small.1, framesPerSecond: rate)
                #expect(less < VideoBitrate.default(width: large.0, height: large.1, framesPerSecond: rate))
                #expect(less < VideoBitrate.default(width: small.0, height: small.1, framesPerSecond: rate * 2))
            }
        }
    }

    @Test("Times subtract in both directions")
    func times() {
        let early = MediaTime(nanoseconds: 1_000_000_000)
        let late = MediaTime(nanoseconds: 1_500_000_000)
        #expect(late.milliseconds(since: early) == 500)
        #expect(early.seconds(since: late) == -0.5)
        #expect(early < late)
    }

    @Test("Packets of a batch are contiguous")
    func batch() {
        let batch = RTPBatch(
            bytes: [1, 2, 3, 4, 5, 6], ends: [1, 4, 6], captureTime: MediaTime(nanoseconds: 0), rtpTimestamp: 0,
            isKeyframe: false)
        #expect(batch.count == 3)
        #expect((0..<3).map { Array(batch.bytes[batch.range($0)]) } == [[1], [2, 3, 4], [5, 6]])
    }
}
