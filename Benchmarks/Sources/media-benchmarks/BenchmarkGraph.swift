import MediaGraph
import MediaNodes

/// A graph that is run by us and by gst-launch, with as many buffers and the same elements set alike.
///
/// The plan of the graph is altered before it runs: queues wait where they would drop, so that both sides handle every
/// frame however slow the machine is. The line for gst-launch is written from the altered plan.
struct BenchmarkGraph {
    enum Shape: String, CaseIterable {
        /// Raw frames, no codec: the cost of the graph itself.
        case raw
        /// Raw frames, encoded as VP8.
        case vp8
        /// 720p NV12, as a camera gives it, encoded as H.264.
        case nv12
        /// An H.264 stream that passes into RTP packets.
        case passing
        /// A file, decoded and encoded as H.264.
        case file
    }

    /// Where the encoded media goes.
    enum End {
        case nowhere
        /// Standard output, whose reader sees the first frame.
        case standardOutput
    }

    static let width = 640
    static let height = 480
    private static let bitrate = 1_000_000

    let shape: Shape
    let frames: Int
    let clip: String
    var end = End.nowhere
    /// Whether the clip is planned without looking into it: under valgrind that takes longer than it may.
    var isClipKnown = false

    static let registry = NodeRegistry.builtIn.adding([
        PlainPatternNode.self, PlainStreamNode.self, PlainPacketsNode.self, PlainEndNode.self,
    ])

    var graph: MediaGraph {
        let pattern = Node(
            PlainPatternNode.kind.name, name: "pattern", settings: ["frames": .integer(frames)])
        let bitrate: [String: SettingValue] = ["bitrate": .integer(Self.bitrate)]
        return switch shape {
        case .raw:
            MediaGraph {
                Chain {
                    pattern
                    Node.null("end")
                }
            }
        case .vp8:
            MediaGraph {
                Chain {
                    pattern
                    Node("vp8-encoder", name: "encoder", settings: bitrate)
                    Node(PlainEndNode.kind.name, name: "end")
                }
            }
        case .nv12:
            MediaGraph {
                Chain {
                    Node(
                        PlainPatternNode.kind.name, name: "pattern",
                        settings: ["frames": .integer(frames), "format": "NV12", "width": 1280, "height": 720])
                    Node("h264-encoder", name: "encoder", settings: bitrate)
                    Node(PlainEndNode.kind.name, name: "end")
                }
            }
        case .passing:
            MediaGraph {
                Chain {
                    Node(PlainStreamNode.kind.name, name: "stream", settings: ["path": .text(clip)])
                    Node(PlainPacketsNode.kind.name, name: "packets")
                }
            }
        case .file:
            MediaGraph {
                Chain {
                    Node("file", name: "clip", settings: ["path": .text(clip), "loop": false])
                    Node("h264-encoder", name: "encoder", settings: bitrate)
                    Node(PlainEndNode.kind.name, name: "end")
                }
            }
        }
    }

    /// The graph that both sides run.
    func plan() throws(MediaError) -> GraphPlan {
        let environment: any PlanEnvironment = isClipKnown ? KnownClip() : SystemEnvironment()
        var plan = try Planner(Self.registry, environment).plan(graph)
        for node in plan.nodes.indices {
            for element in plan.nodes[node].elements.indices {
                alter(&plan.nodes[node].elements[element])
            }
        }
        return plan
    }

    private func alter(_ element: inout ElementPlan) {
        switch element.factory {
        case "queue": element.properties["leaky"] = "no"
        // Unpaced: how long it takes is what the machine can do.
        case "clocksync": element.properties["sync"] = false
        case "fakesink" where end == .standardOutput:
            element = ElementPlan(name: element.name, factory: "fdsink", properties: ["fd": 1, "sync": false])
        // gst-launch misses an end of the stream before playing, unless the sink delays the start.
        case "fakesink": element.properties["async"] = true
        // The node sets this when the first frame's format arrives.
        case "vp8enc": element.properties["target-bitrate"] = .integer(Self.bitrate)
        case "x264enc": element.properties["bitrate"] = .integer(Self.bitrate / 1000)
        default: break
        }
    }

    /// The arguments of gst-launch for the same elements.
    func line() throws(MediaError) -> [String] {
        let plan = try plan()
        var arguments = ["--quiet"]
        for node in plan.nodes {
            for element in node.elements {
                if arguments.count > 1 { arguments.append("!") }
                arguments.append(element.factory)
                for (name, value) in element.properties.sorted(by: { $0.key < $1.key }) {
                    arguments.append("\(name)=\(value.text ?? value.literal)")
                }
            }
        }
        return arguments
    }
}

