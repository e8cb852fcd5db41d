import GStreamerKit
import MediaGraph
import TestFixtures
import Testing
import TestSupport

@testable import MediaNodes

/// A frame of a test's recording.
struct Picture: Sendable {
    let width: Int
    let height: Int
    /// The number at the top left of the frame, if there is one.
    let number: UInt32?
    let captureTime: MediaTime
    let handedOver: MediaTime
    let frame: VideoFrame

    init(_ frame: VideoFrame) {
        width = frame.width
        height = frame.height
        number = frame.barCode
        captureTime = frame.captureTime
        handedOver = frame.handedOver
        self.frame = frame
    }

    /// Seconds from the capture to the renderer, on the pipeline's clock.
    var wait: Double { handedOver.seconds(since: captureTime) }

    /// The frame number at another place, to which a mixer moved it.
    func number(x: Int, y: Int, width: Int, height: Int) -> UInt32? {
        frame.withPlane(.luma) { bytes, stride in
            BarCode.read(
                bytes.extracting((y * stride + x)...), stride: stride, width: width, height: height)
        }
    }

    func luma(x: Int, y: Int, width: Int, height: Int) -> [UInt8] {
        frame.withPlane(.luma) { bytes, stride in
            (y..<y + height).flatMap { row in
                (x..<x + width).map { bytes.unsafeLoad(fromByteOffset: row * stride + $0, as: UInt8.self) }
            }
        }
    }

    /// Samples brighter than anything in the test pattern's bars, which end at 75 %.
    func brightSamples(x: Int, y: Int, width: Int, height: Int) -> Int {
        luma(x: x, y: y, width: width, height: height).count { $0 > 220 }
    }
}

/// A running graph, and the output of its `frames` and `sound` nodes.
final class Watched: Sendable {
    let pipeline: MediaPipeline
    private let collected: [String: Collected<Picture>]
    private let heard: [String: Collected<AudioChunk>]
    let events = Collected<MediaEvent>()

    /// Without a clock, the graph runs in real time.
    init(
        _ graph: MediaGraph, registry: NodeRegistry = .builtIn, on clock: SteppedClock? = nil,
        _ adjust: (inout NodeBindings) -> Void = { _ in }
    ) async throws {
        var bindings = NodeBindings()
        var collected: [String: Collected<Picture>] = [:]
        var heard: [String: Collected<AudioChunk>] = [:]
        for node in graph.nodes where node.kind == "frames" {
            let pictures = Collected<Picture>()
            collected[node.name] = pictures
            bindings.frames[node.name] = { pictures.append(Picture($0)) }
        }
        for node in graph.nodes where node.kind == "sound" {
            let chunks = Collected<AudioChunk>()
            heard[node.name] = chunks
            bindings.audio[node.name] = { chunks.append($0) }
        }
        let events = events
        bindings.events = { events.append($0) }
        adjust(&bindings)
        self.collected = collected
        self.heard = heard
        pipeline = try await MediaPipeline(
            graph, bindings: bindings, registry: registry, limits: Limits(), clock: clock?.clock ?? .monotonic)
    }

    func pictures(_ node: String = "view") -> [Picture] { collected[node]?.all ?? [] }

    /// The number of frames so far.
    func count(_ node: String = "view") -> Int { collected[node]?.count ?? 0 }

    func sound(_ node: String = "ear") -> [AudioChunk] { heard[node]?.all ?? [] }

    /// Changes a setting while the graph runs.
    func set(_ node: String, _ setting: String, _ value: SettingValue) async throws {
        try await pipeline.set(node, setting, to: value)
    }

    var hasEnded: Bool {
        events.all.contains {
            if case .ended = $0 { true } else { false }
        }
    }

    var failure: MediaError? {
        events.all.lazy.compactMap {
            if case .failed(let error) = $0 { error } else { nil }
        }.first
    }
}

/// Nodes one after the other, from a source to the end where a test watches.
func chain(_ nodes: Node...) -> MediaGraph {
    MediaGraph { Chain { for node in nodes { node } } }
}

extension NodePlan {
    /// Of a node whose frames pass through one element, where a test probes them.
    static func passing(_ request: NodeRequest) -> NodePlan {
        var plan = NodePlan(request.node)
        plan.add("identity", as: "pictures")
        plan.inputs["in"] = ElementPad("pictures")
        plan.outputs["out"] = ElementPad("pictures")
        plan.formats["out"] = request.input("in")
        return plan
    }
}