extension SettingValue {
    fileprivate var literal: String {
        switch self {
        case .flag(let value): "\(value)"
        case .integer(let value): "\(value)"
        case .number(let value): "\(value)"
        case .text(let value): value
        }
    }
}

/// A moving test pattern without anything of ours drawn into it, and with an end.
enum PlainPatternNode: NodeType {
    static let kind = NodeKind(
        "plain-pattern", .capturer, "Moving colour bars",
        outputs: [Port("out", [.rawVideo], encodings: ["I420", "NV12"])],
        settings: [
            SettingContract("frames", .integer(1...1_000_000), default: 300, "How many"),
            SettingContract("format", .choice(["I420", "NV12"]), default: "I420", "Pixel format"),
            SettingContract("width", .integer(16...8192), default: .integer(BenchmarkGraph.width), "Width"),
            SettingContract("height", .integer(16...8192), default: .integer(BenchmarkGraph.height), "Height"),
        ])

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var plan = NodePlan(request.node)
        plan.add(
            "videotestsrc", as: "picture",
            ["pattern": "smpte75", "horizontal-speed": 2, "num-buffers": .integer(request.integer("frames"))])
        let (pixels, width, height) = (request.text("format"), request.integer("width"), request.integer("height"))
        let format = MediaFormat.rawVideo(pixels, width: width, height: height, framesPerSecond: 30)
        plan.addFilter(
            "video/x-raw,format=\(pixels),width=\(width),height=\(height),framerate=30/1", as: "format")
        plan.link("picture", "format")
        plan.outputs["out"] = ElementPad("format")
        plan.formats["out"] = format
        return plan
    }
}

/// The H.264 of a file without a container, as a camera that encodes gives it.
enum PlainStreamNode: NodeType {
    static let kind = NodeKind(
        "plain-stream", .capturer, "H.264 frames", outputs: [Port("out", [.encodedVideo], encodings: ["h264"])],
        settings: [SettingContract("path", .text, isRequired: true, "The file")])

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var plan = NodePlan(request.node)
        plan.add("filesrc", as: "source", ["location": .text(request.text("path"))])
        plan.append("h264parse", as: "parser")
        plan.setOutput("out", MediaFormat(.encodedVideo, "h264", width: 1280, height: 720, framesPerSecond: 30))
        return plan
    }
}

/// Makes RTP packets of H.264, and drops them.
enum PlainPacketsNode: NodeType {
    static let kind = NodeKind(
        "plain-packets", .renderer, "Drops its packets", inputs: [Port("in", [.encodedVideo], encodings: ["h264"])])

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var plan = NodePlan(request.node)
        plan.add("rtph264pay", as: "payloader", ["mtu": 1180, "aggregate-mode": "zero-latency"])
        plan.addSink()
        plan.link("payloader", "sink")
        plan.inputs["in"] = ElementPad("payloader")
        return plan
    }
}

/// Drops encoded media.
enum PlainEndNode: NodeType {
    static let kind = NodeKind("plain-end", .renderer, "Drops its input", inputs: [Port("in", [.encodedVideo])])

    static func plan(_ request: NodeRequest) throws(MediaError) -> NodePlan {
        var plan = NodePlan(request.node)
        plan.addSink()
        plan.inputs["in"] = ElementPad("sink")
        return plan
    }
}

/// This machine, where every file is the clip.
private struct KnownClip: PlanEnvironment {
    private let system = SystemEnvironment()

    func file(_ path: String) throws(MediaError) -> MediaFileInfo {
        MediaFileInfo(path: path, width: 1280, height: 720, framesPerSecond: 25, hasAudio: true, duration: 5.312)
    }

    func hasElement(_ factory: String) -> Bool { system.hasElement(factory) }
    func canOpen(_ factory: String) -> Bool { system.canOpen(factory) }
    func package(ofElement factory: String) -> String { system.package(ofElement: factory) }
    func camera(_ device: String) throws(MediaError) -> CameraChoice { try system.camera(device) }
    func windowSink() -> String? { system.windowSink() }
    func soundSink() -> String? { system.soundSink() }
    func soundSource() -> String? { system.soundSource() }
    func secondsPerFrame(_ element: ElementPlan, _ format: MediaFormat) -> Double { 0 }
}
